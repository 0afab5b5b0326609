//! The stack that a command works on: its file, its place, and the settings that hold for it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bindery_credentials::KEYS;
use bindery_sandbox::Component;
use bindery_sandbox::package::Package;
use bindery_stack::configuration::{Needs, ProviderKeys, Values, in_file};
use bindery_stack::{Owner, StackFile};

use crate::args::{self, Place};
use crate::excerpt::Source;
use crate::failure::Failure;
use crate::report::Report;
use crate::store::Paths;

/// How many operations run at the same time where nothing says it: as many as are committed together. Of their requests
/// fewer are under way at once: that is the provider's limit.
const PARALLEL: u16 = 256;

/// How long one operation may take where nothing says it: a service that is down for a minute is waited for.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A stack that a command works on.
#[derive(Debug)]
pub struct Stack {
    /// What is declared.
    pub file: Arc<StackFile>,
    /// The stack's name.
    pub name: String,
    /// Where its files are.
    pub paths: Paths,
}

impl Stack {
    /// Reads the stack file of a command, and tells the report of it.
    pub fn open(place: &Place, report: &Report) -> Result<Self, Failure> {
        let file = read(&place.file, report)?;
        let name = name(&file, &place.of);
        report.about(&file.name, &name);
        Ok(Self {
            paths: paths(&file, &place.file, &place.of),
            file: Arc::new(file),
            name,
        })
    }

    /// Whose state it is, with a provider.
    pub fn owner(&self, component: &Component) -> Owner {
        Owner {
            project: self.file.name.clone(),
            stack: self.name.clone(),
            provider: component.name.clone(),
            version: component.version.clone(),
        }
    }

    /// How many operations run at the same time.
    pub fn parallel(&self, flag: Option<u16>) -> usize {
        flag.or(self.file.settings.parallel).unwrap_or(PARALLEL).into()
    }
}

/// How long one operation may take.
pub fn timeout(flag: Option<Duration>, file: Option<&StackFile>) -> Duration {
    flag.or_else(|| file?.settings.timeout).unwrap_or(TIMEOUT)
}

/// Sorts out which key is whose.
pub fn configuration(
    file: Option<&StackFile>,
    package: &Package,
    given: &[(String, String)],
    needs: Needs,
) -> Result<Values, Failure> {
    let provider = ProviderKeys {
        name: &package.component.name,
        known: known_keys(package),
    };
    let no_file = StackFile::default();
    provider
        .sort(file.unwrap_or(&no_file), given, needs)
        .map_err(Failure::diagnostics)
}

/// The configuration keys of a provider, and of the host for it.
fn known_keys(package: &Package) -> Vec<&str> {
    let own = package.component.config.properties.iter();
    let hosts = KEYS.iter().filter(|_| package.manifest.is_google());
    own.map(|property| property.name.as_str())
        .chain(hosts.map(|key| key.name))
        .collect()
}

/// Gives what is wrong with the provider's configuration its place, where the stack file sets it.
pub fn in_place(file: Option<&StackFile>, given: &[(String, String)], mut failure: Failure) -> Failure {
    if let Some(file) = file {
        in_file(file, given, &mut failure.problems);
    }
    failure
}

/// Reads a stack file, and tells the report of it.
pub fn read(path: &Path, report: &Report) -> Result<StackFile, Failure> {
    let shown = path.display();
    let bytes = fs::read(path);
    let bytes = bytes.map_err(|error| Failure::input(format!("the stack file {shown} cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let whole = error
            .as_bytes()
            .get(..error.utf8_error().valid_up_to())
            .unwrap_or_default();
        let line = 1 + whole.iter().filter(|byte| **byte == b'\n').count();
        Failure::input(format!("the stack file {shown} is not UTF-8: line {line}")).with_hint("save it as UTF-8")
    })?;
    report.reads(Source {
        path: shown.to_string(),
        text: text.clone(),
    });
    StackFile::parse(&text).map_err(Failure::diagnostics)
}

/// The stack that is meant.
fn name(file: &StackFile, of: &args::Stack) -> String {
    of.stack.clone().unwrap_or_else(|| file.stack().to_string())
}

/// Where the files of a stack are.
pub fn paths(file: &StackFile, path: &Path, of: &args::Stack) -> Paths {
    let beside = || path.parent().unwrap_or_else(|| Path::new(".")).join(".bindery");
    let state_dir = of.state_dir.clone().unwrap_or_else(beside);
    Paths::new(&state_dir, &file.name, &name(file, of), of.emulate)
}
