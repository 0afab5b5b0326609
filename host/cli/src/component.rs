//! The provider that a run uses: the built-in one, or one from a file, with what its operator wrote down for it.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;

use bindery_sandbox::manifest::Manifest;
use bindery_sandbox::{Cache, Component, Runtime};

use crate::args::ComponentFile;
use crate::failure::{Failure, Problem};
use crate::report::Report;

/// A component, and what it may do.
#[derive(Debug)]
pub struct Loaded {
    /// The component.
    pub component: Component,
    /// Its origins, their credentials, and its defaults.
    pub manifest: Manifest,
    /// The file that says what it may call; none for the built-in one.
    pub beside: Option<PathBuf>,
}

/// Starts what runs components. What it compiles is kept for the next time, where there is a place for it.
pub fn runtime(report: &Report) -> Result<Runtime, Failure> {
    let runtime = Runtime::new();
    let runtime = runtime.map_err(|error| Failure::run(format!("no WebAssembly on this machine: {error:#}")))?;
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = variable("BINDERY_CACHE_DIR");
    let usual = variable("XDG_CACHE_HOME").map(|folder| folder.join("bindery"));
    let usual = usual.or_else(|| Some(variable("HOME")?.join(".cache/bindery")));
    let Some(folder) = named.clone().or(usual) else {
        return Ok(runtime);
    };
    match Cache::open(&folder) {
        Ok(cache) => Ok(runtime.with_cache(cache)),
        Err(error) => {
            if named.is_some() {
                report.warn(&Problem::new(format!("compiled components are not kept: {error}")));
            }
            Ok(runtime)
        }
    }
}

/// The bytes of a component; the built-in one's where none is named.
pub fn bytes(file: Option<&ComponentFile>) -> Result<Vec<u8>, Failure> {
    let Some(file) = file else {
        return Ok(bindery_components::PROVIDER.to_vec());
    };
    fs::read(&file.path)
        .map_err(|error| Failure::input(format!("the component {} cannot be read: {error}", file.path.display())))
}

/// Compiles a component; nothing of it runs.
pub fn compile(runtime: &Runtime, file: Option<&ComponentFile>) -> Result<Component, Failure> {
    let shown = file.map_or_else(
        || "the built-in component".to_string(),
        |file| file.path.display().to_string(),
    );
    let bytes = bytes(file)?;
    if let Some(pinned) = file.and_then(|file| file.digest.as_ref()) {
        let found = bindery_sandbox::Digest::of(&bytes).to_string();
        if found != *pinned {
            return Err(Failure::input(format!("{shown} is not the component that was pinned"))
                .with_hint(format!("its digest is {found}, and {pinned} was asked for")));
        }
    }
    runtime
        .load(&bytes)
        .map_err(|error| Failure::input(format!("{shown} cannot be used: {error}")))
}

/// Loads a component and the file beside it that says what it may call. Without that file it may call nothing.
pub fn load(runtime: &Runtime, file: Option<&ComponentFile>) -> Result<Loaded, Failure> {
    let component = compile(runtime, file)?;
    let (shown, text) = match file {
        None => ("provider.toml".to_string(), bindery_components::MANIFEST.to_string()),
        Some(file) => {
            let beside = file.path.with_extension("toml");
            let text = match fs::read_to_string(&beside) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(Failure::input(format!("{} cannot be read: {error}", beside.display()))),
            };
            (beside.display().to_string(), text)
        }
    };
    let manifest = Manifest::parse(&text).map_err(|error| {
        Failure::input(format!("{shown} cannot be used: {}", error.to_string().trim_end()))
            .with_hint("it lists `[[origin]]` with a `url`, and a `bearer`: the environment variable of a token")
    })?;
    Ok(Loaded {
        component,
        manifest,
        beside: file.map(|file| file.path.with_extension("toml")),
    })
}
