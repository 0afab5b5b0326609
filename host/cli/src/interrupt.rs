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
        asked_to_end().await;
        report.notice("stopping after what is under way; interrupt again to stop at once");
        cancel.cancel();
        asked_to_end().await;
        report.end_document(Ending::Interrupted.name());
        std::process::exit(Ending::Interrupted.code().into());
    });
}

/// Returns when somebody wants the program to end, which is heard from the call on. Where that cannot be heard, it keeps its usual
/// meaning: to end at once.
pub fn asked_to_end() -> impl Future<Output = ()> {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        let (Ok(mut interrupt), Ok(mut end)) = signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = end.recv() => {}
        }
    }
}
