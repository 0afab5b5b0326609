//! The service's limits on one policy, so that a grant that goes over one is refused before anything is written.
//! Figures: IAM's quotas page.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use serde_json::Value;

use crate::condition::ConditionDigest;
use crate::document::{BindingKey, Policy};
use crate::identity::{self, Identity};

/// All appearances of principals in a policy, those exempted from audit included.
pub const PRINCIPALS: usize = 1_500;

/// Groups, each counted once, and domains, each appearance counted.
pub const GROUPS_AND_DOMAINS: usize = 250;

/// Bindings of one role to one principal that differ in their condition only.
pub const CONDITIONS_PER_GRANT: usize = 20;

/// Which limit granting a role to `granted` goes over, in a sentence; none where it is within all. A policy that is over one
/// already may shrink, and stay.
pub fn exceeded(before: &Policy, after: &Policy, key: &BindingKey, granted: &[Identity]) -> Option<String> {
    // What was before is looked at only where something is over: most policies are far below.
    let new = Counts::of(after);
    if new.principals > PRINCIPALS && new.principals > Counts::of(before).principals {
        return Some(format!(
            "the policy would name {} identities; the service's limit is {PRINCIPALS} (grant the role to a group instead)",
            new.principals
        ));
    }
    if new.groups_and_domains > GROUPS_AND_DOMAINS && new.groups_and_domains > Counts::of(before).groups_and_domains {
        return Some(format!(
            "the policy would name {} groups and domains; the service's limit is {GROUPS_AND_DOMAINS}",
            new.groups_and_domains
        ));
    }
    let mut over = conditions(after, key, granted)
        .into_iter()
        .filter(|(_, count)| *count > CONDITIONS_PER_GRANT);
    over.find_map(|(member, count)| {
        let before = conditions(before, key, granted).remove(&member).unwrap_or_default();
        (count > before).then(|| {
            format!(
                "`{member}` would have `{}` under {count} different conditions; the service's limit is {CONDITIONS_PER_GRANT}",
                key.role
            )
        })
    })
}

struct Counts {
    principals: usize,
    groups_and_domains: usize,
}

impl Counts {
    fn of(policy: &Policy) -> Self {
        let mut principals = exempted(policy);
        let mut groups = BTreeSet::new();
        let mut domains = 0;
        for member in policy.all_members() {
            principals += 1;
            if member.starts_with("group:") {
                groups.insert(identity::canonical(member));
            } else if member.starts_with("domain:") {
                domains += 1;
            }
        }
        Self {
            principals,
            groups_and_domains: groups.len() + domains,
        }
    }
}

/// Under how many different conditions each of these identities has the role.
fn conditions(policy: &Policy, key: &BindingKey, granted: &[Identity]) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, BTreeSet<Option<&ConditionDigest>>> = granted
        .iter()
        .map(|identity| (identity.canonical().into_owned(), BTreeSet::new()))
        .collect();
    for (condition, members) in policy.of_role(&key.role) {
        for member in members {
            if let Some(conditions) = found.get_mut(identity::canonical(member).as_ref()) {
                conditions.insert(condition);
            }
        }
    }
    found
        .into_iter()
        .map(|(member, conditions)| (member, conditions.len()))
        .collect()
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// How many principals the audit configuration names.
fn exempted(policy: &Policy) -> usize {
    let configs = policy
        .beside_bindings("auditConfigs")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    configs
        .map(|config| {
            let logs = config
                .get("auditLogConfigs")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            strings(config.get("exemptedMembers")).count()
                + logs
                    .map(|log| strings(log.get("exemptedMembers")).count())
                    .sum::<usize>()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::IdentityForms;
    use crate::role::Role;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use serde_json::json;

    fn key() -> BindingKey {
        BindingKey {
            role: Role::parse("roles/viewer").unwrap(),
            condition: None,
        }
    }

    fn policy(value: Value) -> Policy {
        Policy::parse(&value.to_string()).unwrap()
    }

    /// What is over where there was nothing before.
    fn exceeded_by(after: &Policy, granted: &[&str]) -> Option<String> {
        let granted: Vec<Identity> = granted
            .iter()
            .map(|text| Identity::parse(text, IdentityForms::All).unwrap())
            .collect();
        exceeded(&policy(json!({})), after, &key(), &granted)
    }

    fn of(kind: &str, count: usize) -> Vec<String> {
        (0..count).map(|n| format!("{kind}:n{n}@example.com")).collect()
    }

    #[test]
    fn principals_are_counted_with_those_exempted_from_audit() {
        let with = |count, exempted: usize| {
            policy(json!({
                "bindings": [{"role": "roles/viewer", "members": of("user", count)}],
                "auditConfigs": [{"service": "x", "auditLogConfigs": [{"exemptedMembers": of("user", exempted)}]}],
            }))
        };
        assert_eq!(exceeded_by(&with(1_500, 0), &[]), None);
        assert!(exceeded_by(&with(1_501, 0), &[]).unwrap().contains("1501"));
        assert!(exceeded_by(&with(1_500, 1), &[]).is_some());
    }

    #[test]
    fn a_group_counts_once_and_a_domain_each_time() {
        let groups = |count| {
            policy(json!({"bindings": [
                {"role": "roles/viewer", "members": of("group", count)},
                {"role": "roles/editor", "members": of("group", count)},
            ]}))
        };
        assert_eq!(exceeded_by(&groups(250), &[]), None);
        assert!(exceeded_by(&groups(251), &[]).unwrap().contains("250"));
        let domains: Vec<String> = (0..126).map(|n| format!("domain:n{n}.example.com")).collect();
        let twice = policy(json!({"bindings": [
            {"role": "roles/viewer", "members": domains}, {"role": "roles/editor", "members": domains},
        ]}));
        assert!(exceeded_by(&twice, &[]).is_some());
    }

    #[test]
    fn one_grant_has_at_most_twenty_conditions() {
        let with = |count: usize| {
            let bindings: Vec<Value> = (0..count)
                .map(|n| {
                    let member = if n == 0 {
                        "user:A@example.com"
                    } else {
                        "user:a@example.com"
                    };
                    let mut binding = json!({"role": "roles/viewer", "members": [member]});
                    if n > 0 {
                        binding["condition"] = json!({"title": n.to_string(), "expression": "true"});
                    }
                    binding
                })
                .collect();
            policy(json!({ "bindings": bindings }))
        };
        assert_eq!(exceeded_by(&with(20), &["user:A@example.com"]), None);
        assert!(exceeded_by(&with(21), &["user:a@example.com"]).unwrap().contains("20"));
        assert_eq!(
            exceeded_by(&with(21), &["user:other@example.com"]),
            None,
            "who is not granted anything is not judged"
        );
        let doubled = json!({"role": "roles/viewer", "members": ["user:a@example.com"]});
        let doubled = policy(json!({"bindings": alloc::vec![doubled; 21]}));
        assert_eq!(
            exceeded_by(&doubled, &["user:a@example.com"]),
            None,
            "21 bindings of one condition"
        );
    }

    #[test]
    fn a_policy_that_is_over_a_limit_may_shrink() {
        let with = |count| policy(json!({"bindings": [{"role": "roles/viewer", "members": of("group", count)}]}));
        assert_eq!(exceeded(&with(300), &with(260), &key(), &[]), None);
        assert!(exceeded(&with(259), &with(260), &key(), &[]).is_some());
    }
}
