//! The two shapes of resource, member and binding, and what can be said of one without touching anything: check, diff,
//! id and footprint. A resource type is a shape ([`Subject`]) and a kind of target.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::condition::Condition;
use crate::config::{Config, PolicyMode};
use crate::document::BindingKey;
use crate::failure::{Change, ChangeKind, Failure, UnknownPaths};
use crate::grant_id::{self, GrantId};
use crate::identity::Identity;
use crate::role::Role;
use crate::subject::Subject;
use crate::target::{self, Target, TargetKind};

/// A resource's inputs. `subject` is `member` or `members`.
#[derive(Debug, Clone, PartialEq)]
pub struct Args<S> {
    /// Who is granted the role.
    pub subject: S,
    /// The target's name in any spelling.
    pub name: String,
    /// The role.
    pub role: String,
    /// The condition, if any.
    pub condition: Option<Condition>,
    /// The target's project, where the name does not say it.
    pub project: Option<String>,
}

/// A resource's outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct State<S> {
    /// Who is granted the role.
    pub subject: S,
    /// The target's name as the user spells it.
    pub name: String,
    /// The role.
    pub role: String,
    /// The condition, if any.
    pub condition: Option<Condition>,
    /// The target's project.
    pub project: String,
    /// The etag of the target's policy. Empty where `policyMode` is `replace` and the policy holds something else too.
    pub etag: String,
    /// The grant's id.
    pub id: String,
}

/// What a resource occupies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// The target, in canonical form: changes with the same one may be committed together.
    pub target: String,
    /// What only one resource of a program may own.
    pub claim: String,
}

/// Inputs that were found right.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<S> {
    /// The inputs with their defaults.
    pub args: Args<S>,
    /// None while anything that decides it is unknown.
    pub footprint: Option<Footprint>,
    /// The id that the resource will have. None while anything that decides it is unknown.
    pub id: Option<String>,
}

/// Declared inputs, parsed. A part is none while it is unknown.
struct Declared {
    target: Option<Target>,
    role: Option<Role>,
    /// Whether the condition is known, or known to be absent.
    condition_known: bool,
    identities: Option<Vec<Identity>>,
}

/// Inputs of which everything is known: a grant to be made.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) target: Target,
    pub(crate) key: BindingKey,
    pub(crate) identities: Vec<Identity>,
    pub(crate) id: GrantId,
}

impl Grant {
    /// Parses inputs of which nothing is unknown.
    pub(crate) fn of<S: Subject>(kind: TargetKind, config: &Config, args: &Args<S>) -> Result<Self, Vec<Failure>> {
        let declared = parse(kind, config, args, &UnknownPaths::default())?;
        declared.known::<S>(args).ok_or_else(Vec::new)
    }
}

impl Declared {
    /// The id, once all that is part of it is known.
    fn id<S: Subject>(&self, args: &Args<S>) -> Option<GrantId> {
        if !self.condition_known {
            return None;
        }
        let identity = match &self.identities {
            _ if !S::NAMED_IN_ID => None,
            Some(identities) => Some(identities.first()?.clone()),
            None => return None,
        };
        Some(GrantId {
            target: self.target.clone()?,
            role: self.role.clone()?,
            condition: args.condition.as_ref().map(Condition::digest),
            identity,
        })
    }

    fn known<S: Subject>(self, args: &Args<S>) -> Option<Grant> {
        let id = self.id(args)?;
        Some(Grant {
            target: id.target.clone(),
            key: BindingKey {
                role: id.role.clone(),
                condition: id.condition.clone(),
            },
            identities: self.identities?,
            id,
        })
    }
}

