//! Services at other origins than their own: which of them the operator trusts with the credential.

use std::fmt::Display;

use bindery_sandbox::origin::Origin;

/// The variable that lists them, separated by commas.
pub const VARIABLE: &str = "BINDERY_CREDENTIAL_ORIGINS";

/// The origins that the operator trusts with the credential, which is sent over https only.
#[derive(Debug, Clone, Default)]
pub struct TrustedEndpoints(Vec<Origin>);

impl TrustedEndpoints {
    /// Those that the variable lists.
    ///
    /// # Errors
    /// When one of them is no origin; the variable is named.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let list = variable(VARIABLE).unwrap_or_default();
        let listed = list.split(',').map(str::trim).filter(|origin| !origin.is_empty());
        let named = |error: &dyn Display| format!("the environment variable {VARIABLE}: {error}");
        let origins: Result<_, _> = listed.map(Origin::parse).collect();
        origins.map(Self).map_err(|error| named(&error))
    }

    /// Whether requests there carry the credential.
    pub fn has(&self, origin: &Origin) -> bool {
        origin.is_https() && self.0.contains(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_trusted_over_https_and_by_the_operators_word() {
        let is_trusted = |endpoint: &str, list: &str| {
            let trusted = TrustedEndpoints::of(|_| Some(list.to_string())).unwrap();
            trusted.has(&Origin::parse(endpoint).unwrap())
        };
        let endpoint = "https://compute.example";
        assert!(!is_trusted(endpoint, ""));
        assert!(!is_trusted(endpoint, "https://other.example"));
        assert!(is_trusted(endpoint, "https://other.example, https://compute.example"));
        assert!(!is_trusted("https://compute.example:8443", endpoint));
        assert!(!is_trusted("http://127.0.0.1:80", "http://127.0.0.1:80"));
        let error = TrustedEndpoints::of(|_| Some("compute.example".to_string())).unwrap_err();
        assert!(error.contains(VARIABLE), "{error}");
    }
}
