//! `schema`: a component's package schema, read from its bytes. Nothing of it runs.

use bindery_credentials::KEYS;
use bindery_sandbox::package::ComponentFile;
use bindery_schema::Served;

use crate::component;
use crate::failure::Failure;
use crate::report::Report;

/// Prints the package schema.
pub fn schema(file: Option<&ComponentFile>, report: &Report) -> Result<(), Failure> {
    let package = component::load(&component::runtime(report)?, file)?;
    let served = Served {
        component: &package.component,
        name: &package.component.name,
        environment: &package.manifest.environment,
        // How the host gets a credential is the built-in provider's alone.
        host_keys: if file.is_none() { &KEYS } else { &[] },
    };
    let schema = served.schema();
    report.answer(&format!("{schema:#}"), "schema", schema);
    Ok(())
}
