//! A provider's configuration: the component's own keys, the host's, and those that programs written for another package
//! bring along. What is a credential stays in this process.

use std::cell::RefCell;
use std::env;
use std::path::Path;
use std::sync::Arc;

use bindery_credentials::endpoints::VARIABLE;
use bindery_credentials::{GoogleCredential, Key, Settings, Source, TrustedEndpoints, settings};
use bindery_resource::{CheckFailure, PropertyMap, PropertyPath, Value, nearest};
use bindery_sandbox::credential::Credential;
use bindery_sandbox::egress::AllowedOrigin;
use bindery_sandbox::error::ConfigureError;
use bindery_sandbox::origin::Origin;
use bindery_sandbox::schema::PropertyType;
use bindery_sandbox::{Limits, Runtime, Tenant, TenantOptions};
use prost_types::Struct;

use crate::mask::Mask;
use crate::properties::{Properties, decode, from_json};
use crate::served::{Operator, Served};

/// The name under which programs bring keys along that make no difference here.
const GOOGLE_NATIVE: &str = "google-native";

/// These keys.
const GOOGLE_NATIVE_KEYS: [&str; 3] = ["disablePartnerName", "partnerName", "zone"];

/// What engines send along for themselves.
pub const ENGINES_KEYS: [&str; 2] = ["version", "pluginDownloadURL"];

/// A configuration that was read.
#[derive(Debug, Default)]
pub struct Configuration {
    /// The component's keys.
    pub config: PropertyMap,
    /// The host's keys: who makes the requests.
    pub host: PropertyMap,
    /// Keys that make no difference.
    pub ignored: Vec<String>,
    /// What may be written down, as it came.
    pub kept: Properties,
    /// Hides what is secret in it.
    mask: Mask,
}

/// A configuration that cannot be accepted.
#[derive(Debug)]
pub struct Refused {
    /// Every key that is wrong, and what to do.
    pub failures: Vec<CheckFailure>,
    /// Hides what is secret in it.
    pub mask: Mask,
}

/// A provider that is ready for work.
#[derive(Debug)]
pub struct Configured {
    /// The component under its configuration.
    pub tenant: Tenant,
    /// Hides what is secret in the configuration.
    pub mask: Mask,
    /// What decides, beside a claim itself, what it is a claim to: the component, and where it works.
    pub claim_scope: String,
    /// What to do where a service asks for a credential; none where it was sent one.
    pub credential_hint: Option<String>,
}

/// Reads the engine's arguments: values as they are, or as JSON where they are no strings.
///
/// # Errors
/// Every key that cannot be accepted.
pub fn read(served: &Served, args: Struct) -> Result<Configuration, Refused> {
    let mut properties = decode(Some(args)).map_err(|failures| Refused {
        failures,
        mask: Mask::default(),
    })?;
    // What the engine keeps for itself.
    properties.values.retain(|key, _| !key.starts_with("__"));
    for host in served.host_keys().iter().filter(|host| host.is_secret) {
        properties.secrets.insert(PropertyPath::property(host.name));
    }
    let mut read = Configuration {
        mask: Mask::of(&[&properties]),
        ..Configuration::default()
    };
    let mut failures = Vec::new();
    for (key, value) in &properties.values {
        let at = PropertyPath::property(key);
        if served
            .operator
            .as_ref()
            .is_some_and(|operator| operator.decides(served, key, value))
        {
            let reason = "is for the operator of this process to set, in its file of tenants; take it out of the stack's configuration";
            failures.push(CheckFailure::new(at, reason));
            continue;
        }
        let own = served.component.config.property(key);
        let host = served.host_keys().iter().find(|host| host.name == key);
        if let Some(property) = own {
            let value = match (&property.ty, value) {
                (PropertyType::String | PropertyType::Enum(_) | PropertyType::Integer64 { .. }, value) => value.clone(),
                (_, Value::String(text)) => nested(key, text, &mut read.mask, &mut failures),
                (_, value) => value.clone(),
            };
            read.config.insert(key.clone(), value);
        } else if let Some(host) = host {
            read.host.insert(host.name.to_string(), value.clone());
        } else if served.name == GOOGLE_NATIVE && GOOGLE_NATIVE_KEYS.contains(&key.as_str()) {
            read.ignored.push(key.clone());
        } else if !ENGINES_KEYS.contains(&key.as_str()) {
            let reason = format!("{}; {}", unknown_key(served, key), how_to_remove(served, key));
            failures.push(CheckFailure::new(at, reason));
        }
    }
    if !failures.is_empty() {
        return Err(Refused {
            failures,
            mask: read.mask,
        });
    }
    // One that is not known yet keeps the engine from going on without it.
    properties
        .values
        .retain(|key, value| *value == Value::Unknown || !is_secret(served, key));
    read.kept = properties;
    Ok(read)
}

impl Operator {
    /// Whether a value is not an engine's to set: it says where requests go, who makes them, or something else than the operator has said.
    fn decides(&self, served: &Served, key: &str, value: &Value) -> bool {
        let is_own = served.component.config.property(key).is_some();
        let is_other = self.config.get(key).is_some_and(|set| set != value);
        key.ends_with("Endpoint") || is_other || (settings::key(key).is_some() && !is_own)
    }
}

