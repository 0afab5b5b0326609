//! The state on disk: a document, and while a run works on it a journal of the changes since. An operation stands in the
//! journal before its first request, and its outcome after. At most one write is under way, and it carries all that is
//! ready; the document itself is written when a run begins and when it ends.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bindery_sandbox::Digest;
use bindery_stack::journal::{Replayed, journal_foot, journal_head, journal_line};
use bindery_stack::{Change, Deployment, Diagnostic, Outcome, Owner, PendingOperation};
use fail::fail_point;
use tokio::task::block_in_place;

use crate::backup::{self, replace_file};
use crate::failure::Failure;
use crate::lock::{self, Lock};
use crate::report::Report;

/// Where a stack's files are. What was made on emulated services has a state of its own: it says nothing of the real ones.
#[derive(Debug, Clone)]
pub struct Paths {
    folder: PathBuf,
    stack: String,
}

/// A state as it is on disk.
struct Loaded {
    deployment: Deployment,
    /// The document; none where there is none yet.
    text: Option<String>,
    /// How the journal relates to it; none where there is none.
    journal: Option<Replayed>,
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

    fn journal(&self) -> PathBuf {
        self.folder.join("state.journal")
    }

    fn backups(&self) -> PathBuf {
        self.folder.join("backups")
    }

    /// Reads the state; an empty one where there is none yet.
    pub fn load(&self, owner: &Owner) -> Result<Deployment, Failure> {
        Ok(self.read(owner)?.deployment)
    }

    fn read(&self, owner: &Owner) -> Result<Loaded, Failure> {
        let text = match bytes(&self.state())?.map(String::from_utf8) {
            None => None,
            Some(Ok(text)) => Some(text),
            Some(Err(error)) => {
                let shown = self.state();
                return Err(Failure::run(format!(
                    "the state {} cannot be used: {error}",
                    shown.display()
                )));
            }
        };
        let unusable = |error: bindery_stack::document::StateError| {
            Failure::run(format!("the state {} cannot be used: {error}", self.state().display())).with_hint(format!(
                "nothing was changed; copies of earlier states are in {}",
                self.backups().display()
            ))
        };
        let mut deployment = match &text {
            Some(text) => Deployment::parse(text, owner).map_err(unusable)?,
            None => Deployment::default(),
        };
        let journal = match bytes(&self.journal())? {
            Some(journal) => {
                let after = digest(text.as_deref().unwrap_or_default());
                Some(deployment.replay(&journal, &after, owner).map_err(unusable)?)
            }
            None => None,
        };
        Ok(Loaded {
            deployment,
            text,
            journal,
        })
    }

    /// Who works on the stack at this moment.
    pub fn holder(&self) -> Option<String> {
        lock::holder(&self.folder.join("lock"))
    }
}

fn bytes(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::run(format!(
            "the state {} cannot be read: {error}",
            path.display()
        ))),
    }
}

/// A stack's state, which this process alone works on.
#[derive(Debug)]
pub struct Store {
    paths: Paths,
    owner: Owner,
    held: Mutex<Held>,
    /// Held while it is written.
    journal: tokio::sync::Mutex<Journal>,
    _lock: Lock,
}

#[derive(Debug)]
struct Held {
    deployment: Deployment,
    /// Lines that are not in the journal yet.
    lines: String,
    /// How many changes were made.
    changes: u64,
    /// Why nothing can be written any more.
    broken: Option<String>,
}

#[derive(Debug)]
struct Journal {
    /// The digest of the document that it follows.
    after: String,
    /// None before the first change.
    file: Option<File>,
    /// How many changes are in it.
    changes: u64,
}

