//! One run at a time works on a stack. The lock is the operating system's, and so ends with the process, however that ends;
//! what stands in its file only tells others whom they wait for.

use std::env;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::{process, system};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// How often a lock is tried that is held, and how long after each: a look at it takes far less.
const TRIES: u32 = 10;
const WAIT: Duration = Duration::from_millis(10);

/// A lock that is held.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Who holds a lock.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    command: String,
    process: u32,
    user: String,
    machine: String,
    since: String,
}

impl Lock {
    /// Takes the lock of a stack for a command.
    pub fn take(path: &Path, stack: &str, command: &str) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::run(format!("the lock {} cannot be taken: {error}", path.display()));
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path);
        let mut file = file.map_err(failed)?;
        let mut tries = 1..=TRIES;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // Somebody may only be looking whether it is held.
                Err(fs::TryLockError::WouldBlock) if tries.next().is_some() => thread::sleep(WAIT),
                Err(fs::TryLockError::WouldBlock) => return Err(taken(path, stack)),
                Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        let holder = serde_json::to_string(&Holder::this(command)).map_err(io::Error::from);
        let write = |holder: String| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(holder.as_bytes())
        };
        holder.and_then(write).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

impl Holder {
    fn this(command: &str) -> Self {
        let user = ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok());
        Self {
            command: format!("bindery {command}"),
            process: std::process::id(),
            user: user.unwrap_or_else(|| format!("uid {}", process::getuid().as_raw())),
            machine: system::uname().nodename().to_string_lossy().into_owned(),
            since: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        }
    }
}

/// Who holds a lock at this moment.
pub fn holder(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(fs::TryLockError::WouldBlock) => Some(who(path)),
        _ => None,
    }
}

fn taken(path: &Path, stack: &str) -> Failure {
    Failure::run(format!("{} works on the stack `{stack}`", who(path)))
        .with_hint(format!("wait for it to end; it holds {}", path.display()))
}

fn who(path: &Path) -> String {
    // Its holder may be about to write it.
    let holder = fs::read_to_string(path)
        .ok()
        .and_then(|text| serde_json::from_str::<Holder>(&text).ok());
    holder.map_or_else(
        || "another run".to_string(),
        |Holder {
             command,
             process,
             user,
             machine,
             since,
         }| format!("`{command}`, process {process} of {user} on {machine}, since {since},"),
    )
}
