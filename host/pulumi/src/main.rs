//! `pulumi-resource-bindery`: a provider component under Pulumi. The engine starts this program, reads a port from its first
//! line, and speaks Pulumi's `ResourceProvider` protocol with it.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match bindery_pulumi::plugin::run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The engine shows what a plugin printed that did not come alive.
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
