//! Where tokens come from.

use std::error::Error as _;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use google_cloud_auth::build_errors::Error as BuildError;
use google_cloud_auth::credentials::{
    CacheableResource, Credentials, CredentialsProvider, external_account, impersonated, mds, service_account,
    user_account,
};
use google_cloud_auth::errors::CredentialsError;
use google_cloud_gax::retry_policy::{Aip194Strict, RetryPolicyExt};
use http::{Extensions, HeaderMap, HeaderValue, header};
use serde_json::Value;

use crate::settings::Settings;

/// The scope that covers every service.
const CLOUD_PLATFORM: &str = "https://www.googleapis.com/auth/cloud-platform";

/// How often a token is asked for before a request fails.
const ATTEMPTS: u32 = 4;

/// Where the cloud's own tools keep the credential of a person, below their home.
const WELL_KNOWN: &str = ".config/gcloud/application_default_credentials.json";

/// The variable that names a file with the application's default credentials.
const APPLICATION_CREDENTIALS: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// Where tokens come from. It shows which source it is, and nothing of what is secret in it.
#[derive(Clone, Default)]
pub enum Source {
    /// One token, which stays the same.
    Token {
        /// The token.
        token: HeaderValue,
        /// The setting that gave it.
        setting: String,
    },
    /// A credential of the cloud's own tools.
    Json {
        /// Its kind.
        kind: Kind,
        /// All of it.
        json: Arc<Value>,
        /// The setting or the file that gave it.
        from: String,
    },
    /// The metadata server of the machine.
    #[default]
    Metadata,
}

/// The kinds of credentials in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A service account's private key.
    ServiceAccount,
    /// A person who has signed in.
    AuthorizedUser,
    /// A service account, by way of another credential.
    Impersonated,
    /// An identity of another provider.
    ExternalAccount,
}

/// A setting that gives no source.
#[derive(Debug)]
pub struct SourceError {
    /// The key, or the environment variable.
    pub setting: String,
    /// What is wrong with its value, without the value.
    pub reason: String,
}

impl Kind {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::ServiceAccount, "service_account", "service account key"),
        (Self::AuthorizedUser, "authorized_user", "authorized user"),
        (
            Self::Impersonated,
            "impersonated_service_account",
            "impersonated service account",
        ),
        (Self::ExternalAccount, "external_account", "external account"),
    ];

    fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, ty, _)| *ty == name)
            .map(|(kind, ..)| kind)
    }

    fn describe(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(kind, ..)| *kind == self)
            .map_or("credential", |(.., words)| words)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token { setting, .. } => write!(f, "the access token of `{setting}`"),
            Self::Json { kind, from, .. } => write!(f, "the {} of `{from}`", kind.describe()),
            Self::Metadata => f.write_str("the metadata server"),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({self})")
    }
}

impl Source {
    /// An access token.
    ///
    /// # Errors
    /// When a header cannot carry it.
    pub fn token(token: &str, setting: &str) -> Result<Self, SourceError> {
        match HeaderValue::try_from(format!("Bearer {token}")) {
            Ok(mut token) => {
                token.set_sensitive(true);
                let setting = setting.to_string();
                Ok(Self::Token { token, setting })
            }
            Err(_) => Err(SourceError {
                setting: setting.to_string(),
                reason: "has characters that a request's header cannot carry; expected the text of a token".to_string(),
            }),
        }
    }

    /// A credential as JSON, or as the path of its file.
    ///
    /// # Errors
    /// When it cannot be read, or is none that is known.
    pub fn json(text: &str, setting: &str) -> Result<Self, SourceError> {
        let failed = |reason: String| SourceError {
            setting: setting.to_string(),
            reason,
        };
        if text.trim_start().starts_with('{') {
            return of_json(text, setting).map_err(failed);
        }
        of_file(Path::new(text)).map_err(failed)
    }

