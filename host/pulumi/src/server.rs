//! The port, the connections to it, and the end: of a run, and of the program.

use std::error::Error;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bindery_sandbox::Runtime;
use pulumi_gestalt_proto::pulumi::pulumirpc::resource_provider_server::ResourceProviderServer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::provider::Provider;
use crate::run::Runs;
use crate::served::Served;
use crate::shared_claims::SharedClaims;

/// The largest message: the engine's own limit.
const MESSAGE_BYTES: usize = 400 << 20;

/// How long what is under way may take to its end once the program is told to stop. The engine kills it after five seconds.
const LAST_WAIT: Duration = Duration::from_secs(4);

/// Whether an argument is the engine's address: a host and a port.
pub fn is_address(argument: &str) -> bool {
    let port = argument.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    !argument.starts_with('-') && matches!(port, Some(Ok(1..)))
}

/// Serves until the engine or a person ends it. `engine` is the address of the engine that started the program; without one,
/// engines attach to it.
pub async fn serve(
    runtime: Runtime,
    served: Served,
    engine: Option<String>,
    claims: SharedClaims,
) -> Result<(), Box<dyn Error>> {
    let claims = Arc::new(claims);
    let runs = Runs::default();
    let is_started_by_engine = engine.is_some();
    let provider = Provider::new(runtime, served, engine, runs.clone(), Arc::clone(&claims));
    let operations = provider.operations();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let open = Arc::new(AtomicUsize::new(0));
    let connections = TcpListenerStream::new(listener).map({
        let runs = runs.clone();
        move |stream| stream.map(|stream| Connection::new(stream, &open, &runs))
    });
    let service = ResourceProviderServer::new(provider)
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let server = Server::builder().add_service(service).serve_with_incoming(connections);
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

/// A connection of an engine.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    open: Arc<AtomicUsize>,
    runs: Runs,
}

impl Connection {
    fn new(stream: TcpStream, open: &Arc<AtomicUsize>, runs: &Runs) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        // Answers are small, and each is waited for.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            open: Arc::clone(open),
            runs: runs.clone(),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.runs.left();
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
