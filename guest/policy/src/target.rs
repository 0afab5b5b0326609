//! Targets: the cloud resources whose policy a grant changes, in every spelling, with one canonical form.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::config::Config;
use crate::failure::Failure;

/// The kinds of resource whose policy is managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetKind {
    /// A job of the Database Migration Service.
    MigrationJob,
    /// An origin of Media CDN.
    EdgeCacheOrigin,
    /// A Cloud Storage bucket behind a load balancer.
    BackendBucket,
}

/// Where the targets of a kind live within a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `projects/P/global/COLLECTION/NAME`.
    GlobalSegment,
    /// `projects/P/locations/global/COLLECTION/NAME`, and nowhere else.
    GlobalLocation,
    /// `projects/P/locations/LOCATION/COLLECTION/NAME`.
    AnyLocation,
}

impl TargetKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::MigrationJob, Self::EdgeCacheOrigin, Self::BackendBucket];

    /// What a person calls it, with its article.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::MigrationJob => "a migration job",
            Self::EdgeCacheOrigin => "an edge cache origin",
            Self::BackendBucket => "a backend bucket",
        }
    }

    /// The service that holds it: the first label of its host name.
    pub const fn service(self) -> &'static str {
        match self {
            Self::MigrationJob => "datamigration",
            Self::EdgeCacheOrigin => "networkservices",
            Self::BackendBucket => "compute",
        }
    }

    /// Its collection in a resource name.
    pub const fn collection(self) -> &'static str {
        match self {
            Self::MigrationJob => "migrationJobs",
            Self::EdgeCacheOrigin => "edgeCacheOrigins",
            Self::BackendBucket => "backendBuckets",
        }
    }

    const fn place(self) -> Place {
        match self {
            Self::MigrationJob => Place::AnyLocation,
            Self::EdgeCacheOrigin => Place::GlobalLocation,
            Self::BackendBucket => Place::GlobalSegment,
        }
    }

    /// The canonical form with placeholders, for messages.
    pub fn form(self) -> String {
        match self.place() {
            Place::GlobalSegment => format!("projects/PROJECT/global/{}/NAME", self.collection()),
            Place::GlobalLocation => format!("projects/PROJECT/locations/global/{}/NAME", self.collection()),
            Place::AnyLocation => format!("projects/PROJECT/locations/LOCATION/{}/NAME", self.collection()),
        }
    }

    /// The rule that a target's own name follows. A migration job's is not published: anything that is one path segment.
    fn is_name(self, name: &str) -> bool {
        match self {
            Self::MigrationJob => {
                (1..=255).contains(&name.len())
                    && !name.chars().any(|c| c == '/' || c.is_whitespace() || c.is_control())
            }
            Self::EdgeCacheOrigin => {
                (1..=64).contains(&name.len())
                    && name.starts_with(|c: char| c.is_ascii_alphabetic())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            }
            Self::BackendBucket => {
                let is_number = name.len() <= 20 && !name.starts_with('0') && name.chars().all(|c| c.is_ascii_digit());
                let is_label = name.len() <= 63
                    && name.starts_with(|c: char| c.is_ascii_lowercase())
                    && !name.ends_with(['-', '_'])
                    && name
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
                !name.is_empty() && (is_number || is_label)
            }
        }
    }

    const fn name_rule(self) -> &'static str {
        match self {
            Self::MigrationJob => "one path segment without white space",
            Self::EdgeCacheOrigin => "1 to 64 letters, digits, `-` and `_`, the first of them a letter",
            Self::BackendBucket => {
                "1 to 63 lower-case letters, digits, `-` and `_`, from a letter to a letter or digit, or a numeric id"
            }
        }
    }
}

/// One target, in canonical form: `Display` gives its resource name, the same for every spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    kind: TargetKind,
    project: String,
    location: String,
    name: String,
}

impl Target {
    /// The kind of resource.
    pub const fn kind(&self) -> TargetKind {
        self.kind
    }

    /// The project's id or number.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// The last segment of the resource name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The location, `global` for the kinds that have no other.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// What can be said of a name while its project is not known.
    pub fn check_name(kind: TargetKind, name: &str) -> Result<(), Failure> {
        Spelling::parse(kind, name).map(|_| ())
    }

