//! Names: a component's interface and an engine's resource type are the same name in two spellings.

use std::fmt;

use heck::{ToLowerCamelCase, ToPascalCase};

/// A resource type's token: `acme:disks/v2:Volume` for the interface `acme:disks/volume@2.0.0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(String);

impl Token {
    /// The token of an interface; none where the interface's id is not one of a versioned package.
    pub fn of_interface(interface: &InterfaceId) -> Self {
        let InterfaceId {
            namespace,
            package,
            name,
            major,
            ..
        } = interface;
        Self(format!("{namespace}:{package}/v{major}:{}", name.to_pascal_case()))
    }

    /// The token as an engine writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Token {
    fn from(text: &str) -> Self {
        Self(text.to_string())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An interface's id: `namespace:package/name@major.rest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceId {
    /// Who made the package.
    pub namespace: String,
    /// The package.
    pub package: String,
    /// The interface.
    pub name: String,
    /// The package's major version.
    pub major: u64,
    /// The package's whole version.
    pub version: String,
}

impl InterfaceId {
    /// Parses an interface's id; none for any other name.
    pub fn parse(text: &str) -> Option<Self> {
        let (path, version) = text.split_once('@')?;
        let (package, name) = path.split_once('/')?;
        let (namespace, package) = package.split_once(':')?;
        let major = version.split('.').next()?.parse().ok()?;
        Some(Self {
            namespace: namespace.to_string(),
            package: package.to_string(),
            name: name.to_string(),
            major,
            version: version.to_string(),
        })
    }
}

/// The engine's spelling of a field's name.
pub fn property_name(field: &str) -> String {
    field.to_lower_camel_case()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_a_token() {
        let id = InterfaceId::parse("bindery:compute/backend-bucket-iam-member@1.0.0").unwrap();
        assert_eq!(
            Token::of_interface(&id).as_str(),
            "bindery:compute/v1:BackendBucketIamMember"
        );
        let id = InterfaceId::parse("acme:disks/volume@2.3.4-rc.1").unwrap();
        assert_eq!(Token::of_interface(&id).as_str(), "acme:disks/v2:Volume");
        assert_eq!(InterfaceId::parse("volume"), None);
        assert_eq!(property_name("size-in-gb"), "sizeInGb");
    }
}
