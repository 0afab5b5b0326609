//! A stack's configuration: the keys that its file declares, and those that it sets for a provider (`NAMESPACE:KEY`).

use bindery_resource::value::EXACT;
use bindery_resource::{PropertyMap, Value, nearest};
use indexmap::IndexMap;

use crate::diagnostic::{Diagnostic, Position};
use crate::reader::{Reader, find};
use crate::yaml::{Entry, Node, NodeValue};

/// What a stack file says of configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The keys that it declares, for its own references.
    pub keys: IndexMap<String, ConfigKey>,
    /// What it sets for providers.
    pub settings: Vec<ProviderSetting>,
}

/// A key that the file declares.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigKey {
    /// Where it is.
    pub position: Position,
    /// The type of its values; any, where it says none.
    pub ty: Option<ConfigType>,
    /// Its value where none is given.
    pub default: Option<Value>,
    /// It is written with the project's name before it, which may be the provider's name too.
    pub has_namespace: bool,
}

/// A key that the file sets for a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSetting {
    /// The provider's name.
    pub namespace: String,
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Where it is.
    pub position: Position,
}

/// The type of a key's values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ConfigType {
    String,
    Integer,
    Number,
    Boolean,
    Object,
    Array(Option<Box<ConfigType>>),
}

const KEY: [&str; 5] = ["type", "default", "value", "description", "items"];
const PULUMI_KEY: [&str; 2] = ["secret", "name"];

impl ConfigType {
    /// The names of Pulumi's project files, and the older ones of its YAML programs.
    fn parse(name: &str, items: Option<Self>) -> Option<Self> {
        Some(match name {
            "string" | "String" => Self::String,
            "integer" | "Integer" | "int" | "Int" => Self::Integer,
            "number" | "Number" => Self::Number,
            "boolean" | "Boolean" => Self::Boolean,
            "object" | "Object" => Self::Object,
            "array" => Self::Array(items.map(Box::new)),
            name => {
                let inner = name.strip_prefix("List<")?.strip_suffix('>')?;
                Self::Array(Some(Box::new(Self::parse(inner, None)?)))
            }
        })
    }

    /// What a person calls it, with an article.
    pub fn describe(&self) -> String {
        match self {
            Self::String => "a string".to_string(),
            Self::Integer => "an integer".to_string(),
            Self::Number => "a number".to_string(),
            Self::Boolean => "`true` or `false`".to_string(),
            Self::Object => "an object".to_string(),
            Self::Array(None) => "a list".to_string(),
            Self::Array(Some(items)) => format!("a list, each entry {}", items.describe()),
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::String, Value::String(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Object, Value::Object(_))
            | (Self::Array(None), Value::List(_)) => true,
            (Self::Number, Value::Number(number)) => number.fract() != 0.0 || number.abs() < EXACT,
            (Self::Integer, Value::Number(number)) => number.fract() == 0.0 && number.abs() < EXACT,
            (Self::Array(Some(ty)), Value::List(items)) => items.iter().all(|item| ty.accepts(item)),
            _ => false,
        }
    }

    /// A command line's text as a value of this type; none where it is none.
    fn read(&self, text: &str) -> Option<Value> {
        let value = match self {
            Self::String => Value::from(text),
            _ => Value::from(serde_json::from_str::<serde_json::Value>(text).ok()?),
        };
        self.accepts(&value).then_some(value)
    }
}

impl Config {
    /// Reads the block `config`.
    pub fn read(reader: &mut Reader, project: Option<&str>, entries: &[Entry]) -> Self {
        let mut config = Self::default();
        for entry in entries {
            let own = entry
                .key
                .split_once(':')
                .filter(|(namespace, _)| Some(*namespace) != project);
            match own {
                Some((namespace, key)) => config.settings.extend(setting(reader, entry, namespace, key)),
                None => {
                    let key = entry.key.split_once(':').map_or(entry.key.as_str(), |(_, key)| key);
                    let declared = ConfigKey {
                        has_namespace: entry.key.contains(':'),
                        ..config_key(reader, entry)
                    };
                    if config.keys.insert(key.to_string(), declared).is_some() {
                        reader.say(entry.position, format!("the key `{key}` is declared twice"));
                    }
                }
            }
        }
        config
    }

    /// The values of the file's keys: those given as text, else their defaults.
    ///
    /// # Errors
    /// Keys without a value, and texts that are no value of their key's type.
    pub fn values(&self, given: &[(String, String)]) -> Result<PropertyMap, Vec<Diagnostic>> {
        let mut wrong = Vec::new();
        let mut values = PropertyMap::new();
        for (key, declared) in &self.keys {
            // The last one counts, as with any flag.
            let text = given.iter().rev().find(|(name, _)| name == key).map(|(_, text)| text);
            let value = match (text, &declared.default) {
                (Some(text), _) => declared.parse(key, text),
                (None, Some(default)) => Ok(default.clone()),
                (None, None) => Err(Diagnostic::at(
                    declared.position,
                    format!("the configuration key `{key}` has no value"),
                )
                .with_hint(format!("pass `--config {key}=VALUE`, or give it a `default`"))),
            };
            match value {
                Ok(value) => {
                    values.insert(key.clone(), value);
                }
                Err(diagnostic) => wrong.push(diagnostic),
            }
        }
        if wrong.is_empty() { Ok(values) } else { Err(wrong) }
    }

