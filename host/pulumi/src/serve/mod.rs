//! Many tenants in one process: a port on loopback for each, to which engines attach. Each connection is a run of its own, with its
//! own configuration, claims and end; what a tenant may use, it may use over all of them.

mod metrics;
mod tenants_file;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bindery_sandbox::{Runtime, Tenant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tonic::Status;
use tonic::transport::Server;

use crate::connection::{Connection, service};
use crate::observer::Observer;
use crate::provider::Provider;
use crate::run::Runs;
use crate::served::Served;
use crate::shared_claims::SharedClaims;
use metrics::Metrics;
pub use tenants_file::{Fault, TenantsFile};

/// How long what is under way may take to its end once the process is told to stop: a call's own longest, and then some.
const LAST_WAIT: Duration = Duration::from_secs(75);

/// The largest message of an engine, in bytes: many times what the properties of one resource take. It is held before any limit of the
/// tenant counts.
const MESSAGE_BYTES: usize = 16 << 20;

/// How many connections a tenant has at most: an engine needs one for each provider resource of a program.
const CONNECTIONS: usize = 128;

/// How long a connection may be silent before its first word.
const SILENCE: Duration = Duration::from_secs(10);

/// How long an answer may take to be read, once nothing else is under way.
const ANSWERING: Duration = Duration::from_secs(1);

/// A process that serves tenants.
#[derive(Debug)]
pub struct Serving {
    tenants: Vec<Port>,
    metrics: Arc<Metrics>,
    metrics_at: Option<TcpListener>,
    runtime: Runtime,
}

/// A tenant at its port.
#[derive(Debug)]
struct Port {
    listener: TcpListener,
    address: SocketAddr,
    name: String,
    tenant: Arc<Tenant>,
    served: Arc<Served>,
}

impl Serving {
    /// Loads every component, configures every tenant, and takes every port. Nothing is served if anything of it is wrong.
    ///
    /// # Errors
    /// All that is wrong, and where in the file.
    pub async fn start(runtime: Runtime, file: &TenantsFile) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut tenants = Vec::new();
        for ready in file.load(&runtime).await? {
            match bind(ready.port).await {
                Ok((listener, address)) => tenants.push(Port {
                    listener,
                    address,
                    name: ready.name,
                    tenant: ready.tenant,
                    served: ready.served,
                }),
                Err(error) => faults.push(file.port_taken(ready.port, &error)),
            }
        }
        let metrics_at = match file.metrics_port() {
            Some(port) => match bind(port).await {
                Ok((listener, _)) => Some(listener),
                Err(error) => {
                    faults.push(file.port_taken(port, &error));
                    None
                }
            },
            None => None,
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let of = tenants
            .iter()
            .map(|port| (port.name.clone(), Arc::downgrade(&port.tenant)));
        Ok(Self {
            metrics: Arc::new(Metrics::new(of.collect())),
            tenants,
            metrics_at,
            runtime,
        })
    }

    /// Each tenant's name, its package's name, and where it is served.
    pub fn tenants(&self) -> impl Iterator<Item = (&str, &str, SocketAddr)> {
        let tenants = self.tenants.iter();
        tenants.map(|port| (port.name.as_str(), port.served.name.as_str(), port.address))
    }

    /// Where the metrics are, if anywhere.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics_at.as_ref()?.local_addr().ok()
    }

    /// Serves until it is told to stop. Then no connection is taken any more, what is under way comes to a known end, and every
    /// tenant ends.
    ///
    /// # Errors
    /// When a port is lost.
    pub async fn until(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let stopping = CancellationToken::new();
        let work = TaskTracker::new();
        let mut tenants = Vec::new();
        for port in self.tenants {
            tracing::info!(tenant = port.name, address = %port.address, component = %port.served.component.digest, "serving");
            tenants.push(Arc::clone(&port.tenant));
            let accepting = accept(
                port,
                self.runtime.clone(),
                Arc::clone(&self.metrics),
                stopping.clone(),
                work.clone(),
            );
            work.spawn(accepting);
        }
        let metrics = self.metrics_at.map(|listener| {
            // No part of the work: nobody's reading of them keeps the process.
            let serving = tokio::spawn(metrics::serve(listener, Arc::clone(&self.metrics)));
            AbortOnDropHandle::new(serving)
        });
        stop.await;
        tracing::info!("stopping: what is under way comes to its end");
        stopping.cancel();
        work.close();
        if tokio::time::timeout(LAST_WAIT, work.wait()).await.is_err() {
            tracing::warn!("some calls did not end in {LAST_WAIT:?}, and are given up");
        }
        tenants.iter().for_each(|tenant| tenant.end());
        drop(metrics);
        Ok(())
    }
}

