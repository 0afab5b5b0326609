//! The state on disk. An operation stands in it before its first request, and its outcome after. A write is a new file
//! that takes the old one's place; at most one is under way, and it carries all that is ready.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bindery_stack::state::Owner;
use bindery_stack::{Deployment, PendingOperation};

use crate::failure::Failure;

/// Where a stack's files are. What was made on emulated services has a state of its own: it says nothing of the real ones.
#[derive(Debug, Clone)]
pub struct Paths {
    folder: PathBuf,
    stack: String,
}

impl Paths {
    /// Those of a stack of a project, on the real services or on emulated ones.
    pub fn new(state_dir: &Path, project: &str, stack: &str, emulate: bool) -> Self {
        let folder = state_dir.join(project).join(stack);
        Self {
            folder: if emulate { folder.join("emulated") } else { folder },
            stack: stack.to_string(),
        }
    }

    /// The state.
    pub fn state(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    /// What the emulator holds for this stack.
    pub fn policies(&self) -> PathBuf {
        self.folder.join("policies.json")
    }

    fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    /// Reads the state; an empty one where there is none yet.
    pub fn load(&self, owner: &Owner) -> Result<Deployment, Failure> {
        let path = self.state();
        match fs::read_to_string(&path) {
            Ok(text) => Deployment::parse(&text, owner).map_err(|error| {
                Failure::run(format!("the state {} cannot be used: {error}", path.display()))
                    .with_hint("nothing was changed; restore the file from a copy, or move it away to start anew")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Deployment::default()),
            Err(error) => Err(Failure::run(format!(
                "the state {} cannot be read: {error}",
                path.display()
            ))),
        }
    }
}

/// A stack's state, which this process alone works on.
#[derive(Debug)]
pub struct Store {
    paths: Paths,
    owner: Owner,
    held: Mutex<Held>,
    /// The version that is on disk. Held while it is written.
    written: tokio::sync::Mutex<u64>,
    /// Ends with the process, however that ends.
    _lock: File,
}

#[derive(Debug)]
struct Held {
    deployment: Deployment,
    version: u64,
}

impl Store {
    /// Opens a stack's state for writing.
    pub fn open(paths: Paths, owner: Owner) -> Result<Self, Failure> {
        fs::create_dir_all(&paths.folder)
            .map_err(|error| Failure::run(format!("{} cannot be made: {error}", paths.folder.display())))?;
        let lock_path = paths.lock();
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|error| Failure::run(format!("{} cannot be opened: {error}", lock_path.display())))?;
        lock.try_lock().map_err(|_| {
            Failure::run(format!(
                "another run works on the stack `{}` (it holds {})",
                paths.stack,
                lock_path.display()
            ))
            .with_hint("wait for it to end")
        })?;
        let deployment = paths.load(&owner)?;
        Ok(Self {
            paths,
            owner,
            held: Mutex::new(Held { deployment, version: 0 }),
            written: tokio::sync::Mutex::new(0),
            _lock: lock,
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state as it is.
    pub fn deployment(&self) -> Deployment {
        self.held().deployment.clone()
    }

    /// Changes the state, and returns when that is on disk.
    pub async fn commit(&self, change: impl FnOnce(&mut Deployment)) -> io::Result<()> {
        let version = {
            let mut held = self.held();
            change(&mut held.deployment);
            held.version += 1;
            held.version
        };
        let mut written = self.written.lock().await;
        if *written >= version {
            return Ok(());
        }
        let (text, version) = {
            let mut held = self.held();
            held.deployment.time = jiff::Timestamp::now().to_string();
            (held.deployment.to_text(&self.owner)?, held.version)
        };
        replace_file(&self.paths.state(), text.as_bytes())?;
        *written = version;
        Ok(())
    }

    /// Notes that an operation is begun.
    pub async fn begin(&self, operation: &PendingOperation) -> io::Result<()> {
        self.commit(|deployment| deployment.pending_operations.push(operation.clone()))
            .await
    }

    /// Notes an operation's outcome. Another pending operation of the same resource stays.
    pub async fn end(&self, ended: &PendingOperation, outcome: impl FnOnce(&mut Deployment)) -> io::Result<()> {
        self.commit(|deployment| {
            deployment.pending_operations.retain(|operation| operation != ended);
            outcome(deployment);
        })
        .await
    }
}

/// Puts a file in the place of another, whole or not at all.
fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    // The name, too, must outlast a loss of power.
    File::open(folder)?.sync_all()
}
