//! A folder with a stack file, and the services that it is applied to.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use bindery_emulator::{Emulator, Options};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const BUCKET: &str = "projects/home/global/backendBuckets/logs";
/// Where the tests keep what was compiled.
pub const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");

pub const ORIGIN: &str = "projects/home/locations/global/edgeCacheOrigins/video";

/// A folder, an emulator and the binary.
pub struct Bench {
    folder: TempDir,
    pub emulator: Emulator,
    /// Serves the emulator for as long as the bench lives.
    _runtime: tokio::runtime::Runtime,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Fails the test unless the command did what it was asked.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self
    }
}

impl Bench {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let emulator = runtime.block_on(Emulator::start(Options::default())).unwrap();
        Self {
            folder: TempDir::new().unwrap(),
            emulator,
            _runtime: runtime,
        }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("stack.yaml")
    }

    pub fn state(&self) -> Value {
        let path = self.folder.path().join(".bindery/tests/dev/state.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    /// What a run has written so far: the document, and the changes since.
    pub fn on_disk(&self) -> String {
        let folder = self.folder.path().join(".bindery/tests/dev");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        read("state.json") + &read("state.journal")
    }

    /// The names of the resources in the state, sorted: those without dependencies stand in the order in which they ended.
    pub fn names(&self) -> Vec<String> {
        let state = self.state();
        let resources = state["deployment"]["resources"].as_array().unwrap();
        let urns = resources
            .iter()
            .skip(2)
            .map(|resource| resource["urn"].as_str().unwrap());
        let mut names: Vec<String> = urns.map(|urn| urn.rsplit("::").next().unwrap().to_string()).collect();
        names.sort();
        names
    }

    /// Writes the stack file: resources as YAML, indented by two.
    pub fn write(&self, resources: &str) {
        std::fs::write(
            self.file(),
            format!("name: tests\nruntime: yaml\nresources:\n{resources}"),
        )
        .unwrap();
    }

    /// The binary on the stack file, against the emulator, in an environment without any of the cloud's variables.
    pub fn command(&self, command: &str, more: &[&str]) -> Command {
        let mut bindery = Command::new(env!("CARGO_BIN_EXE_bindery"));
        bindery
            .env_clear()
            .env("BINDERY_CACHE_DIR", CACHE)
            .env("NO_COLOR", "1")
            .arg(command)
            .arg(self.file());
        for service in ["compute", "datamigration", "networkservices"] {
            bindery.arg(format!("--endpoint={service}={}", self.emulator.origin()));
        }
        bindery.args(more).stdin(Stdio::null());
        bindery
    }

    pub fn run(&self, command: &str, more: &[&str]) -> Ran {
        self.command(command, more).output().unwrap().into()
    }

    pub fn up(&self) -> Ran {
        self.run(
            "up",
            &["--yes", "--config", "project=home", "--config", "region=us-east1"],
        )
    }

    pub fn destroy(&self) -> Ran {
        self.run("destroy", &["--yes"])
    }

    pub fn spawn_up(&self) -> Child {
        let mut up = self.command("up", &["--yes", "--config", "project=home"]);
        up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The members of a role in a target's policy.
    pub fn members(&self, target: &str, role: &str) -> Vec<String> {
        let mut members = self.emulator.members(target, role);
        members.sort();
        members
    }

    /// A target's policy without etag and version.
    pub fn content(&self, target: &str) -> Value {
        let mut policy = Value::Object(self.emulator.policies().get(target));
        policy["etag"] = json!(null);
        policy["version"] = json!(null);
        policy
    }
}

/// A member resource on the bucket, as YAML.
pub fn member(name: &str, role: &str, member: &str) -> String {
    format!(
        "  {name}:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties:\n      name: logs\n      \
         role: {role}\n      member: {member}\n"
    )
}

/// A binding resource on the edge cache origin, as YAML.
pub fn binding(name: &str, role: &str, members: &[&str]) -> String {
    format!(
        "  {name}:\n    type: bindery:networkservices/v1:EdgeCacheOriginIamBinding\n    properties:\n      name: video\n      \
         role: {role}\n      members: [{}]\n",
        members.join(", ")
    )
}
