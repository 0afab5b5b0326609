//! What a plan asks of a provider, answered by a sandboxed component.

use bindery_resource::{Checked, Diff, PropertyMap, Urn};
use bindery_sandbox::error::CheckError as SandboxCheckError;
use bindery_stack::{CheckError, Provider, ResourceState};

use crate::session::Session;

impl Provider for Session {
    fn tokens(&self) -> Vec<String> {
        self.tenant.component().types.keys().map(ToString::to_string).collect()
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
}
