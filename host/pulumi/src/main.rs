//! `pulumi-resource-bindery`: a provider component under Pulumi. The engine starts this program, reads a port from its first
//! line, and speaks Pulumi's `ResourceProvider` protocol with it.
//!
//! - [`served`]: what is served, and under which name. [`server`]: the port, and the end.
//! - [`provider`]: the protocol's calls. [`operation`]: one of them on one resource. [`configuration`]: before all of them.
//! - [`properties`], [`difference`], [`status`]: values, diffs and errors in the engine's form. [`mask`]: without secrets.
//! - [`run`], [`shared_claims`]: what is kept from call to call, and from process to process. [`engine_log`]: what the engine shows meanwhile.

mod configuration;
mod difference;
mod engine_log;
mod mask;
mod operation;
mod properties;
mod provider;
mod run;
mod served;
mod server;
mod shared_claims;
mod status;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use bindery_sandbox::{Cache, Runtime};

use crate::served::Served;
use crate::shared_claims::SharedClaims;

#[tokio::main]
async fn main() -> ExitCode {
    match start().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The engine shows what a plugin printed that did not come alive.
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start() -> Result<(), String> {
    let mut arguments = env::args_os();
    let program = arguments.next().map(PathBuf::from).unwrap_or_default();
    // The engine's address comes last. What comes before it is for its own tracing.
    let engine = arguments.last().and_then(|last| last.into_string().ok());
    let engine = engine.filter(|last| server::is_address(last));
    let runtime = Runtime::new().map_err(|error| format!("no WebAssembly on this machine: {error:#}"))?;
    let cache = Cache::open_usual().unwrap_or_else(|error| {
        eprintln!("warning: compiled components are not kept: {error}");
        None
    });
    let claims = match (&cache, &engine) {
        (Some(cache), Some(engine)) => SharedClaims::of_engine(cache.folder(), engine),
        _ => SharedClaims::default(),
    };
    let runtime = match cache {
        Some(cache) => runtime.with_cache(cache),
        None => runtime,
    };
    let served = Served::by(&runtime, &program).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })?;
    server::serve(runtime, served, engine, claims)
        .await
        .map_err(|error| error.to_string())
}