fn parse<S: Subject>(
    kind: TargetKind,
    config: &Config,
    args: &Args<S>,
    unknown: &UnknownPaths,
) -> Result<Declared, Vec<Failure>> {
    let mut failures = Vec::new();
    let identities = args
        .subject
        .identities(config.identity_forms, unknown)
        .unwrap_or_else(|wrong| {
            failures.extend(wrong);
            None
        });
    let target = parse_target(kind, config, args, unknown).unwrap_or_else(|failure| {
        failures.push(failure);
        None
    });
    let role = if unknown.touches("role") {
        None
    } else {
        Role::parse(&args.role)
            .map_err(|reason| failures.push(Failure::new("role", reason)))
            .ok()
    };
    let condition_known = !unknown.touches("condition");
    if let Some(condition) = args.condition.as_ref().filter(|_| !unknown.covers("condition")) {
        failures.extend(condition.check(unknown));
        if let Some(role) = role.as_ref().filter(|role| role.is_basic()) {
            failures.push(Failure::new(
                "condition",
                format!("the basic role `{role}` cannot have a condition; grant a predefined or custom role"),
            ));
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    Ok(Declared {
        target,
        role,
        condition_known,
        identities,
    })
}

fn parse_target<S>(
    kind: TargetKind,
    config: &Config,
    args: &Args<S>,
    unknown: &UnknownPaths,
) -> Result<Option<Target>, Failure> {
    let project = args.project.as_deref();
    match (unknown.touches("name"), unknown.touches("project")) {
        (true, false) => match project.filter(|project| !target::is_project(project)) {
            Some(project) => Err(Failure::new("project", target::bad_project(project))),
            None => Ok(None),
        },
        (true, true) => Ok(None),
        (false, true) => Target::check_name(kind, &args.name).map(|()| None),
        (false, false) => Target::resolve(kind, &args.name, project, config).map(Some),
    }
}

/// Checks the inputs and fills in the defaults. No rule looks at what is unknown.
pub fn check<S: Subject>(
    kind: TargetKind,
    config: &Config,
    args: Args<S>,
    unknown: &UnknownPaths,
) -> Result<Checked<S>, Vec<Failure>> {
    let declared = parse(kind, config, &args, unknown)?;
    let mut args = args;
    if let Some(target) = &declared.target {
        args.project = Some(target.project().to_string());
    }
    let id = declared.id(&args);
    let footprint = match (config.policy_mode, &declared.target, &id) {
        (PolicyMode::Replace, Some(target), _) => Some(whole_target(target)),
        (PolicyMode::Merge, _, Some(id)) => Some(grant_footprint(id)),
        _ => None,
    };
    Ok(Checked {
        args,
        footprint,
        id: id.map(|id| id.to_string()),
    })
}

fn whole_target(target: &Target) -> Footprint {
    Footprint {
        target: target.to_string(),
        claim: target.to_string(),
    }
}

fn grant_footprint(id: &GrantId) -> Footprint {
    Footprint {
        target: id.target.to_string(),
        claim: id.to_string(),
    }
}

/// What an existing resource occupies, from its id.
pub fn footprint_of<S: Subject>(kind: TargetKind, config: &Config, id: &str) -> Result<Footprint, Failure> {
    let id = parse_id::<S>(kind, id)?;
    Ok(match config.policy_mode {
        PolicyMode::Merge => grant_footprint(&id),
        PolicyMode::Replace => whole_target(&id.target),
    })
}

/// An id in a state. The error says what to do about one that another provider wrote.
pub(crate) fn parse_id<S: Subject>(kind: TargetKind, id: &str) -> Result<GrantId, Failure> {
    GrantId::parse(kind, id)
        .filter(|id| id.identity.is_some() == S::NAMED_IN_ID)
        .ok_or_else(|| {
            Failure::new(
                "id",
                format!(
                    "`{id}` is not an id of this resource type (`{}`); import the grant again",
                    grant_id::form(kind, S::NAMED_IN_ID)
                ),
            )
        })
}

/// What would change, property by property. The target that exists is the id's; what equals it by the service's rules is
/// no change, however it is spelled.
pub fn diff<S: Subject>(
    kind: TargetKind,
    config: &Config,
    old: &State<S>,
    new: &Args<S>,
    unknown: &UnknownPaths,
) -> Result<Vec<Change>, Failure> {
    let id = parse_id::<S>(kind, &old.id)?;
    let mut changes = S::changes(&old.subject, &new.subject, unknown);
    changes.extend(target_changes(kind, config, &id.target, new, unknown)?);
    if unknown.touches("role") || id.role.as_str() != new.role {
        changes.push(Change::replacing("role", ChangeKind::Update));
    }
    changes.extend(Condition::changes(
        old.condition.as_ref(),
        new.condition.as_ref(),
        unknown,
    ));
    if config.policy_mode == PolicyMode::Replace && old.etag.is_empty() {
        changes.push(Change::in_place("etag", ChangeKind::Update));
    }
    Ok(changes)
}

fn target_changes<S>(
    kind: TargetKind,
    config: &Config,
    old: &Target,
    new: &Args<S>,
    unknown: &UnknownPaths,
) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    for path in ["name", "project"] {
        if unknown.touches(path) {
            changes.push(Change::replacing(path, ChangeKind::Update));
        }
    }
    if !changes.is_empty() {
        return Ok(changes);
    }
    let target = Target::resolve(kind, &new.name, new.project.as_deref(), config)?;
    if target == *old {
        return Ok(changes);
    }
    if target.project() != old.project() {
        changes.push(Change::replacing("project", ChangeKind::Update));
    }
    // A changed location shows at the name, which is where a user can say it.
    if target.name() != old.name() || target.location() != old.location() {
        changes.push(Change::replacing("name", ChangeKind::Update));
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const KIND: TargetKind = TargetKind::BackendBucket;

    fn config() -> Config {
        Config {
            project: Some("home".into()),
            ..Config::default()
        }
    }

    fn args() -> Args<String> {
        Args {
            subject: "user:Ann@example.com".into(),
            name: "logs".into(),
            role: "roles/compute.viewer".into(),
            condition: Some(Condition {
                expression: "true".into(),
                title: "always".into(),
                description: None,
            }),
            project: None,
        }
    }

    fn state_of(args: &Args<String>) -> State<String> {
        let checked = check(KIND, &config(), args.clone(), &UnknownPaths::default()).unwrap();
        State {
            subject: args.subject.clone(),
            name: args.name.clone(),
            role: args.role.clone(),
            condition: args.condition.clone(),
            project: checked.args.project.unwrap(),
            etag: "BwX=".into(),
            id: checked.id.unwrap(),
        }
    }

    fn unknown(paths: &[&str]) -> UnknownPaths {
        UnknownPaths::new(paths.iter().map(ToString::to_string).collect())
    }

    fn changed(old: &State<String>, new: &Args<String>, unknown: &UnknownPaths) -> Vec<String> {
        diff(KIND, &config(), old, new, unknown)
            .unwrap()
            .into_iter()
            .map(|change| change.path)
            .collect()
    }

    #[test]
    fn every_wrong_input_is_named_at_once() {
        let wrong = Args {
            subject: "ann".to_string(),
            name: "a/b".into(),
            role: "viewer".into(),
            condition: Some(Condition {
                expression: String::new(),
                title: "t".into(),
                description: None,
            }),
            project: None,
        };
        let failures = check(KIND, &config(), wrong, &UnknownPaths::default()).unwrap_err();
        let paths: Vec<&str> = failures.iter().map(|failure| failure.path.as_str()).collect();
        assert_eq!(paths, ["member", "name", "role", "condition.expression"]);
    }

    #[test]
    fn a_basic_role_cannot_have_a_condition() {
        let failures = check(
            KIND,
            &config(),
            Args {
                role: "roles/viewer".into(),
                ..args()
            },
            &UnknownPaths::default(),
        )
        .unwrap_err();
        assert_eq!(failures[0].path, "condition");
    }

    #[test]
    fn the_footprint_is_none_while_anything_that_decides_it_is_unknown() {
        for path in ["member", "name", "project", "role", "condition", "condition.title"] {
            let checked = check(KIND, &config(), args(), &unknown(&[path])).unwrap();
            assert_eq!((checked.footprint, checked.id), (None, None), "{path}");
        }
        let replace = Config {
            policy_mode: PolicyMode::Replace,
            ..config()
        };
        let checked = check(KIND, &replace, args(), &unknown(&["member"])).unwrap();
        assert_eq!(
            checked.footprint.unwrap().claim,
            "projects/home/global/backendBuckets/logs"
        );
    }

    #[test]
    fn a_bindings_footprint_does_not_wait_for_its_members() {
        let binding = Args {
            subject: vec![String::new()],
            name: "o".into(),
            role: "roles/x".into(),
            condition: None,
            project: None,
        };
        let checked = check(
            TargetKind::EdgeCacheOrigin,
            &config(),
            binding,
            &unknown(&["members[0]"]),
        )
        .unwrap();
        let id = "projects/home/locations/global/edgeCacheOrigins/o/roles/x";
        assert_eq!(checked.footprint.unwrap().claim, id);
        assert_eq!(checked.id.as_deref(), Some(id));
    }

    #[test]
    fn a_default_that_depends_on_what_is_unknown_is_left_out() {
        let checked = check(KIND, &config(), args(), &unknown(&["name"])).unwrap();
        assert_eq!(checked.args.project, None);
        let checked = check(KIND, &config(), args(), &unknown(&["member"])).unwrap();
        assert_eq!(checked.args.project.as_deref(), Some("home"));
    }

    #[test]
    fn equal_by_the_rules_is_no_change() {
        let state = state_of(&args());
        let respelled = Args {
            subject: "user:ann@EXAMPLE.com".to_string(),
            name: "//compute.googleapis.com/projects/home/global/backendBuckets/logs".into(),
            condition: args().condition.map(|condition| Condition {
                description: Some(String::new()),
                ..condition
            }),
            ..args()
        };
        assert_eq!(
            changed(&state, &respelled, &UnknownPaths::default()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn each_part_of_a_grants_identity_replaces_it() {
        let state = state_of(&args());
        for (new, path) in [
            (
                Args {
                    subject: "user:bob@example.com".to_string(),
                    ..args()
                },
                "member",
            ),
            (
                Args {
                    name: "other".into(),
                    ..args()
                },
                "name",
            ),
            (
                Args {
                    project: Some("away".into()),
                    ..args()
                },
                "project",
            ),
            (
                Args {
                    role: "roles/compute.admin".into(),
                    ..args()
                },
                "role",
            ),
            (
                Args {
                    condition: None,
                    ..args()
                },
                "condition",
            ),
        ] {
            let changes = diff(KIND, &config(), &state, &new, &UnknownPaths::default()).unwrap();
            assert_eq!(changes.len(), 1, "{path}");
            assert_eq!((changes[0].path.as_str(), changes[0].replaces), (path, true));
        }
    }

    #[test]
    fn what_is_unknown_counts_as_changed() {
        let state = state_of(&args());
        for path in ["member", "name", "project", "role", "condition", "condition.title"] {
            assert_eq!(changed(&state, &args(), &unknown(&[path])), [path]);
        }
    }

    #[test]
    fn the_target_that_exists_is_the_ids() {
        let state = State {
            name: "renamed-by-hand".into(),
            project: "somewhere".into(),
            ..state_of(&args())
        };
        assert!(changed(&state, &args(), &UnknownPaths::default()).is_empty());
        let foreign = State {
            id: "projects/home/global/backendBuckets/logs/getIamPolicy".into(),
            ..state
        };
        let failure = diff(KIND, &config(), &foreign, &args(), &UnknownPaths::default()).unwrap_err();
        assert_eq!(failure.path, "id");
    }

    #[test]
    fn members_change_in_place_and_a_policy_that_was_to_be_replaced_is_mended() {
        let kind = TargetKind::EdgeCacheOrigin;
        let config = Config {
            policy_mode: PolicyMode::Replace,
            ..config()
        };
        let old = State {
            subject: vec!["user:a@example.com".to_string()],
            name: "o".into(),
            role: "roles/x".into(),
            condition: None,
            project: "home".into(),
            etag: String::new(),
            id: "projects/home/locations/global/edgeCacheOrigins/o/roles/x".into(),
        };
        let new = Args {
            subject: vec!["user:b@example.com".to_string()],
            name: "o".into(),
            role: "roles/x".into(),
            condition: None,
            project: None,
        };
        let changes = diff(kind, &config, &old, &new, &UnknownPaths::default()).unwrap();
        assert_eq!(
            changes,
            [
                Change::in_place("members", ChangeKind::Update),
                Change::in_place("etag", ChangeKind::Update)
            ]
        );
    }
}
