//! The keys of a configuration that say who makes the provider's requests. They stay in the host: no component sees one.

use std::fmt;

use bindery_resource::{CheckFailure, PropertyMap, PropertyPath, Value};

use crate::source::{Source, SourceError};

/// A configuration key that the host answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub docs: &'static str,
    /// Whether its value is, or may hold, a credential.
    pub is_secret: bool,
    /// Whether it takes several: a list, its JSON, or texts separated by commas.
    pub is_list: bool,
    /// The environment variables that it defaults to; the first that is set counts.
    pub variables: &'static [&'static str],
}

/// All of them.
pub const KEYS: [Key; 7] = [
    Key {
        name: "accessToken",
        docs: "An OAuth 2.0 access token for the provider's requests. It is never written into the state.",
        is_secret: true,
        is_list: false,
        variables: &["GOOGLE_OAUTH_ACCESS_TOKEN"],
    },
    Key {
        name: "credentials",
        docs: "A credential of the cloud's own tools, as JSON or as the path of its file: the key of a service account, an \
               authorized user, an impersonated service account or an external account. It is never written into the state. \
               Without it, and without an access token, the application default credentials are used.",
        is_secret: true,
        is_list: false,
        variables: &["GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON"],
    },
    Key {
        name: "impersonateServiceAccount",
        docs: "The service account to act as: its email address.",
        is_secret: false,
        is_list: false,
        variables: &["GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"],
    },
    Key {
        name: "impersonateServiceAccountDelegates",
        docs: "The accounts through which to act as the service account, in their order.",
        is_secret: false,
        is_list: true,
        variables: &[],
    },
    Key {
        name: "scopes",
        docs: "The scopes that tokens are asked for with. Without it, that of the whole cloud platform.",
        is_secret: false,
        is_list: true,
        variables: &[],
    },
    Key {
        name: "quotaProject",
        docs: "The project that requests are billed to, and whose quota they use.",
        is_secret: false,
        is_list: false,
        variables: &["GOOGLE_CLOUD_QUOTA_PROJECT"],
    },
    Key {
        name: "appendUserAgent",
        docs: "What is added to the user agent of requests.",
        is_secret: false,
        is_list: false,
        variables: &["GOOGLE_APPEND_USER_AGENT"],
    },
];

/// The key of this name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// What the keys say.
#[derive(Clone, Default)]
pub struct Settings {
    /// Where the credential comes from.
    pub source: Source,
    /// The service account to act as.
    pub impersonate: Option<String>,
    /// Through which accounts.
    pub delegates: Vec<String>,
    /// The scopes to ask for; none for the default.
    pub scopes: Vec<String>,
    /// Who is billed.
    pub quota_project: Option<String>,
    /// What is added to the user agent.
    pub user_agent: Option<String>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No part of a source.
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads the keys among these, and the variables that they default to. A credential that a key gives comes before any that a
    /// variable gives; without either, it is what the application default credentials are on this machine.
    ///
    /// # Errors
    /// Every key whose value cannot be used.
    pub fn read(keys: &PropertyMap, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<CheckFailure>> {
        let mut failures = Vec::new();
        let mut given = |name: &'static str| match texts(name, keys.get(name)) {
            Ok(texts) => texts,
            Err(failure) => {
                failures.push(failure);
                Vec::new()
            }
        };
        let [token, json, impersonate, delegates, scopes, quota, agent] = KEYS.map(|key| given(key.name));
        let set = |name: &str| {
            let names = key(name).map_or(&[][..], |key| key.variables);
            names
                .iter()
                .find_map(|name| Some((*name, variable(name).filter(|value| !value.is_empty())?)))
        };
        let one = |name: &str, given: Vec<String>| {
            let given = given.into_iter().next();
            given.or_else(|| set(name).map(|(_, value)| value))
        };
        let source = match (token.into_iter().next(), json.into_iter().next()) {
            (Some(token), _) => Source::token(&token, "accessToken"),
            (None, Some(json)) => Source::json(&json, "credentials"),
            (None, None) => match (set("accessToken"), set("credentials")) {
                (Some((name, token)), _) => Source::token(&token, name),
                (None, Some((name, json))) => Source::json(&json, name),
                (None, None) => Source::application_default(variable),
            },
        };
        let source = source.unwrap_or_else(|SourceError { setting, reason }| {
            let path = key(&setting).map(|key| PropertyPath::property(key.name));
            let reason = match path {
                Some(_) => reason,
                None => format!("the environment variable `{setting}`: {reason}"),
            };
            failures.push(CheckFailure::new(path.unwrap_or_default(), reason));
            Source::default()
        });
        let settings = Self {
            source,
            impersonate: one("impersonateServiceAccount", impersonate),
            delegates,
            scopes,
            quota_project: one("quotaProject", quota),
            user_agent: one("appendUserAgent", agent),
        };
        if !settings.delegates.is_empty() && settings.impersonate.is_none() {
            let path = PropertyPath::property("impersonateServiceAccountDelegates");
            let reason = "says through whom to act as `impersonateServiceAccount`, which is not set";
            failures.push(CheckFailure::new(path, reason));
        }
        for (name, value) in [
            ("quotaProject", &settings.quota_project),
            ("appendUserAgent", &settings.user_agent),
        ] {
            if value
                .as_ref()
                .is_some_and(|value| http::HeaderValue::from_str(value).is_err())
            {
                let reason = "has characters that a request's header cannot carry";
                failures.push(CheckFailure::new(PropertyPath::property(name), reason));
            }
        }
        if failures.is_empty() {
            Ok(settings)
        } else {
            Err(failures)
        }
    }
}

