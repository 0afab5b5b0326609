//! The service's limits on one policy, so that a grant that goes over one is refused before anything is written.
//! Figures: IAM's quotas page.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use serde_json::Value;

use crate::document::{BindingKey, Policy};
use crate::identity;

/// All appearances of principals in a policy, those exempted from audit included.
pub const PRINCIPALS: usize = 1_500;

/// Groups, each counted once, and domains, each appearance counted.
pub const GROUPS_AND_DOMAINS: usize = 250;

/// Bindings of one role to one principal that differ in their condition only.
pub const CONDITIONS_PER_GRANT: usize = 20;

/// Which limit a policy is over after a change to the binding of `key`, in a sentence; none where it is within all.
pub fn exceeded(policy: &Policy, key: &BindingKey) -> Option<String> {
    let mut principals = exempted(policy);
    let mut groups = BTreeSet::new();
    let mut domains = 0;
    for member in policy.bindings().iter().flat_map(members) {
        principals += 1;
        if member.starts_with("group:") {
            groups.insert(identity::canonical(member));
        } else if member.starts_with("domain:") {
            domains += 1;
        }
    }
    if principals > PRINCIPALS {
        return Some(format!(
            "the policy would name {principals} identities; the service's limit is {PRINCIPALS} (grant the role to a group \
             instead)"
        ));
    }
    let groups_and_domains = groups.len() + domains;
    if groups_and_domains > GROUPS_AND_DOMAINS {
        return Some(format!(
            "the policy would name {groups_and_domains} groups and domains; the service's limit is {GROUPS_AND_DOMAINS}"
        ));
    }
    policy.members(key).into_iter().find_map(|member| {
        let member = identity::canonical(member);
        let bindings = policy
            .bindings()
            .iter()
            .filter(|binding| binding.get("role").and_then(Value::as_str) == Some(key.role.as_str()))
            .filter(|binding| members(binding).any(|other| identity::canonical(other) == member))
            .count();
        (bindings > CONDITIONS_PER_GRANT).then(|| {
            format!(
                "`{member}` would have `{}` in {bindings} bindings with different conditions; the service's limit is \
                 {CONDITIONS_PER_GRANT}",
                key.role
            )
        })
    })
}

fn members(binding: &Value) -> impl Iterator<Item = &str> {
    strings(binding.get("members"))
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
        .document()
        .get("auditConfigs")
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
        assert_eq!(exceeded(&with(1_500, 0), &key()), None);
        assert!(exceeded(&with(1_501, 0), &key()).unwrap().contains("1501"));
        assert!(exceeded(&with(1_500, 1), &key()).is_some());
    }

    #[test]
    fn a_group_counts_once_and_a_domain_each_time() {
        let groups = |count| {
            policy(json!({"bindings": [
                {"role": "roles/viewer", "members": of("group", count)},
                {"role": "roles/editor", "members": of("group", count)},
            ]}))
        };
        assert_eq!(exceeded(&groups(250), &key()), None);
        assert!(exceeded(&groups(251), &key()).unwrap().contains("250"));
        let domains: Vec<String> = (0..126).map(|n| format!("domain:n{n}.example.com")).collect();
        let twice = policy(json!({"bindings": [
            {"role": "roles/viewer", "members": domains}, {"role": "roles/editor", "members": domains},
        ]}));
        assert!(exceeded(&twice, &key()).is_some());
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
        assert_eq!(exceeded(&with(20), &key()), None);
        assert!(exceeded(&with(21), &key()).unwrap().contains("20"));
    }
}
