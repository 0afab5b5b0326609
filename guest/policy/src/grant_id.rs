//! Ids: what names a grant in an engine's state, and is all that is needed to find it again.

use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::condition::ConditionDigest;
use crate::config::IdentityForms;
use crate::identity::Identity;
use crate::role::Role;
use crate::target::{Target, TargetKind};

/// A grant's id: `TARGET/ROLE[#CONDITION][/IDENTITY]`, each part in canonical form. Members have an identity, bindings none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrantId {
    /// The resource whose policy holds the grant.
    pub target: Target,
    /// The role that is granted.
    pub role: Role,
    /// The digest of the condition, where there is one.
    pub condition: Option<ConditionDigest>,
    /// The identity, for members. Spelled canonically.
    pub identity: Option<Identity>,
}

impl GrantId {
    /// Parses what `Display` prints; none for anything else.
    pub fn parse(kind: TargetKind, text: &str) -> Option<Self> {
        Self::parse_typed(kind, text).filter(|id| format!("{id}") == text)
    }

    /// The same for an id that a person typed, whose identity may be spelled in another way.
    pub fn parse_typed(kind: TargetKind, text: &str) -> Option<Self> {
        let (target, rest) = split_segments(text, Target::segments(kind))?;
        let target = Target::parse(kind, target)?;
        let rest = rest?;
        let first = rest.split('/').next()?;
        let (role, identity) = split_segments(rest, Role::segments(first))?;
        let (role, condition) = match role.split_once('#') {
            Some((role, digest)) => (role, Some(ConditionDigest::parse(digest)?)),
            None => (role, None),
        };
        let role = Role::parse(role).ok()?;
        let identity = match identity {
            Some(text) => Some(Identity::parse(text, IdentityForms::All).ok()?),
            None => None,
        };
        Some(Self {
            target,
            role,
            condition,
            identity,
        })
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.target, self.role)?;
        if let Some(condition) = &self.condition {
            write!(f, "#{condition}")?;
        }
        if let Some(identity) = &self.identity {
            write!(f, "/{}", identity.canonical())?;
        }
        Ok(())
    }
}

/// The first `count` segments of a path, and what follows them.
fn split_segments(text: &str, count: usize) -> Option<(&str, Option<&str>)> {
    match text.match_indices('/').nth(count.checked_sub(1)?) {
        Some((end, _)) => Some((text.get(..end)?, Some(text.get(end + 1..)?))),
        None => (text.split('/').count() == count).then_some((text, None)),
    }
}

/// The forms of an id, for messages.
pub(crate) fn form(kind: TargetKind, has_identity: bool) -> String {
    let identity = if has_identity { "/IDENTITY" } else { "" };
    format!("{}/ROLE[#CONDITION]{identity}", kind.form())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const JOB: &str = "projects/p/locations/us-east1/migrationJobs/a#b";

    #[test]
    fn ids_read_back_as_they_were_written() {
        for id in [
            "projects/p/global/backendBuckets/b/roles/viewer/user:ann@example.com",
            "projects/example.com:p/global/backendBuckets/b/projects/q/roles/my.role#0123456789abcdef/user:ann@example.com",
            "projects/p/global/backendBuckets/b/organizations/1/roles/abc/principal://iam.googleapis.com/x/subject/S#0",
        ] {
            let parsed = GrantId::parse(TargetKind::BackendBucket, id).unwrap();
            assert_eq!(parsed.to_string(), id);
        }
        let binding = GrantId::parse(
            TargetKind::EdgeCacheOrigin,
            "projects/p/locations/global/edgeCacheOrigins/o/roles/viewer",
        )
        .unwrap();
        assert_eq!(binding.identity, None);
        let job = GrantId::parse(
            TargetKind::MigrationJob,
            &format!("{JOB}/roles/viewer/user:a@example.com"),
        )
        .unwrap();
        assert_eq!(job.target.name(), "a#b");
    }

    #[test]
    fn what_is_not_canonical_is_not_an_id() {
        for id in [
            "",
            "projects/p/global/backendBuckets/b",
            "projects/p/global/backendBuckets/b/",
            "projects/p/global/backendBuckets/b/roles",
            "projects/p/global/backendBuckets/b/roles/viewer#xyz/user:a@example.com",
            "projects/p/global/backendBuckets/b/roles/viewer/user:Ann@example.com",
            "projects/p/global/backendBuckets/b/roles/viewer/ann",
            "projects/p/locations/global/edgeCacheOrigins/o/roles/viewer",
            "projects/P/global/backendBuckets/b/getIamPolicy",
        ] {
            assert_eq!(GrantId::parse(TargetKind::BackendBucket, id), None, "{id}");
        }
    }
}
