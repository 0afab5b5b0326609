//! A stack of the real engine: its folder, its backend on disk, the plugins on its PATH, and the services that it works on.

use std::path::PathBuf;
use std::process::Command;

use bindery_emulator::{Emulator, Options};
use bindery_tests::engine::Project;
pub use bindery_tests::engine::{ENGINE, Ran};
use serde_json::Value;

pub const BUCKET: &str = "projects/home/global/backendBuckets/logs";
pub const ORIGIN: &str = "projects/home/locations/global/edgeCacheOrigins/video";

/// What compiled components are kept in from test to test.
pub const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");

/// A project with one stack, `dev`.
pub struct Stack {
    project: Project,
    pub emulator: Emulator,
    runtime: tokio::runtime::Runtime,
}

impl Stack {
    /// A project in YAML, with the provider under its own name.
    pub fn yaml(resources: &str) -> Self {
        let stack = Self::new("runtime: yaml\n");
        stack.link("bindery");
        stack.write(resources);
        stack.configure("bindery");
        stack
    }

    /// A project in a language.
    pub fn new(project: &str) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let emulator = runtime.block_on(Emulator::start(Options::default())).unwrap();
        Self {
            project: Project::new(&format!("name: tests\n{project}"), CACHE),
            emulator,
            runtime,
        }
    }

    /// Puts the provider on PATH under a name.
    pub fn link(&self, name: &str) -> PathBuf {
        self.project.link(name)
    }

    /// Sets what every provider needs to find the emulator.
    pub fn configure(&self, package: &str) {
        self.project.configure(package, &self.emulator.origin());
    }

    pub fn set(&self, key: &str, value: &str) {
        self.project.set(key, value);
    }

    /// Writes the program: resources as YAML, indented by two.
    pub fn write(&self, resources: &str) {
        self.file(
            "Pulumi.yaml",
            &format!("name: tests\nruntime: yaml\nresources:\n{resources}"),
        );
    }

    /// Writes a file of the project.
    pub fn file(&self, name: &str, text: &str) {
        self.project.file(name, text);
    }

    pub fn project(&self) -> PathBuf {
        self.project.path()
    }

    pub fn variable(&mut self, name: &str, value: &str) {
        self.project.environment.insert(name.to_string(), value.to_string());
    }

    pub fn path(&self) -> &str {
        &self.project.environment["PATH"]
    }

    /// A program in this stack's folder and environment.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        self.project.command(program, arguments)
    }

    pub fn pulumi(&self, arguments: &[&str]) -> Ran {
        self.project.pulumi(arguments)
    }

    pub fn up(&self) -> Ran {
        self.pulumi(&["up", "--yes", "--skip-preview", "--stack", "dev"])
    }

    #[track_caller]
    pub fn nothing_to_do(&self) {
        self.pulumi(&["preview", "--expect-no-changes", "--stack", "dev"]).ok();
    }

    pub fn destroy(&self) -> Ran {
        self.pulumi(&["destroy", "--yes", "--skip-preview", "--stack", "dev"])
    }

    /// The stack's resources in its state, without the stack and its providers.
    pub fn resources(&self) -> Vec<Value> {
        let mut state: Value = serde_json::from_str(&self.pulumi(&["stack", "export", "--stack", "dev"]).ok()).unwrap();
        let mut resources = match state["deployment"]["resources"].take() {
            Value::Array(resources) => resources,
            _ => Vec::new(),
        };
        resources.retain(|resource| !resource["type"].as_str().unwrap().starts_with("pulumi:"));
        resources
    }

    /// The members of a role in a target's policy, sorted.
    pub fn members(&self, target: &str, role: &str) -> Vec<String> {
        let mut members = self.emulator.members(target, role);
        members.sort();
        members
    }

    /// Waits for something that the emulator does.
    pub fn wait_until(&self, is_so: impl Fn(&Emulator) -> bool) {
        let _runtime = self.runtime.enter();
        for _ in 0..600 {
            if is_so(&self.emulator) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("it never came to that");
    }
}

/// A member resource on the bucket, as YAML, with options.
pub fn member(name: &str, role: &str, member: &str, options: &str) -> String {
    format!(
        "  {name}:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties: {{name: logs, role: {role}, member: \
         '{member}'}}\n    options: {{{options}}}\n"
    )
}

/// A binding resource on the edge cache origin, as YAML, with options.
pub fn binding(name: &str, role: &str, members: &[&str], options: &str) -> String {
    let members = members.join("', '");
    format!(
        "  {name}:\n    type: bindery:networkservices/v1:EdgeCacheOriginIamBinding\n    properties: {{name: video, role: \
         {role}, members: ['{members}']}}\n    options: {{{options}}}\n"
    )
}
