//! A provider's configuration: the component's own keys, the host's, and those that programs written for another package
//! bring along. What is a credential stays in this process.

use std::cell::RefCell;
use std::env;
use std::path::Path;
use std::sync::Arc;

use bindery_resource::{CheckFailure, PropertyMap, PropertyPath, Value, nearest};
use bindery_sandbox::egress::{AllowedOrigin, BearerToken};
use bindery_sandbox::error::ConfigureError;
use bindery_sandbox::origin::Origin;
use bindery_sandbox::schema::PropertyType;
use bindery_sandbox::{Limits, Runtime, Tenant, TenantOptions};
use bindery_schema::host_keys::{GOOGLE_NATIVE_KEYS, Without};
use prost_types::Struct;

use crate::mask::Mask;
use crate::properties::{Properties, decode, from_json};
use crate::served::Served;

/// The name under which programs bring keys along that make no difference here.
const GOOGLE_NATIVE: &str = "google-native";

/// What engines send along for themselves.
pub const ENGINES_KEYS: [&str; 2] = ["version", "pluginDownloadURL"];

/// The host's key for a credential that is given as it is.
pub const ACCESS_TOKEN: &str = "accessToken";

/// Where the credential comes from that no key gives.
pub const ACCESS_TOKEN_VARIABLE: &str = "GOOGLE_OAUTH_ACCESS_TOKEN";

/// The origins that an operator trusts with the credential, separated by commas.
const CREDENTIAL_ORIGINS: &str = "BINDERY_CREDENTIAL_ORIGINS";

