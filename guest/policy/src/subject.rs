//! Who a resource grants its role to: one identity (`member`) or a list (`members`). This is all that tells the two
//! shapes of resource apart.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::condition::Condition;
use crate::config::IdentityForms;
use crate::document::{BindingKey, Policy};
use crate::failure::{Change, ChangeKind, Failure, UnknownPaths};
use crate::identity::{self, Identity};

/// The property that says who is granted the role.
pub trait Subject: Clone {
    /// Its name.
    const PROPERTY: &'static str;

    /// Whether a grant's id and claim name the identity: where others may own the rest of the same binding.
    const NAMED_IN_ID: bool;

    /// The identities in the user's order. None while one of them is unknown.
    fn identities(&self, forms: IdentityForms, unknown: &UnknownPaths) -> Result<Option<Vec<Identity>>, Vec<Failure>>;

    /// How the declared subject differs from the one that is there.
    fn changes(old: &Self, new: &Self, unknown: &UnknownPaths) -> Vec<Change>;

    /// Puts the identities into their binding. True if the policy changed.
    fn grant(policy: &mut Policy, key: &BindingKey, condition: Option<&Condition>, identities: &[Identity]) -> bool;

    /// Takes out what the resource owns: `identity` is the one that its id names. True if the policy changed.
    fn revoke(policy: &mut Policy, key: &BindingKey, identity: Option<&Identity>) -> bool;

    /// What the policy holds of the resource, in the policy's spelling; none where it is gone.
    fn find(policy: &Policy, key: &BindingKey, identity: Option<&Identity>) -> Option<Self>;

    /// The same subject in the spelling and order of `last`, where those are equal by the service's rules.
    fn respelled(self, last: &Self) -> Self;

    /// What a person should know before this is granted over what is there: adopted, or taken from others.
    fn warning(policy: &Policy, key: &BindingKey, identities: &[Identity]) -> Option<String>;
}

/// `member`: one identity.
impl Subject for String {
    const PROPERTY: &'static str = "member";
    const NAMED_IN_ID: bool = true;

    fn identities(&self, forms: IdentityForms, unknown: &UnknownPaths) -> Result<Option<Vec<Identity>>, Vec<Failure>> {
        if unknown.touches(Self::PROPERTY) {
            return Ok(None);
        }
        match Identity::parse(self, forms) {
            Ok(identity) => Ok(Some(vec![identity])),
            Err(reason) => Err(vec![Failure::new(Self::PROPERTY, reason)]),
        }
    }

    fn changes(old: &Self, new: &Self, unknown: &UnknownPaths) -> Vec<Change> {
        let is_same = identity::canonical(old) == identity::canonical(new);
        if is_same && !unknown.touches(Self::PROPERTY) {
            return Vec::new();
        }
        vec![Change::replacing(Self::PROPERTY, ChangeKind::Update)]
    }

    fn grant(policy: &mut Policy, key: &BindingKey, condition: Option<&Condition>, identities: &[Identity]) -> bool {
        let mut changed = false;
        for identity in identities {
            changed |= policy.add_member(key, condition, identity);
        }
        changed
    }

    fn revoke(policy: &mut Policy, key: &BindingKey, identity: Option<&Identity>) -> bool {
        identity.is_some_and(|identity| policy.remove_member(key, identity))
    }

    fn find(policy: &Policy, key: &BindingKey, identity: Option<&Identity>) -> Option<Self> {
        let identity = identity?;
        policy
            .members(key)
            .into_iter()
            .find(|member| identity.is(member))
            .map(ToString::to_string)
    }

    fn respelled(self, last: &Self) -> Self {
        if identity::canonical(&self) == identity::canonical(last) {
            last.clone()
        } else {
            self
        }
    }

    fn warning(policy: &Policy, key: &BindingKey, identities: &[Identity]) -> Option<String> {
        let identity = identities
            .iter()
            .find(|identity| Self::find(policy, key, Some(identity)).is_some())?;
        Some(format!(
            "`{identity}` had `{}` already; the grant is now managed here, and deleting this resource removes it",
            key.role
        ))
    }
}

/// `members`: a list of identities, compared as a set.
impl Subject for Vec<String> {
    const PROPERTY: &'static str = "members";
    const NAMED_IN_ID: bool = false;

