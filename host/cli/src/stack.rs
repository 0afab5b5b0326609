//! The stack that a command works on: its file, its place, and the settings that hold for it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bindery_credentials::KEYS;
use bindery_resource::PropertyMap;
use bindery_sandbox::Component;
use bindery_sandbox::package::Package;
use bindery_stack::{Diagnostic, Owner, StackFile};

use crate::args::{self, Place};
use crate::excerpt::Source;
use crate::failure::Failure;
use crate::report::Report;
use crate::store::Paths;

/// The stack that is meant where nothing names one.
const STACK: &str = "dev";

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

/// Gives what is wrong with the provider's configuration its place, where the stack file sets it.
pub fn in_place(file: Option<&StackFile>, given: &[(String, String)], mut failure: Failure) -> Failure {
    for problem in &mut failure.problems {
        let key = problem
            .path
            .as_ref()
            .and_then(|path| path.first())
            .filter(|_| problem.resource.is_none());
        if given
            .iter()
            .any(|(given, _)| Some(given.rsplit(':').next().unwrap_or(given)) == key)
        {
            continue;
        }
        let mut settings = file.map(|file| file.config.settings.iter()).into_iter().flatten();
        problem.position = problem.position.or_else(|| {
            let setting = settings.find(|setting| Some(setting.key.as_str()) == key)?;
            Some(setting.position)
        });
    }
    failure
}

/// How long one operation may take.
pub fn timeout(flag: Option<Duration>, file: Option<&StackFile>) -> Duration {
    flag.or_else(|| file?.settings.timeout).unwrap_or(TIMEOUT)
}

/// What the stack file and the command line say of configuration.
#[derive(Debug)]
pub struct Values {
    /// The values of the file's own keys.
    pub keys: PropertyMap,
    /// What the file sets for the provider.
    pub settings: PropertyMap,
    /// What the command line sets for the provider.
    pub given: Vec<(String, String)>,
}

/// Whether the values of a stack file's own keys count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// What is declared is looked at.
    Values,
    /// Only the provider's configuration is.
    Settings,
}

/// Sorts out which key is whose.
pub fn configuration(
    file: Option<&StackFile>,
    package: &Package,
    given: &[(String, String)],
    needs: Needs,
) -> Result<Values, Failure> {
    let component = &package.component;
    let known = known_keys(package);
    let no_file = StackFile::default();
    let file = file.unwrap_or(&no_file);
    let mut own = Vec::new();
    let mut providers = Vec::new();
    let mut wrong = Vec::new();
    for (key, value) in given {
        match key.split_once(':') {
            Some((namespace, key)) if namespace == component.name => providers.push((key.to_string(), value.clone())),
            Some((namespace, key)) if namespace == file.name && file.config.keys.contains_key(key) => {
                own.push((key.to_string(), value.clone()));
            }
            None if file.config.keys.contains_key(key) => own.push((key.clone(), value.clone())),
            None if known.contains(&key.as_str()) => providers.push((key.clone(), value.clone())),
            _ => wrong.push(unknown_key(key, file, &known)),
        }
    }
    let mut failure = Failure::diagnostics(wrong);
    let settings = file.config.of_provider(&component.name, &file.name);
    let values = match needs {
        Needs::Values => file.config.values(&own),
        Needs::Settings => Ok(PropertyMap::new()),
    };
    match (values, settings) {
        (Ok(keys), Ok(settings)) if failure.problems.is_empty() => Ok(Values {
            keys,
            settings,
            given: providers,
        }),
        (values, settings) => {
            let found = values.err().into_iter().chain(settings.err()).flatten();
            failure.problems.extend(found.map(Into::into));
            Err(failure)
        }
    }
}

/// The configuration keys of a provider, and of the host for it.
fn known_keys(package: &Package) -> Vec<&str> {
    let own = package.component.config.properties.iter();
    let hosts = KEYS.iter().filter(|_| package.manifest.is_google());
    own.map(|property| property.name.as_str())
        .chain(hosts.map(|key| key.name))
        .collect()
}

fn unknown_key(key: &str, file: &StackFile, known: &[&str]) -> Diagnostic {
    let diagnostic = Diagnostic {
        resource: None,
        ..Diagnostic::of(
            "",
            format!("--config: neither the stack file nor the provider has a key `{key}`"),
        )
    };
    let name = key.rsplit(':').next().unwrap_or(key);
    let declared = file.config.keys.keys().map(String::as_str);
    let known: Vec<&str> = declared.chain(known.iter().copied()).collect();
    match bindery_resource::nearest(name, known.iter().copied()) {
        Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
        None => diagnostic.with_hint(format!("there are `{}`", known.join("`, `"))),
    }
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
    let named = of.stack.clone().or_else(|| file.settings.stack.clone());
    named.unwrap_or_else(|| STACK.to_string())
}

/// Where the files of a stack are.
pub fn paths(file: &StackFile, path: &Path, of: &args::Stack) -> Paths {
    let beside = || path.parent().unwrap_or_else(|| Path::new(".")).join(".bindery");
    let state_dir = of.state_dir.clone().unwrap_or_else(beside);
    Paths::new(&state_dir, &file.name, &name(file, of), of.emulate)
}
