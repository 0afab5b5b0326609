//! Copies of the documents that runs began with, and files put in the place of others, whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fail::fail_point;

/// How many backups are kept.
const BACKUPS: usize = 10;

/// How the name of a file starts that is not written to its end.
const TEMPORARY: &str = ".writing-";

/// Removes what is left of writes that never came to their end, and journals beyond those that are kept.
pub fn clean(folder: &Path, backups: &Path) -> io::Result<()> {
    for folder in [folder, backups] {
        for path in files(folder)? {
            if path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
            {
                fs::remove_file(path)?;
            }
        }
    }
    prune(backups, "journal", BACKUPS)
}

/// Moves a journal to the backups, and says where it is now.
pub fn put_aside(journal: &Path, backups: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(backups)?;
    let aside = backups.join(format!("{}.journal", now()));
    fs::rename(journal, &aside)?;
    Ok(aside)
}

/// Keeps a copy of the document as it was before the run, unless there is one already.
pub fn back_up(backups: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(backups)?;
    let known = files(backups)?;
    let last = known.iter().rfind(|path| is_dated(path, "json"));
    if let Some(last) = last
        && fs::read_to_string(last).is_ok_and(|last| last == text)
    {
        return Ok(());
    }
    // Also where the clock went back, the newest stands last.
    let stem = last
        .and_then(|last| last.file_stem())
        .map(|stem| stem.to_string_lossy().into_owned());
    let name = match stem {
        Some(stem) if stem >= now() => {
            let (time, number) = stem.split_at_checked(now().len()).unwrap_or((&stem, ""));
            let number: u32 = number.trim_start_matches('-').parse().unwrap_or_default();
            format!("{time}-{:06}", number + 1)
        }
        _ => now(),
    };
    replace_file(&backups.join(format!("{name}.json")), text.as_bytes())?;
    prune(backups, "json", BACKUPS)
}

/// The files of a folder, sorted by their names without their endings; none where there is no such folder.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort_by_key(|path| path.file_stem().map(std::ffi::OsStr::to_os_string));
    Ok(files)
}

/// Whether this program named a file, after a time. Others are a person's own.
fn is_dated(path: &Path, extension: &str) -> bool {
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let time = stem.get(..now().len()).unwrap_or_default();
    let is_time = time.ends_with('Z') && time.chars().all(|c| c.is_ascii_digit() || "T-.Z".contains(c));
    is_time && path.extension().is_some_and(|found| found == extension)
}

/// Keeps the last files of an ending.
fn prune(folder: &Path, extension: &str, kept: usize) -> io::Result<()> {
    let files = files(folder)?;
    let found = files.iter().filter(|path| is_dated(path, extension));
    for old in found.rev().skip(kept) {
        fs::remove_file(old)?;
    }
    Ok(())
}

/// A time as part of a file's name, which sorts as it passes.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S.%6fZ").to_string()
}

/// Puts a file in the place of another, whole or not at all.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays one: what it leads to is replaced.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut new = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder)?;
    fail_point!("half-replaced", |_| {
        let _ = new.write_all(bytes.get(..bytes.len() / 2).unwrap_or_default());
        std::process::abort()
    });
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    fail_point!("before-rename", |_| std::process::abort());
    new.persist(path).map_err(|error| error.error)?;
    // The name, too, must outlast a loss of power.
    File::open(folder)?.sync_all()
}