/// Whether a key's value is a credential: it is written down nowhere.
pub fn is_secret(served: &Served, key: &str) -> bool {
    let mut keys = served.host_keys().iter();
    keys.any(|host: &Key| host.is_secret && host.name == key)
}

fn how_to_remove(served: &Served, key: &str) -> String {
    format!(
        "remove it with `pulumi config rm {}:{key}`, or from the provider resource",
        served.name
    )
}

/// A failure of a value, with what to do.
fn how_to_set(served: &Served, failure: CheckFailure) -> CheckFailure {
    let Some(key) = failure.path.first() else {
        return failure;
    };
    let secret = if is_secret(served, key) { "--secret " } else { "" };
    let reason = format!(
        "{}; it is set by `pulumi config set {secret}{}:{key} VALUE`, or on the provider resource",
        failure.reason, served.name
    );
    CheckFailure { reason, ..failure }
}

/// A value that came as the text of JSON. What is no JSON stays a string, which its type then refuses.
fn nested(key: &str, text: &str, mask: &mut Mask, failures: &mut Vec<CheckFailure>) -> Value {
    let Ok(json) = serde_json::from_str(text) else {
        return Value::from(text);
    };
    let fields = [(key.to_string(), from_json(json))].into();
    match decode(Some(Struct { fields })) {
        Ok(mut inner) => {
            *mask = std::mem::take(mask).and(&Mask::of(&[&inner]));
            inner.values.shift_remove(key).unwrap_or(Value::Null)
        }
        Err(inner) => {
            failures.extend(inner);
            Value::Null
        }
    }
}

fn unknown_key(served: &Served, key: &str) -> String {
    let own = served
        .component
        .config
        .properties
        .iter()
        .map(|property| property.name.as_str());
    let hosts = served.host_keys().iter().map(|host| host.name);
    let names: Vec<&str> = own.chain(hosts).collect();
    match nearest(key, names.iter().copied()) {
        Some(near) => format!("is no configuration key of `{}`; did you mean `{near}`?", served.name),
        None => format!(
            "is no configuration key of `{}`; the keys are `{}`",
            served.name,
            names.join("`, `")
        ),
    }
}

/// Configures the component.
///
/// # Errors
/// What it does not accept, and what it would call and may not.
pub async fn configure(
    runtime: &Runtime,
    served: &Served,
    configuration: Configuration,
) -> Result<Configured, Refused> {
    let Configuration {
        config, host, mut mask, ..
    } = configuration;
    if let Some(operator) = &served.operator {
        return configure_for(operator, served, config, mask).await;
    }
    let settings = if served.manifest.is_google() {
        Settings::read(&host, &variable)
    } else {
        Ok(Settings::default())
    };
    let settings = settings.map_err(|failures| Refused {
        failures: failures
            .into_iter()
            .map(|failure| how_to_set(served, failure))
            .collect(),
        mask: mask.clone(),
    })?;
    // A service may say what it was sent.
    for secret in settings.source.secrets() {
        mask.add(&secret);
    }
    let bearers = RefCell::new(Vec::new());
    let bearer = |name: &str| {
        let found = variable(name);
        bearers.borrow_mut().extend(found.clone());
        found
    };
    let source = settings.source.clone();
    let user_agent = settings.user_agent.clone();
    let google: Arc<dyn Credential> = Arc::new(GoogleCredential::new(settings));
    let allowed = allow(served, &config, &google, bearer);
    for bearer in bearers.take() {
        mask.add(&bearer);
    }
    let refused = |failures: Vec<CheckFailure>| Refused {
        failures: failures
            .into_iter()
            .map(|failure| how_to_set(served, failure))
            .collect(),
        mask: mask.clone(),
    };
    let origins = allowed.map_err(&refused)?;
    let credential_hint = credential_hint(served, &origins, &source);
    let claim_scope = claim_scope(served, &config);
    let options = TenantOptions {
        name: served.name.clone(),
        config,
        origins,
        user_agent,
        limits: Limits::default(),
    };
    let tenant = Tenant::new(runtime, Arc::clone(&served.component), options).await;
    let tenant = tenant.map_err(|error| match error {
        ConfigureError::Failures(failures) => refused(failures),
        ConfigureError::Call(error) => refused(whole(error.to_string())),
    })?;
    if let (Some(origin), Some(beside)) = (tenant.denied_origins().first(), &served.beside) {
        return Err(refused(whole(format!(
            "the provider would call `{origin}`, which is not one of its origins; allow it in {}: `[[origin]]` and `url = \"{origin}\"`",
            beside.display()
        ))));
    }
    Ok(Configured {
        tenant,
        mask,
        claim_scope,
        credential_hint,
    })
}