    /// The target that `name` and `project` name, with the configuration's defaults for what they leave out.
    pub fn resolve(kind: TargetKind, name: &str, project: Option<&str>, config: &Config) -> Result<Self, Failure> {
        let spelled = Spelling::parse(kind, name)?;
        if let Some(project) = project
            && !is_project(project)
        {
            return Err(Failure::new("project", bad_project(project)));
        }
        if let (Some(named), Some(given)) = (&spelled.project, project)
            && named != given
        {
            return Err(Failure::new(
                "project",
                format!(
                    "`{given}` contradicts `name`, which is in the project `{named}`; leave `project` out or make them agree"
                ),
            ));
        }
        let project = spelled
            .project
            .or_else(|| project.map(String::from))
            .or_else(|| config.project.clone())
            .ok_or_else(|| {
                Failure::new(
                    "project",
                    format!(
                        "no project is known for `{name}`; set `project` on the resource or in the provider's \
                         configuration, or write the name as `{}`",
                        kind.form()
                    ),
                )
            })?;
        if !is_project(&project) {
            return Err(Failure::new("project", bad_project(&project)));
        }
        let location = match (kind.place(), spelled.location) {
            (Place::GlobalSegment | Place::GlobalLocation, _) => "global".to_string(),
            (Place::AnyLocation, Some(location)) => location,
            (Place::AnyLocation, None) => config.region.clone().ok_or_else(|| {
                Failure::new(
                    "name",
                    format!(
                        "no location is known for `{name}`; set `region` in the provider's configuration, or write the \
                         name as `{}`",
                        kind.form()
                    ),
                )
            })?,
        };
        if !is_location(&location) {
            return Err(Failure::new("name", bad_location(&location)));
        }
        Ok(Self {
            kind,
            project,
            location,
            name: spelled.name,
        })
    }

    /// The target of a canonical resource name: what `Display` prints.
    pub fn parse(kind: TargetKind, canonical: &str) -> Option<Self> {
        if !canonical.starts_with("projects/") {
            return None;
        }
        let target = Self::resolve(kind, canonical, None, &Config::default()).ok()?;
        (target.to_string() == canonical).then_some(target)
    }

    /// How many `/`-separated segments the canonical form of a kind has.
    pub(crate) const fn segments(kind: TargetKind) -> usize {
        match kind.place() {
            Place::GlobalSegment => 5,
            Place::GlobalLocation | Place::AnyLocation => 6,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (project, name, collection) = (&self.project, &self.name, self.kind.collection());
        match self.kind.place() {
            Place::GlobalSegment => write!(f, "projects/{project}/global/{collection}/{name}"),
            Place::GlobalLocation | Place::AnyLocation => {
                write!(f, "projects/{project}/locations/{}/{collection}/{name}", self.location)
            }
        }
    }
}

/// What a spelling of a target's name says.
#[derive(Debug)]
struct Spelling {
    project: Option<String>,
    location: Option<String>,
    name: String,
}

impl Spelling {
    fn parse(kind: TargetKind, text: &str) -> Result<Self, Failure> {
        let path = resource_path(kind, text).map_err(|reason| Failure::new("name", reason))?;
        let segments: Vec<&str> = path.split('/').collect();
        let (project, location, collection, name) = match segments.as_slice() {
            [name] => (None, None, None, *name),
            ["projects", project, "global", collection, name] => (Some(*project), None, Some(*collection), *name),
            ["projects", project, "locations", location, collection, name] => {
                (Some(*project), Some(*location), Some(*collection), *name)
            }
            _ => return Err(Failure::new("name", wrong_form(kind, text))),
        };
        if let Some(collection) = collection
            && collection != kind.collection()
        {
            return Err(Failure::new("name", other_kind(kind, text, collection)));
        }
        // The right collection in a place where this kind does not live.
        if segments.len() > 1 && segments.len() != Target::segments(kind) {
            return Err(Failure::new("name", wrong_form(kind, text)));
        }
        if let Some(location) = location {
            if !is_location(location) {
                return Err(Failure::new("name", bad_location(location)));
            }
            if kind.place() == Place::GlobalLocation && location != "global" {
                return Err(Failure::new(
                    "name",
                    format!("{}'s location is always `global`, not `{location}`", kind.noun()),
                ));
            }
        }
        if let Some(project) = project
            && !is_project(project)
        {
            return Err(Failure::new("name", bad_project(project)));
        }
        if !kind.is_name(name) {
            return Err(Failure::new(
                "name",
                format!(
                    "`{name}` is not the name of {}; expected {}",
                    kind.noun(),
                    kind.name_rule()
                ),
            ));
        }
        Ok(Self {
            project: project.map(String::from),
            location: location.map(String::from),
            name: name.to_string(),
        })
    }
}

/// Takes `https://HOST/VERSION` or `//HOST` off the front, and leaves the resource name.
fn resource_path(kind: TargetKind, text: &str) -> Result<&str, String> {
    let (host, path, has_version) = if let Some(rest) = text.strip_prefix("https://") {
        let (host, path) = rest.split_once('/').ok_or_else(|| wrong_form(kind, text))?;
        (host, path, true)
    } else if let Some(rest) = text.strip_prefix("//") {
        let (host, path) = rest.split_once('/').ok_or_else(|| wrong_form(kind, text))?;
        (host, path, false)
    } else {
        return Ok(text);
    };
    let service = host
        .strip_suffix(".googleapis.com")
        .map(|service| service.strip_suffix(".mtls").unwrap_or(service))
        .ok_or_else(|| {
            format!(
                "`{host}` is not a host of {}; expected `{}.googleapis.com`",
                kind.noun(),
                kind.service()
            )
        })?;
    // Compute's links also come as `https://www.googleapis.com/compute/VERSION/…`.
    let is_service =
        service == kind.service() || (service == "www" && kind == TargetKind::BackendBucket && has_version);
    if !is_service {
        return Err(match TargetKind::ALL.iter().find(|other| other.service() == service) {
            Some(other) => other_kind(kind, text, other.collection()),
            None => format!(
                "`{host}` is not a host of {}; expected `{}.googleapis.com`",
                kind.noun(),
                kind.service()
            ),
        });
    }
    if !has_version {
        return Ok(path);
    }
    let path = match kind {
        TargetKind::BackendBucket => path.strip_prefix("compute/").ok_or_else(|| wrong_form(kind, text))?,
        TargetKind::MigrationJob | TargetKind::EdgeCacheOrigin => path,
    };
    let (version, path) = path.split_once('/').ok_or_else(|| wrong_form(kind, text))?;
    let is_version = matches!(version, "beta" | "alpha")
        || version.strip_prefix('v').is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && rest.chars().all(|c| c.is_ascii_alphanumeric())
        });
    if is_version {
        Ok(path)
    } else {
        Err(wrong_form(kind, text))
    }
}

