//! The engine attached to a process that serves many tenants.

use std::path::Path;

use bindery_emulator::{Emulator, Options};
use bindery_pulumi::serve::{Serving, TenantsFile};
use bindery_sandbox::Runtime;
use bindery_tests::engine::Project;
use tokio::sync::oneshot;

use crate::harness::*;

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn an_engine_that_attaches_to_a_tenant_makes_reads_and_removes_its_grants() {
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let emulator = tokio.block_on(Emulator::start(Options::default())).unwrap();
    let origin = emulator.origin();
    let tenant = |name: &str| {
        format!(
            "[[tenant]]\nname = \"{name}\"\nport = 0\n[tenant.config]\nproject = \"home\"\ncomputeEndpoint = \"{origin}\"\n\
             datamigrationEndpoint = \"{origin}\"\nnetworkservicesEndpoint = \"{origin}\"\n"
        )
    };
    let text = tenant("one") + &tenant("other");
    let file = TenantsFile::parse(&text, Path::new(".")).unwrap();
    let serving = tokio.block_on(Serving::start(Runtime::new().unwrap(), &file)).unwrap();
    let ports: Vec<u16> = serving.tenants().map(|(_, _, address)| address.port()).collect();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio.spawn(serving.until(async move {
        let _ = stopped.await;
    }));
    let projects: Vec<Project> = ports
        .iter()
        .zip(["user:a@x.com", "user:b@x.com"])
        .map(|(port, identity)| {
            let resources = member("m", "roles/one", identity, "");
            let mut project = Project::new(
                &format!("name: attached\nruntime: yaml\nresources:\n{resources}"),
                CACHE,
            );
            let attach = ("PULUMI_DEBUG_PROVIDERS".to_string(), format!("bindery:{port}"));
            project.environment.extend([attach]);
            project
        })
        .collect();
    let run = |project: &Project, arguments: &[&str]| {
        let all = [arguments, &["--yes", "--skip-preview", "--stack", "dev"]].concat();
        project.pulumi(&all).ok()
    };
    for project in &projects {
        run(project, &["up"]);
    }
    let there = || emulator.members(BUCKET, "roles/one");
    assert_eq!(there(), ["user:a@x.com", "user:b@x.com"]);
    let again = run(&projects[0], &["up", "--expect-no-changes"]);
    assert!(again.contains("1 unchanged") || again.contains("unchanged"), "{again}");
    run(&projects[0], &["refresh", "--expect-no-changes"]);
    run(&projects[0], &["destroy"]);
    assert_eq!(there(), ["user:b@x.com"]);
    stop.send(()).unwrap();
    tokio.block_on(serving).unwrap().unwrap();
}
