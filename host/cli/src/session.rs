//! The provider under this run's configuration: the component, its origins and credential, and the services that it calls.

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bindery_emulator::{Emulator, Options};
use bindery_resource::{PropertyMap, Value};
use bindery_sandbox::egress::AllowedOrigin;
use bindery_sandbox::error::ConfigureError;
use bindery_sandbox::manifest::Manifest;
use bindery_sandbox::origin::Origin;
use bindery_sandbox::schema::{PropertyType, RecordType};
use bindery_sandbox::{Context, Event, Limits, Run, Runtime, Tenant, TenantOptions};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::args::Target;
use crate::failure::Failure;

/// A configured provider, for one run.
#[derive(Debug)]
pub struct Session {
    /// The provider.
    pub tenant: Tenant,
    /// The claims of this run.
    pub run: Run,
    /// What the state keeps of the configuration: the endpoints of this run are not part of it.
    pub config: PropertyMap,
    /// Ends operations before their next attempt.
    pub cancel: CancellationToken,
    timeout: Duration,
    /// Serves for as long as the session lives.
    _emulator: Option<Emulator>,
}

impl Session {
    /// Loads and configures the built-in provider. `kept` is the configuration that the state has, which counts for what
    /// this run does not set; `policies` is where an emulator keeps its policies, and none where nothing will be called.
    pub async fn start(target: &Target, kept: Option<&PropertyMap>, policies: Option<&Path>) -> Result<Self, Failure> {
        let runtime =
            Runtime::new().map_err(|error| Failure::run(format!("no WebAssembly on this machine: {error:#}")))?;
        let component = runtime.load(bindery_components::PROVIDER).map_err(Failure::run)?;
        let manifest = Manifest::parse(bindery_components::MANIFEST).map_err(Failure::run)?;
        let variable = |name: &str| env::var(name).ok();
        let mut config = kept.cloned().unwrap_or_default();
        for (key, value) in manifest.defaults(variable) {
            config.entry(key).or_insert(Value::String(value));
        }
        for (key, value) in &target.config {
            // The namespace is the provider's own: the file declares no keys.
            let key = key.strip_prefix(&format!("{}:", component.name)).unwrap_or(key);
            config.insert(key.to_string(), typed(&component.config, key, value)?);
        }
        let mut endpoints = PropertyMap::new();
        let emulator = match policies.filter(|_| target.emulate) {
            Some(policies) => Some(emulate(policies).await?),
            None => None,
        };
        let mut origins = match &emulator {
            // Nothing but the emulator is called, and it gets no credential.
            Some(emulator) => vec![without_credential(&emulator.origin())?],
            None if target.emulate => manifest.allowed_origins(|_| None).map_err(Failure::input)?,
            None => manifest.allowed_origins(variable).map_err(Failure::input)?,
        };
        if let Some(emulator) = &emulator {
            for key in endpoint_keys(&component.config) {
                endpoints.insert(key, Value::String(emulator.origin()));
            }
        }
        for (service, origin) in &target.endpoint {
            let key = endpoint_keys(&component.config)
                .find(|key| *key == format!("{service}Endpoint"))
                .ok_or_else(|| {
                    let services: Vec<String> = endpoint_keys(&component.config)
                        .map(|key| key.trim_end_matches("Endpoint").to_string())
                        .collect();
                    Failure::input(format!("--endpoint: there is no service `{service}`"))
                        .with_hint(format!("the services are `{}`", services.join("`, `")))
                })?;
            let allowed = without_credential(origin)?;
            endpoints.insert(key, Value::String(allowed.origin.to_string()));
            origins.retain(|other| other.origin != allowed.origin);
            origins.push(allowed);
        }
        let mut configured = config.clone();
        configured.extend(endpoints);
        let options = TenantOptions {
            name: component.name.clone(),
            config: configured,
            origins,
            limits: Limits::default(),
        };
        let tenant = Tenant::new(&runtime, Arc::new(component), options)
            .await
            .map_err(bad_config)?;
        if let Some(origin) = tenant.denied_origins().first() {
            return Err(Failure::input(format!(
                "the provider would call `{origin}`, which is not one of its origins"
            ))
            .with_hint(format!(
                "allow it with `--endpoint SERVICE={origin}`; no credential is sent there"
            )));
        }
        Ok(Self {
            tenant,
            run: Run::new(),
            config,
            cancel: CancellationToken::new(),
            timeout: target.timeout,
            _emulator: emulator,
        })
    }

    /// The context of one operation that begins now.
    pub fn context(&self, on_event: impl Fn(Event) + Send + Sync + 'static) -> Context {
        Context {
            deadline: Instant::now() + self.timeout,
            cancel: self.cancel.clone(),
            on_event: Arc::new(on_event),
        }
    }
}

async fn emulate(policies: &Path) -> Result<Emulator, Failure> {
    let options = Options {
        file: Some(policies.to_path_buf()),
        ..Options::default()
    };
    let started = Emulator::start(options).await;
    started.map_err(|error| {
        Failure::run(format!(
            "the emulator cannot start with {}: {error}",
            policies.display()
        ))
    })
}

fn without_credential(origin: &str) -> Result<AllowedOrigin, Failure> {
    Ok(AllowedOrigin {
        origin: Origin::parse(origin).map_err(Failure::input)?,
        bearer: None,
    })
}

fn endpoint_keys(config: &RecordType) -> impl Iterator<Item = String> {
    config
        .properties
        .iter()
        .map(|property| property.name.clone())
        .filter(|name| name.ends_with("Endpoint"))
}

/// A command line's text as a value of a key's type. Unknown keys are left to the provider's check.
fn typed(config: &RecordType, key: &str, text: &str) -> Result<Value, Failure> {
    match config.property(key).map(|property| &property.ty) {
        None | Some(PropertyType::String | PropertyType::Enum(_) | PropertyType::Integer64 { .. }) => {
            Ok(Value::String(text.to_string()))
        }
        Some(ty) => serde_json::from_str::<serde_json::Value>(text)
            .map(Value::from)
            .map_err(|_| Failure::input(format!("--config {key}: expected {}, as JSON", ty.describe()))),
    }
}

fn bad_config(error: ConfigureError) -> Failure {
    match error {
        ConfigureError::Failures(failures) => {
            let lines = failures
                .iter()
                .map(|failure| format!("configuration: `{}`: {}", failure.path, failure.reason));
            Failure::input(lines.collect::<Vec<_>>().join("\n       ")).with_hint("set it with `--config KEY=VALUE`")
        }
        ConfigureError::Call(error) => Failure::run(error),
    }
}
