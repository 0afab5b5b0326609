//! A target's policy as it was read, and what may be changed in it: one binding. Everything else keeps its order,
//! spelling, unknown fields and the text of its numbers.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Map, Value, json};

use crate::condition::{Condition, ConditionDigest};
use crate::identity::{self, Identity};
use crate::role::{HASHED_CONDITION, Role};

/// The only version in which bindings may have conditions.
const VERSION: u8 = 3;

/// A policy document. Its bindings are known to be well formed.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    document: Map<String, Value>,
    /// Whether the service leaves the audit configuration alone when a policy without one is set.
    keeps_audit: bool,
}

/// Why what a service answered is not a policy that we work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyError {
    /// It is not JSON, or not an object.
    NotAPolicy,
    /// A part of it has another form than the API describes: where, and what was expected.
    Malformed(String),
    /// The role's condition was hidden. Writing this back would lose the condition.
    HashedCondition(String),
    /// There is no etag, so a write could overwrite what somebody else has just written.
    NoEtag,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPolicy => f.write_str("the service's answer is not a policy"),
            Self::Malformed(what) => write!(f, "the service's answer is not a policy: {what}"),
            Self::HashedCondition(role) => write!(
                f,
                "the policy was read with its conditions hidden (role `{role}`); writing it back would lose them"
            ),
            Self::NoEtag => f.write_str(
                "the policy was read without an etag, so a write could overwrite somebody else's change; nothing was \
                 written",
            ),
        }
    }
}

/// Which binding of a policy: one per role and condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingKey {
    /// The role.
    pub role: Role,
    /// The digest of its condition, where it has one.
    pub condition: Option<ConditionDigest>,
}

impl BindingKey {
    fn is(&self, binding: &Value) -> bool {
        binding.get("role").and_then(Value::as_str) == Some(self.role.as_str())
            && self.condition == condition_of(binding).map(|condition| condition.digest())
    }
}

/// The condition of a binding, where it has one.
fn condition_of(binding: &Value) -> Option<Condition> {
    let condition = binding.get("condition")?.as_object()?;
    let text = |key| condition.get(key).and_then(Value::as_str).map(String::from);
    Some(Condition {
        expression: text("expression").unwrap_or_default(),
        title: text("title").unwrap_or_default(),
        description: text("description"),
    })
}

