//! Many tenants in one process, and engines that attach to them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_emulator::{Emulator, Faults, Options, Settings};
use bindery_pulumi::serve::{Fault, Serving, TenantsFile};
use bindery_sandbox::{Cache, Runtime};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::Code;

use crate::harness::{BUCKET, CACHE, Engine, MEMBER, member};

/// A process that serves, and the services that its tenants grant on.
struct Served {
    emulator: Arc<Emulator>,
    ports: Vec<u16>,
    metrics: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

fn runtime() -> Runtime {
    let cache = Cache::open(Path::new(CACHE)).unwrap();
    Runtime::new().unwrap().with_cache(cache)
}

async fn started(text: &str) -> Result<Serving, Vec<Fault>> {
    Serving::start(runtime(), &TenantsFile::parse(text, Path::new("."))?).await
}

impl Served {
    /// Two tenants of the same services.
    async fn start(more: &str) -> Self {
        let emulator = Emulator::start(Options::default()).await.unwrap();
        let origin = emulator.origin();
        let tenant = |name: &str| {
            format!(
                "[[tenant]]\nname = \"{name}\"\nport = 0\n{more}\n[tenant.config]\nproject = \"home\"\ncomputeEndpoint = \
                 \"{origin}\"\ndatamigrationEndpoint = \"{origin}\"\nnetworkservicesEndpoint = \"{origin}\"\n\n"
            )
        };
        let text = format!("{}{}[metrics]\nport = 0\n", tenant("one"), tenant("other"));
        let serving = started(&text).await.unwrap();
        let ports = serving.tenants().map(|(_, _, address)| address.port()).collect();
        let metrics = serving.metrics().unwrap();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(serving.until(async move {
            let _ = stopped.await;
        }));
        Self {
            emulator: Arc::new(emulator),
            ports,
            metrics,
            stop,
            ended,
        }
    }

    async fn attach(&self, tenant: usize) -> Engine {
        Engine::attach(self.ports[tenant], Arc::clone(&self.emulator)).await
    }

    /// Answers come so late from now on.
    fn late(&self, latency: Duration) {
        let faults = Faults {
            latency_ms: u64::try_from(latency.as_millis()).unwrap(),
            ..Faults::default()
        };
        self.emulator.set(Settings {
            faults,
            ..Settings::default()
        });
    }

