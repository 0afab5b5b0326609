//! Stacks of any size, and the binary on them: how long it takes, what memory, and which requests.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bindery_emulator::{Emulator, Faults, Options, RequestRecord, Settings};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use wait4::Wait4;

/// Emulated services, and a folder for stacks.
pub struct Bench {
    pub emulator: Emulator,
    folder: TempDir,
    /// Serves the emulator for as long as the bench lives.
    _runtime: Runtime,
}

/// What a run took.
#[derive(Clone, Copy)]
pub struct Measured {
    pub time: Duration,
    pub bytes: u64,
}

impl Measured {
    /// The best of both: it says most of the program and least of the machine.
    pub fn min(self, other: Self) -> Self {
        Self {
            time: self.time.min(other.time),
            bytes: self.bytes.min(other.bytes),
        }
    }
}

impl Bench {
    /// Services that answer so late.
    pub fn new(latency: Duration) -> Self {
        let runtime = Runtime::new().unwrap();
        let settings = Settings {
            faults: Faults {
                latency_ms: u64::try_from(latency.as_millis()).unwrap(),
                ..Faults::default()
            },
            ..Settings::default()
        };
        let options = Options {
            settings,
            ..Options::default()
        };
        let emulator = runtime.block_on(Emulator::start(options)).unwrap();
        Self {
            emulator,
            folder: TempDir::new().unwrap(),
            _runtime: runtime,
        }
    }

    /// A stack file of so many grants, so many of them on each target. Stacks of other names grant to other identities.
    pub fn stack(&self, name: &str, grants: usize, on_each_target: usize) -> PathBuf {
        let mut text = format!("name: {name}\nruntime: yaml\nconfig:\n  bindery:project: home\nresources:\n");
        for number in 0..grants {
            let bucket = number / on_each_target;
            writeln!(
                text,
                "  grant-{number}:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties: \
                 {{name: bucket-{bucket}, role: roles/r{}, member: 'user:{name}-{number}@example.com'}}",
                number % 3
            )
            .unwrap();
        }
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("stack.yaml");
        fs::write(&file, text).unwrap();
        file
    }

    /// Starts the binary on a stack.
    pub fn spawn(&self, command: &str, file: &Path, more: &[&str]) -> Child {
        let mut bindery = Command::new(env!("CARGO_BIN_EXE_bindery"));
        bindery
            .env_clear()
            .env(
                "BINDERY_CACHE_DIR",
                concat!(env!("CARGO_TARGET_TMPDIR"), "/bench-cache"),
            )
            .arg(command)
            .arg(file)
            .arg(format!("--endpoint=compute={}", self.emulator.origin()))
            .args(more);
        if command != "preview" {
            bindery.arg("--yes");
        }
        bindery.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs the binary on a stack.
    pub fn run(&self, command: &str, file: &Path, more: &[&str]) -> Measured {
        let started = Instant::now();
        let ended = self.spawn(command, file, more).wait4().unwrap();
        assert!(ended.status.success(), "{command}");
        Measured {
            time: started.elapsed(),
            bytes: ended.rusage.maxrss,
        }
    }

    /// Has the component compiled and kept: that is done once for all, and no part of what is measured.
    pub fn warm_up(&self) {
        let file = self.stack("warm-up", 1, 1);
        self.run("preview", &file, &[]);
    }

    /// The requests since this was last called.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.emulator.take_requests()
    }
}
