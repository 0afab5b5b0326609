//! What a plan asks of a provider, answered by a sandboxed component.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_resource::{Checked, Diff, PropertyMap, Urn};
use bindery_sandbox::CallError;
use bindery_sandbox::error::CheckError as SandboxCheckError;
use bindery_stack::{CheckError, Provider, ResourceState};

use crate::session::Session;

impl Session {
    /// Who claims in this run what a resource occupies.
    ///
    /// # Errors
    /// When its state cannot be used.
    pub async fn claimed_by(&self, state: &ResourceState) -> Result<Option<Urn>, CallError> {
        let (token, tenant) = (state.urn.token(), &self.tenant);
        tenant.claimed_by(&self.run, token, &state.id, &state.outputs).await
    }

    /// Whether two that occupy the same are the same grant, as the provider sees it.
    pub async fn is_alike(&self, one: &ResourceState, other: &ResourceState) -> bool {
        let diff = self.diff(one, &other.inputs).await;
        diff.is_ok_and(|diff| diff.changes.is_empty())
    }
}

impl Provider for Session {
    fn types(&self) -> BTreeMap<String, Arc<[String]>> {
        let types = self.tenant.component().types.iter();
        let names = types.map(|(token, ty)| {
            let names = ty.state.properties.iter().map(|property| property.name.clone());
            (token.to_string(), names.filter(|name| name != "id").collect())
        });
        names.collect()
    }

    async fn check(&self, urn: &Urn, inputs: &PropertyMap) -> Result<Checked, CheckError> {
        self.tenant
            .check(&self.run, urn, urn.token(), inputs)
            .await
            .map_err(|error| match error {
                SandboxCheckError::Failures(failures) => CheckError::Failures(failures),
                SandboxCheckError::Claim(taken) => CheckError::Claim(taken),
                SandboxCheckError::Call(error) => CheckError::Other(error.to_string()),
            })
    }

    async fn diff(&self, old: &ResourceState, inputs: &PropertyMap) -> Result<Diff, String> {
        let diff = self.tenant.diff(old.urn.token(), &old.id, &old.outputs, inputs).await;
        diff.map_err(|error| format!("its state cannot be compared: {error}"))
    }

    async fn claim(&self, state: &ResourceState) -> Result<(), CheckError> {
        let (urn, token) = (&state.urn, state.urn.token());
        let taken = self
            .tenant
            .claim(&self.run, urn, token, &state.id, &state.outputs)
            .await;
        taken.map_err(|error| match error {
            SandboxCheckError::Claim(taken) => CheckError::Claim(taken),
            error => CheckError::Other(format!("its state cannot be used: {error}")),
        })
    }

    fn preview(&self, token: &str, inputs: &PropertyMap) -> Result<PropertyMap, String> {
        self.tenant.preview(token, inputs).map_err(|error| error.to_string())
    }
}
