//! What is wrong, and where in the stack file.

use std::fmt;

use bindery_resource::{PropertyPath, Urn};

/// A place in a text; both counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where, in the stack file. None for what is not in it.
    pub position: Option<Position>,
    /// Which resource, by its name in the file.
    pub resource: Option<String>,
    /// Which of its properties.
    pub path: Option<PropertyPath>,
    /// What is wrong.
    pub message: String,
    /// The one thing to try.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Something wrong.
    pub fn new(message: impl fmt::Display) -> Self {
        Self {
            position: None,
            resource: None,
            path: None,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Something wrong with a resource, and where it is declared.
    pub fn of_urn(urn: &Urn, position: Option<Position>, message: impl fmt::Display) -> Self {
        Self {
            resource: Some(urn.name().to_string()),
            position,
            ..Self::new(message)
        }
    }

    /// Something wrong at a place.
    pub fn at(position: Position, message: impl Into<String>) -> Self {
        Self {
            position: Some(position),
            ..Self::new(message.into())
        }
    }

    /// Something wrong with a resource, which is not in the file.
    pub fn of(resource: &str, message: impl Into<String>) -> Self {
        Self {
            resource: Some(resource.to_string()),
            ..Self::new(message.into())
        }
    }

    /// The same, with what to try.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same, of a resource.
    #[must_use]
    pub fn of_resource(mut self, name: &str) -> Self {
        self.resource = Some(name.to_string());
        self
    }

    /// What is wrong, and with what.
    pub fn title(&self) -> String {
        match (&self.resource, &self.path) {
            (Some(resource), Some(path)) if path.first().is_some() => {
                format!("resource `{resource}`, property `{path}`: {}", self.message)
            }
            (Some(resource), _) => format!("resource `{resource}`: {}", self.message),
            (None, _) => self.message.clone(),
        }
    }
}

impl fmt::Display for Diagnostic {
    /// `LINE:COLUMN: resource …, property …: message`, without the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "{position}: ")?;
        }
        f.write_str(&self.title())
    }
}
