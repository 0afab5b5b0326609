//! The file that says which tenants there are, and what each may do. It is used whole, or not at all.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bindery_credentials::{GoogleCredential, KEYS, Settings, is_path};
use bindery_resource::{CheckFailure, PropertyMap, Value};
use bindery_sandbox::credential::Credential;
use bindery_sandbox::egress::AllowedOrigin;
use bindery_sandbox::error::ConfigureError;
use bindery_sandbox::manifest::{Manifest, ManifestOrigin};
use bindery_sandbox::origin::Origin;
use bindery_sandbox::package::ComponentFile;
use bindery_sandbox::{Component, Limits, Runtime, Tenant, TenantOptions};
use jiff::SignedDuration;
use serde::Deserialize;
use toml::Spanned;

use crate::mask::Mask;
use crate::served::{Operator, Served};

/// What is wrong with the file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// What to do, where that can be said.
    pub hint: Option<String>,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// A file of tenants that parses.
#[derive(Debug)]
pub struct TenantsFile {
    file: File,
    text: String,
    /// What paths in it are relative to.
    folder: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    metrics: Option<MetricsTable>,
    #[serde(default, rename = "tenant")]
    tenants: Vec<TenantTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricsTable {
    port: Spanned<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantTable {
    name: Spanned<String>,
    port: Spanned<u16>,
    /// The name under which programs know it; the component's own without.
    package: Option<Spanned<String>>,
    /// `FILE`, or `FILE@sha256:DIGEST`; the built-in one without.
    component: Option<Spanned<String>>,
    #[serde(default)]
    config: BTreeMap<String, Spanned<toml::Value>>,
    #[serde(default, rename = "origin")]
    origins: Vec<Spanned<ManifestOrigin>>,
    /// Without it, no request carries the credential of the cloud's own tools.
    credential: Option<CredentialTable>,
    #[serde(default)]
    limits: LimitsTable,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CredentialTable {
    access_token: Option<Spanned<String>>,
    credentials: Option<Spanned<String>>,
    impersonate_service_account: Option<Spanned<String>>,
    impersonate_service_account_delegates: Option<Spanned<Vec<String>>>,
    scopes: Option<Spanned<Vec<String>>>,
    quota_project: Option<Spanned<String>>,
    append_user_agent: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    cpu_time: Option<Spanned<String>>,
    wall_time: Option<Spanned<String>>,
    memory: Option<Spanned<usize>>,
    response_body: Option<Spanned<usize>>,
    calls_in_flight: Option<Spanned<usize>>,
}

/// A tenant that can be served.
#[derive(Debug)]
pub(super) struct Ready {
    pub name: String,
    pub port: u16,
    pub tenant: Arc<Tenant>,
    pub served: Arc<Served>,
}

/// Something wrong at a place of the text.
type Wrong = (Range<usize>, String, Option<String>);

impl TenantsFile {
    /// Parses a file's text. Paths in it are relative to `folder`.
    ///
    /// # Errors
    /// When it is no TOML of this form, or tenants share a name or a port.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, Vec<Fault>> {
        let file: File = toml::from_str(text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            vec![fault(text, (at, without_value(error.message()), None))]
        })?;
        let parsed = Self {
            file,
            text: text.to_string(),
            folder: folder.to_path_buf(),
        };
        let wrong = parsed.wrong();
        if wrong.is_empty() {
            Ok(parsed)
        } else {
            Err(wrong.into_iter().map(|wrong| fault(text, wrong)).collect())
        }
    }

    /// How many calls its tenants may have in flight together.
    pub fn calls_in_flight(&self) -> usize {
        let default = Limits::default().calls_in_flight;
        let of = |table: &TenantTable| {
            table
                .limits
                .calls_in_flight
                .as_ref()
                .map_or(default, |given| *given.get_ref())
        };
        self.file.tenants.iter().map(of).fold(0, usize::saturating_add)
    }

    /// The port of the metrics, if they are served.
    pub(super) fn metrics_port(&self) -> Option<u16> {
        self.file.metrics.as_ref().map(|metrics| *metrics.port.get_ref())
    }

    fn ports(&self) -> impl Iterator<Item = &Spanned<u16>> {
        let metrics = self.file.metrics.iter().map(|metrics| &metrics.port);
        self.file.tenants.iter().map(|tenant| &tenant.port).chain(metrics)
    }

    /// A port that cannot be taken.
    pub(super) fn port_taken(&self, port: u16, error: &io::Error) -> Fault {
        let at = self.ports().find(|known| *known.get_ref() == port);
        let at = at.map_or(0..0, Spanned::span);
        let hint = Some("another process has it; choose another one".to_string());
        let hint = hint.filter(|_| error.kind() == io::ErrorKind::AddrInUse);
        fault(
            &self.text,
            (at, format!("the port {port} cannot be taken: {error}"), hint),
        )
    }

    /// What the tables do not say of themselves.
    fn wrong(&self) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        if self.file.tenants.is_empty() {
            wrong.push((
                0..0,
                "there is no tenant".to_string(),
                Some("add a `[[tenant]]`".to_string()),
            ));
        }
        let mut ports = HashMap::new();
        for port in self.ports() {
            let earlier = ports.insert(*port.get_ref(), port);
            if let Some(earlier) = earlier.filter(|port| *port.get_ref() != 0) {
                let line = place(&self.text, earlier.span().start).0;
                let message = format!("the port {} is line {line}'s already", port.get_ref());
                wrong.push((
                    port.span(),
                    message,
                    Some("give each tenant a port of its own".to_string()),
                ));
            }
        }
        let mut names = HashMap::new();
        for tenant in &self.file.tenants {
            let name = tenant.name.get_ref();
            let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || !name.chars().all(is_word) {
                let message = "a tenant's name has letters, digits, `-`, `_` and `.` only".to_string();
                wrong.push((tenant.name.span(), message, None));
            }
            let is_package = |name: &str| {
                let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_inner)
            };
            if let Some(package) = tenant.package.as_ref().filter(|name| !is_package(name.get_ref())) {
                let message = "a package's name has lower case letters, digits and `-`".to_string();
                wrong.push((package.span(), message, None));
            }
            if let Some(earlier) = names.insert(name, &tenant.name) {
                let line = place(&self.text, earlier.span().start).0;
                let message = format!("the tenant of line {line} is called `{name}` already");
                wrong.push((tenant.name.span(), message, None));
            }
        }
        wrong
    }

    /// Loads every component and configures every tenant.
    pub(super) async fn load(&self, runtime: &Runtime) -> Result<Vec<Ready>, Vec<Fault>> {
        let mut loaded = HashMap::new();
        let mut ready = Vec::new();
        let mut faults = Vec::new();
        for table in &self.file.tenants {
            match self.tenant(table, runtime, &mut loaded).await {
                Ok(tenant) => ready.push(tenant),
                Err(wrong) => faults.extend(wrong.into_iter().map(|wrong| fault(&self.text, wrong))),
            }
        }
        if faults.is_empty() { Ok(ready) } else { Err(faults) }
    }

    async fn tenant(
        &self,
        table: &TenantTable,
        runtime: &Runtime,
        loaded: &mut HashMap<Option<String>, Arc<Component>>,
    ) -> Result<Ready, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut or_wrong = |found: Result<(), Vec<Wrong>>| wrong.extend(found.err().into_iter().flatten());
        let component = self.component(table, runtime, loaded);
        let limits = table.limits.read();
        let settings = self.settings(table);
        let settings = match settings {
            Ok(settings) => settings,
            Err(failed) => {
                or_wrong(Err(failed));
                None
            }
        };
        let (component, limits) = match (component, limits) {
            (Ok(component), Ok(limits)) => (component, limits),
            (component, limits) => {
                or_wrong(component.map(drop));
                or_wrong(limits.map(drop));
                return Err(wrong);
            }
        };
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let config: PropertyMap = table
            .config
            .iter()
            .map(|(key, value)| Ok((key.clone(), property(value)?)))
            .collect::<Result<_, Wrong>>()
            .map_err(|wrong| vec![wrong])?;
        let (origins, mask) = self.origins(table, settings.as_ref(), &config)?;
        let options = TenantOptions {
            name: table.name.get_ref().clone(),
            config: config.clone(),
            origins,
            user_agent: settings.as_ref().and_then(|settings| settings.user_agent.clone()),
            limits,
        };
        let tenant = Tenant::new(runtime, Arc::clone(&component), options)
            .await
            .map_err(|error| table.refused(error))?;
        if let Some(origin) = tenant.denied_origins().first() {
            let message = format!("the provider would call `{origin}`, which is not one of the tenant's origins");
            let hint = format!("allow it: `[[tenant.origin]]` and `url = \"{origin}\"`");
            return Err(vec![(table.name.span(), message, Some(hint))]);
        }
        let tenant = Arc::new(tenant);
        let credential_hint = settings.map(|settings| {
            let source = settings.source;
            format!("requests carry {source}: {}", source.hint())
        });
        let operator = Operator {
            tenant: Arc::clone(&tenant),
            config,
            mask,
            credential_hint,
        };
        let package = table.package.as_ref().map(|name| name.get_ref().clone());
        Ok(Ready {
            name: table.name.get_ref().clone(),
            port: *table.port.get_ref(),
            tenant,
            served: Arc::new(Served::by_operator(&component, package, operator)),
        })
    }

    /// A component is loaded once, however many tenants have it.
    fn component(
        &self,
        table: &TenantTable,
        runtime: &Runtime,
        loaded: &mut HashMap<Option<String>, Arc<Component>>,
    ) -> Result<Arc<Component>, Vec<Wrong>> {
        let named = table.component.as_ref();
        let key = named.map(|named| named.get_ref().clone());
        if let Some(component) = loaded.get(&key) {
            return Ok(Arc::clone(component));
        }
        let at = named.map_or_else(|| table.name.span(), Spanned::span);
        let component = match &key {
            None => runtime
                .load(bindery_components::PROVIDER)
                .map_err(|error| vec![(at, format!("the built-in component: {error}"), None)])?,
            Some(text) => {
                let mut file: ComponentFile = text.parse().map_err(|what| vec![(at.clone(), what, None)])?;
                file.path = self.folder.join(&file.path);
                file.compile(runtime).map_err(|error| {
                    let hint = error.hint();
                    vec![(at, error.to_string(), hint)]
                })?
            }
        };
        let component = Arc::new(component);
        loaded.insert(key, Arc::clone(&component));
        Ok(component)
    }

    /// Who makes a tenant's requests. Of this process's environment only what names the application default credentials counts, and
    /// only where there is a table.
    fn settings(&self, table: &TenantTable) -> Result<Option<Settings>, Vec<Wrong>> {
        let Some(credential) = &table.credential else {
            return Ok(None);
        };
        let (mut keys, spans) = credential.keys();
        if let Some(Value::String(path)) = keys.get("credentials")
            && !path.trim_start().starts_with('{')
        {
            let whole = self.folder.join(path);
            // What is no path as it was written may be a credential in another form: it does not become one here.
            if is_path(path) || whole.exists() {
                keys.insert("credentials".to_string(), Value::String(whole.display().to_string()));
            }
        }
        let variable = |name: &str| match name {
            "GOOGLE_APPLICATION_CREDENTIALS" | "HOME" => env::var(name).ok(),
            _ => None,
        };
        let settings = Settings::read(&keys, &variable).map_err(|failures| {
            let place = |failure: &CheckFailure| {
                let key = failure.path.first().unwrap_or_default();
                spans.get(key).cloned().unwrap_or_else(|| table.name.span())
            };
            let wrong = |failure: CheckFailure| (place(&failure), named(&failure), None);
            failures.into_iter().map(wrong).collect::<Vec<_>>()
        })?;
        // What cannot work is said now, and not at the first request.
        if let Err(error) = settings.source.is_complete(&settings) {
            let at = spans.get("credentials").cloned().unwrap_or_else(|| table.name.span());
            return Err(vec![(at, error, Some(settings.source.hint().to_string()))]);
        }
        Ok(Some(settings))
    }

    /// Where a tenant's requests may go, and what hides its credentials.
    fn origins(
        &self,
        table: &TenantTable,
        settings: Option<&Settings>,
        config: &PropertyMap,
    ) -> Result<(Vec<AllowedOrigin>, Mask), Vec<Wrong>> {
        let mut mask = Mask::default();
        let google = settings.map(|settings| {
            settings.source.secrets().iter().for_each(|secret| mask.add(secret));
            Arc::new(GoogleCredential::new(settings.clone())) as Arc<dyn Credential>
        });
        let mut origins = Vec::new();
        for origin in &table.origins {
            let entry = origin.get_ref();
            let at = |message: String, hint: Option<String>| vec![(origin.span(), message, hint)];
            if entry.google && google.is_none() {
                let hint = "add a `[tenant.credential]`; an empty one is the application default credentials";
                let message = "the tenant has no credential of the cloud's own tools".to_string();
                return Err(at(message, Some(hint.to_string())));
            }
            let manifest = Manifest {
                origins: vec![entry.clone()],
                ..Manifest::default()
            };
            let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
            if let Some(name) = &entry.bearer {
                if !is_variable(name) {
                    // It may be the token itself.
                    let message =
                        "`bearer` is the name of an environment variable: letters, digits and `_`".to_string();
                    return Err(at(message, None));
                }
                match variable(name) {
                    Some(bearer) => mask.add(&bearer),
                    None => {
                        let message =
                            format!("the environment variable `{name}`, which holds a bearer token, is not set");
                        return Err(at(message, None));
                    }
                }
            }
            let allowed = manifest.allowed_origins(variable, google.as_ref());
            origins.extend(allowed.map_err(|error| at(error.to_string(), None))?);
        }
        if table.component.is_none() {
            // The built-in provider calls its services, wherever they are.
            let own = Manifest::parse(bindery_components::MANIFEST);
            let own = own.and_then(|manifest| manifest.allowed_origins(|_| None, google.as_ref()));
            let own = own.map_err(|error| vec![(table.name.span(), error.to_string(), None)])?;
            for allowed in own {
                add(&mut origins, allowed);
            }
            for (key, value) in config.iter().filter(|(key, _)| key.ends_with("Endpoint")) {
                let Value::String(text) = value else { continue };
                let at = table.config.get(key).map_or(0..0, Spanned::span);
                let origin = Origin::parse(text).map_err(|error| vec![(at, error.to_string(), None)])?;
                let credential = None;
                add(&mut origins, AllowedOrigin { origin, credential });
            }
        }
        Ok((origins, mask))
    }
}

