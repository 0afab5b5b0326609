//! What an import names: an id, or the parts that a person knows.

use alloc::format;
use alloc::string::{String, ToString};

use crate::condition::ConditionDigest;
use crate::config::{Config, IdentityForms};
use crate::grant_id::{self, GrantId};
use crate::identity::Identity;
use crate::role::Role;
use crate::target::{Target, TargetKind};

/// Whose condition an import means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionName {
    /// The grant without a condition, or the one with this digest.
    Exact(Option<ConditionDigest>),
    /// The one condition of this title.
    Titled(String),
}

/// A grant to be looked for in its target's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    /// The resource whose policy is looked at.
    pub target: Target,
    /// The role.
    pub role: Role,
    /// The identity, for members.
    pub identity: Option<Identity>,
    /// Which condition.
    pub condition: ConditionName,
}

impl Sought {
    /// Parses an id, or `TARGET ROLE IDENTITY [TITLE]` for members and `TARGET ROLE [TITLE]` for bindings. TITLE is the
    /// rest of the text as it stands; TARGET is a target's name in any spelling.
    pub fn parse(kind: TargetKind, config: &Config, has_identity: bool, text: &str) -> Result<Self, String> {
        if let Some(id) = GrantId::parse_typed(kind, text)
            && id.identity.is_some() == has_identity
        {
            return Ok(id.into());
        }
        let wrong_form = || {
            let parts = if has_identity {
                "TARGET ROLE IDENTITY [TITLE]"
            } else {
                "TARGET ROLE [TITLE]"
            };
            format!(
                "`{text}` names no grant; expected `{}` or `{parts}`",
                grant_id::form(kind, has_identity)
            )
        };
        let (target, rest) = text.split_once(' ').ok_or_else(wrong_form)?;
        let (role, rest) = split_word(rest);
        let role = Role::parse(role)?;
        let target = Target::resolve(kind, target, None, config).map_err(|failure| failure.reason)?;
        let (identity, title) = if has_identity {
            let (identity, title) = split_word(rest.ok_or_else(wrong_form)?);
            (Some(Identity::parse(identity, IdentityForms::All)?), title)
        } else {
            (None, rest)
        };
        let condition = match title {
            Some("") => return Err(wrong_form()),
            Some(title) => ConditionName::Titled(title.to_string()),
            None => ConditionName::Exact(None),
        };
        Ok(Self {
            target,
            role,
            identity,
            condition,
        })
    }
}

impl From<GrantId> for Sought {
    fn from(id: GrantId) -> Self {
        Self {
            target: id.target,
            role: id.role,
            identity: id.identity,
            condition: ConditionName::Exact(id.condition),
        }
    }
}

fn split_word(text: &str) -> (&str, Option<&str>) {
    match text.split_once(' ') {
        Some((word, rest)) => (word, Some(rest)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(has_identity: bool, text: &str) -> Result<Sought, String> {
        let config = Config {
            project: Some("home".into()),
            ..Config::default()
        };
        Sought::parse(TargetKind::BackendBucket, &config, has_identity, text)
    }

    #[test]
    fn a_member_is_named_by_id_or_by_its_parts() {
        let by_id = parse(
            true,
            "projects/home/global/backendBuckets/b/roles/viewer/user:ann@example.com",
        )
        .unwrap();
        for text in [
            "projects/home/global/backendBuckets/b/roles/viewer/user:Ann@Example.com",
            "b roles/viewer user:Ann@example.com",
            "//compute.googleapis.com/projects/home/global/backendBuckets/b roles/viewer user:ann@example.com",
        ] {
            assert_eq!(parse(true, text).unwrap(), by_id);
        }
    }

    #[test]
    fn a_title_is_the_rest_of_the_text_as_it_stands() {
        let titled = parse(true, "b roles/viewer user:ann@example.com two  spaces here").unwrap();
        assert_eq!(titled.condition, ConditionName::Titled("two  spaces here".into()));
        let titled = parse(false, "b roles/viewer a title").unwrap();
        assert_eq!(titled.condition, ConditionName::Titled("a title".into()));
    }

    #[test]
    fn wrong_parts_are_named() {
        assert!(
            parse(true, "b roles/viewer")
                .unwrap_err()
                .contains("TARGET ROLE IDENTITY [TITLE]")
        );
        assert!(parse(true, "b").unwrap_err().contains("names no grant"));
        assert!(
            parse(
                false,
                "projects/home/global/backendBuckets/b/roles/viewer/user:ann@example.com"
            )
            .is_err()
        );
        assert!(
            parse(true, "b viewer user:ann@example.com")
                .unwrap_err()
                .contains("is not a role")
        );
        assert!(
            parse(true, "b roles/viewer ann")
                .unwrap_err()
                .contains("is not an identity")
        );
    }
}
