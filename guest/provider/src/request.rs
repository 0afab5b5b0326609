//! Where a target's policy is read and written. Each service has its own name for the version parameter, and answers a
//! wrong one with an error.

use bindery_policy::target::{Target, TargetKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What a resource name keeps in a URL's path: the unreserved characters, its own slashes, and a legacy project's colon.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b':');

/// The URL that a target's policy is read from, at the version that shows conditions.
pub fn read_url(origin: &str, target: &Target) -> String {
    match target.kind() {
        TargetKind::BackendBucket => format!(
            "{}/getIamPolicy?optionsRequestedPolicyVersion=3",
            resource(origin, target)
        ),
        TargetKind::MigrationJob | TargetKind::EdgeCacheOrigin => {
            format!(
                "{}:getIamPolicy?options.requestedPolicyVersion=3",
                resource(origin, target)
            )
        }
    }
}

/// The URL that a target's policy is written to.
pub fn write_url(origin: &str, target: &Target) -> String {
    let verb = match target.kind() {
        TargetKind::BackendBucket => "/setIamPolicy",
        TargetKind::MigrationJob | TargetKind::EdgeCacheOrigin => ":setIamPolicy",
    };
    format!("{}{verb}", resource(origin, target))
}

fn resource(origin: &str, target: &Target) -> String {
    let base = match target.kind() {
        TargetKind::BackendBucket => "compute/v1",
        TargetKind::MigrationJob | TargetKind::EdgeCacheOrigin => "v1",
    };
    let name = target.to_string();
    format!("{origin}/{base}/{}", utf8_percent_encode(&name, KEPT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: TargetKind, name: &str) -> Target {
        Target::parse(kind, name).unwrap()
    }

    #[test]
    fn each_service_has_its_own_path_and_version_parameter() {
        let bucket = target(
            TargetKind::BackendBucket,
            "projects/example.com:p/global/backendBuckets/b",
        );
        assert_eq!(
            read_url("https://compute.googleapis.com", &bucket),
            "https://compute.googleapis.com/compute/v1/projects/example.com:p/global/backendBuckets/b/getIamPolicy?optionsRequestedPolicyVersion=3"
        );
        assert_eq!(
            write_url("http://127.0.0.1:1", &bucket),
            "http://127.0.0.1:1/compute/v1/projects/example.com:p/global/backendBuckets/b/setIamPolicy"
        );
        let origin = target(
            TargetKind::EdgeCacheOrigin,
            "projects/p/locations/global/edgeCacheOrigins/o",
        );
        assert_eq!(
            read_url("https://networkservices.googleapis.com", &origin),
            "https://networkservices.googleapis.com/v1/projects/p/locations/global/edgeCacheOrigins/o:getIamPolicy?options.requestedPolicyVersion=3"
        );
        let job = target(
            TargetKind::MigrationJob,
            "projects/p/locations/us-east1/migrationJobs/j",
        );
        assert!(
            write_url("https://x", &job).ends_with("/v1/projects/p/locations/us-east1/migrationJobs/j:setIamPolicy")
        );
    }

    #[test]
    fn a_name_cannot_leave_its_path() {
        let job = target(
            TargetKind::MigrationJob,
            "projects/p/locations/us-east1/migrationJobs/a?b#c%2f",
        );
        assert!(
            read_url("https://x", &job).contains("/migrationJobs/a%3Fb%23c%252f:getIamPolicy?"),
            "{}",
            read_url("https://x", &job)
        );
    }
}