    /// What applications use where nothing else is said: the file that `GOOGLE_APPLICATION_CREDENTIALS` names, that of a person who
    /// has signed in, or the metadata server.
    ///
    /// # Errors
    /// When a file that is there, or named, cannot be used.
    pub fn application_default(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, SourceError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let (file, setting) = match (set(APPLICATION_CREDENTIALS), set("HOME")) {
            (Some(file), _) => (file, APPLICATION_CREDENTIALS),
            (None, Some(home)) if home.join(WELL_KNOWN).exists() => (home.join(WELL_KNOWN), "HOME"),
            _ => return Ok(Self::Metadata),
        };
        of_file(&file).map_err(|reason| SourceError {
            setting: setting.to_string(),
            reason,
        })
    }

    /// What no message may show.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = match self {
            Self::Token { token, .. } => {
                let token = token.to_str().unwrap_or_default();
                vec![token.trim_start_matches("Bearer ").to_string()]
            }
            Self::Json { json, .. } => secrets(json),
            Self::Metadata => Vec::new(),
        };
        // A shorter one would be found in any message.
        secrets.retain(|secret| secret.len() >= SHORTEST);
        secrets
    }

    /// What to do where there is no token to be had from it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Token { .. } => "set another one",
            Self::Json { .. } => {
                "check that it is current, and not revoked; `gcloud auth application-default login` makes a new one"
            }
            Self::Metadata => {
                "it is only there on a machine of the cloud, and no other source was found: set `credentials` or `accessToken`, \
                 the environment variable GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_OAUTH_ACCESS_TOKEN, or run \
                 `gcloud auth application-default login`"
            }
        }
    }

    /// Whether a key that signs its tokens itself has all that this takes. What other sources have, their token service knows.
    ///
    /// # Errors
    /// What is missing or malformed, without the key.
    pub fn is_complete(&self, settings: &Settings) -> Result<(), String> {
        if !matches!(
            self,
            Self::Json {
                kind: Kind::ServiceAccount,
                ..
            }
        ) {
            return Ok(());
        }
        let mut message = match self.credentials(settings) {
            Ok(_) => return Ok(()),
            Err(error) => {
                let cause = error.source().map(ToString::to_string).unwrap_or_default();
                format!("{self} cannot be used: {error} {cause}").trim_end().to_string()
            }
        };
        for secret in self.secrets() {
            message = message.replace(&secret, "[secret]");
        }
        Err(message)
    }

    /// Credentials that ask for tokens from now on, ahead of their end.
    ///
    /// # Errors
    /// When a part of the credential is missing or malformed.
    pub fn credentials(&self, settings: &Settings) -> Result<Credentials, BuildError> {
        // What may be there for the next try is tried again; what a person has to mend is not.
        let retry = || Aip194Strict.with_attempt_limit(ATTEMPTS);
        let scopes = if settings.scopes.is_empty() {
            vec![CLOUD_PLATFORM.to_string()]
        } else {
            settings.scopes.clone()
        };
        // Who acts as a service account needs that service's scope alone.
        let (own_scopes, quota_project) = match &settings.impersonate {
            Some(_) => (vec![CLOUD_PLATFORM.to_string()], None),
            None => (scopes.clone(), settings.quota_project.as_ref()),
        };
        macro_rules! build {
            ($builder:expr) => {{
                let builder = $builder.with_retry_policy(retry());
                match quota_project {
                    Some(project) => builder.with_quota_project_id(project),
                    None => builder,
                }
                .build()
            }};
        }
        let own = match self {
            Self::Token { token, .. } => Ok(Credentials::from(SameToken {
                token: token.clone(),
                quota_project: quota_project.and_then(|project| HeaderValue::from_str(project).ok()),
            })),
            Self::Metadata => build!(mds::Builder::default().with_scopes(own_scopes)),
            Self::Json { kind, json, .. } => {
                let json = Value::clone(json);
                match kind {
                    Kind::ServiceAccount => {
                        let scopes = service_account::AccessSpecifier::from_scopes(own_scopes);
                        // It signs its tokens itself: nothing is asked for, and nothing to be tried again.
                        let builder = service_account::Builder::new(json).with_access_specifier(scopes);
                        match quota_project {
                            Some(project) => builder.with_quota_project_id(project),
                            None => builder,
                        }
                        .build()
                    }
                    // What a person has agreed to when signing in is all that there is: other scopes would be refused.
                    Kind::AuthorizedUser if settings.scopes.is_empty() || settings.impersonate.is_some() => {
                        build!(user_account::Builder::new(json))
                    }
                    Kind::AuthorizedUser => build!(user_account::Builder::new(json).with_scopes(own_scopes)),
                    Kind::Impersonated => build!(impersonated::Builder::new(json).with_scopes(own_scopes)),
                    Kind::ExternalAccount => build!(external_account::Builder::new(json).with_scopes(own_scopes)),
                }
            }
        }?;
        let Some(account) = &settings.impersonate else {
            return Ok(own);
        };
        let mut acting = impersonated::Builder::from_source_credentials(own)
            .with_target_principal(account)
            .with_scopes(scopes)
            .with_retry_policy(retry());
        if !settings.delegates.is_empty() {
            acting = acting.with_delegates(&settings.delegates);
        }
        if let Some(project) = &settings.quota_project {
            acting = acting.with_quota_project_id(project);
        }
        acting.build()
    }
}

