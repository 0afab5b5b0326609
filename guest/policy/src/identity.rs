//! Identities: who is granted a role, and when two spellings mean the same one.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::config::IdentityForms;

/// One identity, as the user spells it. Equality follows the service: the type is compared exactly, and the value
/// without regard to case, except where the service itself tells them apart (`principal…`).
#[derive(Debug, Clone, Eq)]
pub struct Identity(String);

/// The forms that every configuration accepts.
const DOCUMENTED: [&str; 4] = ["user", "serviceAccount", "group", "domain"];

const EXPECTED: &str = "expected `user:EMAIL`, `serviceAccount:EMAIL`, `group:EMAIL` or `domain:DOMAIN`";

impl Identity {
    /// Parses an identity in one of the forms that the configuration accepts; the error says what was expected.
    pub fn parse(text: &str, forms: IdentityForms) -> Result<Self, String> {
        if text.starts_with("deleted:") {
            return Err(format!(
                "`{text}` is an identity that was deleted, which cannot be granted a role; name a live one"
            ));
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("`{text}` has white space in it; {EXPECTED}"));
        }
        let (kind, value) = match text.split_once(':') {
            Some((kind, value)) => (kind, value),
            None if matches!(text, "allUsers" | "allAuthenticatedUsers") => return beyond_documented(text, forms),
            None => return Err(without_type(text)),
        };
        match kind {
            "user" | "group" if is_email(value) => Ok(Self(text.to_string())),
            "serviceAccount" if is_email(value) => Ok(Self(text.to_string())),
            "serviceAccount" if is_workload(value) => beyond_documented(text, forms),
            "domain" if is_domain(value) => Ok(Self(text.to_string())),
            "user" | "group" | "serviceAccount" => {
                Err(format!("`{value}` is not an e-mail address; expected `{kind}:EMAIL`"))
            }
            "domain" => Err(format!("`{value}` is not a domain name; expected `domain:DOMAIN`")),
            "principal" | "principalSet" | "principalHierarchy" if value.starts_with("//") && value.len() > 2 => {
                beyond_documented(text, forms)
            }
            "projectOwner" | "projectEditor" | "projectViewer" if !value.is_empty() => beyond_documented(text, forms),
            _ => Err(match DOCUMENTED.iter().find(|known| known.eq_ignore_ascii_case(kind)) {
                Some(known) => format!("`{kind}:` is written `{known}:`"),
                None => format!("`{text}` is not an identity; {EXPECTED}"),
            }),
        }
    }

    /// The identity in the form in which equal ones are spelled equally.
    pub fn canonical(&self) -> Cow<'_, str> {
        canonical(&self.0)
    }

    /// The identity as the user spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What follows the kind: an address, mostly.
    pub fn address(&self) -> &str {
        address(&self.0)
    }

    /// Whether a policy's member is this identity. `deleted:…` members are nobody's.
    pub fn is(&self, member: &str) -> bool {
        self.canonical() == canonical(member)
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }
}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical().hash(state);
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What follows a member's kind: an address, mostly.
pub fn address(member: &str) -> &str {
    member.split_once(':').map_or(member, |(_, address)| address)
}

/// The form in which members of a policy are compared: letters beyond ASCII as they are, because how they fold is nobody's
/// promise. Forms that we do not know are left as they are.
pub fn canonical(member: &str) -> Cow<'_, str> {
    match member.split_once(':') {
        Some((
            kind
            @ ("user" | "serviceAccount" | "group" | "domain" | "projectOwner" | "projectEditor" | "projectViewer"),
            value,
        )) if value.chars().any(|c| c.is_ascii_uppercase()) => {
            Cow::Owned(format!("{kind}:{}", value.to_ascii_lowercase()))
        }
        _ => Cow::Borrowed(member),
    }
}

fn beyond_documented(text: &str, forms: IdentityForms) -> Result<Identity, String> {
    match forms {
        IdentityForms::All => Ok(Identity(text.to_string())),
        IdentityForms::Documented => Err(format!(
            "`{text}` is accepted only under the configuration `identityForms: all`; otherwise {EXPECTED}"
        )),
    }
}