    /// What the file sets for a provider.
    ///
    /// # Errors
    /// Keys of other providers, which nothing here would read.
    pub fn of_provider(&self, name: &str, project: &str) -> Result<PropertyMap, Vec<Diagnostic>> {
        let other = |setting: &&ProviderSetting| setting.namespace != name;
        let wrong = self.settings.iter().filter(other).map(|setting| {
            let ProviderSetting { namespace, key, .. } = setting;
            let message = format!("`{namespace}:{key}` configures the provider `{namespace}`, which is not used here");
            let diagnostic = Diagnostic::at(setting.position, message);
            match nearest(namespace, [name]) {
                Some(near) => diagnostic.with_hint(format!("did you mean `{near}:{key}`?")),
                None => diagnostic.with_hint(format!("the provider of this stack is `{name}`")),
            }
        });
        let wrong: Vec<Diagnostic> = wrong.collect();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let settings = self
            .settings
            .iter()
            .map(|setting| (setting.key.clone(), setting.value.clone()));
        // In a project of the provider's own name, a key that is written with that name is both's.
        let shared = self.keys.iter().filter(|(_, key)| project == name && key.has_namespace);
        let shared = shared.filter_map(|(name, key)| Some((name.clone(), key.default.clone()?)));
        Ok(settings.chain(shared).collect())
    }
}

impl ConfigKey {
    fn parse(&self, key: &str, text: &str) -> Result<Value, Diagnostic> {
        let ty = match (&self.ty, &self.default) {
            (Some(ty), _) => ty.clone(),
            // A key with nothing but a value takes others of the same type.
            (None, Some(Value::Bool(_))) => ConfigType::Boolean,
            (None, Some(Value::Number(_))) => ConfigType::Number,
            (None, Some(Value::List(_))) => ConfigType::Array(None),
            (None, Some(Value::Object(_))) => ConfigType::Object,
            (None, _) => ConfigType::String,
        };
        ty.read(text).ok_or_else(|| {
            let message = format!("the configuration key `{key}` must be {}, not `{text}`", ty.describe());
            let diagnostic = Diagnostic::at(self.position, message);
            match ty {
                ConfigType::Array(_) | ConfigType::Object => diagnostic.with_hint("write it as JSON"),
                _ => diagnostic,
            }
        })
    }
}

fn setting(reader: &mut Reader, entry: &Entry, namespace: &str, key: &str) -> Option<ProviderSetting> {
    let node = match &entry.node.value {
        NodeValue::Map(fields) => {
            reader.known_keys(fields, &["value"], &["secret"], "a provider's configuration key");
            match find(fields, "value") {
                Some(value) => &value.node,
                None => {
                    reader.say(entry.position, format!("`{}` has no `value`", entry.key));
                    return None;
                }
            }
        }
        _ => &entry.node,
    };
    Some(ProviderSetting {
        namespace: namespace.to_string(),
        key: key.to_string(),
        value: plain(reader, node, &entry.key)?,
        position: entry.position,
    })
}

fn config_key(reader: &mut Reader, entry: &Entry) -> ConfigKey {
    let NodeValue::Map(fields) = &entry.node.value else {
        return ConfigKey {
            position: entry.position,
            ty: None,
            default: plain(reader, &entry.node, &entry.key).filter(|value| *value != Value::Null),
            has_namespace: false,
        };
    };
    reader.known_keys(fields, &KEY, &PULUMI_KEY, "a configuration key");
    let ty = find(fields, "type").and_then(|ty| config_type(reader, fields, &ty.node));
    let default = ["default", "value"].into_iter().find_map(|name| find(fields, name));
    if find(fields, "default").is_some()
        && let Some(value) = find(fields, "value")
    {
        reader.say(
            value.position,
            "a configuration key has a `default` or a `value`, not both",
        );
    }
    let default = default.and_then(|default| {
        let value = plain(reader, &default.node, &entry.key)?;
        if let Some(ty) = ty.as_ref().filter(|ty| !ty.accepts(&value)) {
            reader.form(
                &default.node,
                &format!("the `{}` of `{}`", default.key, entry.key),
                &ty.describe(),
            );
            return None;
        }
        Some(value)
    });
    if default.is_none() && find(fields, "type").is_none() && find(fields, "default").is_none() {
        reader.say(
            entry.position,
            format!("the configuration key `{}` needs a `type` or a `default`", entry.key),
        );
    }
    ConfigKey {
        position: entry.position,
        ty,
        default,
        has_namespace: false,
    }
}

