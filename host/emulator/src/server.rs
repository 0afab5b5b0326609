//! The connections: one listener on loopback for all three services.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, Kind, ServiceError};
use crate::control;
use crate::fault::{Draw, Fault};
use crate::policies::{Hold, Policies, Settings};
use crate::route::{Route, Verb};

/// How an emulator is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port; 0 for any that is free.
    pub port: u16,
    /// Where the policies are kept between runs. In memory only without one.
    pub file: Option<PathBuf>,
    /// How the services behave.
    pub settings: Settings,
}

/// A running emulator. It stops when it is dropped.
#[derive(Debug)]
pub struct Emulator {
    address: SocketAddr,
    world: Arc<World>,
    stop: CancellationToken,
}

/// One request of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestRecord {
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query.
    pub query: String,
    /// Whether it carried a credential.
    pub authorized: bool,
    /// The status that was answered; 0 where the connection ended without one.
    pub status: u16,
}

/// A body larger than any policy.
const BODY_LIMIT: usize = 4 << 20;

/// Everything that is held.
#[derive(Debug)]
pub(crate) struct World {
    held: Mutex<Held>,
    file: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) policies: Policies,
    pub(crate) settings: Settings,
    pub(crate) requests: Vec<RequestRecord>,
    draw: Draw,
    watcher: Option<Watcher>,
    /// How many requests came since the settings were last changed.
    arrived: u64,
    is_holding: bool,
}

/// What is told of a target's policy.
type OnWrite = dyn Fn(&str, &Map<String, Value>) + Send + Sync;

/// Sees every policy that is written.
struct Watcher(Box<OnWrite>);

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

impl Held {
    /// Answers a request, and shows a policy that it wrote.
    fn answer(&mut self, route: &Route, query: &str, body: &[u8]) -> Answer {
        let answer = self.policies.answer(&self.settings, route, query, body);
        if route.verb == Verb::Set && answer.status == 200 {
            self.show(&route.target);
        }
        answer
    }

    fn show(&self, target: &str) {
        if let Some(Watcher(watcher)) = &self.watcher {
            watcher(target, &self.policies.get(target));
        }
    }

    pub(crate) fn set(&mut self, settings: Settings) {
        self.draw = Draw::new(settings.faults.seed);
        self.settings = settings;
        self.arrived = 0;
        self.is_holding = false;
    }

    /// Whether the request that arrives now is the one that is held.
    fn holds(&mut self) -> Option<Hold> {
        self.arrived += 1;
        self.settings.hold.filter(|hold| hold.request == self.arrived)
    }
}

impl World {
    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the policies for the next run, before anybody hears that they changed.
    pub(crate) fn keep(&self, held: &Held) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let folder = file.parent().unwrap_or_else(|| Path::new("."));
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(serde_json::to_string_pretty(&held.policies)?.as_bytes())?;
        new.persist(file).map_err(|error| error.error)?;
        Ok(())
    }
}

