//! The question before anything is changed.

use std::io::{self, BufRead, IsTerminal, Write};
use std::thread;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::args::Run;
use crate::failure::{Ending, Failure};

/// Asks before anything is changed. An interrupt is an answer too.
pub async fn agreed(run: &Run, cancel: &CancellationToken) -> Result<bool, Failure> {
    if cancel.is_cancelled() {
        return Err(Failure::reported(Ending::Interrupted));
    }
    if run.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(
            Failure::input("nobody can be asked here, because the input is not a terminal").with_hint("pass `--yes`"),
        );
    }
    let mut out = io::stdout();
    write!(out, "Do this? [y/N] ")
        .and_then(|()| out.flush())
        .map_err(Failure::run)?;
    // A thread of its own: nothing can end the wait for a line, and the program must not wait for it.
    let (tell, told) = oneshot::channel();
    thread::spawn(move || {
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer).map(|_| answer);
        let _ = tell.send(read);
    });
    tokio::select! {
        answer = told => {
            let answer = answer.map_err(Failure::run)?.map_err(Failure::run)?;
            Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
        }
        () = cancel.cancelled() => Err(Failure::reported(Ending::Interrupted)),
    }
}
