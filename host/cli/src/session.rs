//! The provider under this run's configuration: the component, its origins and credential, and the services that it calls.

use bindery_stack::configuration::{given_value, refused};
use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bindery_credentials::{GoogleCredential, Settings, TrustedEndpoints, settings};
use bindery_emulator::{Emulator, Options};
use bindery_resource::{PropertyMap, Value};
use bindery_sandbox::credential::Credential;
use bindery_sandbox::egress::AllowedOrigin;
use bindery_sandbox::error::ConfigureError;
use bindery_sandbox::origin::Origin;
use bindery_sandbox::package::Package;
use bindery_sandbox::schema::RecordType;
use bindery_sandbox::{Context, Event, Limits, Run, Runtime, Tenant, TenantOptions};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

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

/// How a provider is configured. What comes first counts for less.
#[derive(Debug)]
pub struct Configuration<'c> {
    /// What the state has.
    pub kept: Option<&'c PropertyMap>,
    /// What the stack file sets.
    pub file: PropertyMap,
    /// What the command line sets.
    pub given: Vec<(String, String)>,
    /// Services at other origins.
    pub endpoints: &'c [(String, String)],
    /// The services are emulated.
    pub emulate: bool,
    /// Where an emulator keeps its policies; none where nothing will be called.
    pub policies: Option<&'c Path>,
    /// How long one operation may take.
    pub timeout: Duration,
}

impl Session {
    /// Configures a provider.
    pub async fn start(runtime: &Runtime, package: Package, configuration: Configuration<'_>) -> Result<Self, Failure> {
        let Package {
            component,
            manifest,
            beside,
        } = package;
        let variable = |name: &str| env::var(name).ok();
        let mut config = configuration.kept.cloned().unwrap_or_default();
        for (key, value) in manifest.defaults(variable) {
            config.entry(key).or_insert(Value::String(value));
        }
        config.extend(configuration.file);
        for (key, value) in &configuration.given {
            config.insert(
                key.clone(),
                given_value(&component.config, key, value).map_err(Failure::of)?,
            );
        }
        // Who makes the requests is no part of the state, and no component's business.
        let mut host = config.clone();
        if manifest.is_google() {
            config.retain(|key, _| settings::key(key).is_none());
        }
        host.retain(|key, _| !config.contains_key(key));
        let settings = if configuration.emulate {
            Settings::default()
        } else {
            Settings::read(&host, &variable).map_err(|failures| Failure::diagnostics(refused(failures)))?
        };
        let user_agent = settings.user_agent.clone();
        let google: Arc<dyn Credential> = Arc::new(GoogleCredential::new(settings));
        let mut endpoints = PropertyMap::new();
        let emulator = match configuration.policies.filter(|_| configuration.emulate) {
            Some(policies) => Some(emulate(policies).await?),
            None => None,
        };
        if configuration.emulate && endpoint_keys(&component.config).next().is_none() {
            let message = format!(
                "--emulate: the provider `{}` has no services that are emulated here",
                component.name
            );
            return Err(Failure::input(message));
        }
        let mut origins = match &emulator {
            // Nothing but the emulator is called, and it gets no credential.
            Some(emulator) => vec![without_credential(&emulator.origin())?],
            None if configuration.emulate => manifest.allowed_origins(|_| None, None).map_err(Failure::input)?,
            None => manifest
                .allowed_origins(variable, Some(&google))
                .map_err(Failure::input)?,
        };
        if let Some(emulator) = &emulator {
            for key in endpoint_keys(&component.config) {
                endpoints.insert(key, Value::String(emulator.origin()));
            }
        }
        let trusted = TrustedEndpoints::of(variable).map_err(Failure::input)?;
        for (service, origin) in configuration.endpoints {
            let key = endpoint_keys(&component.config)
                .find(|key| *key == format!("{service}Endpoint"))
                .ok_or_else(|| {
                    let services: Vec<String> = endpoint_keys(&component.config)
                        .map(|key| key.trim_end_matches("Endpoint").to_string())
                        .collect();
                    Failure::input(format!("--endpoint: there is no service `{service}`"))
                        .with_hint(format!("the services are `{}`", services.join("`, `")))
                })?;
            let mut allowed = without_credential(origin)?;
            allowed.credential = trusted.has(&allowed.origin).then(|| Arc::clone(&google));
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
            user_agent,
            limits: Limits::default(),
        };
        let tenant = Tenant::new(runtime, Arc::new(component), options)
            .await
            .map_err(bad_config)?;
        if let Some(origin) = tenant.denied_origins().first() {
            let message = format!("the provider would call `{origin}`, which is not one of its origins");
            let hint = match beside {
                Some(beside) => format!(
                    "allow it in {}: `[[origin]]` and `url = \"{origin}\"`",
                    beside.display()
                ),
                None => format!("allow it with `--endpoint SERVICE={origin}`; no credential is sent there"),
            };
            return Err(Failure::input(message).with_hint(hint));
        }
        Ok(Self {
            tenant,
            run: Run::new(),
            config,
            cancel: CancellationToken::new(),
            timeout: configuration.timeout,
            _emulator: emulator,
        })
    }

    /// The context of one operation that begins now, and that nothing but its deadline ends.
    pub fn context_to_its_end(&self, on_event: impl Fn(Event) + Send + Sync + 'static) -> Context {
        Context {
            cancel: CancellationToken::new(),
            ..self.context(on_event)
        }
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
        credential: None,
    })
}

fn endpoint_keys(config: &RecordType) -> impl Iterator<Item = String> {
    config
        .properties
        .iter()
        .map(|property| property.name.clone())
        .filter(|name| name.ends_with("Endpoint"))
}

/// A command line's text as a value of a key's type. The caller has found that there is such a key.
fn bad_config(error: ConfigureError) -> Failure {
    match error {
        ConfigureError::Failures(failures) => Failure::diagnostics(refused(failures)),
        ConfigureError::Call(error) => Failure::run(error),
    }
}