/// Configures a tenant's component for an engine that has attached to it.
async fn configure_for(
    operator: &Operator,
    served: &Served,
    config: PropertyMap,
    mask: Mask,
) -> Result<Configured, Refused> {
    let mut all = operator.config.clone();
    all.extend(config);
    let mask = mask.and(&operator.mask);
    let refused = |failures| Refused {
        failures,
        mask: mask.clone(),
    };
    let tenant = operator.tenant.with_config(&all).await;
    let tenant = tenant.map_err(|error| match error {
        ConfigureError::Failures(failures) => refused(failures),
        ConfigureError::Call(error) => refused(whole(error.to_string())),
    })?;
    if let Some(origin) = tenant.denied_origins().first() {
        return Err(refused(whole(format!(
            "the provider would call `{origin}`, which the operator of this process has not allowed"
        ))));
    }
    Ok(Configured {
        tenant,
        claim_scope: claim_scope(served, &all),
        mask,
        credential_hint: operator.credential_hint.clone(),
    })
}

/// The built-in provider's claims name the project and all else but the services. What any other one's configuration decides is
/// not known.
fn claim_scope(served: &Served, config: &PropertyMap) -> String {
    let mut keys: Vec<String> = config
        .iter()
        .filter(|(key, _)| !served.is_built_in() || key.ends_with("Endpoint"))
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    keys.sort();
    format!("{}\n{}", served.component.digest, keys.join("\n"))
}

/// A failure of no one key.
fn whole(reason: String) -> Vec<CheckFailure> {
    vec![CheckFailure::new(PropertyPath::default(), reason)]
}

/// The origins that a provider may call.
fn allow(
    served: &Served,
    config: &PropertyMap,
    google: &Arc<dyn Credential>,
    bearer: impl Fn(&str) -> Option<String>,
) -> Result<Vec<AllowedOrigin>, Vec<CheckFailure>> {
    let allowed = served.manifest.allowed_origins(bearer, Some(google));
    let mut origins = allowed.map_err(|error| whole(error.to_string()))?;
    if served.is_built_in() {
        let trusted = TrustedEndpoints::of(variable).map_err(whole)?;
        allow_endpoints(config, google, &trusted, &mut origins)?;
    }
    Ok(origins)
}

/// Lets the built-in provider call the endpoints of its configuration. They get the credential only where the operator says so.
fn allow_endpoints(
    config: &PropertyMap,
    google: &Arc<dyn Credential>,
    trusted: &TrustedEndpoints,
    origins: &mut Vec<AllowedOrigin>,
) -> Result<(), Vec<CheckFailure>> {
    for (key, value) in config.iter().filter(|(key, _)| key.ends_with("Endpoint")) {
        let Value::String(text) = value else { continue };
        let origin = Origin::parse(text)
            .map_err(|error| vec![CheckFailure::new(PropertyPath::property(key), error.to_string())])?;
        if origins.iter().any(|allowed| allowed.origin == origin) {
            continue;
        }
        let credential = trusted.has(&origin).then(|| Arc::clone(google));
        origins.push(AllowedOrigin { origin, credential });
    }
    Ok(())
}

/// What to do where a service does not accept a request's credential, or asks for one that it was not sent.
fn credential_hint(served: &Served, origins: &[AllowedOrigin], source: &Source) -> Option<String> {
    let without = origins.iter().find(|allowed| allowed.credential.is_none());
    match without {
        Some(without) if served.is_built_in() => Some(format!(
            "`{}` gets no credential: an endpoint does only over https, and only if the environment variable {VARIABLE} \
             lists it",
            without.origin
        )),
        Some(without) => {
            let beside = served.beside.as_deref().unwrap_or_else(|| Path::new("")).display();
            Some(format!(
                "`{}` gets no credential: {beside} may name, as its `bearer`, an environment variable that holds one",
                without.origin
            ))
        }
        None if served.manifest.is_google() => Some(format!("requests carry {source}: {}", source.hint())),
        None => None,
    }
}

/// The credentials of the stack's configuration. The engine gives each plugin its own keys.
pub fn secrets_of_the_stack(served: &Served) -> PropertyMap {
    let config = variable("PULUMI_CONFIG").and_then(|config| serde_json::from_str(&config).ok());
    let Some(serde_json::Value::Object(config)) = config else {
        return PropertyMap::new();
    };
    let texts = config
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.as_str()?.to_string())));
    texts
        .filter(|(key, value)| is_secret(served, key) && !value.is_empty())
        .map(|(key, value)| (key, Value::String(value)))
        .collect()
}

/// An environment variable that is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Arc<dyn Credential> {
        Arc::new(GoogleCredential::new(Settings::default()))
    }

    #[test]
    fn an_endpoint_that_is_a_services_own_keeps_its_credential() {
        let config = PropertyMap::from_iter([("computeEndpoint".to_string(), "https://a.example".into())]);
        let origin = Origin::parse("https://a.example").unwrap();
        let mut origins = vec![AllowedOrigin {
            origin,
            credential: Some(token()),
        }];
        allow_endpoints(&config, &token(), &TrustedEndpoints::default(), &mut origins).unwrap();
        assert_eq!(origins.len(), 1);
        assert!(origins[0].credential.is_some());
    }
}
