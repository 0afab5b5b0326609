//! Roles: predefined, and custom ones of a project or an organization.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use crate::target;

/// The mark that the service puts into a role's name where it hides that the binding has a condition.
pub(crate) const HASHED_CONDITION: &str = "_withcond_";

/// A role's name: `roles/NAME`, `projects/PROJECT/roles/ID` or `organizations/NUMBER/roles/ID`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role(String);

impl Role {
    /// Parses a role; the error says what form was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains(HASHED_CONDITION) {
            return Err(format!(
                "`{text}` is not a role: it is what a policy shows where it hides a condition; write the role, and the \
                 condition in `condition`"
            ));
        }
        let is_role = match text.split('/').collect::<alloc::vec::Vec<_>>().as_slice() {
            ["roles", name] => (1..=128).contains(&name.len()) && is_role_word(name),
            ["projects", project, "roles", id] => target::is_project(project) && is_custom_id(id),
            ["organizations", number, "roles", id] => {
                !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()) && is_custom_id(id)
            }
            _ => false,
        };
        if is_role {
            return Ok(Self(text.to_string()));
        }
        let guess = if is_role_word(text) && !text.is_empty() {
            format!(" (did you mean `roles/{text}`?)")
        } else {
            String::new()
        };
        Err(format!(
            "`{text}` is not a role; expected `roles/NAME`, `projects/PROJECT/roles/ID` or \
             `organizations/NUMBER/roles/ID`{guess}"
        ))
    }

    /// The role as it is written in a policy.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Owner, editor and viewer: they cannot carry a condition.
    pub fn is_basic(&self) -> bool {
        matches!(self.as_str(), "roles/owner" | "roles/editor" | "roles/viewer")
    }

    /// How many `/`-separated segments a role has that starts with `first`.
    pub(crate) fn segments(first: &str) -> usize {
        if first == "roles" { 2 } else { 4 }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_role_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

fn is_custom_id(text: &str) -> bool {
    (3..=64).contains(&text.len()) && is_role_word(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_accepted_and_nothing_else() {
        for role in [
            "roles/viewer",
            "roles/compute.loadBalancerAdmin",
            "projects/my-project/roles/my_role.1",
            "organizations/123/roles/abc",
        ] {
            assert_eq!(Role::parse(role).unwrap().as_str(), role);
        }
        for role in [
            "",
            "roles/",
            "roles/a b",
            "role/viewer",
            "projects/p/roles/ab",
            "organizations/acme/roles/abc",
            "roles/a/b",
            "roles/viewer_withcond_0123456789abcdef0123",
        ] {
            assert!(Role::parse(role).is_err(), "{role}");
        }
        assert!(Role::parse("viewer").unwrap_err().contains("`roles/viewer`?"));
    }

    #[test]
    fn only_the_three_basic_roles_are_basic() {
        assert!(Role::parse("roles/owner").unwrap().is_basic());
        assert!(!Role::parse("roles/browser").unwrap().is_basic());
    }
}
