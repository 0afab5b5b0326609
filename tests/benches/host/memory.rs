//! Resident memory: of tenants that do nothing, and of calls that wait for a service. Each in a process of its own.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_sandbox::{Limits, Tenant};
use bindery_tests::{BUILT_IN, Server, context, properties, tenant};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{PART, row};

/// The variable with the origin that calls wait for.
const ORIGIN: &str = "BINDERY_BENCH_ORIGIN";

const IDLE: usize = 10_000;
const WAITING: usize = 1_000;

/// How many tenants these are of.
const TENANTS: usize = 10;

/// This process's resident memory, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

async fn of_built_in(origin: &str, calls_in_flight: usize) -> Tenant {
    let limits = Limits {
        calls_in_flight,
        ..Limits::default()
    };
    let config = json!({"project": "home", "computeEndpoint": origin});
    tenant(&BUILT_IN, config, &[origin], limits).await
}

/// How much the idle tenants of a process take.
pub async fn idle() {
    // One that has worked: what all share is there.
    let _first = of_built_in("http://127.0.0.1:1", 64).await;
    let before = resident();
    let mut tenants = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        tenants.push(of_built_in("http://127.0.0.1:1", 64).await);
    }
    println!("{}", resident().saturating_sub(before));
}

/// How much the calls of a process take that wait for a service.
pub async fn waiting() {
    let origin = std::env::var(ORIGIN).unwrap();
    // One tenant alone may not hold so many instances.
    let mut tenants = Vec::new();
    for _ in 0..TENANTS {
        tenants.push(Arc::new(of_built_in(&origin, WAITING / TENANTS).await));
    }
    let before = resident();
    let calls: Vec<_> = (0..WAITING)
        .map(|number| {
            let tenant = Arc::clone(&tenants[number % TENANTS]);
            tokio::spawn(async move {
                let (context, _) = context(60);
                // Each on a target of its own: they are not committed together.
                let name = format!("bucket-{number}");
                let inputs = properties(json!({"name": name, "role": "roles/r", "member": "user:ann@example.com"}));
                let _ = tenant
                    .create(&context, "bindery:compute/v1:BackendBucketIamMember", &inputs)
                    .await;
            })
        })
        .collect();
    let started = Instant::now();
    let requests = || tenants.iter().map(|tenant| tenant.usage().requests).sum::<u64>();
    while requests() < WAITING as u64 {
        assert!(started.elapsed() < Duration::from_secs(30), "{} requests", requests());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    println!("{}", resident().saturating_sub(before));
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

fn measured(part: &str, origin: &str) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(PART, part)
        .env(ORIGIN, origin)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(child.wait().unwrap().success());
    printed.trim().parse().unwrap()
}

/// Both.
pub fn measure(runtime: &Runtime) {
    const MEGABYTE: f64 = 1e6;
    let idle = measured("idle", "") as f64 / MEGABYTE;
    row(
        &format!("resident memory of {IDLE} idle tenants, over one"),
        &format!("{idle:.1} MB"),
        "50 MB",
        idle / 50.0,
        "at most 1",
    );
    let server = runtime.block_on(Server::start(None));
    let waiting = measured("waiting", &server.origin) as f64 / 1e3 / WAITING as f64;
    row(
        &format!("resident memory of {WAITING} calls that wait for a service, each"),
        &format!("{waiting:.0} kB"),
        "512 kB",
        waiting / 512.0,
        "at most 1",
    );
}
