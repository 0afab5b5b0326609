//! What an operator writes down for a component: its origins, the credential for each, and where its configuration's
//! defaults come from. Nothing that a guest says of itself decides any of this.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use crate::credential::{BearerToken, Credential};
use crate::egress::AllowedOrigin;
use crate::origin::{Origin, OriginError};

/// The file beside a component.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Where the component may send requests.
    #[serde(default, rename = "origin")]
    pub origins: Vec<ManifestOrigin>,
    /// For a configuration key, the environment variables that it defaults to; the first that is set counts.
    #[serde(default)]
    pub environment: BTreeMap<String, Vec<String>>,
}

/// One origin of a manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestOrigin {
    /// `https://HOST[:PORT]`, or http on this machine.
    pub url: String,
    /// The environment variable that holds a bearer token for it.
    pub bearer: Option<String>,
    /// Whether requests there carry the credential of the cloud's own tools.
    #[serde(default)]
    pub google: bool,
}

/// Why a manifest cannot be used.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// It does not parse.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// One of its origins is none.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// A token would be sent in the clear.
    #[error("`{0}` is not https, so it gets no credential")]
    BearerInTheClear(String),
    /// Two credentials for one request.
    #[error("`{0}` has `bearer` and `google`; its requests can carry one of them only")]
    TwoCredentials(String),
    /// A variable's value cannot be a token.
    #[error("`{0}` holds no bearer token: it has characters that a header cannot carry")]
    Bearer(String),
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// When it is not TOML of this form.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        Ok(toml::from_str(text)?)
    }

    /// Whether requests to one of its origins carry the credential of the cloud's own tools.
    pub fn is_google(&self) -> bool {
        self.origins.iter().any(|origin| origin.google)
    }

    /// The origins, with the tokens that `variable` gives, and the credential of the cloud's own tools. A token that is not set is
    /// left out: the service then says that it is missing.
    ///
    /// # Errors
    /// When an origin is none, or a token cannot be sent to it.
    pub fn allowed_origins(
        &self,
        variable: impl Fn(&str) -> Option<String>,
        google: Option<&Arc<dyn Credential>>,
    ) -> Result<Vec<AllowedOrigin>, ManifestError> {
        let allow = |entry: &ManifestOrigin| {
            let origin = Origin::parse(&entry.url)?;
            if !origin.is_https() && (entry.bearer.is_some() || entry.google) {
                return Err(ManifestError::BearerInTheClear(entry.url.clone()));
            }
            let credential = match &entry.bearer {
                Some(_) if entry.google => return Err(ManifestError::TwoCredentials(entry.url.clone())),
                None if entry.google => google.cloned(),
                Some(name) => variable(name)
                    .filter(|token| !token.is_empty())
                    .map(|token| BearerToken::new(&token).ok_or_else(|| ManifestError::Bearer(name.clone())))
                    .transpose()?
                    .map(|token| Arc::new(token) as Arc<dyn Credential>),
                None => None,
            };
            Ok(AllowedOrigin { origin, credential })
        };
        self.origins.iter().map(allow).collect()
    }

    /// The defaults of configuration keys, from the variables that are set.
    pub fn defaults(&self, variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
        let set = |names: &Vec<String>| {
            names
                .iter()
                .filter_map(|name| variable(name))
                .find(|value| !value.is_empty())
        };
        self.environment
            .iter()
            .filter_map(|(key, names)| Some((key.clone(), set(names)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_from_the_variable_that_the_operator_names() {
        let manifest =
            Manifest::parse("[[origin]]\nurl = \"https://api.acme.example\"\nbearer = \"ACME_TOKEN\"\n").unwrap();
        let origins = manifest
            .allowed_origins(|name| (name == "ACME_TOKEN").then(|| "secret".to_string()), None)
            .unwrap();
        assert!(origins[0].credential.is_some());
        assert!(!format!("{origins:?}").contains("secret"));
        assert!(
            manifest.allowed_origins(|_| None, None).unwrap()[0]
                .credential
                .is_none()
        );
        assert!(matches!(
            manifest.allowed_origins(|_| Some("a\nb".into()), None),
            Err(ManifestError::Bearer(_))
        ));
    }

    #[test]
    fn a_token_is_never_sent_in_the_clear() {
        for credential in ["bearer = \"T\"", "google = true"] {
            let text = format!("[[origin]]\nurl = \"http://127.0.0.1:1\"\n{credential}\n");
            let manifest = Manifest::parse(&text).unwrap();
            assert!(matches!(
                manifest.allowed_origins(|_| None, None),
                Err(ManifestError::BearerInTheClear(_))
            ));
        }
    }

    #[test]
    fn a_request_has_one_credential() {
        let manifest =
            Manifest::parse("[[origin]]\nurl = \"https://x.example\"\nbearer = \"T\"\ngoogle = true\n").unwrap();
        assert!(matches!(
            manifest.allowed_origins(|_| None, None),
            Err(ManifestError::TwoCredentials(_))
        ));
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(Manifest::parse("[[origins]]\nurl = \"https://x.example\"\n").is_err());
        assert!(Manifest::parse("[[origin]]\nurl = \"https://x.example\"\ntoken = \"T\"\n").is_err());
    }

    #[test]
    fn the_first_variable_that_is_set_is_the_default() {
        let manifest = Manifest::parse("[environment]\nproject = [\"A\", \"B\", \"C\"]\n").unwrap();
        let defaults = manifest.defaults(|name| match name {
            "A" => Some(String::new()),
            "B" => Some("from-b".to_string()),
            _ => Some("from-c".to_string()),
        });
        assert_eq!(defaults.get("project").map(String::as_str), Some("from-b"));
    }
}
