//! What a create, read, update or delete does to a policy that was read. Many operations on one target share one read
//! and at most one write, so each is applied to what those before it left.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::condition::{Condition, ConditionDigest};
use crate::config::{Config, PolicyMode};
use crate::document::{BindingKey, Policy};
use crate::failure::Failure;
use crate::grant_id::GrantId;
use crate::identity::Identity;
use crate::import::{ConditionName, Sought};
use crate::limits;
use crate::resource::{Args, Grant, State, parse_id};
use crate::subject::Subject;
use crate::target::{Target, TargetKind};

/// One operation on one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation<S> {
    /// Make the grant.
    Create(Args<S>),
    /// Find the grant by its id, or by the parts of an import. `last` is absent on import.
    Read {
        /// An id, or what an import names.
        id: String,
        /// The state as it was last known, whose spelling is kept.
        last: Option<State<S>>,
    },
    /// Change what can be changed in place.
    Update {
        /// As it is known to be.
        old: State<S>,
        /// As it is declared.
        new: Args<S>,
    },
    /// Take the grant away.
    Delete(State<S>),
}

/// Why an operation is refused before anything is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// What was asked cannot be done, however often it is tried.
    Invalid(String),
    /// The resource whose policy was to be changed does not exist.
    NoTarget(String),
}

/// What an operation came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<S> {
    /// The resource, or none where it is gone. Its etag is the one that was read: see [`Outcome::committed`].
    pub state: Option<State<S>>,
    /// What a person should know.
    pub warning: Option<String>,
    /// Whether the policy changed.
    pub changed: bool,
}

impl<S> Outcome<S> {
    fn gone() -> Self {
        Self {
            state: None,
            warning: None,
            changed: false,
        }
    }

    /// The outcome after the policy was written, and given this etag.
    pub fn committed(mut self, etag: &str) -> Self {
        if let Some(state) = self.state.as_mut().filter(|state| !state.etag.is_empty()) {
            state.etag = etag.to_string();
        }
        self
    }
}

/// An operation whose target is known, before anything was read.
#[derive(Debug, Clone)]
pub struct Prepared<S> {
    /// The resource whose policy is read, and perhaps written.
    pub target: Target,
    work: Work<S>,
}

#[derive(Debug, Clone)]
enum Work<S> {
    Grant { grant: Grant, args: Args<S>, is_new: bool },
    Find { sought: Sought, last: Option<State<S>> },
    Revoke { id: GrantId },
}

impl<S: Subject> Prepared<S> {
    /// Parses an operation's operands.
    pub fn new(kind: TargetKind, config: &Config, operation: Operation<S>) -> Result<Self, Refusal> {
        let work = match operation {
            Operation::Create(args) => Work::Grant {
                grant: Grant::of(kind, config, &args).map_err(refuse)?,
                args,
                is_new: true,
            },
            Operation::Update { old, new } => {
                let grant = Grant::of(kind, config, &new).map_err(refuse)?;
                if grant.id.to_string() != old.id {
                    return Err(Refusal::Invalid(format!(
                        "`{}` cannot become `{}` in place; the resource must be replaced",
                        old.id, grant.id
                    )));
                }
                Work::Grant {
                    grant,
                    args: new,
                    is_new: false,
                }
            }
            Operation::Read { id, last } => Work::Find {
                sought: Sought::parse(kind, config, S::NAMED_IN_ID, &id).map_err(Refusal::Invalid)?,
                last,
            },
            Operation::Delete(state) => Work::Revoke {
                id: parse_id::<S>(kind, &state.id).map_err(|failure| refuse([failure].into()))?,
            },
        };
        let target = match &work {
            Work::Grant { grant, .. } => grant.target.clone(),
            Work::Find { sought, .. } => sought.target.clone(),
            Work::Revoke { id } => id.target.clone(),
        };
        Ok(Self { target, work })
    }

    /// Whether the operation has to do with an address, of whatever kind of identity: puts it into a policy, or takes it out.
    pub fn concerns(&self, address: &str) -> bool {
        let is_it = |identity: &Identity| identity.address().eq_ignore_ascii_case(address);
        match &self.work {
            Work::Grant { grant, args, .. } => {
                let in_condition = |condition: &Condition| condition.expression.contains(address);
                grant.identities.iter().any(is_it) || args.condition.as_ref().is_some_and(in_condition)
            }
            // A binding that goes takes its whole list with it.
            Work::Revoke { id } => id.identity.as_ref().is_none_or(is_it),
            Work::Find { .. } => false,
        }
    }

    /// What the operation comes to where its target does not exist.
    pub fn without_target(&self) -> Result<Outcome<S>, Refusal> {
        match self.work {
            Work::Grant { .. } => Err(Refusal::NoTarget(format!(
                "`{}` does not exist; create it first, or correct `name`",
                self.target
            ))),
            Work::Find { .. } | Work::Revoke { .. } => Ok(Outcome::gone()),
        }
    }

    /// Applies the operation to the policy. A refused one leaves it as it was.
    pub fn apply(self, config: &Config, policy: &mut Policy) -> Result<Outcome<S>, Refusal> {
        match self.work {
            Work::Grant { grant, args, is_new } => apply_grant(config, policy, grant, args, is_new),
            Work::Find { sought, last } => find(config, policy, &sought, last),
            Work::Revoke { id } => {
                let changed = match config.policy_mode {
                    PolicyMode::Merge => S::revoke(policy, &key_of(&id), id.identity.as_ref()),
                    // A policy that no longer holds the grant was set anew by another resource, or by somebody else.
                    PolicyMode::Replace if S::find(policy, &key_of(&id), id.identity.as_ref()).is_some() => {
                        policy.retain_only(None)
                    }
                    PolicyMode::Replace => false,
                };
                Ok(Outcome {
                    changed,
                    ..Outcome::gone()
                })
            }
        }
    }
}