fn without_type(text: &str) -> String {
    if !is_email(text) {
        return format!("`{text}` is not an identity; {EXPECTED}");
    }
    if text.to_lowercase().ends_with(".gserviceaccount.com") {
        return format!("`{text}` has no type; did you mean `serviceAccount:{text}`?");
    }
    format!("`{text}` has no type; did you mean `user:{text}`, `group:{text}` or `serviceAccount:{text}`?")
}

/// `LOCAL@DOMAIN`, where DOMAIN has a dot. What an address may be beyond that is the service's to say.
fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !local.contains([':', '/', '[', ']', '?', '#', ',']) && is_domain(domain)
    })
}

fn is_domain(text: &str) -> bool {
    text.contains('.')
        && text.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_alphanumeric() || c == '-')
        })
}

/// A Kubernetes service account: `PROJECT.svc.id.goog[NAMESPACE/NAME]`.
fn is_workload(text: &str) -> bool {
    text.split_once(".svc.id.goog[")
        .is_some_and(|(project, rest)| !project.is_empty() && rest.ends_with(']') && rest.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_ONLY: [&str; 8] = [
        "allUsers",
        "allAuthenticatedUsers",
        "projectOwner:my-project",
        "projectEditor:my-project",
        "projectViewer:my-project",
        "principal://iam.googleapis.com/locations/global/workforcePools/p/subject/S",
        "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*",
        "serviceAccount:p.svc.id.goog[ns/ksa]",
    ];

    #[test]
    fn documented_forms_are_accepted_under_both_settings() {
        for text in [
            "user:Ann@Example.com",
            "serviceAccount:robot@my-project.iam.gserviceaccount.com",
            "group:admins@example.com",
            "domain:example.com",
            "user:ann+tag@sub.example.co.uk",
        ] {
            for forms in [IdentityForms::Documented, IdentityForms::All] {
                assert_eq!(Identity::parse(text, forms).unwrap().as_str(), text);
            }
        }
    }

    #[test]
    fn other_forms_name_the_setting_that_accepts_them() {
        for text in ALL_ONLY {
            assert!(Identity::parse(text, IdentityForms::All).is_ok(), "{text}");
            assert!(
                Identity::parse(text, IdentityForms::Documented)
                    .unwrap_err()
                    .contains("`identityForms: all`"),
                "{text}"
            );
        }
    }

    #[test]
    fn wrong_forms_are_refused_under_both_settings() {
        for text in [
            "",
            "user:",
            "user:ann",
            "user:ann@example",
            "user:@example.com",
            "user: ann@example.com",
            "domain:example",
            "domain:ann@example.com",
            "deleted:user:ann@example.com?uid=1",
            "ann@example.com",
            "robot:ann@example.com",
            "principal:x",
            "USER:ann@example.com",
            "user:ann@example.com\n",
            "allusers",
        ] {
            for forms in [IdentityForms::Documented, IdentityForms::All] {
                assert!(Identity::parse(text, forms).is_err(), "{text:?}");
            }
        }
    }

    #[test]
    fn a_refusal_says_what_to_write_instead() {
        let reason = |text| Identity::parse(text, IdentityForms::Documented).unwrap_err();
        assert!(reason("ann@example.com").contains("`user:ann@example.com`"));
        assert!(reason("r@p.iam.gserviceaccount.com").contains("`serviceAccount:r@p.iam.gserviceaccount.com`"));
        assert!(reason("ServiceAccount:r@example.com").contains("`serviceAccount:`"));
    }

    #[test]
    fn values_are_equal_without_regard_to_case_and_principals_are_not() {
        let parse = |text| Identity::parse(text, IdentityForms::All).unwrap();
        assert_eq!(parse("user:Ann@Example.COM"), parse("user:ann@example.com"));
        assert_ne!(parse("user:ann@example.com"), parse("group:ann@example.com"));
        assert_ne!(
            parse("principal://iam.googleapis.com/x/subject/S"),
            parse("principal://iam.googleapis.com/x/subject/s")
        );
    }

    #[test]
    fn a_deleted_twin_is_not_the_live_identity() {
        let ann = Identity::parse("user:ann@example.com", IdentityForms::Documented).unwrap();
        assert!(ann.is("user:ANN@example.com"));
        assert!(!ann.is("deleted:user:ann@example.com?uid=1"));
    }
}
