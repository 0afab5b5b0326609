//! Claims across processes: the engine starts one for each provider resource, and a grant may leave one resource for another that
//! a second process works on. The processes of one engine keep their claims in one folder, a file each, so that none refuses too
//! little or takes away what another's resource declares.

use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bindery_resource::Urn;
use bindery_sandbox::Digest;

/// The claims of an engine's processes. Without a folder there are none: engines attach to this process, and it is the only one.
#[derive(Debug, Default)]
pub struct SharedClaims {
    folder: Option<PathBuf>,
    own: Mutex<HashMap<Urn, PathBuf>>,
}

impl SharedClaims {
    /// The claims of the engine that has started this process and listens at this address. `private` is a folder that only the
    /// user can write.
    pub fn of_engine(private: &Path, address: &str) -> Self {
        let engine = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        let runs = private.join("runs");
        sweep(&runs);
        Self {
            folder: Some(runs.join(format!("{engine}-{}", address.replace([':', '/'], "-")))),
            own: Mutex::default(),
        }
    }

    fn own(&self) -> MutexGuard<'_, HashMap<Urn, PathBuf>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, claim: &str) -> Option<PathBuf> {
        let name = Digest::of(claim.as_bytes()).to_string().replace(':', "-");
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    /// Who has a claim.
    pub fn owner(&self, claim: &str) -> Option<Urn> {
        Urn::parse(&fs::read_to_string(self.path(claim)?).ok()?)
    }

    /// Takes a claim for a resource, in place of the one that it had.
    ///
    /// # Errors
    /// Who has it.
    pub fn take(&self, claim: &str, urn: &Urn) -> Result<(), Urn> {
        let (Some(folder), Some(path)) = (&self.folder, self.path(claim)) else {
            return Ok(());
        };
        if let Some(owner) = self.owner(claim) {
            return if owner == *urn { Ok(()) } else { Err(owner) };
        }
        self.release(urn);
        // Made anew each time: the process that was the last one for a moment has taken it away.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        // Put in its place with all that is in it, and not over another's.
        let written = made
            .and_then(|()| tempfile::NamedTempFile::new_in(folder))
            .and_then(|mut file| {
                file.write_all(urn.as_str().as_bytes())?;
                file.persist_noclobber(&path).map_err(|error| error.error)
            });
        match written {
            Ok(_) => {
                self.own().insert(urn.clone(), path);
                Ok(())
            }
            // Either another process was faster, or nothing can be written here, which is no reason to stop.
            Err(_) => match self.owner(claim) {
                Some(owner) if owner != *urn => Err(owner),
                _ => Ok(()),
            },
        }
    }

    /// Lets it be known whether what a resource of this process claims is still to be made.
    pub fn to_make(&self, urn: &Urn, is_to_make: bool) {
        if let Some(path) = self.own().get(urn) {
            let _ = if is_to_make {
                fs::write(mark(path), "")
            } else {
                fs::remove_file(mark(path))
            };
        }
    }

    /// Who keeps a grant from being deleted for a resource of this process: another resource that another process works on, or
    /// what is there in this one's place.
    pub fn keeper(&self, claim: &str, urn: &Urn) -> Option<Urn> {
        let owner = self.owner(claim)?;
        let is_own = self.own().contains_key(urn);
        let is_to_make = || self.path(claim).is_some_and(|path| mark(&path).exists());
        (owner != *urn || (!is_own && !is_to_make())).then_some(owner)
    }

    /// Gives up what a resource of this process claims.
    pub fn release(&self, urn: &Urn) {
        if let Some(path) = self.own().remove(urn) {
            remove(&path);
        }
    }

    /// Gives up all that this process claims.
    pub fn clear(&self) {
        for (_, path) in self.own().drain() {
            remove(&path);
        }
    }

    /// Gives up all that this process claims, for good. The folder goes with the engine's last process.
    pub fn end(&self) {
        self.clear();
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The file that says that what a claim is for is still to be made.
fn mark(claim: &Path) -> PathBuf {
    claim.with_extension("new")
}

/// Removes what the processes of engines have left that are gone.
fn sweep(runs: &Path) {
    for run in fs::read_dir(runs).into_iter().flatten().flatten() {
        let name = run.file_name();
        let engine = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
        let engine = engine.and_then(rustix::process::Pid::from_raw);
        if engine.is_some_and(|engine| rustix::process::test_kill_process(engine) == Err(rustix::io::Errno::SRCH)) {
            let _ = fs::remove_dir_all(run.path());
        }
    }
}

fn remove(claim: &Path) {
    let _ = fs::remove_file(mark(claim));
    let _ = fs::remove_file(claim);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_knows_what_another_one_claims() {
        let folder = tempfile::TempDir::new().unwrap();
        let process = || SharedClaims::of_engine(folder.path(), "127.0.0.1:7");
        let (one, other, third) = (process(), process(), process());
        // A process that ends takes nothing from those that go on.
        third.end();
        let (first, second) = (Urn::new("s", "p", "t", "first"), Urn::new("s", "p", "t", "second"));
        one.take("grant", &first).unwrap();
        one.take("grant", &first).unwrap();
        assert_eq!(other.owner("grant"), Some(first.clone()));
        assert_eq!(other.take("grant", &second), Err(first.clone()));
        one.take("another", &first).unwrap();
        assert_eq!(other.owner("grant"), None, "it has another one now");
        other.take("grant", &second).unwrap();
        one.end();
        assert_eq!((other.owner("another"), other.owner("grant")), (None, Some(second)));
        other.end();
        assert_eq!(fs::read_dir(folder.path().join("runs")).unwrap().count(), 0);
    }

    #[test]
    fn what_is_there_is_kept_and_what_another_process_will_make_is_made_room_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let process = || SharedClaims::of_engine(folder.path(), "127.0.0.1:7");
        let (one, other) = (process(), process());
        let (urn, second) = (Urn::new("s", "p", "t", "first"), Urn::new("s", "p", "t", "second"));
        one.take("grant", &urn).unwrap();
        assert_eq!(other.keeper("grant", &second), Some(urn.clone()));
        assert_eq!(other.keeper("grant", &urn), Some(urn.clone()), "it is there");
        one.to_make(&urn, true);
        assert_eq!(other.keeper("grant", &urn), None);
        one.to_make(&urn, false);
        assert_eq!(other.keeper("grant", &urn), Some(urn.clone()));
        assert_eq!(one.keeper("grant", &urn), None, "its own process knows more");
    }

    #[test]
    fn another_engine_is_another_run_and_what_is_left_of_one_that_is_gone_goes() {
        let folder = tempfile::TempDir::new().unwrap();
        let first = Urn::new("s", "p", "t", "first");
        let one = SharedClaims::of_engine(folder.path(), "127.0.0.1:7");
        one.take("grant", &first).unwrap();
        let gone = folder.path().join("runs/2000000000-127.0.0.1-7");
        fs::create_dir(&gone).unwrap();
        fs::write(gone.join("claim"), "").unwrap();
        assert_eq!(
            SharedClaims::of_engine(folder.path(), "127.0.0.1:8").owner("grant"),
            None
        );
        assert!(!gone.exists());
        assert_eq!(one.owner("grant"), Some(first.clone()));
        assert_eq!(SharedClaims::default().owner("grant"), None);
        SharedClaims::default().take("grant", &first).unwrap();
    }
}
