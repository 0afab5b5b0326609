//! What a run is configured with: whose each key is that is given beside the stack file, and what is said of those that are refused.

use bindery_resource::schema::{PropertyType, RecordType};
use bindery_resource::{CheckFailure, PropertyMap, Value, nearest};

use crate::diagnostic::Diagnostic;
use crate::file::StackFile;

/// What the stack file says of configuration, and what is given beside it.
#[derive(Debug)]
pub struct Values {
    /// The values of the file's own keys.
    pub keys: PropertyMap,
    /// What the file sets for the provider.
    pub settings: PropertyMap,
    /// What is given for the provider.
    pub given: Vec<(String, String)>,
}

/// Whether the values of a stack file's own keys count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// What is declared is looked at.
    Values,
    /// Only the provider's configuration is.
    Settings,
}

/// Which keys a provider has.
#[derive(Debug, Clone)]
pub struct ProviderKeys<'k> {
    /// The provider's name.
    pub name: &'k str,
    /// Its keys, and those of its host.
    pub known: Vec<&'k str>,
}

impl ProviderKeys<'_> {
    /// Sorts out which key is whose.
    ///
    /// # Errors
    /// Keys that nobody has, and values that the file does not accept.
    pub fn sort(&self, file: &StackFile, given: &[(String, String)], needs: Needs) -> Result<Values, Vec<Diagnostic>> {
        let mut own = Vec::new();
        let mut providers = Vec::new();
        let mut wrong = Vec::new();
        for (key, value) in given {
            match key.split_once(':') {
                Some((namespace, key)) if namespace == self.name => providers.push((key.to_string(), value.clone())),
                Some((namespace, key)) if namespace == file.name && file.config.keys.contains_key(key) => {
                    own.push((key.to_string(), value.clone()));
                }
                None if file.config.keys.contains_key(key) => own.push((key.clone(), value.clone())),
                None if self.known.contains(&key.as_str()) => providers.push((key.clone(), value.clone())),
                _ => wrong.push(unknown_key(key, file, &self.known)),
            }
        }
        let settings = file.config.of_provider(self.name, &file.name);
        let values = match needs {
            Needs::Values => file.config.values(&own),
            Needs::Settings => Ok(PropertyMap::new()),
        };
        match (values, settings) {
            (Ok(keys), Ok(settings)) if wrong.is_empty() => Ok(Values {
                keys,
                settings,
                given: providers,
            }),
            (values, settings) => {
                wrong.extend(values.err().into_iter().chain(settings.err()).flatten());
                Err(wrong)
            }
        }
    }
}

fn unknown_key(key: &str, file: &StackFile, known: &[&str]) -> Diagnostic {
    let message = format!("--config: neither the stack file nor the provider has a key `{key}`");
    let diagnostic = Diagnostic::new(message);
    let name = key.rsplit(':').next().unwrap_or(key);
    let declared = file.config.keys.keys().map(String::as_str);
    let known: Vec<&str> = declared.chain(known.iter().copied()).collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
        None => diagnostic.with_hint(format!("there are `{}`", known.join("`, `"))),
    }
}

/// The value that is given for a provider's key, by the key's type.
///
/// # Errors
/// When it is none of that type.
pub fn given_value(config: &RecordType, key: &str, text: &str) -> Result<Value, Diagnostic> {
    match config.property(key).map(|property| &property.ty) {
        None | Some(PropertyType::String | PropertyType::Enum(_) | PropertyType::Integer64 { .. }) => {
            Ok(Value::String(text.to_string()))
        }
        Some(ty) => serde_json::from_str::<serde_json::Value>(text)
            .map(Value::from)
            .map_err(|_| Diagnostic::new(format!("--config {key}: expected {}, as JSON", ty.describe()))),
    }
}

/// What a provider does not accept of its configuration.
pub fn refused(failures: Vec<CheckFailure>) -> Vec<Diagnostic> {
    let diagnostic = |failure: CheckFailure| match failure.path.first() {
        Some(_) => Diagnostic {
            path: Some(failure.path.clone()),
            ..Diagnostic::new(format!("configuration key `{}`: {}", failure.path, failure.reason))
        },
        None => Diagnostic::new(failure.reason),
    };
    let mut diagnostics: Vec<Diagnostic> = failures.into_iter().map(diagnostic).collect();
    if let Some(last) = diagnostics.last_mut().filter(|last| last.path.is_some()) {
        last.hint = Some("set it with `--config KEY=VALUE`, or under `config` in the stack file".to_string());
    }
    diagnostics
}

/// Gives what is wrong with the provider's configuration its place, where the stack file sets it and nothing given takes its place.
pub fn in_file(file: &StackFile, given: &[(String, String)], diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics {
        let path = diagnostic.path.as_ref();
        let key = path
            .and_then(|path| path.first())
            .filter(|_| diagnostic.resource.is_none());
        let is_given = |(given, _): &(String, String)| Some(given.rsplit(':').next().unwrap_or(given)) == key;
        if given.iter().any(is_given) || diagnostic.position.is_some() {
            continue;
        }
        let mut settings = file.config.settings.iter();
        let setting = settings.find(|setting| Some(setting.key.as_str()) == key);
        diagnostic.position = setting.map(|setting| setting.position);
    }
}