/// What is said first of an origin holds.
fn add(origins: &mut Vec<AllowedOrigin>, allowed: AllowedOrigin) {
    if !origins.iter().any(|known| known.origin == allowed.origin) {
        origins.push(allowed);
    }
}

impl TenantTable {
    fn refused(&self, error: ConfigureError) -> Vec<Wrong> {
        match error {
            ConfigureError::Failures(failures) => failures
                .into_iter()
                .map(|failure| {
                    let at = self.config.get(failure.path.first().unwrap_or_default());
                    let at = at.map_or_else(|| self.name.span(), Spanned::span);
                    (at, named(&failure), None)
                })
                .collect(),
            ConfigureError::Call(error) => vec![(self.name.span(), error.to_string(), None)],
        }
    }
}

impl CredentialTable {
    /// The host's keys, and where each value is.
    fn keys(&self) -> (PropertyMap, HashMap<&'static str, Range<usize>>) {
        let text = |value: &Option<Spanned<String>>| {
            let value = value.as_ref()?;
            Some((Value::String(value.get_ref().clone()), value.span()))
        };
        let list = |value: &Option<Spanned<Vec<String>>>| {
            let value = value.as_ref()?;
            let items = value.get_ref().iter().cloned().map(Value::String);
            Some((Value::List(items.collect()), value.span()))
        };
        let values = [
            text(&self.access_token),
            text(&self.credentials),
            text(&self.impersonate_service_account),
            list(&self.impersonate_service_account_delegates),
            list(&self.scopes),
            text(&self.quota_project),
            text(&self.append_user_agent),
        ];
        let (mut keys, mut spans) = (PropertyMap::new(), HashMap::new());
        for (key, value) in KEYS.iter().zip(values) {
            if let Some((value, span)) = value {
                keys.insert(key.name.to_string(), value);
                spans.insert(key.name, span);
            }
        }
        (keys, spans)
    }
}