async fn bind(port: u16) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Takes a tenant's connections.
async fn accept(port: Port, runtime: Runtime, metrics: Arc<Metrics>, stopping: CancellationToken, work: TaskTracker) {
    let mut last = 0_u64;
    let open = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let stream = tokio::select! {
            () = stopping.cancelled() => return,
            accepted = port.listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // No descriptor is free, or the other end has gone: neither is for long.
                    tracing::warn!(tenant = port.name, %error, "a connection was not taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        // Beyond these it is closed at once: descriptors are all tenants'.
        let Ok(place) = Arc::clone(&open).try_acquire_owned() else {
            tracing::warn!(
                tenant = port.name,
                limit = CONNECTIONS,
                "a connection too many was closed"
            );
            continue;
        };
        last += 1;
        let observer = TenantObserver {
            tenant: port.name.clone(),
            connection: last,
            metrics: Arc::clone(&metrics),
        };
        let serving = connection(
            stream,
            runtime.clone(),
            Arc::clone(&port.served),
            observer,
            stopping.clone(),
        );
        work.spawn(async move {
            serving.await;
            drop(place);
        });
    }
}

/// Serves one connection to its end.
async fn connection(
    stream: TcpStream,
    runtime: Runtime,
    served: Arc<Served>,
    observer: TenantObserver,
    stopping: CancellationToken,
) {
    let (tenant, number) = (observer.tenant.clone(), observer.connection);
    let speaks = tokio::select! {
        () = stopping.cancelled() => return,
        readable = tokio::time::timeout(SILENCE, stream.readable()) => readable,
    };
    if !matches!(speaks, Ok(Ok(()))) {
        tracing::warn!(tenant, connection = number, "a connection that said nothing was closed");
        return;
    }
    tracing::info!(tenant, connection = number, "an engine has connected");
    let runs = Runs::default();
    let provider = Provider::new(
        runtime,
        served,
        None,
        runs.clone(),
        Arc::new(SharedClaims::default()),
        Arc::new(observer),
    );
    let operations = provider.operations();
    let closed = CancellationToken::new();
    let stream = Connection::new(stream, closed.clone().drop_guard());
    let incoming = tokio_stream::once(Ok::<_, io::Error>(stream)).chain(tokio_stream::pending());
    let ended = async {
        tokio::select! {
            () = closed.cancelled() => {}
            () = stopping.cancelled() => runs.end(),
        }
    };
    let server = Server::builder().add_service(service(provider, MESSAGE_BYTES));
    let serving = server.serve_with_incoming_shutdown(incoming, ended);
    let all_said = async {
        stopping.cancelled().await;
        operations.close();
        operations.wait().await;
        tokio::time::sleep(ANSWERING).await;
    };
    tokio::select! {
        served = serving => if let Err(error) = served {
            tracing::warn!(tenant, connection = number, %error, "a connection broke off");
        },
        // Who keeps a connection open and says nothing does not keep the process.
        () = all_said => {}
    }
    // An engine that has gone takes no answer, and nobody else can go on with its run.
    runs.end();
    operations.close();
    operations.wait().await;
    tracing::info!(tenant, connection = number, "an engine has disconnected");
}

/// Counts and logs the calls of one connection.
#[derive(Debug)]
struct TenantObserver {
    tenant: String,
    connection: u64,
    metrics: Arc<Metrics>,
}

impl Observer for TenantObserver {
    fn called(&self, method: &'static str, urn: &str, took: Duration, ended: Result<(), &Status>) {
        let code = ended.map_or_else(|status| status_name(status.code()), |()| "ok");
        self.metrics.called(&self.tenant, method, code, took);
        let (tenant, connection) = (self.tenant.as_str(), self.connection);
        let took = took.as_secs_f64();
        match ended {
            Ok(()) => tracing::info!(tenant, connection, method, urn, took, "called"),
            // The engine's own words: secrets are masked in them.
            Err(status) => {
                tracing::warn!(
                    tenant,
                    connection,
                    method,
                    urn,
                    took,
                    code,
                    error = status.message(),
                    "failed"
                );
            }
        }
    }
}

/// A status's code as gRPC spells it.
const fn status_name(code: tonic::Code) -> &'static str {
    use tonic::Code;
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid-argument",
        Code::DeadlineExceeded => "deadline-exceeded",
        Code::NotFound => "not-found",
        Code::AlreadyExists => "already-exists",
        Code::PermissionDenied => "permission-denied",
        Code::ResourceExhausted => "resource-exhausted",
        Code::FailedPrecondition => "failed-precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out-of-range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data-loss",
        Code::Unauthenticated => "unauthenticated",
    }
}
