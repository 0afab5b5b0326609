//! A target's policy as it was read, and what may be changed in it: one binding. Everything else keeps its order,
//! spelling, unknown fields and the text of its numbers.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Map, Value, json};

use crate::binding::Binding;
pub use crate::binding::BindingKey;
use crate::condition::{Condition, ConditionDigest};
use crate::identity::{self, Identity};
use crate::role::{HASHED_CONDITION, Role};

/// The only version in which bindings may have conditions.
const VERSION: u8 = 3;

/// A policy document. Its bindings are known to be well formed.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Everything but the bindings, which have their place here.
    document: Map<String, Value>,
    /// Shared between copies: most of them never change.
    bindings: Vec<Arc<Binding>>,
    /// Whether the document has a list of bindings, if an empty one.
    has_list: bool,
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

impl Policy {
    /// Reads a service's answer.
    pub fn parse(answer: &str) -> Result<Self, PolicyError> {
        let Ok(Value::Object(mut document)) = serde_json::from_str(answer) else {
            return Err(PolicyError::NotAPolicy);
        };
        let (list, has_list) = match document.get_mut("bindings") {
            None | Some(Value::Null) => (Vec::new(), false),
            Some(Value::Array(list)) => (core::mem::take(list), true),
            Some(_) => return Err(PolicyError::Malformed("`bindings` is not a list".to_string())),
        };
        let mut bindings = Vec::with_capacity(list.len());
        for (index, binding) in list.into_iter().enumerate() {
            let binding =
                Binding::parse(binding).map_err(|what| PolicyError::Malformed(format!("`bindings[{index}]{what}")))?;
            if binding.role().contains(HASHED_CONDITION) {
                return Err(PolicyError::HashedCondition(binding.role().to_string()));
            }
            bindings.push(Arc::new(binding));
        }
        if document
            .get("etag")
            .is_some_and(|etag| !etag.is_string() && !etag.is_null())
        {
            return Err(PolicyError::Malformed("`etag` is not a string".to_string()));
        }
        Ok(Self {
            document,
            bindings,
            has_list,
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
        let mut policy = self.document();
        policy.insert("version".to_string(), json!(VERSION));
        Ok(json!({ "policy": policy }).to_string())
    }

    /// The document itself.
    pub fn document(&self) -> Map<String, Value> {
        let mut document = self.document.clone();
        if self.has_list {
            let bindings = self.bindings.iter().map(|binding| binding.value().clone());
            document.insert("bindings".to_string(), Value::Array(bindings.collect()));
        }
        document
    }

    /// What the document says beside its bindings.
    pub(crate) fn beside_bindings(&self, name: &str) -> Option<&Value> {
        self.document.get(name)
    }

    /// Every binding.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.iter().map(Arc::as_ref)
    }

    /// The list of bindings, to be edited: it is a list from then on.
    fn edit(&mut self) -> &mut Vec<Arc<Binding>> {
        self.has_list = true;
        &mut self.bindings
    }

    /// The members of one (role, condition), as they are spelled, over every binding that has this key.
    pub fn members(&self, key: &BindingKey) -> Vec<&str> {
        self.bindings()
            .filter(|binding| key.is(binding))
            .flat_map(Binding::members)
            .collect()
    }

    /// Every member of every binding.
    pub fn all_members(&self) -> impl Iterator<Item = &str> {
        self.bindings().flat_map(Binding::members)
    }

    /// Whether the policy holds one binding, of this (role, condition), and nothing else that a write of it would remove.
    pub fn is_only(&self, key: &BindingKey) -> bool {
        let is_single = matches!(self.bindings.as_slice(), [binding] if key.is(binding));
        let audits = self.document.get("auditConfigs").and_then(Value::as_array);
        is_single && (self.keeps_audit || audits.is_none_or(Vec::is_empty))
    }

    /// The condition and the members of every binding of a role.
    pub(crate) fn of_role(
        &self,
        role: &Role,
    ) -> impl Iterator<Item = (Option<&ConditionDigest>, impl Iterator<Item = &str>)> {
        let found = self.bindings().filter(move |binding| binding.role() == role.as_str());
        found.map(|binding| (binding.digest(), binding.members()))
    }

    /// The condition of a binding with this key.
    pub fn condition(&self, key: &BindingKey) -> Option<Condition> {
        self.bindings()
            .find(|binding| key.is(binding))
            .and_then(Binding::condition)
    }

    /// The distinct conditions of this title under a role, among the bindings that hold `identity` where one is given.
    pub fn titled(&self, role: &Role, title: &str, identity: Option<&Identity>) -> Vec<ConditionDigest> {
        let mut found: Vec<ConditionDigest> = Vec::new();
        for binding in self.bindings().filter(|binding| binding.role() == role.as_str()) {
            let is_sought = identity.is_none_or(|identity| binding.members().any(|member| identity.is(member)));
            let has_title = || binding.condition().is_some_and(|condition| condition.title == title);
            if let Some(digest) = binding.digest().filter(|_| is_sought && has_title())
                && !found.contains(digest)
            {
                found.push(digest.clone());
            }
        }
        found
    }

    /// Adds an identity to a binding, the first one of this key, or a new one at the end. True if the policy changed.
    pub fn add_member(&mut self, key: &BindingKey, condition: Option<&Condition>, identity: &Identity) -> bool {
        if self.members(key).into_iter().any(|member| identity.is(member)) {
            return false;
        }
        let bindings = self.edit();
        // What is shared is copied only where it changes.
        let joined = bindings
            .iter_mut()
            .find(|binding| key.is(binding) && binding.members().next().is_some());
        match joined.and_then(|binding| Arc::make_mut(binding).members_mut()) {
            Some(members) => members.push(json!(identity.as_str())),
            None => bindings.push(Arc::new(Binding::new(key, condition, &[identity.as_str()]))),
        }
        true
    }

    /// Takes an identity out of every binding of this key, and drops a binding whose last one it was. True if the policy
    /// changed.
    pub fn remove_member(&mut self, key: &BindingKey, identity: &Identity) -> bool {
        let mut changed = false;
        self.edit().retain_mut(|binding| {
            if !key.is(binding) || !binding.members().any(|member| identity.is(member)) {
                return true;
            }
            let Some(members) = Arc::make_mut(binding).members_mut() else {
                return true;
            };
            members.retain(|member| !member.as_str().is_some_and(|member| identity.is(member)));
            changed = true;
            !members.is_empty()
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
        let bindings = self.edit();
        let first = bindings.iter().position(|binding| key.is(binding));
        let mut index = 0;
        bindings.retain(|binding| {
            let keep = Some(index) == first || !key.is(binding);
            index += 1;
            keep
        });
        match first.and_then(|first| bindings.get_mut(first)) {
            Some(binding) => Arc::make_mut(binding).set_members(&kept),
            None => {
                let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
                bindings.push(Arc::new(Binding::new(key, condition, &kept)));
            }
        }
        true
    }

    /// Drops every binding of this key. True if the policy changed.
    pub fn remove_binding(&mut self, key: &BindingKey) -> bool {
        let bindings = self.edit();
        let before = bindings.len();
        bindings.retain(|binding| !key.is(binding));
        bindings.len() < before
    }

    /// Drops everything but the bindings of `key`, and what else the policy holds beside its etag; everything at all where
    /// no key is given. True if a binding went.
    pub fn retain_only(&mut self, key: Option<&BindingKey>) -> bool {
        let bindings = self.edit();
        let before = bindings.len();
        bindings.retain(|binding| key.is_some_and(|key| key.is(binding)));
        let changed = bindings.len() < before;
        self.document.retain(|name, _| name == "bindings" || name == "etag");
        changed
    }
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
        assert_eq!(policy.bindings().count(), 1);
    }

    #[test]
    fn setting_members_keeps_the_spelling_and_place_of_those_that_stay() {
        let answer = r#"{"etag":"A","bindings":[{"role":"roles/viewer","members":["user:A@example.com","user:b@example.com"]},{"role":"roles/editor","members":["user:x@example.com"]},{"role":"roles/viewer","members":["user:c@example.com"]}]}"#;
        let mut policy = Policy::parse(answer).unwrap();
        assert!(!policy.set_members(&key("roles/viewer"), None, &[user("c"), user("b"), user("a")]));
        assert_eq!(policy, Policy::parse(answer).unwrap());
        assert!(policy.set_members(&key("roles/viewer"), None, &[user("d"), user("c"), user("a")]));
        assert_eq!(
            policy.document()["bindings"].to_string(),
            r#"[{"role":"roles/viewer","members":["user:A@example.com","user:c@example.com","user:d@example.com"]},{"role":"roles/editor","members":["user:x@example.com"]}]"#
        );
    }
}
