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

    /// The same, where resources have other URNs now: their old names still mean them.
    pub(crate) fn renamed(&self, renamed: &[(Urn, Urn)]) -> Self {
        let mut named = self.named.clone();
        for (_, new) in renamed.iter().filter(|(old, _)| !self.is_all() && self.include(old)) {
            named.insert(new.to_string());
        }
        Self { named }
    }

    /// Each one is a resource that is declared or exists.
    ///
    /// # Errors
    /// Those that are not.
    pub fn are_known(
        &self,
        declared: Option<(&StackFile, &str)>,
        deployment: &Deployment,
    ) -> Result<(), Vec<Diagnostic>> {
        let declared = declared.map(|(file, stack)| {
            let urns = file
                .resources
                .values()
                .map(move |declaration| crate::plan::urn(file, stack, declaration));
            urns.collect::<Vec<_>>()
        });
        let declared = declared.unwrap_or_default();
        let urns: BTreeSet<&Urn> = declared
            .iter()
            .chain(deployment.all().map(|resource| &resource.urn))
            .collect();
        let names: BTreeSet<&str> = urns.iter().flat_map(|urn| [urn.name(), urn.as_str()]).collect();
        let unknown = self
            .named
            .iter()
            .filter(|target| !names.contains(target.as_str()))
            .map(|target| {
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