/// The texts of a key's value; none where it is not set.
fn texts(name: &'static str, value: Option<&Value>) -> Result<Vec<String>, CheckFailure> {
    let path = PropertyPath::property(name);
    let is_list = key(name).is_some_and(|key| key.is_list);
    let refused = |path: PropertyPath| {
        let what = if is_list { "a list of texts" } else { "a text" };
        Err(CheckFailure::new(path, format!("expected {what}")))
    };
    match value {
        None | Some(Value::Null | Value::Unknown) => Ok(Vec::new()),
        // Left out it means somebody: empty it is a mistake.
        Some(Value::String(text)) if text.trim().is_empty() => Err(CheckFailure::new(
            path,
            "is empty; leave the key out, or give it a value",
        )),
        Some(Value::String(text)) if is_list => match serde_json::from_str::<Vec<String>>(text) {
            Ok(texts) => Ok(texts),
            Err(_) if text.trim_start().starts_with('[') => refused(path),
            Err(_) => {
                let texts = text.split(',').map(|text| text.trim().to_string());
                Ok(texts.filter(|text| !text.is_empty()).collect())
            }
        },
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::List(items)) if is_list => {
            let mut texts = Vec::new();
            for (index, item) in items.iter().enumerate() {
                match item {
                    Value::String(text) => texts.push(text.clone()),
                    Value::Unknown => {}
                    _ => return refused(path.index(index)),
                }
            }
            Ok(texts)
        }
        Some(_) => refused(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: serde_json::Value, variables: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
        let Value::Object(keys) = Value::from(keys) else {
            unreachable!()
        };
        let variable = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_string())
        };
        let read = Settings::read(&keys, &variable);
        read.map_err(|failures| {
            failures
                .iter()
                .map(|failure| format!("{}: {}", failure.path, failure.reason))
                .collect()
        })
    }

    fn shown(keys: serde_json::Value, variables: &[(&str, &str)]) -> String {
        read(keys, variables).unwrap().source.to_string()
    }

    const KEY: &str = r#"{"type": "service_account", "private_key": "hidden"}"#;

    #[test]
    fn a_key_comes_before_any_variable_and_a_token_before_a_credential() {
        let variables = [("GOOGLE_OAUTH_ACCESS_TOKEN", "t"), ("GOOGLE_CREDENTIALS", KEY)];
        let both = serde_json::json!({"accessToken": "t", "credentials": KEY});
        assert_eq!(shown(both, &variables), "the access token of `accessToken`");
        let json = serde_json::json!({"credentials": KEY});
        assert_eq!(shown(json, &variables), "the service account key of `credentials`");
        let none = serde_json::json!({});
        assert_eq!(
            shown(none.clone(), &variables),
            "the access token of `GOOGLE_OAUTH_ACCESS_TOKEN`"
        );
        assert_eq!(
            shown(none.clone(), &variables[1..]),
            "the service account key of `GOOGLE_CREDENTIALS`"
        );
        assert!(shown(none, &[]).contains("metadata server"));
    }

    #[test]
    fn lists_are_lists_or_their_json_or_texts_with_commas() {
        for scopes in [
            serde_json::json!(["a", "b"]),
            serde_json::json!("[\"a\", \"b\"]"),
            serde_json::json!(" a, b,"),
        ] {
            assert_eq!(
                read(serde_json::json!({"scopes": scopes}), &[]).unwrap().scopes,
                ["a", "b"]
            );
        }
    }

    #[test]
    fn what_cannot_be_used_is_named_and_not_shown() {
        for (keys, variables, expected) in [
            (
                serde_json::json!({"scopes": [1], "quotaProject": ["x"]}),
                &[][..],
                &["scopes[0]: expected a list of texts", "quotaProject: expected a text"][..],
            ),
            (
                serde_json::json!({"credentials": "{\"type\": \"service_account\" hidden"}),
                &[],
                &["credentials: is no JSON: "],
            ),
            (
                serde_json::json!({"credentials": "{\"type\": \"other\"}"}),
                &[],
                &["credentials: is of the type `other`"],
            ),
            (
                serde_json::json!({"credentials": "/no/such/file"}),
                &[],
                &["credentials: /no/such/file cannot be read"],
            ),
            (
                serde_json::json!({"credentials": "", "impersonateServiceAccount": " "}),
                &[],
                &["credentials: is empty", "impersonateServiceAccount: is empty"],
            ),
            (
                serde_json::json!({"credentials": "aGlkZGVu-hidden"}),
                &[],
                &["credentials: the file that it names cannot be read"],
            ),
            (
                serde_json::json!({"accessToken": "two\nlines"}),
                &[],
                &["accessToken: has characters"],
            ),
            (
                serde_json::json!({"impersonateServiceAccountDelegates": ["a"]}),
                &[],
                &["impersonateServiceAccountDelegates: says through whom"],
            ),
            (
                serde_json::json!({}),
                &[("GOOGLE_CREDENTIALS", "{}")],
                &[": the environment variable `GOOGLE_CREDENTIALS`: has no `type`"],
            ),
        ] {
            let failures = read(keys, variables).unwrap_err();
            assert_eq!(failures.len(), expected.len(), "{failures:?}");
            for (failure, expected) in failures.iter().zip(expected) {
                assert!(failure.starts_with(expected), "{failure}");
                assert!(!failure.contains("hidden") && !failure.contains("lines"), "{failure}");
            }
        }
    }
}