fn wrong_form(kind: TargetKind, text: &str) -> String {
    format!(
        "`{text}` does not name {}; expected its short name, `{}`, `//{}.googleapis.com/projects/…` or its full URL",
        kind.noun(),
        kind.form(),
        kind.service()
    )
}

fn other_kind(kind: TargetKind, text: &str, collection: &str) -> String {
    match TargetKind::ALL.iter().find(|other| other.collection() == collection) {
        Some(other) => format!(
            "`{text}` names {}; this resource grants roles on {}",
            other.noun(),
            kind.noun()
        ),
        None => format!(
            "`{text}` names something in `{collection}`; this resource grants roles on {} (`{}`)",
            kind.noun(),
            kind.form()
        ),
    }
}

/// Whether `text` can be a project: an id, a number, or a legacy `example.com:id`.
pub(crate) fn is_project(text: &str) -> bool {
    let (domain, id) = match text.split_once(':') {
        Some((domain, id)) => (Some(domain), id),
        None => (None, text),
    };
    let is_domain = domain.is_none_or(|domain| {
        domain.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        })
    });
    let is_number = (1..=19).contains(&id.len()) && id.chars().all(|c| c.is_ascii_digit());
    let is_id = (1..=63).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_lowercase())
        && !id.ends_with('-')
        && id
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    is_domain && (is_number || is_id)
}

pub(crate) fn bad_project(text: &str) -> String {
    format!(
        "`{text}` is not a project; expected its id (lower-case letters, digits and `-`, from a letter to a letter or \
         digit) or its number"
    )
}

