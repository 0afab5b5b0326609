//! Compiled components, kept between processes. What is read here becomes machine code, so the folder must be one that
//! nobody but its user can write; and a file in it is used only if it is whole, and was made by this very compiler. Files are put
//! in place whole and never written again, so all processes map the same memory.

use std::env;
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use wasmtime::Engine;
use wasmtime::component::Component;
use xxhash_rust::xxh3::Xxh3Default;

use crate::component::Digest;

/// How many bytes the checksum has that a file ends with. It finds what is damaged; nobody but the user can write there, so it
/// need not stand against forgery, and a cryptographic one would take longer than all else at the start.
const CHECKSUM_BYTES: u64 = 16;

/// The bits of a folder's mode with which others could write it.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A folder of compiled components.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// A cache in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made, or others can write it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = folder.canonicalize()?;
        let found = fs::metadata(&folder)?;
        if found.uid() != geteuid().as_raw() || found.mode() & WRITABLE_BY_OTHERS != 0 {
            let message = format!("{} is not a folder that only its user can write", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(Self(folder))
    }

    /// The cache in the user's own folder: `BINDERY_CACHE_DIR`, or one in that for caches; none where there is no such folder,
    /// or it cannot be used.
    ///
    /// # Errors
    /// When the folder that `BINDERY_CACHE_DIR` names cannot be used.
    pub fn open_usual() -> io::Result<Option<Self>> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(named) = variable("BINDERY_CACHE_DIR") {
            return Self::open(&named).map(Some);
        }
        let usual = variable("XDG_CACHE_HOME").map(|folder| folder.join("bindery"));
        let usual = usual.or_else(|| Some(variable("HOME")?.join(".cache/bindery")));
        Ok(usual.and_then(|folder| Self::open(&folder).ok()))
    }

    /// The folder, which only the user can write.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    fn path(&self, engine: &Engine, digest: &Digest) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let name = digest.to_string().replace(':', "-");
        self.0.join(format!("{name}-{:016x}", hasher.finish()))
    }

    /// The compiled component of these bytes, compiled anew if it is not here or not whole. That it cannot be kept is no
    /// reason to fail.
    pub(crate) fn compiled(&self, engine: &Engine, bytes: &[u8], digest: &Digest) -> wasmtime::Result<Component> {
        let path = self.path(engine, digest);
        if let Some(component) = load(engine, &path) {
            return Ok(component);
        }
        let component = Component::from_binary(engine, bytes)?;
        let _ = component.serialize().map(|artifact| keep(&path, &artifact));
        Ok(component)
    }
}

/// Whether a file ends with the checksum of its name and of what comes before. Read piece by piece: a buffer for all of it would take longer to get
/// than the sum to make.
fn is_whole(path: &Path) -> io::Result<bool> {
    if !fs::metadata(path)?.is_file() {
        return Ok(false);
    }
    let mut file = fs::File::open(path)?;
    let Some(length) = file.metadata()?.len().checked_sub(CHECKSUM_BYTES) else {
        return Ok(false);
    };
    let mut sum = sum_of_name(path);
    let mut piece = [0; 64 * 1024];
    let mut artifact = (&mut file).take(length);
    loop {
        let read = artifact.read(&mut piece)?;
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else {
            break;
        };
        sum.update(read);
    }
    file.seek(SeekFrom::Start(length))?;
    let mut checksum = Vec::new();
    file.read_to_end(&mut checksum)?;
    Ok(checksum == sum.digest128().to_le_bytes())
}

/// The checksum of an artifact begins with the name of its file, which says of which component it is and for which compiler: one that
/// was copied to another's place is not whole there.
fn sum_of_name(path: &Path) -> Xxh3Default {
    let mut sum = Xxh3Default::new();
    sum.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    sum
}

/// A component from a file of this cache; none where the file is not whole, or of another compiler.
fn load(engine: &Engine, path: &Path) -> Option<Component> {
    if !is_whole(path).ok()? {
        return None;
    }
    #[expect(
        unsafe_code,
        reason = "only this file writes into the folder, which only its user can write, and the checksum says that the \
                  artifact is as it was written; wasmtime refuses what another compiler made"
    )]
    // SAFETY: the file is what `Component::serialize` gave, and a checksum behind it, which its format ignores.
    let component = unsafe { Component::deserialize_file(engine, path) };
    component.ok()
}

/// Puts a file in its place, whole or not at all.
fn keep(path: &Path, artifact: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(artifact)?;
    let mut sum = sum_of_name(path);
    sum.update(artifact);
    file.write_all(&sum.digest128().to_le_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A component with nothing in it.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn what_is_not_whole_is_compiled_anew_and_replaced() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let engine = Engine::default();
        cache.compiled(&engine, EMPTY, &Digest::of(EMPTY)).unwrap();
        let path = cache.path(&engine, &Digest::of(EMPTY));
        let whole = fs::read(&path).unwrap();
        assert!(load(&engine, &path).is_some());
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        for broken in [&whole[..whole.len() / 2], &whole[..10], b"", &changed] {
            fs::remove_file(&path).unwrap();
            fs::write(&path, broken).unwrap();
            assert!(load(&engine, &path).is_none());
            cache.compiled(&engine, EMPTY, &Digest::of(EMPTY)).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn what_is_another_components_is_compiled_anew_and_replaced() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let engine = Engine::default();
        // A custom section makes it another one.
        let other = [EMPTY, b"\0\x02\x01x"].concat();
        let (one, another) = (Digest::of(EMPTY), Digest::of(&other));
        cache.compiled(&engine, EMPTY, &one).unwrap();
        cache.compiled(&engine, &other, &another).unwrap();
        let (one, another) = (cache.path(&engine, &one), cache.path(&engine, &another));
        fs::copy(&another, &one).unwrap();
        assert!(load(&engine, &one).is_none() && load(&engine, &another).is_some());
        cache.compiled(&engine, EMPTY, &Digest::of(EMPTY)).unwrap();
        assert!(load(&engine, &one).is_some());
    }

    #[test]
    fn what_another_compiler_made_is_not_loaded() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let (one, other) = (
            Engine::default(),
            Engine::new(wasmtime::Config::new().epoch_interruption(true)).unwrap(),
        );
        cache.compiled(&one, EMPTY, &Digest::of(EMPTY)).unwrap();
        let digest = Digest::of(EMPTY);
        assert_ne!(cache.path(&one, &digest), cache.path(&other, &digest));
        assert!(load(&other, &cache.path(&one, &digest)).is_none());
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let folder = tempfile::TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(
            Cache::open(folder.path()).unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
    }
}
