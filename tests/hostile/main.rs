//! Components that nobody would want to run: each is contained, ends with the error of what it hit, and another tenant beside it
//! is answered throughout.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

mod bodies;
mod components;
mod quiet;
mod requests;
mod resources;
mod secrets;

use std::sync::Arc;

use bindery_sandbox::egress::AllowedOrigin;
use bindery_sandbox::{Limits, OperationError, Tenant, TenantOptions};
use bindery_tests::{RUNTIME, UNRULY, context, properties};
use serde_json::{Value, json};

const PROBE: &str = "unruly:test/v1:Probe";

/// A tenant whose component does what it is told to.
async fn hostile(origins: Vec<AllowedOrigin>, limits: Limits) -> Tenant {
    let options = TenantOptions {
        name: "hostile".to_string(),
        origins,
        limits,
        ..TenantOptions::default()
    };
    Tenant::new(&RUNTIME, Arc::clone(&UNRULY), options).await.unwrap()
}

/// What it saw when it did that, or how it ended.
async fn told(tenant: &Tenant, inputs: Value) -> Result<String, OperationError> {
    let (context, _) = context(60);
    let made = tenant.create(&context, PROBE, &properties(inputs)).await?;
    Ok(made.outputs["seen"].as_str().unwrap_or_default().to_string())
}

/// It ended with an error that says this, and the next call is not touched.
async fn ends_with(tenant: &Tenant, inputs: Value, said: &str) -> OperationError {
    let error = told(tenant, inputs.clone()).await.unwrap_err();
    assert!(error.message.contains(said), "{inputs}: {error}");
    assert_eq!(told(tenant, json!({"deed": "answer"})).await.unwrap(), "nothing");
    error
}
