//! A stack of the real engine: its folder, its backend on disk, the plugins on its PATH, and the services that it works on.

use std::collections::BTreeMap;
use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use bindery_emulator::{Emulator, Options};
use serde_json::Value;
use tempfile::TempDir;

pub const BUCKET: &str = "projects/home/global/backendBuckets/logs";
pub const ORIGIN: &str = "projects/home/locations/global/edgeCacheOrigins/video";

/// What compiled components are kept in from test to test.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");

/// The engine, its language hosts and the published SDKs.
pub static ENGINE: LazyLock<PathBuf> = LazyLock::new(|| {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engine/build");
    let output = Command::new(build).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the engine cannot be built");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
});

/// A project with one stack, `dev`.
pub struct Stack {
    folder: TempDir,
    environment: BTreeMap<String, String>,
    pub emulator: Emulator,
    runtime: tokio::runtime::Runtime,
}

/// What a command printed, and whether it did what it was asked.
#[derive(Debug)]
pub struct Ran {
    pub is_ok: bool,
    pub out: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Self {
            is_ok: output.status.success(),
            out: text(&output.stdout) + &text(&output.stderr),
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.is_ok, "{}", self.out);
        assert!(!self.out.contains("exited prematurely"), "{}", self.out);
        self.out
    }

    #[track_caller]
    pub fn failed(self) -> String {
        assert!(!self.is_ok, "{}", self.out);
        assert!(!self.out.contains("panic"), "{}", self.out);
        self.out
    }
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
        let folder = TempDir::new().unwrap();
        let inside = |name: &str| folder.path().join(name).display().to_string();
        for name in ["bin", "home", "state", "project"] {
            std::fs::create_dir(inside(name)).unwrap();
        }
        let path = [
            inside("bin"),
            ENGINE.join("bin").display().to_string(),
            env::var("PATH").unwrap(),
        ]
        .join(":");
        let environment = [
            ("PATH", path),
            ("HOME", inside("home")),
            ("PULUMI_HOME", inside("home")),
            ("PULUMI_BACKEND_URL", format!("file://{}", inside("state"))),
            ("PULUMI_CONFIG_PASSPHRASE", "a passphrase".to_string()),
            ("PULUMI_SKIP_UPDATE_CHECK", "true".to_string()),
            ("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true".to_string()),
            ("PULUMI_DISABLE_REGISTRY_RESOLVE", "true".to_string()),
            ("PULUMI_NODEJS_TRANSPILE_ONLY", "true".to_string()),
            ("BINDERY_CACHE_DIR", CACHE.to_string()),
        ];
        let stack = Self {
            environment: environment.map(|(name, value)| (name.to_string(), value)).into(),
            folder,
            emulator,
            runtime,
        };
        stack.file("Pulumi.yaml", &format!("name: tests\n{project}"));
        stack.pulumi(&["stack", "init", "dev"]).ok();
        stack
    }

    /// Puts the provider on PATH under a name.
    pub fn link(&self, name: &str) -> PathBuf {
        let link = self.folder.path().join("bin").join(format!("pulumi-resource-{name}"));
        symlink(env!("CARGO_BIN_EXE_pulumi-resource-bindery"), &link).unwrap();
        link
    }

    /// Sets what every provider needs to find the emulator.
    pub fn configure(&self, package: &str) {
        self.set(&format!("{package}:project"), "home");
        self.set(&format!("{package}:region"), "us-east1");
        for service in ["compute", "datamigration", "networkservices"] {
            self.set(&format!("{package}:{service}Endpoint"), &self.emulator.origin());
        }
    }

    pub fn set(&self, key: &str, value: &str) {
        self.pulumi(&["config", "set", key, value]).ok();
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
        std::fs::write(self.project().join(name), text).unwrap();
    }

    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub fn variable(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_string(), value.to_string());
    }

    pub fn path(&self) -> &str {
        &self.environment["PATH"]
    }

    /// A program in this stack's folder and environment.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(&self.environment)
            .current_dir(self.project())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub fn pulumi(&self, arguments: &[&str]) -> Ran {
        // The one that is in the stack's own environment.
        let program = ENGINE.join("bin/pulumi");
        let mut command = self.command(program.to_str().unwrap(), arguments);
        command.args(["--non-interactive"]).output().unwrap().into()
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