impl Emulator {
    /// Starts on loopback, with the policies that the last run left in its file.
    ///
    /// # Errors
    /// When the port is taken, or the file cannot be read.
    pub async fn start(options: Options) -> io::Result<Self> {
        let policies = match options.file.as_deref().map(std::fs::read) {
            None => Policies::default(),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => Policies::default(),
            Some(bytes) => serde_json::from_slice(&bytes?)?,
        };
        if let Some(folder) = options.file.as_deref().and_then(Path::parent) {
            std::fs::create_dir_all(folder)?;
        }
        let world = Arc::new(World {
            held: Mutex::new(Held {
                draw: Draw::new(options.settings.faults.seed),
                watcher: None,
                policies,
                settings: options.settings,
                requests: Vec::new(),
                arrived: 0,
                is_holding: false,
            }),
            file: options.file,
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(accept(listener, Arc::clone(&world), stop.clone())),
        );
        Ok(Self { address, world, stop })
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The policies as they are.
    pub fn policies(&self) -> Policies {
        self.world.held().policies.clone()
    }

    /// Puts a policy in place as somebody else would.
    pub fn put_policy(&self, target: &str, policy: Value) {
        let policy = policy.as_object().cloned().unwrap_or_default();
        self.world.held().policies.put(target, policy);
    }

    /// Changes a policy in one step as somebody else would.
    pub fn change_policy(&self, target: &str, change: impl FnOnce(&mut Map<String, Value>)) {
        let mut held = self.world.held();
        let mut policy = held.policies.get(target);
        change(&mut policy);
        held.policies.put(target, policy);
        held.show(target);
    }

    /// Shows every policy that is written from now on, with its target. The emulator waits for it.
    pub fn watch(&self, watcher: impl Fn(&str, &Map<String, Value>) + Send + Sync + 'static) {
        self.world.held().watcher = Some(Watcher(Box::new(watcher)));
    }

    /// Changes how the services behave.
    pub fn set(&self, settings: Settings) {
        self.world.held().set(settings);
    }

    /// Whether the request that [`Settings::hold`] names has come.
    pub fn is_holding(&self) -> bool {
        self.world.held().is_holding
    }

    /// The identities that have a role in a target's policy, under any condition.
    pub fn members(&self, target: &str, role: &str) -> Vec<String> {
        let policy = self.policies().get(target);
        let bindings = policy.get("bindings").and_then(Value::as_array).into_iter().flatten();
        let of_role = bindings.filter(|binding| binding.get("role").and_then(Value::as_str) == Some(role));
        let members = of_role
            .filter_map(|binding| binding.get("members")?.as_array())
            .flatten();
        members.filter_map(Value::as_str).map(String::from).collect()
    }

    /// How many requests have come since the settings were last changed; they may not be answered yet.
    pub fn arrived(&self) -> u64 {
        self.world.held().arrived
    }

    /// The requests since the start, or since they were last taken.
    pub fn take_requests(&self) -> Vec<RequestRecord> {
        std::mem::take(&mut self.world.held().requests)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, world: Arc<World>, stop: CancellationToken) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: let some connections end.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let world = Arc::clone(&world);
        let connection = async move {
            let service = service_fn(|request| handle(Arc::clone(&world), request));
            // A connection that ends with an error is a fault that was asked for, or the client's own doing.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(connection));
    }
}

type Body = BoxBody<Bytes, io::Error>;

/// Answers one request. An error ends the connection without an answer.
async fn handle(world: Arc<World>, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let (method, path) = (parts.method.as_str(), parts.uri.path());
    let query = parts.uri.query().unwrap_or_default();
    let Ok(body) = Limited::new(body, BODY_LIMIT).collect().await else {
        return Ok(text(
            StatusCode::PAYLOAD_TOO_LARGE,
            "text/plain",
            "the body is too large",
        ));
    };
    let body = body.to_bytes();
    if let Some(path) = path.strip_prefix("/emulator/") {
        return Ok(json(&control::answer(&world, method, path, &body)));
    }
    let mut record = RequestRecord {
        method: method.to_string(),
        path: path.to_string(),
        query: query.to_string(),
        authorized: parts.headers.contains_key(header::AUTHORIZATION),
        status: 0,
    };
    let Some(route) = Route::of(method, path) else {
        record.status = 404;
        world.held().requests.push(record);
        return Ok(json(&Answer::no_method(path)));
    };
    let hold = world.held().holds();
    if let Some(hold) = hold {
        hold_back(&world, hold, &route, query, &body)?;
        return std::future::pending().await;
    }
    let latency = {
        let held = world.held();
        held.draw.latency(&held.settings.faults)
    };
    tokio::time::sleep(Duration::from_millis(latency)).await;
    let mut held = world.held();
    let fault = held.draw.fault(&held.settings.faults, route.verb == Verb::Set);
    let answer = if fault.is_none_or(Fault::is_after) {
        let answer = held.answer(&route, query, &body);
        if route.verb == Verb::Set && answer.status == 200 {
            world.keep(&held)?;
        }
        Some(answer)
    } else {
        None
    };
    let response = faulty(fault, held.settings.faults.retry_after_seconds, &route, answer);
    record.status = response.as_ref().map_or(0, |response| response.status().as_u16());
    held.requests.push(record);
    response
}

/// Does a request or not, and lets it be known that it has come.
fn hold_back(world: &World, hold: Hold, route: &Route, query: &str, body: &[u8]) -> io::Result<()> {
    let mut held = world.held();
    if hold.done {
        held.answer(route, query, body);
        world.keep(&held)?;
    }
    held.is_holding = true;
    Ok(())
}

/// The answer that a fault makes of the right one.
fn faulty(fault: Option<Fault>, retry_after: u32, route: &Route, answer: Option<Answer>) -> io::Result<Response<Body>> {
    let error = |kind, message, retry_after| {
        let mut answer = Answer::error(route.service, &ServiceError::new(kind, message));
        answer.retry_after = retry_after;
        Ok(json(&answer))
    };
    match (fault, answer) {
        (None, Some(answer)) => Ok(json(&answer)),
        (Some(Fault::Truncated), Some(answer)) => Ok(truncated(&answer)),
        (Some(Fault::Conflict), _) => Ok(json(&Answer::error(route.service, &ServiceError::conflict()))),
        (Some(Fault::TooManyRequests), _) => error(
            Kind::ResourceExhausted,
            "Quota exceeded for quota metric 'Requests'.",
            Some(retry_after),
        ),
        (Some(Fault::UnavailableBefore | Fault::UnavailableAfter), _) => {
            error(Kind::Unavailable, "The service is currently unavailable.", None)
        }
        (Some(Fault::Html), _) => Ok(text(
            StatusCode::BAD_GATEWAY,
            "text/html",
            "<!DOCTYPE html><html><title>502 Bad Gateway</title></html>",
        )),
        (Some(Fault::ResetBefore | Fault::ResetAfter | Fault::Truncated), _) | (None, None) => {
            Err(io::Error::from(io::ErrorKind::ConnectionReset))
        }
    }
}

fn json(answer: &Answer) -> Response<Body> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = text(status, "application/json", &answer.body.to_string());
    if let Some(seconds) = answer.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn text(status: StatusCode, content_type: &'static str, body: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_string()))
        .map_err(|never: Infallible| match never {})
        .boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

/// An answer that says how long it is, and ends before.
fn truncated(answer: &Answer) -> Response<Body> {
    let body = answer.body.to_string();
    let half = Bytes::from(body.get(..body.len() / 2).unwrap_or_default().to_string());
    let frames = [
        Ok(Frame::data(half)),
        Err(io::Error::from(io::ErrorKind::ConnectionReset)),
    ];
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(futures_util::stream::iter(frames))));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response.headers_mut().insert(header::CONTENT_LENGTH, body.len().into());
    response
}
