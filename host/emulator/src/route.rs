//! Which service, target and verb a path names.

use percent_encoding::percent_decode_str;

/// The services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Compute Engine: backend buckets.
    Compute,
    /// Database Migration Service: migration jobs.
    Datamigration,
    /// Network Services: edge cache origins.
    Networkservices,
}

impl Service {
    /// What it calls the version in a query.
    pub const fn version_parameter(self) -> &'static str {
        match self {
            Self::Compute => "optionsRequestedPolicyVersion",
            Self::Datamigration | Self::Networkservices => "options.requestedPolicyVersion",
        }
    }

    /// The permission for a verb.
    pub fn permission(self, verb: Verb) -> String {
        let verb = match verb {
            Verb::Get => "getIamPolicy",
            Verb::Set => "setIamPolicy",
        };
        match self {
            Self::Compute => format!("compute.backendBuckets.{verb}"),
            Self::Datamigration => format!("datamigration.migrationjobs.{verb}"),
            Self::Networkservices => format!("networkservices.edgeCacheOrigins.{verb}"),
        }
    }
}

/// What is done with a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read.
    Get,
    /// Written.
    Set,
}

/// A policy's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Whose it is.
    pub service: Service,
    /// The resource's name: `projects/…`.
    pub target: String,
    /// What is done with it.
    pub verb: Verb,
}

impl Route {
    /// The route of a request; none where no service has such a method.
    pub fn of(method: &str, path: &str) -> Option<Self> {
        if let Some(rest) = path.strip_prefix("/compute/v1/") {
            let (target, verb) = rest.rsplit_once('/')?;
            return Self::named(Service::Compute, method, target, verb);
        }
        let (target, verb) = path.strip_prefix("/v1/")?.rsplit_once(':')?;
        let service = match target.rsplit('/').nth(1)? {
            "migrationJobs" => Service::Datamigration,
            "edgeCacheOrigins" => Service::Networkservices,
            _ => return None,
        };
        Self::named(service, method, target, verb)
    }

    fn named(service: Service, method: &str, target: &str, verb: &str) -> Option<Self> {
        let verb = match (method, verb) {
            ("GET", "getIamPolicy") => Verb::Get,
            ("POST", "setIamPolicy") => Verb::Set,
            _ => return None,
        };
        let segments: Vec<&str> = target.split('/').collect();
        let is_target = match (service, segments.as_slice()) {
            (Service::Compute, ["projects", project, "global", "backendBuckets", name]) => is_filled(&[project, name]),
            (Service::Datamigration, ["projects", project, "locations", location, "migrationJobs", name]) => {
                is_filled(&[project, location, name]) && *location != "global"
            }
            (Service::Networkservices, ["projects", project, "locations", "global", "edgeCacheOrigins", name]) => {
                is_filled(&[project, name])
            }
            _ => false,
        };
        let target = percent_decode_str(target).decode_utf8().ok()?;
        // No placeholder that a client forgot to fill.
        (is_target && !target.contains(['{', '}'])).then(|| Self {
            service,
            target: target.into_owned(),
            verb,
        })
    }
}

fn is_filled(segments: &[&str]) -> bool {
    segments.iter().all(|segment| !segment.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_its_own_paths() {
        let of = |method, path| Route::of(method, path).map(|route| (route.service, route.verb));
        assert_eq!(
            of("GET", "/compute/v1/projects/p/global/backendBuckets/b/getIamPolicy"),
            Some((Service::Compute, Verb::Get))
        );
        assert_eq!(
            of("POST", "/v1/projects/p/locations/us-east1/migrationJobs/j:setIamPolicy"),
            Some((Service::Datamigration, Verb::Set))
        );
        assert_eq!(
            of("GET", "/v1/projects/p/locations/global/edgeCacheOrigins/o:getIamPolicy"),
            Some((Service::Networkservices, Verb::Get))
        );
        for (method, path) in [
            ("GET", "/compute/v1/projects/p/global/backendBuckets/b/setIamPolicy"),
            (
                "GET",
                "/v1/projects/p/locations/us-east1/edgeCacheOrigins/o:getIamPolicy",
            ),
            (
                "GET",
                "/v1/projects/p/locations/us-east1/migrationJobs/%7bmigrationJobsId%7D:getIamPolicy",
            ),
            ("GET", "/v1/projects/p/global/backendBuckets/b:getIamPolicy"),
            ("POST", "/v1/projects/p/locations/us-east1/migrationJobs/:setIamPolicy"),
        ] {
            assert_eq!(of(method, path), None, "{method} {path}");
        }
    }
}
