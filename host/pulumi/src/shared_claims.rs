//! Claims across processes: the engine starts one for each provider resource, and a grant may leave one resource for another that
//! a second process works on. The processes of one engine keep their claims in one folder, a file each, so that none refuses too
//! little or takes away what another's resource declares.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
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
        let name = format!("{engine}-{}", address.replace([':', '/'], "-"));
        let folder = private.join("runs").join(name);
        Self {
            folder: fs::create_dir_all(&folder).is_ok().then_some(folder),
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
        // Put in its place with all that is in it, and not over another's.
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
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

    /// Lets it be known that what a resource of this process claims is made.
    pub fn made(&self, urn: &Urn) {
        if let Some(path) = self.own().get(urn) {
            let _ = fs::write(mark(path), "");
        }
    }

    /// Who keeps a grant from being deleted for a resource of this process: another resource that another process works on, or
    /// what has been made there in this one's place.
    pub fn keeper(&self, claim: &str, urn: &Urn) -> Option<Urn> {
        let owner = self.owner(claim)?;
        let is_own = self.own().contains_key(urn);
        let is_made = || self.path(claim).is_some_and(|path| mark(&path).exists());
        (owner != *urn || (!is_own && is_made())).then_some(owner)
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

/// The file that says that what a claim is for is made.
fn mark(claim: &Path) -> PathBuf {
    claim.with_extension("made")
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
        let (one, other) = (process(), process());
        let (first, second) = (Urn::new("s", "p", "t", "first"), Urn::new("s", "p", "t", "second"));
        one.take("grant", &first).unwrap();
        one.take("grant", &first).unwrap();
        assert_eq!(other.owner("grant"), Some(first.clone()));
        assert_eq!(other.take("grant", &second), Err(first.clone()));
        one.take("another", &first).unwrap();
        assert_eq!(other.owner("grant"), None, "it has another one now");
        other.take("grant", &second).unwrap();
        one.clear();
        assert_eq!((other.owner("another"), other.owner("grant")), (None, Some(second)));
        one.end();
        other.end();
        assert_eq!(fs::read_dir(folder.path().join("runs")).unwrap().count(), 0);
    }

    #[test]
    fn what_another_process_has_made_is_kept_and_what_it_will_make_is_made_room_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let process = || SharedClaims::of_engine(folder.path(), "127.0.0.1:7");
        let (one, other) = (process(), process());
        let (urn, second) = (Urn::new("s", "p", "t", "first"), Urn::new("s", "p", "t", "second"));
        one.take("grant", &urn).unwrap();
        assert_eq!(other.keeper("grant", &second), Some(urn.clone()));
        assert_eq!(other.keeper("grant", &urn), None, "it is still to be made");
        one.made(&urn);
        assert_eq!(other.keeper("grant", &urn), Some(urn.clone()));
        assert_eq!(one.keeper("grant", &urn), None, "its own process knows more");
        one.end();
        other.end();
        assert_eq!(fs::read_dir(folder.path().join("runs")).unwrap().count(), 0);
    }

    #[test]
    fn another_engine_is_another_run() {
        let folder = tempfile::TempDir::new().unwrap();
        let first = Urn::new("s", "p", "t", "first");
        let one = SharedClaims::of_engine(folder.path(), "127.0.0.1:7");
        one.take("grant", &first).unwrap();
        assert_eq!(
            SharedClaims::of_engine(folder.path(), "127.0.0.1:8").owner("grant"),
            None
        );
        assert_eq!(SharedClaims::default().owner("grant"), None);
        SharedClaims::default().take("grant", &first).unwrap();
    }
}