    fn identities(&self, forms: IdentityForms, unknown: &UnknownPaths) -> Result<Option<Vec<Identity>>, Vec<Failure>> {
        if unknown.covers(Self::PROPERTY) {
            return Ok(None);
        }
        if self.is_empty() {
            return Err(vec![Failure::new(
                Self::PROPERTY,
                "must name at least one identity; to grant the role to nobody, remove the resource",
            )]);
        }
        let mut identities = Vec::new();
        let mut failures = Vec::new();
        for (index, text) in self.iter().enumerate() {
            let path = format!("{}[{index}]", Self::PROPERTY);
            if unknown.touches(&path) {
                continue;
            }
            match Identity::parse(text, forms) {
                Ok(identity) => identities.push(identity),
                Err(reason) => failures.push(Failure::new(path, reason)),
            }
        }
        if !failures.is_empty() {
            return Err(failures);
        }
        Ok((identities.len() == self.len()).then_some(identities))
    }

    fn changes(old: &Self, new: &Self, unknown: &UnknownPaths) -> Vec<Change> {
        if canonical_set(old) == canonical_set(new) && !unknown.touches(Self::PROPERTY) {
            return Vec::new();
        }
        vec![Change::in_place(Self::PROPERTY, ChangeKind::Update)]
    }

    fn grant(policy: &mut Policy, key: &BindingKey, condition: Option<&Condition>, identities: &[Identity]) -> bool {
        policy.set_members(key, condition, identities)
    }

    fn revoke(policy: &mut Policy, key: &BindingKey, _: Option<&Identity>) -> bool {
        policy.remove_binding(key)
    }

    fn find(policy: &Policy, key: &BindingKey, _: Option<&Identity>) -> Option<Self> {
        let members = policy.members(key);
        (!members.is_empty()).then(|| members.into_iter().map(ToString::to_string).collect())
    }

    fn respelled(self, last: &Self) -> Self {
        let there = canonical_set(&self);
        let mut spelled: Vec<String> = last
            .iter()
            .filter(|member| there.contains(identity::canonical(member).as_ref()))
            .cloned()
            .collect();
        let known = canonical_set(last);
        spelled.extend(
            self.into_iter()
                .filter(|member| !known.contains(identity::canonical(member).as_ref())),
        );
        spelled
    }

    fn warning(policy: &Policy, key: &BindingKey, identities: &[Identity]) -> Option<String> {
        let there = policy.members(key);
        if there.is_empty() {
            return None;
        }
        let taken: Vec<&str> = there
            .into_iter()
            .filter(|member| !identities.iter().any(|identity| identity.is(member)))
            .collect();
        if taken.is_empty() {
            return Some(format!(
                "`{}` was granted to identities declared here already; its whole list is now managed here",
                key.role
            ));
        }
        Some(format!(
            "`{}` was granted to others, who lose it because this resource owns the role's whole list: {}",
            key.role,
            taken.join(", ")
        ))
    }
}

fn canonical_set(members: &[String]) -> BTreeSet<String> {
    members
        .iter()
        .map(|member| identity::canonical(member).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(members: &[&str]) -> Vec<String> {
        members.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_wrong_entry_is_named_and_an_unknown_one_is_not_looked_at() {
        let members = list(&["user:ann@example.com", "ann", "", "user:bob@example.com"]);
        let failures = members
            .identities(IdentityForms::Documented, &UnknownPaths::default())
            .unwrap_err();
        let paths: Vec<&str> = failures.iter().map(|failure| failure.path.as_str()).collect();
        assert_eq!(paths, ["members[1]", "members[2]"]);
        let unknown = UnknownPaths::new(list(&["members[1]", "members[2]"]));
        assert_eq!(members.identities(IdentityForms::Documented, &unknown).unwrap(), None);
    }

    #[test]
    fn a_binding_without_members_fails_unless_they_are_unknown() {
        let none: Vec<String> = Vec::new();
        assert!(none.identities(IdentityForms::All, &UnknownPaths::default()).is_err());
        let unknown = UnknownPaths::new(list(&["members"]));
        assert_eq!(none.identities(IdentityForms::All, &unknown).unwrap(), None);
    }

    #[test]
    fn a_list_is_compared_as_a_set_and_keeps_the_users_spelling() {
        let old = list(&["user:Ann@example.com", "user:bob@example.com"]);
        let new = list(&["user:bob@example.com", "user:ann@example.com", "user:bob@example.com"]);
        assert!(Vec::changes(&old, &new, &UnknownPaths::default()).is_empty());
        assert_eq!(old.clone().respelled(&new), new);
        let read = list(&["user:eve@example.com", "user:ann@example.com"]);
        assert_eq!(
            read.respelled(&old),
            list(&["user:Ann@example.com", "user:eve@example.com"])
        );
    }
}
