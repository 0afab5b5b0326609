//! The provider that a run uses: the built-in one, or one from a file.

use bindery_sandbox::package::{ComponentFile, Package, PackageError};
use bindery_sandbox::{Cache, Component, Limits, Runtime};
use bindery_stack::Diagnostic;

use crate::failure::Failure;
use crate::report::Report;

/// Starts what runs components, for one tenant.
pub fn runtime(report: &Report) -> Result<Runtime, Failure> {
    runtime_for(report, Limits::default().calls_in_flight)
}

/// Starts what runs components, for tenants with so many calls in flight. What it compiles is kept for the next time, where there
/// is a place for it.
pub fn runtime_for(report: &Report, calls_in_flight: usize) -> Result<Runtime, Failure> {
    let runtime = Runtime::for_calls(calls_in_flight);
    let runtime = runtime.map_err(|error| Failure::run(format!("no WebAssembly on this machine: {error:#}")))?;
    match Cache::open_usual() {
        Ok(Some(cache)) => Ok(runtime.with_cache(cache)),
        Ok(None) => Ok(runtime),
        Err(error) => {
            report.warn(&Diagnostic::new(format!("compiled components are not kept: {error}")));
            Ok(runtime)
        }
    }
}

/// The bytes of a component; the built-in one's where none is named.
pub fn bytes(file: Option<&ComponentFile>) -> Result<Vec<u8>, Failure> {
    match file {
        None => Ok(bindery_components::PROVIDER.to_vec()),
        Some(file) => file.bytes().map_err(unusable),
    }
}

/// Compiles a component; nothing of it runs.
pub fn compile(runtime: &Runtime, file: Option<&ComponentFile>) -> Result<Component, Failure> {
    match file {
        None => Ok(load(runtime, None)?.component),
        Some(file) => file.compile(runtime).map_err(unusable),
    }
}

/// Loads a component and the file beside it that says what it may call.
pub fn load(runtime: &Runtime, file: Option<&ComponentFile>) -> Result<Package, Failure> {
    let package = match file {
        None => Package::built_in(runtime, bindery_components::PROVIDER, bindery_components::MANIFEST),
        Some(file) => Package::open(runtime, file),
    };
    package.map_err(unusable)
}

fn unusable(error: PackageError) -> Failure {
    let hint = error.hint();
    let failure = Failure::input(error);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
