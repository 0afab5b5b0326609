//! What a run may change: everything, or the resources that it names.

use std::collections::BTreeSet;

use bindery_resource::{Urn, nearest};

use crate::diagnostic::Diagnostic;
use crate::file::StackFile;
use crate::state::Deployment;

/// What a run may change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// Names and URNs; empty for everything.
    named: BTreeSet<String>,
}

impl Targets {
    /// The resources of these names or URNs; everything where there are none.
    pub fn new(named: impl IntoIterator<Item = String>) -> Self {
        Self {
            named: named.into_iter().collect(),
        }
    }

    /// Whether everything may be changed.
    pub fn is_all(&self) -> bool {
        self.named.is_empty()
    }

    /// Whether a resource may be changed.
    pub fn include(&self, urn: &Urn) -> bool {
        self.named.is_empty() || self.named.contains(urn.name()) || self.named.contains(urn.as_str())
    }

    /// Each one is a resource that is declared or exists.
    pub(crate) fn are_known(&self, file: Option<&StackFile>, deployment: &Deployment) -> Result<(), Vec<Diagnostic>> {
        let existing: BTreeSet<&Urn> = deployment.all().map(|resource| &resource.urn).collect();
        let declared = file
            .map(|file| file.resources.keys().map(String::as_str))
            .into_iter()
            .flatten();
        let names: BTreeSet<&str> = declared.chain(existing.iter().map(|urn| urn.name())).collect();
        let is_known = |target: &&String| {
            names.contains(target.as_str()) || Urn::parse(target).is_some_and(|urn| names.contains(urn.name()))
        };
        let unknown = self.named.iter().filter(|target| !is_known(target)).map(|target| {
            let diagnostic = Diagnostic {
                resource: None,
                ..Diagnostic::of("", format!("--target: no resource is named `{target}`"))
            };
            match nearest(target, names.iter().copied()) {
                Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
                None => diagnostic,
            }
        });
        let unknown: Vec<Diagnostic> = unknown.collect();
        if unknown.is_empty() { Ok(()) } else { Err(unknown) }
    }
}
