//! What this program serves. Its own file name says under which name, and a component beside it takes the place of the
//! built-in one.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bindery_credentials::{KEYS, Key};
use bindery_resource::PropertyMap;
use bindery_sandbox::manifest::Manifest;
use bindery_sandbox::package::{ComponentFile, Package, PackageError};
use bindery_sandbox::{Component, Runtime, Tenant};
use serde_json::Value;

use crate::mask::Mask;

/// How the file name of every provider starts.
const PREFIX: &str = "pulumi-resource-";

/// A provider under its name.
#[derive(Debug)]
pub struct Served {
    /// The package's name.
    pub name: String,
    /// The component.
    pub component: Arc<Component>,
    /// Its origins, their credentials, and its defaults.
    pub manifest: Manifest,
    /// The file that says what it may call; none for the built-in one.
    pub beside: Option<PathBuf>,
    /// What the operator of a process with many tenants has decided; none in a plugin, whose user decides.
    pub operator: Option<Operator>,
}

/// What engines that attach to a tenant cannot change.
#[derive(Debug)]
pub struct Operator {
    /// The tenant: its origins, its credential and its limits.
    pub tenant: Arc<Tenant>,
    /// The configuration keys that it sets. Engines may set the component's others.
    pub config: PropertyMap,
    /// Hides its credentials.
    pub mask: Mask,
    /// What to do where a service does not accept them.
    pub credential_hint: Option<String>,
}

impl Served {
    /// What the program of this path serves: the path with which it was called, links in it included.
    ///
    /// # Errors
    /// When the component beside it cannot be used.
    pub fn by(runtime: &Runtime, program: &Path) -> Result<Self, PackageError> {
        let file_name = program.file_name().unwrap_or_default().to_string_lossy();
        let name = file_name.strip_prefix(PREFIX);
        let name = name
            .map(|name| name.strip_suffix(".exe").unwrap_or(name))
            .filter(|name| !name.is_empty());
        let beside = name.map(|name| folder(program).join(format!("{name}.wasm")));
        let package = match beside.filter(|file| file.is_file()) {
            Some(path) => Package::open(runtime, &ComponentFile { path, digest: None })?,
            None => Package::built_in(runtime, bindery_components::PROVIDER, bindery_components::MANIFEST)?,
        };
        Ok(Self {
            name: name.unwrap_or(&package.component.name).to_string(),
            component: Arc::new(package.component),
            manifest: package.manifest,
            beside: package.beside,
            operator: None,
        })
    }

    /// What a tenant of this component is served as: under the component's own name, unless another is given.
    pub fn by_operator(component: &Arc<Component>, name: Option<String>, operator: Operator) -> Self {
        Self {
            name: name.unwrap_or_else(|| component.name.clone()),
            component: Arc::clone(component),
            // The environment is the operator's, and no default of a tenant's.
            manifest: Manifest::default(),
            beside: None,
            operator: Some(operator),
        }
    }

    /// Whether this is the built-in provider.
    pub fn is_built_in(&self) -> bool {
        self.beside.is_none() && self.operator.is_none()
    }

    /// The configuration keys that the host answers: who makes the requests, where the cloud's own tools say that.
    pub fn host_keys(&self) -> &'static [Key] {
        if self.manifest.is_google() { &KEYS } else { &[] }
    }

    /// A token as the component has it; none where it is another package's.
    pub fn own_token(&self, token: &str) -> Option<String> {
        let rest = token.strip_prefix(&self.name)?.strip_prefix(':')?;
        Some(format!("{}:{rest}", self.component.name))
    }

    /// A token as programs write it.
    pub fn served_token(&self, own: &str) -> String {
        bindery_schema::served_token(&self.component.name, &self.name, own)
    }

    /// The package schema.
    pub fn schema(&self) -> Value {
        let served = bindery_schema::Served {
            component: &self.component,
            name: &self.name,
            environment: &self.manifest.environment,
            host_keys: self.host_keys(),
        };
        served.schema()
    }

    /// What configuration keys default to on this machine.
    pub fn defaults(&self) -> BTreeMap<String, String> {
        self.manifest.defaults(|name| env::var(name).ok())
    }
}

/// The folder in which a program was found: that of its path, or the one of `PATH` that it is in.
fn folder(program: &Path) -> PathBuf {
    match program.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        // Not the folder that the program happens to be started in: what is there is no one's choice.
        _ => on_path(program.as_os_str())
            .or_else(|| Some(env::current_exe().ok()?.parent()?.to_path_buf()))
            .unwrap_or_default(),
    }
}

fn on_path(program: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).find(|folder| folder.join(program).is_file())
}
