//! The engines that carry a program out, each in processes of its own.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use bindery_tests::engine::{Project, Ran, program};
use tempfile::TempDir;

use crate::world::World;

/// What compiled components are kept in.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");

/// Carries one program out.
pub trait Engine: Sync {
    /// Puts the program's next version in place.
    fn write(&self, text: &str);

    /// Applies it. Fails the test if that fails: every fault passes.
    fn up(&self);

    /// Reads what exists, and finds what was applied.
    fn refresh(&self);

    /// Takes everything away.
    fn destroy(&self);

    /// Whether it knows, killed at any time, what it has begun. Of an operation that the real engine had under way it only
    /// knows that there was one.
    fn can_be_killed(&self) -> bool;

    /// Applies it, and is killed in the midst. True if it was done before.
    fn up_killed_after(&self, time: Duration) -> bool;
}

/// `bindery`.
pub struct Embedded {
    folder: TempDir,
    name: String,
    origin: String,
}

impl Embedded {
    pub fn new(world: &World, number: usize) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            name: format!("program-{number}"),
            origin: world.emulator.origin(),
        }
    }

    fn command(&self, command: &str) -> Command {
        let mut bindery = Command::new(program("bindery"));
        bindery
            .env_clear()
            .env("BINDERY_CACHE_DIR", CACHE)
            .env("NO_COLOR", "1")
            .current_dir(self.folder.path())
            .args([
                command,
                "stack.yaml",
                "--yes",
                "--config=project=home",
                "--config=region=us-east1",
            ])
            .stdin(Stdio::null());
        for service in ["compute", "datamigration", "networkservices"] {
            bindery.arg(format!("--endpoint={service}={}", self.origin));
        }
        bindery
    }

    fn run(&self, command: &str) -> String {
        Ran::from(self.command(command).output().unwrap()).ok()
    }
}

impl Engine for Embedded {
    fn write(&self, text: &str) {
        let text = format!("name: {}\nruntime: yaml\nresources:\n{text}", self.name);
        std::fs::write(self.folder.path().join("stack.yaml"), text).unwrap();
    }

    fn up(&self) {
        self.run("up");
    }

    fn refresh(&self) {
        let out = self.run("refresh");
        assert!(out.contains("nothing has changed"), "{out}");
    }

    fn destroy(&self) {
        self.run("destroy");
        self.write("");
    }

    fn can_be_killed(&self) -> bool {
        true
    }

    fn up_killed_after(&self, time: Duration) -> bool {
        let mut up = self.command("up");
        let mut up = up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(time);
        up.kill().unwrap();
        up.wait().unwrap().success()
    }
}

/// The real engine.
pub struct Pulumi {
    project: Project,
    name: String,
}

impl Pulumi {
    pub fn new(world: &World, number: usize) -> Self {
        let name = format!("program-{number}");
        let project = Project::new(&format!("name: {name}\nruntime: yaml\n"), CACHE);
        project.link("bindery");
        project.configure("bindery", &world.emulator.origin());
        Self { project, name }
    }

    fn run(&self, command: &str) -> String {
        self.project
            .pulumi(&[command, "--yes", "--skip-preview", "--stack", "dev"])
            .ok()
    }
}

impl Engine for Pulumi {
    fn write(&self, text: &str) {
        let text = format!("name: {}\nruntime: yaml\nresources:\n{text}", self.name);
        self.project.file("Pulumi.yaml", &text);
    }

    fn up(&self) {
        self.run("up");
    }

    fn refresh(&self) {
        self.run("refresh");
    }

    fn destroy(&self) {
        self.run("destroy");
    }

    fn can_be_killed(&self) -> bool {
        false
    }

    fn up_killed_after(&self, _: Duration) -> bool {
        unreachable!("it is not killed")
    }
}