/// Whether `text` can be a location: `global`, or a region such as `us-central1`.
pub(crate) fn is_location(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

pub(crate) fn bad_location(text: &str) -> String {
    format!("`{text}` is not a location; expected a region such as `us-central1`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            project: Some("home".to_string()),
            region: Some("europe-west1".to_string()),
            ..Config::default()
        }
    }

    fn canonical(kind: TargetKind, name: &str) -> String {
        Target::resolve(kind, name, None, &config()).unwrap().to_string()
    }

    fn reason(kind: TargetKind, name: &str) -> String {
        Target::resolve(kind, name, None, &config()).unwrap_err().reason
    }

    #[test]
    fn every_spelling_of_a_backend_bucket_has_one_canonical_form() {
        for name in [
            "logs",
            "projects/home/global/backendBuckets/logs",
            "//compute.googleapis.com/projects/home/global/backendBuckets/logs",
            "https://compute.googleapis.com/compute/v1/projects/home/global/backendBuckets/logs",
            "https://www.googleapis.com/compute/v1/projects/home/global/backendBuckets/logs",
            "https://www.googleapis.com/compute/beta/projects/home/global/backendBuckets/logs",
            "https://compute.mtls.googleapis.com/compute/v1/projects/home/global/backendBuckets/logs",
        ] {
            assert_eq!(
                canonical(TargetKind::BackendBucket, name),
                "projects/home/global/backendBuckets/logs",
                "{name}"
            );
        }
    }

    #[test]
    fn every_spelling_of_a_migration_job_has_one_canonical_form() {
        for name in [
            "move",
            "projects/home/locations/europe-west1/migrationJobs/move",
            "//datamigration.googleapis.com/projects/home/locations/europe-west1/migrationJobs/move",
            "https://datamigration.googleapis.com/v1/projects/home/locations/europe-west1/migrationJobs/move",
        ] {
            assert_eq!(
                canonical(TargetKind::MigrationJob, name),
                "projects/home/locations/europe-west1/migrationJobs/move",
                "{name}"
            );
        }
    }

    #[test]
    fn an_edge_cache_origin_is_always_global() {
        assert_eq!(
            canonical(TargetKind::EdgeCacheOrigin, "Origin_1"),
            "projects/home/locations/global/edgeCacheOrigins/Origin_1"
        );
        assert!(
            reason(
                TargetKind::EdgeCacheOrigin,
                "projects/home/locations/us-east1/edgeCacheOrigins/o"
            )
            .contains("always `global`")
        );
    }

    #[test]
    fn a_name_of_another_kind_says_which() {
        assert!(
            reason(
                TargetKind::BackendBucket,
                "projects/p/locations/global/edgeCacheOrigins/o"
            )
            .contains("names an edge cache origin")
        );
        assert!(
            reason(
                TargetKind::MigrationJob,
                "//compute.googleapis.com/projects/p/global/backendBuckets/b"
            )
            .contains("names a backend bucket")
        );
        assert!(reason(TargetKind::BackendBucket, "projects/p/global/backendServices/b").contains("`backendServices`"));
        assert!(
            reason(TargetKind::BackendBucket, "projects/p/locations/l/backendBuckets/b")
                .contains("projects/PROJECT/global/backendBuckets/NAME")
        );
    }

    #[test]
    fn names_that_could_leave_their_place_in_a_path_are_refused() {
        for name in [
            "",
            "a/b",
            "/logs",
            "projects//global/backendBuckets/b",
            "projects/p/global/backendBuckets/",
            "projects/../global/backendBuckets/b",
            "https://evil.example/compute/v1/projects/p/global/backendBuckets/b",
            "https://compute.googleapis.com.evil.example/compute/v1/projects/p/global/backendBuckets/b",
            "https://compute.googleapis.com",
            "Logs",
            "logs-",
            "log s",
        ] {
            assert!(
                Target::resolve(TargetKind::BackendBucket, name, None, &config()).is_err(),
                "{name}"
            );
        }
        for name in ["projects/p/locations/../migrationJobs/j", "a b", "a\u{0}"] {
            assert!(
                Target::resolve(TargetKind::MigrationJob, name, None, &config()).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn the_project_comes_from_the_name_then_the_input_then_the_configuration() {
        let of = |name: &str, project: Option<&str>| {
            Target::resolve(TargetKind::BackendBucket, name, project, &config()).map(|target| target.project)
        };
        assert_eq!(of("b", None).unwrap(), "home");
        assert_eq!(of("b", Some("away")).unwrap(), "away");
        assert_eq!(of("projects/named/global/backendBuckets/b", None).unwrap(), "named");
        assert_eq!(
            of("projects/named/global/backendBuckets/b", Some("named")).unwrap(),
            "named"
        );
        let contradiction = of("projects/named/global/backendBuckets/b", Some("away")).unwrap_err();
        assert_eq!(contradiction.path, "project");
        assert!(contradiction.reason.contains("contradicts"));
        let none = Target::resolve(TargetKind::BackendBucket, "b", None, &Config::default()).unwrap_err();
        assert_eq!(none.path, "project");
        assert!(Target::resolve(TargetKind::BackendBucket, "b", Some("example.com:legacy"), &config()).is_ok());
        assert!(Target::resolve(TargetKind::BackendBucket, "b", Some("No Project"), &config()).is_err());
    }

    #[test]
    fn a_canonical_form_reads_back_as_itself_only() {
        let target = Target::resolve(TargetKind::MigrationJob, "move", None, &config()).unwrap();
        assert_eq!(
            Target::parse(TargetKind::MigrationJob, &target.to_string()),
            Some(target)
        );
        assert_eq!(Target::parse(TargetKind::MigrationJob, "move"), None);
    }
}
