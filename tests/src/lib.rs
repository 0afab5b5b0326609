//! What the tests share: components loaded once, tenants over them, and a server that answers as it is told to.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up fails"
)]

pub mod cloud;
pub mod engine;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bindery_emulator::{Emulator, Options};
use bindery_resource::{PropertyMap, Urn, Value};
use bindery_sandbox::egress::AllowedOrigin;
use bindery_sandbox::origin::Origin;
use bindery_sandbox::{Component, Context, Event, Limits, Runtime, Tenant, TenantOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One runtime for all tests of a process.
pub static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::for_calls(896).expect("this machine runs WebAssembly"));

/// The built-in provider.
pub static BUILT_IN: LazyLock<Arc<Component>> = LazyLock::new(|| load(bindery_components::PROVIDER));

/// The provider of disks.
pub static ACME: LazyLock<Arc<Component>> = LazyLock::new(|| load(bindery_test_guests::ACME));

/// The provider that misbehaves.
pub static UNRULY: LazyLock<Arc<Component>> = LazyLock::new(|| load(bindery_test_guests::UNRULY));

fn load(bytes: &[u8]) -> Arc<Component> {
    Arc::new(RUNTIME.load(bytes).expect("the component loads"))
}

/// Properties from a JSON object.
pub fn properties(json: serde_json::Value) -> PropertyMap {
    match Value::from(json) {
        Value::Object(properties) => properties,
        other => panic!("{other} is not an object"),
    }
}

/// An origin without a credential.
pub fn allow(origin: &str) -> AllowedOrigin {
    AllowedOrigin {
        origin: Origin::parse(origin).expect("an origin"),
        credential: None,
    }
}

/// A tenant of a component.
pub async fn tenant(component: &Arc<Component>, config: serde_json::Value, origins: &[&str], limits: Limits) -> Tenant {
    let options = TenantOptions {
        name: "tests".to_string(),
        config: properties(config),
        origins: origins.iter().copied().map(allow).collect(),
        limits,
        ..TenantOptions::default()
    };
    Tenant::new(&RUNTIME, Arc::clone(component), options)
        .await
        .expect("the configuration is accepted")
}

/// The built-in provider against an emulator, with these further keys of its configuration.
pub async fn emulated(config: serde_json::Value) -> (Tenant, Emulator) {
    let emulator = Emulator::start(Options::default()).await.expect("the emulator starts");
    let origin = emulator.origin();
    let mut all = serde_json::json!({
        "project": "home", "region": "us-east1",
        "computeEndpoint": origin, "datamigrationEndpoint": origin, "networkservicesEndpoint": origin,
    });
    if let (Some(all), Some(more)) = (all.as_object_mut(), config.as_object()) {
        all.extend(more.clone());
    }
    (tenant(&BUILT_IN, all, &[&origin], Limits::default()).await, emulator)
}

/// A URN for a resource of a token.
pub fn urn(token: &str, name: &str) -> Urn {
    Urn::new("dev", "tests", token, name)
}

/// What happened during an operation.
pub type Events = Arc<Mutex<Vec<Event>>>;

/// A context that ends after some seconds, and what it hears.
pub fn context(seconds: u64) -> (Context, Events) {
    let events = Events::default();
    let heard = Arc::clone(&events);
    let context = Context {
        deadline: Instant::now() + Duration::from_secs(seconds),
        cancel: CancellationToken::new(),
        on_event: Arc::new(move |event| heard.lock().expect("nobody panics with it").push(event)),
    };
    (context, events)
}

/// A server on loopback that answers every request with the same bytes.
#[derive(Debug, Default)]
pub struct Server {
    /// `http://127.0.0.1:PORT`.
    pub origin: String,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Server {
    /// Starts it. Without an answer it reads and stays silent.
    pub async fn start(answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let server = Self {
            origin: format!("http://{}", listener.local_addr().expect("an address")),
            ..Self::default()
        };
        let (requests, connections) = (Arc::clone(&server.requests), Arc::clone(&server.connections));
        let open = Arc::clone(&server.open);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let (requests, open) = (Arc::clone(&requests), Arc::clone(&open));
                tokio::spawn(async move {
                    open.fetch_add(1, Ordering::Relaxed);
                    serve(stream, answer, requests).await;
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        server
    }

    /// What it was sent.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("nobody panics with it").clone()
    }

    /// Forgets what it was sent.
    pub fn forget(&self) {
        self.requests.lock().expect("nobody panics with it").clear();
    }

    /// How many connections to it are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(mut stream: TcpStream, answer: Option<&'static str>, requests: Arc<Mutex<Vec<String>>>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        requests.lock().expect("nobody panics with it").push(text);
        if let Some(answer) = answer
            && stream.write_all(answer.as_bytes()).await.is_err()
        {
            break;
        }
    }
}
