//! `serve`: many tenants in one process.

use std::fs;
use std::io;
use std::path::Path;

use bindery_pulumi::serve::{Fault, Serving, TenantsFile};
use bindery_stack::{Diagnostic, Position};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::component;
use crate::excerpt::Source;
use crate::failure::{Ending, Failure};
use crate::interrupt::asked_to_end;
use crate::report::Report;

/// Serves the tenants of a file until it is told to stop. What happens is logged on stderr, a line of JSON for each event.
pub async fn serve(path: &Path, report: &Report) -> Result<(), Failure> {
    let shown = path.display().to_string();
    let unreadable = |error: io::Error| Failure::input(format!("the tenants file {shown} cannot be read: {error}"));
    let text = fs::read_to_string(path).map_err(unreadable)?;
    report.reads(Source::without_values(shown.clone(), &text));
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    more_descriptors();
    let file = TenantsFile::parse(&text, folder).map_err(|faults| refused(&shown, faults))?;
    let runtime = component::runtime_for(report, file.calls_in_flight())?;
    let serving = Serving::start(runtime, &file)
        .await
        .map_err(|faults| refused(&shown, faults))?;
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_writer(io::stderr)
        .init();
    let asked = asked_to_end();
    let tenants: Vec<_> = serving.tenants().collect();
    let lines: Vec<String> = tenants
        .iter()
        .map(|(name, package, address)| {
            let port = address.port();
            format!("{name} at {address}, for engines with PULUMI_DEBUG_PROVIDERS={package}:{port}")
        })
        .collect();
    let documents: Vec<_> = tenants
        .iter()
        .map(|(name, package, address)| json!({ "name": name, "package": package, "address": address.to_string() }))
        .collect();
    let metrics = serving.metrics();
    let more = metrics.map(|address| format!("metrics at http://{address}/metrics"));
    let text: Vec<String> = lines.into_iter().chain(more).collect();
    let metrics = metrics.map(|address| address.to_string());
    let document = json!({ "tenants": documents, "metrics": metrics });
    report.answer(&text.join("\n"), "serving", document);
    report.end_document("done");
    let stop = async {
        asked.await;
        let asked_again = asked_to_end();
        tokio::spawn(async {
            asked_again.await;
            std::process::exit(Ending::Interrupted.code().into());
        });
    };
    let stopped = serving.until(stop).await;
    stopped.map_err(|error| Failure::run(format!("a port was lost: {error}")))
}

/// Lets the process have as many connections as this machine allows it.
fn more_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // With fewer it works, too.
    let _ = setrlimit(Resource::Nofile, all);
}

/// Nothing is served of a file of which something is wrong.
fn refused(path: &str, faults: Vec<Fault>) -> Failure {
    let problem = |fault: Fault| Diagnostic {
        hint: fault.hint,
        position: Some(Position {
            line: fault.line,
            column: fault.column,
        }),
        ..Diagnostic::new(format!("{path}: {}", fault.message))
    };
    Failure {
        ending: Ending::Refused,
        problems: faults.into_iter().map(problem).collect(),
    }
}