impl Store {
    /// Opens a stack's state for a command that writes it: what an earlier run left in its journal is put into the document,
    /// and that is copied.
    pub fn open(paths: Paths, owner: Owner, command: &str, report: &Report) -> Result<Self, Failure> {
        fs::create_dir_all(&paths.folder)
            .map_err(|error| Failure::run(format!("{} cannot be made: {error}", paths.folder.display())))?;
        let lock = Lock::take(&paths.folder.join("lock"), &paths.stack, command)?;
        let Loaded {
            deployment,
            mut text,
            journal,
        } = paths.read(&owner)?;
        let prepare = || -> io::Result<Option<String>> {
            backup::clean(&paths.folder, &paths.backups())?;
            match journal {
                // Somebody put another state in the place of the one that it follows.
                Some(Replayed::Foreign) => {
                    let aside = backup::put_aside(&paths.journal(), &paths.backups())?;
                    let message = format!(
                        "what an interrupted run did after another state is not part of this one; it is put aside as {}",
                        aside.display()
                    );
                    report.warn(&Diagnostic::new(message));
                }
                Some(Replayed::Included) => fs::remove_file(paths.journal())?,
                Some(_) => {
                    let whole = deployment.to_text(&owner)?;
                    close_journal(&paths.journal(), &digest(&whole))?;
                    replace_file(&paths.state(), whole.as_bytes())?;
                    fail_point!("settled", |_| std::process::abort());
                    fs::remove_file(paths.journal())?;
                    text = Some(whole);
                }
                None => {}
            }
            if let Some(text) = &text {
                backup::back_up(&paths.backups(), text)?;
            }
            Ok(text)
        };
        let text = prepare().map_err(|error| Failure::run(format!("the state cannot be prepared: {error}")))?;
        Ok(Self {
            journal: tokio::sync::Mutex::new(Journal {
                after: digest(text.as_deref().unwrap_or_default()),
                file: None,
                changes: 0,
            }),
            paths,
            owner,
            held: Mutex::new(Held {
                deployment,
                lines: String::new(),
                changes: 0,
                broken: None,
            }),
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

    /// Something about the state as it is.
    pub fn look<T>(&self, at: impl FnOnce(&Deployment) -> T) -> T {
        at(&self.held().deployment)
    }

    /// Makes changes, and returns when they are on disk. Once a write has failed, every later one does: what is on disk
    /// stays whole, and tells the next run what to find out.
    pub async fn commit(&self, changes: Vec<Change>) -> io::Result<()> {
        let number = {
            let mut held = self.held();
            held.is_whole()?;
            for change in changes {
                held.lines += &journal_line(&change, &self.owner)?;
                held.deployment.apply(change);
                held.changes += 1;
            }
            held.changes
        };
        let mut journal = self.journal.lock().await;
        if journal.changes >= number {
            return Ok(());
        }
        let (lines, changes) = {
            let mut held = self.held();
            held.is_whole()?;
            (std::mem::take(&mut held.lines), held.changes)
        };
        let written = block_in_place(|| journal.append(&self.paths, &lines));
        if let Err(error) = &written {
            self.held().broken = Some(error.to_string());
        }
        written?;
        journal.changes = changes;
        Ok(())
    }

    /// Notes that an operation is begun.
    pub async fn begin(&self, operation: &PendingOperation) -> io::Result<()> {
        self.commit(vec![Change::Begin(operation.clone())]).await
    }

    /// Notes an operation's outcome. Another pending operation of the same resource stays.
    pub async fn end(&self, ended: &PendingOperation, outcome: Outcome) -> io::Result<()> {
        self.commit(vec![Change::End(ended.clone(), outcome)]).await
    }

    /// Writes the document anew, if anything has changed. The journal is part of it from then on.
    pub async fn close(&self) -> io::Result<()> {
        let mut journal = self.journal.lock().await;
        if journal.file.is_none() {
            return Ok(());
        }
        let text = {
            let mut held = self.held();
            held.is_whole()?;
            held.deployment.time = jiff::Timestamp::now().to_string();
            held.deployment.to_text(&self.owner)?
        };
        let foot = journal_foot(&digest(&text))?;
        block_in_place(|| {
            if let Some(file) = &mut journal.file {
                file.write_all(foot.as_bytes())?;
                file.sync_data()?;
            }
            replace_file(&self.paths.state(), text.as_bytes())?;
            fail_point!("closed", |_| std::process::abort());
            fs::remove_file(self.paths.journal())
        })?;
        journal.file = None;
        journal.after = digest(&text);
        Ok(())
    }
}

impl Held {
    fn is_whole(&self) -> io::Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(error) => Err(io::Error::other(error.clone())),
        }
    }
}

impl Journal {
    fn append(&mut self, paths: &Paths, lines: &str) -> io::Result<()> {
        fail_point!("before-append", |_| std::process::abort());
        if self.file.is_none() {
            let mut file = File::options()
                .create(true)
                .truncate(true)
                .write(true)
                .open(paths.journal())?;
            file.write_all(journal_head(&self.after)?.as_bytes())?;
            File::open(&paths.folder)?.sync_all()?;
            self.file = Some(file);
        }
        if let Some(file) = &mut self.file {
            fail_point!("half-append", |_| {
                let half = lines.as_bytes().get(..lines.len() / 2).unwrap_or_default();
                let _ = file.write_all(half);
                std::process::abort()
            });
            file.write_all(lines.as_bytes())?;
            file.sync_data()?;
        }
        fail_point!("after-append", |_| std::process::abort());
        Ok(())
    }
}

/// Says at the end of a journal what it has become, in the place of a line that was not finished.
fn close_journal(path: &Path, became: &str) -> io::Result<()> {
    let whole = fs::read(path)?;
    let end = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut file = File::options().write(true).open(path)?;
    file.set_len(end as u64)?;
    file.seek(io::SeekFrom::End(0))?;
    file.write_all(journal_foot(became)?.as_bytes())?;
    file.sync_data()
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}
