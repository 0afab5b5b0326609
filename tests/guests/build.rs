//! Builds the test components.

use bindery_component_build::{Guest, build};

fn main() -> anyhow::Result<()> {
    for name in ["acme", "unruly"] {
        let folder = format!("tests/guests/{name}");
        let guest = Guest {
            package: &format!("bindery-test-{name}"),
            features: &[],
            wit: &format!("{folder}/wit"),
            sources: &[&folder, "wit/deps/engine"],
        };
        build(guest, name)?;
    }
    Ok(())
}