fn refuse(failures: Vec<Failure>) -> Refusal {
    let reasons: Vec<String> = failures
        .into_iter()
        .map(|failure| format!("`{}`: {}", failure.path, failure.reason))
        .collect();
    Refusal::Invalid(reasons.join("; "))
}

fn key_of(id: &GrantId) -> BindingKey {
    BindingKey {
        role: id.role.clone(),
        condition: id.condition.clone(),
    }
}

fn apply_grant<S: Subject>(
    config: &Config,
    policy: &mut Policy,
    grant: Grant,
    args: Args<S>,
    is_new: bool,
) -> Result<Outcome<S>, Refusal> {
    let warning = if is_new {
        S::warning(policy, &grant.key, &grant.identities)
    } else {
        None
    };
    let mut after = policy.clone();
    let changed = match config.policy_mode {
        PolicyMode::Merge => S::grant(&mut after, &grant.key, args.condition.as_ref(), &grant.identities),
        PolicyMode::Replace => {
            let mut own = policy.clone();
            own.retain_only(None);
            own.set_members(&grant.key, args.condition.as_ref(), &grant.identities);
            let is_literal = policy.is_only(&grant.key)
                && !after.set_members(&grant.key, args.condition.as_ref(), &grant.identities);
            if !is_literal {
                after = own;
            }
            !is_literal
        }
    };
    if changed {
        if let Some(limit) = limits::exceeded(policy, &after, &grant.key, &grant.identities) {
            return Err(Refusal::Invalid(format!(
                "`{}`: {limit}; nothing was written for it",
                grant.target
            )));
        }
        *policy = after;
    }
    Ok(Outcome {
        state: Some(State {
            subject: args.subject,
            name: args.name,
            role: args.role,
            condition: args.condition,
            project: grant.target.project().to_string(),
            etag: policy.etag().unwrap_or_default().to_string(),
            id: grant.id.to_string(),
        }),
        warning,
        changed,
    })
}

fn find<S: Subject>(
    config: &Config,
    policy: &Policy,
    sought: &Sought,
    last: Option<State<S>>,
) -> Result<Outcome<S>, Refusal> {
    let Some(key) = sought_key(policy, sought)? else {
        return Ok(Outcome::gone());
    };
    let Some(subject) = S::find(policy, &key, sought.identity.as_ref()) else {
        return Ok(Outcome::gone());
    };
    let id = GrantId {
        target: sought.target.clone(),
        role: key.role.clone(),
        condition: key.condition.clone(),
        identity: sought.identity.clone(),
    };
    let (is_literal, warning) = literal::<S>(config, policy, &key, sought);
    let etag = if is_literal {
        policy.etag().unwrap_or_default().to_string()
    } else {
        String::new()
    };
    let condition = policy.condition(&key);
    let target = &sought.target;
    let state = match last {
        Some(last) => State {
            subject: subject.respelled(&last.subject),
            // Absent and empty descriptions are equal; the user's is kept.
            condition: if last.condition == condition {
                last.condition
            } else {
                condition
            },
            name: last.name,
            role: key.role.to_string(),
            project: target.project().to_string(),
            etag,
            id: id.to_string(),
        },
        None => State {
            subject,
            name: target.to_string(),
            role: key.role.to_string(),
            condition,
            project: target.project().to_string(),
            etag,
            id: id.to_string(),
        },
    };
    Ok(Outcome {
        state: Some(state),
        warning,
        changed: false,
    })
}

/// Whether the policy is as this resource would set it under the configured mode, and what to say if not.
fn literal<S: Subject>(config: &Config, policy: &Policy, key: &BindingKey, sought: &Sought) -> (bool, Option<String>) {
    if config.policy_mode == PolicyMode::Merge {
        return (true, None);
    }
    let has_other_members = S::NAMED_IN_ID
        && policy
            .members(key)
            .into_iter()
            .any(|member| !sought.identity.as_ref().is_some_and(|own| own.is(member)));
    if !has_other_members && policy.is_only(key) {
        return (true, None);
    }
    let warning = format!(
        "the policy of `{}` holds more than this resource's binding; under `policyMode: replace` the next update removes it",
        sought.target
    );
    (false, Some(warning))
}

fn sought_key(policy: &Policy, sought: &Sought) -> Result<Option<BindingKey>, Refusal> {
    let condition = match &sought.condition {
        ConditionName::Exact(condition) => condition.clone(),
        ConditionName::Titled(title) => {
            let found = policy.titled(&sought.role, title, sought.identity.as_ref());
            match found.as_slice() {
                [] => return Ok(None),
                [one] => Some(one.clone()),
                several => return Err(Refusal::Invalid(ambiguous(sought, title, several))),
            }
        }
    };
    Ok(Some(BindingKey {
        role: sought.role.clone(),
        condition,
    }))
}

fn ambiguous(sought: &Sought, title: &str, found: &[ConditionDigest]) -> String {
    let ids: Vec<String> = found
        .iter()
        .map(|digest| {
            let id = GrantId {
                target: sought.target.clone(),
                role: sought.role.clone(),
                condition: Some(digest.clone()),
                identity: sought.identity.clone(),
            };
            format!("`{id}`")
        })
        .collect();
    format!(
        "{} conditions have the title `{title}`; import one of them by its id: {}",
        found.len(),
        ids.join(", ")
    )
}