fn of_file(file: &Path) -> Result<Source, String> {
    let text = file.to_string_lossy();
    // What is meant as a path may be a credential in another form: then it is not for anybody's eyes.
    let shown = if is_path(&text) && text.len() < 4096 {
        text.as_ref()
    } else {
        "the file that it names"
    };
    let read = fs::read_to_string(file);
    let text =
        read.map_err(|error| format!("{shown} cannot be read: {error}; expected JSON, or the path of its file"))?;
    of_json(&text, shown).map_err(|reason| format!("{shown} {reason}"))
}

/// Whether a text that is no JSON looks like a path: anything else may be a credential in another form.
pub fn is_path(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) || text.ends_with(".json")
}

fn of_json(text: &str, from: &str) -> Result<Source, String> {
    // The parser's words have places in them, and nothing of the text.
    let json: Value = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    let ty = json.get("type").and_then(Value::as_str);
    let ty = ty.ok_or("has no `type`: it is no credential of the cloud's own tools")?;
    let kind = Kind::parse(ty).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|(_, name, _)| *name).collect();
        let ty: String = ty.chars().take(40).collect();
        format!(
            "is of the type `{ty}`; those that can be used are `{}`",
            known.join("`, `")
        )
    })?;
    Ok(Source::Json {
        kind,
        json: Arc::new(json),
        from: from.to_string(),
    })
}

/// How many bytes a secret has at least.
const SHORTEST: usize = 8;

/// The fields of credentials that are secret, wherever they are.
const SECRET_FIELDS: [&str; 4] = ["private_key", "private_key_id", "refresh_token", "client_secret"];

fn secrets(json: &Value) -> Vec<String> {
    let Value::Object(fields) = json else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, value) in fields {
        match value {
            Value::String(text) if SECRET_FIELDS.contains(&name.as_str()) => found.push(text.clone()),
            value => found.extend(secrets(value)),
        }
    }
    found
}

/// Headers that stay the same.
#[derive(Debug)]
struct SameToken {
    token: HeaderValue,
    quota_project: Option<HeaderValue>,
}

impl CredentialsProvider for SameToken {
    async fn headers(&self, _: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        let mut headers = HeaderMap::from_iter([(header::AUTHORIZATION, self.token.clone())]);
        if let Some(project) = &self.quota_project {
            headers.insert("x-goog-user-project", project.clone());
        }
        Ok(CacheableResource::New {
            entity_tag: google_cloud_auth::credentials::EntityTag::new(),
            data: headers,
        })
    }

    async fn universe_domain(&self) -> Option<String> {
        None
    }
}