fn config_type(reader: &mut Reader, fields: &[Entry], node: &Node) -> Option<ConfigType> {
    let items = match find(fields, "items") {
        Some(items) => {
            let inner = reader.mapping(&items.node, "`items`");
            find(inner, "type").and_then(|ty| config_type(reader, inner, &ty.node))
        }
        None => None,
    };
    let name = reader.text(node, "`type`")?;
    let ty = ConfigType::parse(&name, items);
    if ty.is_none() {
        let names = ["string", "integer", "number", "boolean", "array", "object"];
        let diagnostic = Diagnostic::at(node.position, format!("there is no configuration type `{name}`"));
        reader.diagnostics.push(match nearest(&name, names) {
            Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
            None => diagnostic.with_hint(format!("there are `{}`", names.join("`, `"))),
        });
    }
    ty
}

/// A value without references: Pulumi does not follow them in configuration, and neither does this.
fn plain(reader: &mut Reader, node: &Node, key: &str) -> Option<Value> {
    fn has_reference(node: &Node) -> bool {
        match &node.value {
            NodeValue::String(text) => text.contains("${"),
            NodeValue::List(items) => items.iter().any(has_reference),
            NodeValue::Map(entries) => entries.iter().any(|entry| has_reference(&entry.node)),
            _ => false,
        }
    }
    if has_reference(node) {
        let message = format!("the value of `{key}` must be plain: references (`${{…}}`) are not followed in `config`");
        reader
            .diagnostics
            .push(Diagnostic::at(node.position, message).with_hint("make it one of the `variables`"));
        return None;
    }
    Some(node.to_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, Vec<String>> {
        let node = Node::parse(text).unwrap();
        let mut reader = Reader::default();
        let entries = reader.mapping(&node, "config").to_vec();
        let config = Config::read(&mut reader, Some("p"), &entries);
        if reader.diagnostics.is_empty() {
            Ok(config)
        } else {
            Err(reader.diagnostics.iter().map(ToString::to_string).collect())
        }
    }

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    }

    const KEYS: &str = "
count: {type: integer, default: 2}
p:name: x
list: {type: array, items: {type: string}, default: [a]}
older: {type: 'List<Number>', default: [1]}
flag: true
needed: {type: string, description: who}
bindery:project: {value: q}
bindery:region: r
";

    #[test]
    fn given_values_are_read_by_their_types_and_defaults_stand_for_the_rest() {
        let config = read(KEYS).unwrap();
        let values = config
            .values(&given(&[
                ("needed", "7"),
                ("count", "3"),
                ("list", r#"["b"]"#),
                ("flag", "true"),
                ("flag", "false"),
            ]))
            .unwrap();
        assert_eq!(
            Value::Object(values).to_string(),
            r#"{"count": 3, "name": "x", "list": ["b"], "older": [1], "flag": false, "needed": "7"}"#
        );
        assert_eq!(
            Value::Object(config.of_provider("bindery", "p").unwrap()).to_string(),
            r#"{"project": "q", "region": "r"}"#
        );
    }

    #[test]
    fn values_that_are_missing_or_of_another_type_are_named() {
        let wrong = read(KEYS)
            .unwrap()
            .values(&given(&[("count", "2.5"), ("list", "[1]"), ("flag", "yes")]))
            .unwrap_err();
        let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(
            wrong,
            [
                "2:1: the configuration key `count` must be an integer, not `2.5`",
                "4:1: the configuration key `list` must be a list, each entry a string, not `[1]`",
                "6:1: the configuration key `flag` must be `true` or `false`, not `yes`",
                "7:1: the configuration key `needed` has no value",
            ]
        );
        let own = read("p:project: q\nother: r").unwrap().of_provider("p", "p").unwrap();
        assert_eq!(Value::Object(own).to_string(), r#"{"project": "q"}"#);
        let wrong = read(KEYS).unwrap().of_provider("acme", "p").unwrap_err();
        assert!(
            wrong[0]
                .message
                .contains("`bindery:project` configures the provider `bindery`")
        );
    }

    #[test]
    fn declarations_that_make_no_sense_are_refused() {
        for (text, expected) in [
            ("a: {type: strin}", "1:11: there is no configuration type `strin`"),
            (
                "a: {type: integer, default: x}",
                "1:29: the `default` of `a` must be an integer, not a string",
            ),
            ("a: {description: x}", "needs a `type` or a `default`"),
            ("a: {type: string, secret: true}", "`secret` is not supported here"),
            ("a: {default: '${b}'}", "must be plain"),
            ("a: {default: 1, value: 2}", "not both"),
            ("a: 1\np:a: 2", "declared twice"),
            ("bindery:x: {vlaue: 1}", "has no `vlaue`"),
        ] {
            let wrong = read(text).unwrap_err();
            assert!(wrong.iter().any(|wrong| wrong.contains(expected)), "{text}: {wrong:?}");
        }
    }
}