impl LimitsTable {
    fn read(&self) -> Result<Limits, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut time = |given: &Option<Spanned<String>>, default: Duration| {
            let Some(given) = given else { return default };
            let parsed = given.get_ref().parse::<SignedDuration>().ok();
            match parsed
                .and_then(|time| Duration::try_from(time).ok())
                .filter(|time| !time.is_zero())
            {
                Some(time) => time,
                None => {
                    let message = "expected how long, such as `500ms` or `2s`".to_string();
                    wrong.push((given.span(), message, None));
                    default
                }
            }
        };
        let defaults = Limits::default();
        let (cpu_time, wall_time) = (
            time(&self.cpu_time, defaults.cpu_time),
            time(&self.wall_time, defaults.wall_time),
        );
        let mut count = |given: &Option<Spanned<usize>>, default: usize| match given {
            None => default,
            Some(given) if *given.get_ref() == 0 => {
                wrong.push((given.span(), "expected more than nothing".to_string(), None));
                default
            }
            Some(given) => *given.get_ref(),
        };
        let limits = Limits {
            cpu_time,
            wall_time,
            memory: count(&self.memory, defaults.memory),
            response_body: count(&self.response_body, defaults.response_body),
            calls_in_flight: count(&self.calls_in_flight, defaults.calls_in_flight),
        };
        if wrong.is_empty() { Ok(limits) } else { Err(wrong) }
    }
}