fn members_of(binding: &Value) -> impl Iterator<Item = &str> {
    binding
        .get("members")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

impl Policy {
    /// Reads a service's answer.
    pub fn parse(answer: &str) -> Result<Self, PolicyError> {
        let Ok(Value::Object(document)) = serde_json::from_str(answer) else {
            return Err(PolicyError::NotAPolicy);
        };
        let bindings = match document.get("bindings") {
            None | Some(Value::Null) => &Vec::new(),
            Some(Value::Array(bindings)) => bindings,
            Some(_) => return Err(PolicyError::Malformed("`bindings` is not a list".to_string())),
        };
        for (index, binding) in bindings.iter().enumerate() {
            check_binding(binding).map_err(|what| PolicyError::Malformed(format!("`bindings[{index}]{what}")))?;
            if let Some(role) = binding.get("role").and_then(Value::as_str)
                && role.contains(HASHED_CONDITION)
            {
                return Err(PolicyError::HashedCondition(role.to_string()));
            }
        }
        if document
            .get("etag")
            .is_some_and(|etag| !etag.is_string() && !etag.is_null())
        {
            return Err(PolicyError::Malformed("`etag` is not a string".to_string()));
        }
        Ok(Self {
            document,
            keeps_audit: false,
        })
    }

    /// The same policy of a service whose default update mask is `bindings, etag`.
    #[must_use]
    pub fn keeping_audit(mut self) -> Self {
        self.keeps_audit = true;
        self
    }

    /// The etag that was read, byte for byte. An empty one is none.
    pub fn etag(&self) -> Option<&str> {
        self.document
            .get("etag")
            .and_then(Value::as_str)
            .filter(|etag| !etag.is_empty())
    }

    /// The body that sets this policy: the whole of it, with the etag that was read.
    pub fn set_request(&self) -> Result<String, PolicyError> {
        if self.etag().is_none() {
            return Err(PolicyError::NoEtag);
        }
        let mut policy = self.document.clone();
        policy.insert("version".to_string(), json!(VERSION));
        Ok(json!({ "policy": policy }).to_string())
    }

    /// The document itself.
    pub fn document(&self) -> &Map<String, Value> {
        &self.document
    }

    /// Every binding.
    pub(crate) fn bindings(&self) -> &[Value] {
        self.document
            .get("bindings")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// Edits the list of bindings, in the place where it stands in the document.
    fn edit<R>(&mut self, change: impl FnOnce(&mut Vec<Value>) -> R) -> R {
        let mut bindings = match self.document.get_mut("bindings") {
            Some(Value::Array(bindings)) => core::mem::take(bindings),
            _ => Vec::new(),
        };
        let result = change(&mut bindings);
        self.document.insert("bindings".to_string(), Value::Array(bindings));
        result
    }

    /// The members of one (role, condition), as they are spelled, over every binding that has this key.
    pub fn members(&self, key: &BindingKey) -> Vec<&str> {
        self.bindings()
            .iter()
            .filter(|binding| key.is(binding))
            .flat_map(members_of)
            .collect()
    }

    /// Whether the policy holds one binding, of this (role, condition), and nothing else that a write of it would remove.
    pub fn is_only(&self, key: &BindingKey) -> bool {
        let is_single = matches!(self.bindings(), [binding] if key.is(binding));
        let audits = self.document.get("auditConfigs").and_then(Value::as_array);
        is_single && (self.keeps_audit || audits.is_none_or(Vec::is_empty))
    }

    /// The condition and the members of every binding of a role.
    pub(crate) fn of_role(
        &self,
        role: &Role,
    ) -> impl Iterator<Item = (Option<ConditionDigest>, impl Iterator<Item = &str>)> {
        let is_of_role = |binding: &&Value| binding.get("role").and_then(Value::as_str) == Some(role.as_str());
        let found = self.bindings().iter().filter(is_of_role);
        found.map(|binding| {
            (
                condition_of(binding).map(|condition| condition.digest()),
                members_of(binding),
            )
        })
    }

    /// The condition of a binding with this key.
    pub fn condition(&self, key: &BindingKey) -> Option<Condition> {
        self.bindings()
            .iter()
            .find(|binding| key.is(binding))
            .and_then(condition_of)
    }

    /// The distinct conditions of this title under a role, among the bindings that hold `identity` where one is given.
    pub fn titled(&self, role: &Role, title: &str, identity: Option<&Identity>) -> Vec<ConditionDigest> {
        let mut found: Vec<ConditionDigest> = Vec::new();
        for binding in self.bindings() {
            let is_sought = binding.get("role").and_then(Value::as_str) == Some(role.as_str())
                && identity.is_none_or(|identity| members_of(binding).any(|member| identity.is(member)));
            if let Some(condition) = condition_of(binding).filter(|condition| is_sought && condition.title == title) {
                let digest = condition.digest();
                if !found.contains(&digest) {
                    found.push(digest);
                }
            }
        }
        found
    }

    /// Adds an identity to a binding, the first one of this key, or a new one at the end. True if the policy changed.
    pub fn add_member(&mut self, key: &BindingKey, condition: Option<&Condition>, identity: &Identity) -> bool {
        if self.members(key).into_iter().any(|member| identity.is(member)) {
            return false;
        }
        self.edit(|bindings| {
            let existing = bindings
                .iter_mut()
                .filter(|binding| key.is(binding))
                .find_map(|binding| {
                    binding
                        .get_mut("members")?
                        .as_array_mut()
                        .filter(|members| !members.is_empty())
                });
            match existing {
                Some(members) => members.push(json!(identity.as_str())),
                None => bindings.push(new_binding(key, condition, &[identity.as_str()])),
            }
        });
        true
    }

    /// Takes an identity out of every binding of this key, and drops a binding whose last one it was. True if the policy
    /// changed.
    pub fn remove_member(&mut self, key: &BindingKey, identity: &Identity) -> bool {
        let mut changed = false;
        self.edit(|bindings| {
            bindings.retain_mut(|binding| {
                if !key.is(binding) {
                    return true;
                }
                let Some(members) = binding.get_mut("members").and_then(Value::as_array_mut) else {
                    return true;
                };
                let before = members.len();
                members.retain(|member| !member.as_str().is_some_and(|member| identity.is(member)));
                let removed = members.len() < before;
                changed |= removed;
                !(removed && members.is_empty())
            });
        });
        changed
    }

    /// Makes the members of a (role, condition) exactly these. Those that stay keep their place and spelling; several
    /// bindings of this key become one. True if the policy changed.
    pub fn set_members(&mut self, key: &BindingKey, condition: Option<&Condition>, identities: &[Identity]) -> bool {
        let wanted: BTreeSet<_> = identities.iter().map(Identity::canonical).collect();
        let mut kept: Vec<String> = Vec::new();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut has_unwanted = false;
        for member in self.members(key) {
            let canonical = identity::canonical(member);
            if !wanted.contains(&canonical) {
                has_unwanted = true;
            } else if seen.insert(canonical.to_string()) {
                kept.push(member.to_string());
            }
        }
        if !has_unwanted && seen.len() == wanted.len() {
            return false;
        }
        for identity in identities {
            if seen.insert(identity.canonical().to_string()) {
                kept.push(identity.as_str().to_string());
            }
        }
        self.edit(|bindings| {
            let first = bindings.iter().position(|binding| key.is(binding));
            let mut index = 0;
            bindings.retain(|binding| {
                let keep = Some(index) == first || !key.is(binding);
                index += 1;
                keep
            });
            match first
                .and_then(|first| bindings.get_mut(first))
                .and_then(Value::as_object_mut)
            {
                Some(binding) => {
                    binding.insert("members".to_string(), json!(kept));
                }
                None => {
                    let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
                    bindings.push(new_binding(key, condition, &kept));
                }
            }
        });
        true
    }

    /// Drops every binding of this key. True if the policy changed.
    pub fn remove_binding(&mut self, key: &BindingKey) -> bool {
        self.edit(|bindings| {
            let before = bindings.len();
            bindings.retain(|binding| !key.is(binding));
            bindings.len() < before
        })
    }

    /// Drops everything but the bindings of `key`, and what else the policy holds beside its etag; everything at all where
    /// no key is given. True if a binding went.
    pub fn retain_only(&mut self, key: Option<&BindingKey>) -> bool {
        let changed = self.edit(|bindings| {
            let before = bindings.len();
            bindings.retain(|binding| key.is_some_and(|key| key.is(binding)));
            bindings.len() < before
        });
        self.document.retain(|name, _| name == "bindings" || name == "etag");
        changed
    }
}

fn new_binding(key: &BindingKey, condition: Option<&Condition>, members: &[&str]) -> Value {
    let mut binding = Map::new();
    binding.insert("role".to_string(), json!(key.role.as_str()));
    binding.insert("members".to_string(), json!(members));
    if let Some(condition) = condition {
        let mut fields = Map::new();
        fields.insert("title".to_string(), json!(condition.title));
        if let Some(description) = condition.description.as_deref().filter(|text| !text.is_empty()) {
            fields.insert("description".to_string(), json!(description));
        }
        fields.insert("expression".to_string(), json!(condition.expression));
        binding.insert("condition".to_string(), Value::Object(fields));
    }
    Value::Object(binding)
}

/// What is wrong with the form of a binding: the rest of its path, and what was expected.
fn check_binding(binding: &Value) -> Result<(), &'static str> {
    let binding = binding.as_object().ok_or("` is not an object")?;
    if !binding.get("role").is_some_and(Value::is_string) {
        return Err(".role` is not a string");
    }
    match binding.get("members") {
        None | Some(Value::Null) => {}
        Some(Value::Array(members)) if members.iter().all(Value::is_string) => {}
        Some(_) => return Err(".members` is not a list of strings"),
    }
    match binding.get("condition") {
        None | Some(Value::Null) => {}
        Some(Value::Object(condition)) => {
            let is_text = |key| condition.get(key).is_none_or(|value: &Value| value.is_string());
            if !(is_text("title") && is_text("description") && is_text("expression")) {
                return Err(".condition` has a field that is not a string");
            }
        }
        Some(_) => return Err(".condition` is not an object"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(role: &str) -> BindingKey {
        BindingKey {
            role: Role::parse(role).unwrap(),
            condition: None,
        }
    }

    fn user(name: &str) -> Identity {
        Identity::parse(&format!("user:{name}@example.com"), crate::config::IdentityForms::All).unwrap()
    }

    #[test]
    fn an_answer_that_is_no_policy_is_refused() {
        for answer in ["", "<html>", "[]", "\"x\"", "null"] {
            assert_eq!(Policy::parse(answer), Err(PolicyError::NotAPolicy), "{answer}");
        }
        for answer in [
            r#"{"bindings":{}}"#,
            r#"{"bindings":[1]}"#,
            r#"{"bindings":[{"members":[]}]}"#,
            r#"{"bindings":[{"role":"r","members":[1]}]}"#,
            r#"{"bindings":[{"role":"r","condition":"x"}]}"#,
            r#"{"etag":1}"#,
        ] {
            assert!(
                matches!(Policy::parse(answer), Err(PolicyError::Malformed(_))),
                "{answer}"
            );
        }
    }

    #[test]
    fn hidden_conditions_are_refused() {
        let answer = r#"{"etag":"A","bindings":[{"role":"roles/viewer_withcond_00112233445566778899","members":["user:a@b.c"]}]}"#;
        assert!(matches!(Policy::parse(answer), Err(PolicyError::HashedCondition(_))));
    }

    #[test]
    fn a_policy_without_an_etag_is_never_written() {
        for answer in ["{}", r#"{"etag":""}"#, r#"{"etag":null}"#] {
            assert_eq!(
                Policy::parse(answer).unwrap().set_request(),
                Err(PolicyError::NoEtag),
                "{answer}"
            );
        }
    }

    #[test]
    fn what_is_written_is_what_was_read_with_version_3() {
        let answer = r#"{"etag":"BwX=","version":1,"extra":{"n":1.50,"big":12345678901234567890123},"bindings":[{"role":"roles/viewer","members":["user:A@b.c"],"x":1}]}"#;
        assert_eq!(
            Policy::parse(answer).unwrap().set_request().unwrap(),
            r#"{"policy":{"etag":"BwX=","version":3,"extra":{"n":1.50,"big":12345678901234567890123},"bindings":[{"role":"roles/viewer","members":["user:A@b.c"],"x":1}]}}"#
        );
    }

    #[test]
    fn a_member_joins_the_first_binding_of_its_key_and_leaves_all_of_them() {
        let answer = r#"{"etag":"A","bindings":[{"role":"roles/viewer","members":["user:a@example.com"]},{"role":"roles/viewer","members":["user:B@example.com"]}]}"#;
        let mut policy = Policy::parse(answer).unwrap();
        assert!(policy.add_member(&key("roles/viewer"), None, &user("c")));
        assert!(!policy.add_member(&key("roles/viewer"), None, &user("b")));
        assert_eq!(
            policy.members(&key("roles/viewer")),
            ["user:a@example.com", "user:c@example.com", "user:B@example.com"]
        );
        assert!(policy.remove_member(&key("roles/viewer"), &user("b")));
        assert_eq!(policy.bindings().len(), 1);
    }

    #[test]
    fn setting_members_keeps_the_spelling_and_place_of_those_that_stay() {
        let answer = r#"{"etag":"A","bindings":[{"role":"roles/viewer","members":["user:A@example.com","user:b@example.com"]},{"role":"roles/editor","members":["user:x@example.com"]},{"role":"roles/viewer","members":["user:c@example.com"]}]}"#;
        let mut policy = Policy::parse(answer).unwrap();
        assert!(!policy.set_members(&key("roles/viewer"), None, &[user("c"), user("b"), user("a")]));
        assert_eq!(policy, Policy::parse(answer).unwrap());
        assert!(policy.set_members(&key("roles/viewer"), None, &[user("d"), user("c"), user("a")]));
        assert_eq!(
            serde_json::to_string(policy.bindings()).unwrap(),
            r#"[{"role":"roles/viewer","members":["user:A@example.com","user:c@example.com","user:d@example.com"]},{"role":"roles/editor","members":["user:x@example.com"]}]"#
        );
    }
}
