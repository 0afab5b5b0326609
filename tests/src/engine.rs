//! The real engine: built from its modules by `tests/engine/build`, and run on projects in folders of their own.

use std::collections::BTreeMap;
use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

/// The engine, its language hosts and the published SDKs.
pub static ENGINE: LazyLock<PathBuf> = LazyLock::new(|| {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("engine/build");
    let output = Command::new(build).stderr(Stdio::inherit()).output();
    let output = output.expect("the engine's build starts");
    assert!(output.status.success(), "the engine cannot be built");
    let folder = String::from_utf8(output.stdout).expect("the build prints a path");
    PathBuf::from(folder.trim())
});

/// A program of this workspace, which `cargo build --workspace` has put beside the test.
pub fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("`target/PROFILE/deps/TEST`");
    let program = folder.join(name);
    assert!(program.exists(), "`{name}` is missing: cargo build --workspace");
    program
}

/// A project with one stack, `dev`, and its backend on disk.
#[derive(Debug)]
pub struct Project {
    folder: TempDir,
    /// What its programs are given.
    pub environment: BTreeMap<String, String>,
}

/// What a command printed, and whether it did what it was asked.
#[derive(Debug)]
pub struct Ran {
    /// Whether it did.
    pub is_ok: bool,
    /// On stdout, and then on stderr.
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
    /// What it printed. Fails the test unless it did what it was asked.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.is_ok, "{}", self.out);
        assert!(!self.out.contains("exited prematurely"), "{}", self.out);
        self.out
    }

    /// What it printed. Fails the test unless it refused.
    #[track_caller]
    pub fn failed(self) -> String {
        assert!(!self.is_ok, "{}", self.out);
        assert!(!self.out.contains("panic"), "{}", self.out);
        self.out
    }
}

impl Project {
    /// A project of this text. What was compiled is kept in `cache`.
    pub fn new(text: &str, cache: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let inside = |name: &str| folder.path().join(name).display().to_string();
        for name in ["bin", "home", "state", "project"] {
            std::fs::create_dir(inside(name)).expect("a folder within");
        }
        let path = [
            inside("bin"),
            ENGINE.join("bin").display().to_string(),
            env::var("PATH").unwrap_or_default(),
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
            ("BINDERY_CACHE_DIR", cache.to_string()),
        ];
        let project = Self {
            environment: environment.map(|(name, value)| (name.to_string(), value)).into(),
            folder,
        };
        project.file("Pulumi.yaml", text);
        project.pulumi(&["stack", "init", "dev"]).ok();
        project
    }

    /// Puts the provider on PATH under a name.
    pub fn link(&self, name: &str) -> PathBuf {
        let link = self.folder.path().join("bin").join(format!("pulumi-resource-{name}"));
        symlink(program("pulumi-resource-bindery"), &link).expect("a link");
        link
    }

    /// Where its files are.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Writes one of its files.
    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a file of the project");
    }

    /// A program in the project's folder and environment.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(&self.environment)
            .current_dir(self.path())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// The engine, in the project's folder and environment.
    pub fn pulumi(&self, arguments: &[&str]) -> Ran {
        // The one that is in the project's own environment.
        let program = ENGINE.join("bin/pulumi").display().to_string();
        let mut command = self.command(&program, arguments);
        let output = command.args(["--non-interactive"]).output();
        output.expect("the engine starts").into()
    }

    /// Sets what every provider needs to find the emulator.
    pub fn configure(&self, package: &str, origin: &str) {
        self.set(&format!("{package}:project"), "home");
        self.set(&format!("{package}:region"), "us-east1");
        for service in ["compute", "datamigration", "networkservices"] {
            self.set(&format!("{package}:{service}Endpoint"), origin);
        }
    }

    /// Sets a key of its configuration.
    pub fn set(&self, key: &str, value: &str) {
        self.pulumi(&["config", "set", key, value]).ok();
    }
}
