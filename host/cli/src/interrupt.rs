//! Ctrl-C, and a request to end: the first lets what is under way come to its end, the second ends at once. Neither loses
//! state, since every operation stands in it before its first request.

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Ending;
use crate::report::Report;
use crate::session::Session;

/// Listens from now on.
pub fn stop_on_interrupt(session: &Session, report: &Report) {
    let cancel = session.cancel.clone();
    let report = report.clone();
    tokio::spawn(async move {
        // Without a way to hear of them, both keep their usual meaning: to end at once.
        let (Ok(mut interrupt), Ok(mut end)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = end.recv() => {}
        }
        report.notice("stopping after what is under way; interrupt again to stop at once");
        cancel.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = end.recv() => {}
        }
        std::process::exit(Ending::Interrupted.code().into());
    });
}
