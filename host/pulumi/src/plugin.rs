//! As the engine starts it: a port on the first line, one component for all connections, and the end with the engine's.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindery_sandbox::{Cache, Runtime};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::connection::{Connection, LARGEST_MESSAGE, service};
use crate::observer::Unobserved;
use crate::provider::Provider;
use crate::run::Runs;
use crate::served::Served;
use crate::shared_claims::SharedClaims;

/// How long what is under way may take to its end once the program is told to stop. The engine kills it after five seconds.
const LAST_WAIT: Duration = Duration::from_secs(4);

/// Serves what this program's name, and what is beside it, say, until the engine or a person ends it.
///
/// # Errors
/// When it cannot be served, with what to do.
pub async fn run() -> Result<(), String> {
    let mut arguments = env::args_os();
    let program = arguments.next().map(PathBuf::from).unwrap_or_default();
    // The engine's address comes last. What comes before it is for its own tracing.
    let engine = arguments.last().and_then(|last| last.into_string().ok());
    let engine = engine.filter(|last| is_address(last));
    let runtime = Runtime::new().map_err(|error| format!("no WebAssembly on this machine: {error:#}"))?;
    let cache = Cache::open_usual().unwrap_or_else(|error| {
        eprintln!("warning: compiled components are not kept: {error}");
        None
    });
    let claims = match (&cache, &engine) {
        (Some(cache), Some(engine)) => SharedClaims::of_engine(cache.folder(), engine),
        _ => SharedClaims::default(),
    };
    let runtime = match cache {
        Some(cache) => runtime.with_cache(cache),
        None => runtime,
    };
    let served = Served::by(&runtime, &program).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })?;
    serve(runtime, served, engine, claims)
        .await
        .map_err(|error| error.to_string())
}

/// Whether an argument is the engine's address: a host and a port.
fn is_address(argument: &str) -> bool {
    let port = argument.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    !argument.starts_with('-') && matches!(port, Some(Ok(1..)))
}

/// `engine` is the address of the engine that started the program; without one, engines attach to it.
async fn serve(
    runtime: Runtime,
    served: Served,
    engine: Option<String>,
    claims: SharedClaims,
) -> Result<(), Box<dyn Error>> {
    let claims = Arc::new(claims);
    let runs = Runs::default();
    let is_started_by_engine = engine.is_some();
    let provider = Provider::new(
        runtime,
        Arc::new(served),
        engine,
        runs.clone(),
        Arc::clone(&claims),
        Arc::new(Unobserved),
    );
    let operations = provider.operations();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let open = Arc::new(AtomicUsize::new(0));
    let connections = TcpListenerStream::new(listener).map({
        let runs = runs.clone();
        move |stream| stream.map(|stream| Connection::new(stream, Open::one_more(&open, &runs)))
    });
    let server = Server::builder()
        .add_service(service(provider, LARGEST_MESSAGE))
        .serve_with_incoming(connections);
    let server = tokio::spawn(server);
    let mut stdout = io::stdout();
    writeln!(stdout, "{port}")?;
    stdout.flush()?;

    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        ended = server => return Ok(ended??),
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = engine_is_gone(), if is_started_by_engine => {}
    }
    runs.end();
    operations.close();
    let _ = tokio::time::timeout(LAST_WAIT, operations.wait()).await;
    claims.end();
    Ok(())
}

/// The engine holds the other end of stdin, and never writes to it: its end is the engine's. Read by a thread of its own, which
/// does not keep the program from ending.
async fn engine_is_gone() {
    let (gone, is_gone) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = gone.send(());
    });
    let _ = is_gone.await;
}

/// One of the open connections.
#[derive(Debug)]
struct Open {
    open: Arc<AtomicUsize>,
    runs: Runs,
}

impl Open {
    fn one_more(open: &Arc<AtomicUsize>, runs: &Runs) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self {
            open: Arc::clone(open),
            runs: runs.clone(),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.runs.left();
        }
    }
}