/// A configuration that was read.
#[derive(Debug, Default)]
pub struct Configuration {
    /// The component's keys.
    pub config: PropertyMap,
    /// The credential.
    pub token: Option<String>,
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
    for host in served.host_keys().iter().filter(|host| host.secret) {
        properties.secrets.insert(PropertyPath::property(host.name));
    }
    let mut read = Configuration {
        mask: Mask::of(&[&properties]),
        ..Configuration::default()
    };
    let mut failures = Vec::new();
    for (key, value) in &properties.values {
        let at = PropertyPath::property(key);
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
            match (host.without, value) {
                (_, Value::Unknown) => {}
                (Some(Without::Refused), _) => {
                    let reason = format!(
                        "is not supported yet, and leaving it out would send requests with another credential, or none; use \
                         `{ACCESS_TOKEN}`, and {}",
                        how_to_remove(served, key)
                    );
                    failures.push(CheckFailure::new(at, reason));
                }
                (Some(Without::Ignored), _) => read.ignored.push(key.clone()),
                (None, Value::String(token)) if BearerToken::new(token).is_some() => {
                    read.token = Some(token.clone()).filter(|token| !token.is_empty());
                }
                (None, _) => {
                    let reason =
                        "expected the text of a token, without characters that a request's header cannot carry";
                    failures.push(how_to_set(served, CheckFailure::new(at, reason)));
                }
            }
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
    let is_secret = |key: &str| served.host_keys().iter().any(|host| host.secret && host.name == key);
    properties
        .values
        .retain(|key, value| *value == Value::Unknown || !is_secret(key));
    read.kept = properties;
    Ok(read)
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
    let is_secret = served.host_keys().iter().any(|host| host.secret && host.name == key);
    let secret = if is_secret { "--secret " } else { "" };
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
        config,
        token,
        mut mask,
        ..
    } = configuration;
    let token = token.or_else(|| variable(ACCESS_TOKEN_VARIABLE).filter(|_| served.is_built_in()));
    let credentials = RefCell::new(Vec::new());
    let credential = |name: &str| {
        let found = match name {
            ACCESS_TOKEN_VARIABLE if served.is_built_in() => token.clone(),
            name => variable(name),
        };
        credentials.borrow_mut().extend(found.clone());
        found
    };
    let allowed = allow(served, &config, token.as_deref(), credential);
    // A service may say what it was sent.
    for credential in credentials.take() {
        mask.add(&credential);
    }
    let refused = |failures: Vec<CheckFailure>| Refused {
        failures: failures
            .into_iter()
            .map(|failure| how_to_set(served, failure))
            .collect(),
        mask: mask.clone(),
    };
    let origins = allowed.map_err(&refused)?;
    let credential_hint = credential_hint(served, &origins);
    let claim_scope = claim_scope(served, &config);
    let options = TenantOptions {
        name: served.name.clone(),
        config,
        origins,
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
    token: Option<&str>,
    credential: impl Fn(&str) -> Option<String>,
) -> Result<Vec<AllowedOrigin>, Vec<CheckFailure>> {
    let allowed = served.manifest.allowed_origins(credential);
    let mut origins = allowed.map_err(|error| whole(error.to_string()))?;
    if served.is_built_in() {
        let trusted = variable(CREDENTIAL_ORIGINS).unwrap_or_default();
        allow_endpoints(config, token, &trusted, &mut origins)?;
    }
    Ok(origins)
}

/// Lets the built-in provider call the endpoints of its configuration. They get the credential only where the operator says so.
fn allow_endpoints(
    config: &PropertyMap,
    token: Option<&str>,
    trusted: &str,
    origins: &mut Vec<AllowedOrigin>,
) -> Result<(), Vec<CheckFailure>> {
    let trusted = trusted.split(',').map(str::trim).filter(|origin| !origin.is_empty());
    let trusted: Result<Vec<Origin>, _> = trusted.map(Origin::parse).collect();
    let trusted = trusted.map_err(|error| {
        let reason = format!("the environment variable {CREDENTIAL_ORIGINS}: {error}");
        vec![CheckFailure::new(PropertyPath::default(), reason)]
    })?;
    for (key, value) in config.iter().filter(|(key, _)| key.ends_with("Endpoint")) {
        let Value::String(text) = value else { continue };
        let origin = Origin::parse(text)
            .map_err(|error| vec![CheckFailure::new(PropertyPath::property(key), error.to_string())])?;
        if origins.iter().any(|allowed| allowed.origin == origin) {
            continue;
        }
        let is_trusted = origin.is_https() && trusted.contains(&origin);
        let bearer = token.filter(|_| is_trusted).and_then(BearerToken::new);
        origins.push(AllowedOrigin { origin, bearer });
    }
    Ok(())
}

/// What to do where a service asks for a credential that it was not sent.
fn credential_hint(served: &Served, origins: &[AllowedOrigin]) -> Option<String> {
    let without = origins.iter().find(|allowed| allowed.bearer.is_none())?;
    Some(if !served.is_built_in() {
        let beside = served.beside.as_deref().unwrap_or_else(|| Path::new("")).display();
        format!(
            "`{}` gets no credential: {beside} may name, as its `bearer`, an environment variable that holds one",
            without.origin
        )
    } else if origins.iter().any(|allowed| allowed.bearer.is_some()) {
        format!(
            "`{}` gets no credential: an endpoint does only over https, and only if the environment variable {CREDENTIAL_ORIGINS} \
             lists it",
            without.origin
        )
    } else {
        format!(
            "there is no access token: set one with `pulumi config set --secret {}:{ACCESS_TOKEN} TOKEN`, or in the environment \
             variable {ACCESS_TOKEN_VARIABLE}",
            served.name
        )
    })
}

/// The access token of the stack's configuration. The engine gives each plugin its own keys.
pub fn token_of_the_stack() -> Option<String> {
    let config: serde_json::Value = serde_json::from_str(&variable("PULUMI_CONFIG")?).ok()?;
    let token = config.get(ACCESS_TOKEN)?.as_str()?;
    (!token.is_empty()).then(|| token.to_string())
}

/// An environment variable that is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(endpoint: &str, trusted: &str) -> Result<bool, String> {
        let config = PropertyMap::from_iter([("computeEndpoint".to_string(), endpoint.into())]);
        let mut origins = Vec::new();
        let allowed = allow_endpoints(&config, Some("token"), trusted, &mut origins);
        allowed.map_err(|failures| failures[0].reason.clone())?;
        Ok(origins[0].bearer.is_some())
    }

    #[test]
    fn an_endpoint_gets_the_credential_over_https_and_by_the_operators_word() {
        assert_eq!(allowed("https://compute.example", ""), Ok(false));
        assert_eq!(allowed("https://compute.example", "https://other.example"), Ok(false));
        assert_eq!(
            allowed(
                "https://compute.example",
                "https://other.example, https://compute.example"
            ),
            Ok(true)
        );
        assert_eq!(
            allowed("https://compute.example:8443", "https://compute.example"),
            Ok(false)
        );
        assert_eq!(allowed("http://127.0.0.1:80", "http://127.0.0.1:80"), Ok(false));
        assert!(
            allowed("https://compute.example", "compute.example")
                .unwrap_err()
                .contains(CREDENTIAL_ORIGINS)
        );
    }

    #[test]
    fn an_endpoint_that_is_a_services_own_keeps_its_credential() {
        let config = PropertyMap::from_iter([("computeEndpoint".to_string(), "https://a.example".into())]);
        let origin = Origin::parse("https://a.example").unwrap();
        let mut origins = vec![AllowedOrigin {
            origin,
            bearer: BearerToken::new("token"),
        }];
        allow_endpoints(&config, Some("token"), "", &mut origins).unwrap();
        assert_eq!(origins.len(), 1);
        assert!(origins[0].bearer.is_some());
    }
}
