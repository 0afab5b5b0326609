//! The provider's configuration, and its own check.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::failure::{Failure, UnknownPaths};
use crate::target::{self, TargetKind};

/// How a resource's binding enters the policy that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PolicyMode {
    /// Everything that the resource does not own stays as it was read.
    #[default]
    Merge,
    /// The new policy holds this resource's binding and nothing else.
    Replace,
}

/// Which identities may be granted a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdentityForms {
    /// `user:`, `serviceAccount:`, `group:` and `domain:`.
    #[default]
    Documented,
    /// These, and every other form that the service takes.
    All,
}

/// What the rules take from the provider's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// The project of targets whose name does not say it.
    pub project: Option<String>,
    /// The location of targets whose name does not say it.
    pub region: Option<String>,
    /// How a binding enters the policy.
    pub policy_mode: PolicyMode,
    /// Which identities are accepted.
    pub identity_forms: IdentityForms,
    /// The origin of each service where it is not the public one, by the service's row in [`TargetKind::ALL`].
    pub endpoints: Endpoints,
}

/// The origin of each service, where it is not the public one: `scheme://host[:port]`, nothing after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Database Migration Service.
    pub datamigration: Option<String>,
    /// Network Services.
    pub networkservices: Option<String>,
    /// Compute Engine.
    pub compute: Option<String>,
}

impl Config {
    /// The origin that requests for targets of `kind` go to.
    pub fn origin(&self, kind: TargetKind) -> String {
        let set = match kind {
            TargetKind::MigrationJob => &self.endpoints.datamigration,
            TargetKind::EdgeCacheOrigin => &self.endpoints.networkservices,
            TargetKind::BackendBucket => &self.endpoints.compute,
        };
        set.as_deref().map_or_else(
            || format!("https://{}.googleapis.com", kind.service()),
            |origin| origin.trim_end_matches('/').into(),
        )
    }

    /// Checks the configuration, and names the origins that are called under it. What is unknown is not looked at.
    pub fn check(&self, unknown: &UnknownPaths) -> Result<Vec<String>, Vec<Failure>> {
        let mut failures = Vec::new();
        if let Some(project) = self.project.as_deref().filter(|_| !unknown.touches("project"))
            && !target::is_project(project)
        {
            failures.push(Failure::new("project", target::bad_project(project)));
        }
        if let Some(region) = self.region.as_deref().filter(|_| !unknown.touches("region"))
            && !target::is_location(region)
        {
            failures.push(Failure::new("region", target::bad_location(region)));
        }
        let mut origins = Vec::new();
        for kind in TargetKind::ALL {
            let path = format!("{}Endpoint", kind.service());
            if unknown.touches(&path) {
                continue;
            }
            let origin = self.origin(kind);
            if is_origin(&origin) {
                origins.push(origin);
            } else {
                failures.push(Failure::new(
                    path,
                    format!(
                        "`{origin}` is not an origin; expected `https://HOST` or `http://127.0.0.1:PORT`, without a path \
                         (the service's own path is appended)"
                    ),
                ));
            }
        }
        if failures.is_empty() {
            Ok(origins)
        } else {
            Err(failures)
        }
    }
}

/// Whether `text` is `http(s)://host[:port]` and nothing else. The host judges again what it dials.
fn is_origin(text: &str) -> bool {
    let Some(authority) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    !authority.is_empty()
        && authority
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn the_public_origins_are_called_unless_an_endpoint_is_set() {
        let mut config = Config::default();
        assert_eq!(
            config.check(&UnknownPaths::default()).unwrap(),
            vec![
                "https://datamigration.googleapis.com",
                "https://networkservices.googleapis.com",
                "https://compute.googleapis.com"
            ]
        );
        config.endpoints.compute = Some("http://127.0.0.1:8080/".to_string());
        assert_eq!(config.origin(TargetKind::BackendBucket), "http://127.0.0.1:8080");
        assert!(config.check(&UnknownPaths::default()).is_ok());
    }

    #[test]
    fn each_wrong_key_is_named() {
        let config = Config {
            project: Some("My Project".to_string()),
            region: Some("us central1".to_string()),
            endpoints: Endpoints {
                compute: Some("https://host/compute/v1".to_string()),
                ..Endpoints::default()
            },
            ..Config::default()
        };
        let failures = config.check(&UnknownPaths::default()).unwrap_err();
        let paths: Vec<&str> = failures.iter().map(|failure| failure.path.as_str()).collect();
        assert_eq!(paths, ["project", "region", "computeEndpoint"]);
        let unknown = UnknownPaths::new(vec!["project".into(), "region".into(), "computeEndpoint".into()]);
        assert!(config.check(&unknown).is_ok());
    }
}
