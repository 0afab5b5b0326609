//! Which resource of which stack: `urn:pulumi:STACK::PROJECT::TYPE::NAME`.

use std::fmt;

/// A resource's name within an engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Urn(String);

impl Urn {
    /// The URN of a resource at the top of a stack.
    pub fn new(stack: &str, project: &str, token: &str, name: &str) -> Self {
        Self(format!("urn:pulumi:{stack}::{project}::{token}::{name}"))
    }

    /// Parses a URN; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let is_urn = text.starts_with("urn:pulumi:") && text.splitn(4, "::").count() == 4;
        is_urn.then(|| Self(text.to_string()))
    }

    /// The whole of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn part(&self, index: usize) -> &str {
        self.0.splitn(4, "::").nth(index).unwrap_or_default()
    }

    /// The stack.
    pub fn stack(&self) -> &str {
        self.part(0).trim_start_matches("urn:pulumi:")
    }

    /// The project.
    pub fn project(&self) -> &str {
        self.part(1)
    }

    /// The type token, without those of its parents.
    pub fn token(&self) -> &str {
        self.part(2).rsplit('$').next().unwrap_or_default()
    }

    /// The resource's name, which may itself have `::` in it.
    pub fn name(&self) -> &str {
        self.part(3)
    }
}

impl fmt::Display for Urn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_urn_has_four_parts() {
        let urn = Urn::parse("urn:pulumi:dev::proj::a:b:C$bindery:compute/v1:X::na::me").unwrap();
        assert_eq!(
            (urn.stack(), urn.project(), urn.token(), urn.name()),
            ("dev", "proj", "bindery:compute/v1:X", "na::me")
        );
        assert_eq!(Urn::new("dev", "proj", "t", "n").as_str(), "urn:pulumi:dev::proj::t::n");
        assert_eq!(Urn::parse("urn:pulumi:dev::proj::t"), None);
    }
}