    async fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.metrics).await.unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_attach_to_tenants_and_grant() {
    let served = Served::start("").await;
    for (tenant, who) in [(0, "user:a@x.com"), (1, "user:b@x.com")] {
        let mut engine = served.attach(tenant).await;
        engine.configure_with(json!({})).await.unwrap();
        engine.make(MEMBER, "m", &member("roles/one", who)).await;
    }
    assert_eq!(
        served.emulator.members(BUCKET, "roles/one"),
        ["user:a@x.com", "user:b@x.com"]
    );
    let metrics = served.metrics().await;
    for line in [
        "bindery_calls_total{tenant=\"one\",method=\"create\",code=\"ok\"} 2",
        "bindery_requests_total{tenant=\"other\"} 2",
        "bindery_instances{tenant=\"one\"} 0",
        "bindery_call_seconds_count{tenant=\"one\",method=\"configure\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_sets_the_components_keys_and_never_where_requests_go_or_who_makes_them() {
    let served = Served::start("").await;
    let mut engine = served.attach(0).await;
    for (key, value) in [
        ("computeEndpoint", "https://elsewhere.example"),
        ("accessToken", "ya29.x"),
        ("credentials", "{}"),
        ("impersonateServiceAccount", "a@b.c"),
        ("scopes", "https://scope.example"),
        ("quotaProject", "billing-project"),
        // The operator has said another.
        ("project", "elsewhere"),
    ] {
        let error = engine.configure_with(json!({key: value})).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(
            error.message().contains(key) && error.message().contains("operator"),
            "{error}"
        );
        assert!(!error.message().contains(value), "{error}");
    }
    engine
        .configure_with(json!({"project": "home", "identityForms": "all"}))
        .await
        .unwrap();
    engine.make(MEMBER, "m", &member("roles/one", "allUsers")).await;
    assert_eq!(served.emulator.members(BUCKET, "roles/one"), ["allUsers"]);
    let metrics = served.metrics().await;
    let refused = "bindery_calls_total{tenant=\"one\",method=\"configure\",code=\"invalid-argument\"} 7";
    assert!(metrics.contains(refused), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_claims_and_cancel_are_a_connections_own() {
    let served = Served::start("").await;
    let mut one = served.attach(0).await;
    let mut other = served.attach(0).await;
    one.configure_with(json!({})).await.unwrap();
    let refused = other
        .try_check(MEMBER, "m", &json!({}), &member("roles/one", "user:a@x.com"))
        .await;
    assert_eq!(
        refused.unwrap_err().code(),
        Code::FailedPrecondition,
        "it is not configured"
    );
    other.configure_with(json!({"identityForms": "all"})).await.unwrap();
    // Two runs that grant the same do not know of each other; one run's two resources do.
    let grant = json!({"name": BUCKET, "role": "roles/one", "member": "user:a@x.com"});
    for engine in [&mut one, &mut other] {
        engine.check(MEMBER, "first", &json!({}), &grant).await;
        let second = engine.try_check(MEMBER, "second", &json!({}), &grant).await.unwrap();
        assert!(second.unwrap_err()[0].reason.contains("first"));
    }
    served.late(Duration::from_millis(300));
    let (canceller, mut cancelled) = (one.client.clone(), one);
    let creating = cancelled.try_create(MEMBER, "first", &grant, false, 0.0);
    let cancelling = async {
        let mut canceller = canceller;
        tokio::time::sleep(Duration::from_millis(50)).await;
        canceller.cancel(()).await.unwrap();
    };
    let (_, ()) = tokio::join!(creating, cancelling);
    other.try_create(MEMBER, "first", &grant, false, 0.0).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_hit_is_named_and_counted() {
    let served = Served::start("limits = { wall_time = \"200ms\" }").await;
    served.late(Duration::from_secs(2));
    let mut engine = served.attach(0).await;
    engine.configure_with(json!({})).await.unwrap();
    let inputs = engine
        .check(MEMBER, "m", &json!({}), &member("roles/one", "user:a@x.com"))
        .await;
    let error = engine.try_create(MEMBER, "m", &inputs, false, 1.0).await.unwrap_err();
    assert!(
        error.message().contains("`one`") && error.message().contains("`wall_time` = 200ms"),
        "{error}"
    );
    let metrics = served.metrics().await;
    assert!(
        metrics.contains("bindery_limits_hit_total{tenant=\"one\",setting=\"wall_time\"}"),
        "{metrics}"
    );
    assert!(!metrics.contains("tenant=\"other\",setting"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_brings_what_is_under_way_to_its_end() {
    let served = Served::start("").await;
    served.late(Duration::from_millis(200));
    let mut engine = served.attach(0).await;
    engine.configure_with(json!({})).await.unwrap();
    let inputs = engine
        .check(MEMBER, "m", &json!({}), &member("roles/one", "user:a@x.com"))
        .await;
    let Served {
        emulator,
        stop,
        ended,
        ports,
        ..
    } = served;
    let creating = engine.try_create(MEMBER, "m", &inputs, false, 0.0);
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.send(()).unwrap();
    };
    let (created, ()) = tokio::join!(creating, stopping);
    // Its answer came, and says what is there.
    let is_there = !emulator.members(BUCKET, "roles/one").is_empty();
    assert_eq!(created.is_ok(), is_there, "{created:?}");
    ended.await.unwrap().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", ports[0])).await.is_err());
}

#[tokio::test]
async fn a_file_of_which_something_is_wrong_is_refused_whole_with_the_line() {
    let one = "[[tenant]]\nname = \"one\"\nport = 17001\n";
    for (more, line, said) in [
        (
            "[[tenant]]\nname = \"b\"\nport = 17001\n",
            6,
            "the port 17001 is line 3's already",
        ),
        ("[[tenant]]\nname = \"one\"\nport = 17002\n", 5, "called `one` already"),
        ("prot = 1\n", 4, "unknown field `prot`"),
        ("package = \"../x y\"\n", 4, "a package's name"),
        ("component = \"missing.wasm\"\n", 4, "missing.wasm cannot be read"),
        ("component = \"Cargo.toml\"\n", 4, "not a WebAssembly component"),
        ("component = \"Cargo.toml@sha256:00\"\n", 4, "64 hexadecimal digits"),
        ("[tenant.config]\npolicyMode = \"neither\"\n", 5, "`policyMode`"),
        ("[tenant.config]\nprojekt = \"x\"\n", 5, "`projekt`"),
        (
            "[tenant.config]\ncomputeEndpoint = \"http://example.com\"\n",
            5,
            "http://example.com",
        ),
        (
            "[tenant.credential]\ncredentials = \"missing.json\"\n",
            5,
            "missing.json cannot be read",
        ),
        ("[tenant.credential]\ncredentials = \"{}\"\n", 5, "has no `type`"),
        ("[tenant.credential]\ntoken = \"x\"\n", 5, "unknown field `token`"),
        (
            "[[tenant.origin]]\nurl = \"https://a.example/path\"\n",
            4,
            "https://a.example/…",
        ),
        (
            "[[tenant.origin]]\nurl = \"https://a.example\"\ngoogle = true\n",
            4,
            "no credential",
        ),
        (
            "[[tenant.origin]]\nurl = \"https://a.example\"\nbearer = \"NOT_SET\"\n",
            4,
            "`NOT_SET`",
        ),
        ("[tenant.limits]\ncpu_time = \"fast\"\n", 5, "expected how long"),
        ("[tenant.limits]\nmemory = 0\n", 5, "more than nothing"),
        ("[metrics]\nport = 17001\n", 5, "line 3's already"),
        ("port = 17003\n", 4, "duplicate key"),
        ("name = [\n", 4, "unclosed array"),
        // What may be a credential in the wrong place is not said again.
        ("credential = \"ya29.hidden\"\n", 4, "expected a table"),
        (
            "[tenant.credential]\nscopes = \"ya29.hidden\"\n",
            5,
            "expected a sequence",
        ),
        (
            "[tenant.credential]\naccessToken = 12345678901\n",
            5,
            "expected a string",
        ),
        (
            "[[tenant.origin]]\nurl = \"https://a.example\"\nbearer = \"ya29.hidden\"\n",
            4,
            "the name of an environment variable",
        ),
        (
            "[tenant.credential]\ncredentials = \"hiddenEyJ0eXBl\"\n",
            5,
            "cannot be read",
        ),
        (
            "[tenant.credential]\ncredentials = '{\"type\":\"service_account\",\"private_key\":\"hidden-key\"}'\n",
            5,
            "cannot be used",
        ),
    ] {
        let faults = started(&format!("{one}{more}")).await.unwrap_err();
        assert_eq!(faults.len(), 1, "{more}: {faults:?}");
        assert_eq!(faults[0].line, line, "{more}: {faults:?}");
        assert!(faults[0].message.contains(said), "{more}: {faults:?}");
        assert!(!format!("{faults:?}").contains("hidden"), "{more}: {faults:?}");
        assert!(!format!("{faults:?}").contains("12345678901"), "{more}: {faults:?}");
    }
    assert!(started("").await.unwrap_err()[0].message.contains("no tenant"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let faults = started(&format!("[[tenant]]\nname = \"one\"\nport = {port}\n"))
        .await
        .unwrap_err();
    assert!(
        faults[0].line == 3 && faults[0].message.contains("cannot be taken"),
        "{faults:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_keep_neither_others_out_nor_the_process_alive() {
    let served = Served::start("").await;
    let address = ("127.0.0.1", served.ports[0]);
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut engine = served.attach(1).await;
    engine.configure_with(json!({})).await.unwrap();
    let stopping = Instant::now();
    served.stop.send(()).unwrap();
    served.ended.await.unwrap().unwrap();
    assert!(stopping.elapsed() < Duration::from_secs(20), "{:?}", stopping.elapsed());
    drop((silent, engine));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_the_metrics_keeps_neither_engines_out_nor_the_process_alive() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let served = Served::start("").await;
    let mut half = Vec::new();
    for _ in 0..20 {
        let mut reader = TcpStream::connect(served.metrics).await.unwrap();
        let _ = reader.write_all(b"GET /metrics HTTP/1.1\r\nHost").await;
        half.push(reader);
    }
    // Beyond the first eight each is closed at once.
    let mut closed = 0;
    for reader in &mut half[8..] {
        let read = tokio::time::timeout(Duration::from_secs(5), reader.read(&mut [0; 8])).await;
        closed += usize::from(matches!(read, Ok(Ok(0) | Err(_))));
    }
    assert_eq!(closed, 12);
    let mut engine = served.attach(0).await;
    engine.configure_with(json!({})).await.unwrap();
    drop(engine);
    let stopping = Instant::now();
    served.stop.send(()).unwrap();
    served.ended.await.unwrap().unwrap();
    assert!(stopping.elapsed() < Duration::from_secs(8), "{:?}", stopping.elapsed());
    drop(half);
}

#[test]
fn the_documented_file_is_one() {
    let docs = include_str!("../../../../docs/serving.md");
    let (_, file) = docs.split_once("```toml\n").unwrap();
    let (file, _) = file.split_once("```").unwrap();
    TenantsFile::parse(file, Path::new(".")).unwrap();
}
