//! Requests over the tenant's pooled connections, against the runtime's own sender, which makes a connection for each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_sandbox::Limits;
use bindery_tests::{Server, UNRULY, context, properties, tenant};
use futures_util::future::join_all;
use serde_json::json;
use wasmtime::component::{Component, Linker, ResourceTable, Val};
use wasmtime::{Config, Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView, default_hooks};

use crate::row;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
const PROBE: &str = "unruly:test/v1:Probe";

/// How many calls, each with one request, and how many of them at the same time.
const CALLS: usize = 4_000;
const AT_ONCE: usize = 16;

/// A host that does what the runtime does by itself.
struct Plain {
    engine: Engine,
    linker: Linker<State>,
    component: Component,
}

struct State {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: default_hooks(),
        }
    }
}

impl Plain {
    fn new() -> Self {
        let engine = Engine::new(Config::new().concurrency_support(false)).unwrap();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker).unwrap();
        let component = Component::from_binary(&engine, bindery_test_guests::UNRULY).unwrap();
        Self {
            engine,
            linker,
            component,
        }
    }

    async fn fetch(&self, origin: &str) {
        let state = State {
            wasi: WasiCtx::builder().build(),
            http: WasiHttpCtx::new(),
            table: ResourceTable::new(),
        };
        let mut store = Store::new(&self.engine, state);
        let instance = self
            .linker
            .instantiate_async(&mut store, &self.component)
            .await
            .unwrap();
        let interface = instance
            .get_export_index(&mut store, None, "unruly:test/probe@1.0.0")
            .unwrap();
        let create = instance
            .get_export_index(&mut store, Some(&interface), "create")
            .unwrap();
        let create = instance.get_func(&mut store, create).unwrap();
        let field = |name: &str, value: Val| (name.to_string(), value);
        let config = Val::Record(vec![field("nothing", Val::Option(None))]);
        let args = Val::Record(vec![
            field("deed", Val::Enum("fetch".to_string())),
            field("url", Val::Option(Some(Box::new(Val::String(origin.to_string()))))),
            field("headers", Val::Option(None)),
        ]);
        let mut results = [Val::Bool(false)];
        create
            .call_async(&mut store, &[config, args], &mut results)
            .await
            .unwrap();
        assert!(matches!(&results[0], Val::Result(Ok(_))), "{results:?}");
    }
}

/// Requests per second.
async fn rate<F: Future<Output = ()> + Send + 'static>(call: impl Fn() -> F) -> f64 {
    let started = Instant::now();
    for _ in 0..CALLS / AT_ONCE {
        join_all((0..AT_ONCE).map(|_| tokio::spawn(call()))).await;
    }
    CALLS as f64 / started.elapsed().as_secs_f64()
}

/// Both, against the same service.
pub async fn compare() {
    let server = Server::start(Some(OK)).await;
    let pooled = Arc::new(tenant(&UNRULY, json!({}), &[&server.origin], Limits::default()).await);
    let plain = Arc::new(Plain::new());
    let by_pool = rate(|| {
        let (tenant, origin) = (Arc::clone(&pooled), server.origin.clone());
        async move {
            let (context, _) = context(30);
            let inputs = properties(json!({"deed": "fetch", "url": origin}));
            tenant.create(&context, PROBE, &inputs).await.unwrap();
        }
    })
    .await;
    let connections = server.connections();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let by_default = rate(|| {
        let (plain, origin) = (Arc::clone(&plain), server.origin.clone());
        async move { plain.fetch(&origin).await }
    })
    .await;
    let others = server.connections() - connections;
    row(
        "requests per second over pooled connections, against the runtime's default sender",
        &format!("{by_pool:.0} ({connections} connections)"),
        &format!("{by_default:.0} ({others} connections)"),
        by_pool / by_default,
        "",
    );
}