/// What a parser says without the value that it found: it may be a credential in the wrong place.
fn without_value(message: &str) -> String {
    match message.rsplit_once(", expected ") {
        Some((found, expected)) if found.starts_with("invalid ") => {
            let expected = if expected.starts_with("struct ") {
                "a table"
            } else {
                expected
            };
            format!("expected {expected}, and found something else")
        }
        _ => message.to_string(),
    }
}

fn is_variable(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_word)
}

fn named(failure: &CheckFailure) -> String {
    match failure.path.first() {
        Some(_) => format!("`{}`: {}", failure.path, failure.reason),
        None => failure.reason.clone(),
    }
}

/// A TOML value as a property.
fn property(value: &Spanned<toml::Value>) -> Result<Value, Wrong> {
    let json = serde_json::to_value(value.get_ref());
    json.map(Value::from)
        .map_err(|error: serde_json::Error| (value.span(), error.to_string(), None))
}

fn fault(text: &str, (at, message, hint): (Range<usize>, impl Display, Option<String>)) -> Fault {
    let (line, column) = place(text, at.start);
    Fault {
        message: message.to_string(),
        hint,
        line,
        column,
    }
}

/// The line and the column of an offset, both from 1.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count();
    (before.matches('\n').count() + 1, column + 1)
}
