//! What the process's monitoring reads, in the form of OpenMetrics: `/metrics` on a loopback port of its own.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bindery_sandbox::{Tenant, Usage};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Labels of a call: the tenant, the method, and how it ended.
type CallLabels = Vec<(&'static str, String)>;

/// The metrics of all tenants.
pub struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, prometheus_client::metrics::counter::Counter>,
    seconds: Family<CallLabels, Histogram>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// The metrics of these tenants.
    pub fn new(tenants: Vec<(String, Weak<Tenant>)>) -> Self {
        let mut registry = Registry::with_prefix("bindery");
        let calls = Family::default();
        registry.register(
            "calls",
            "Calls of engines, by method and by how they ended",
            calls.clone(),
        );
        let seconds = Family::new_with_constructor(histogram as fn() -> Histogram);
        registry.register("call_seconds", "How long calls of engines took", seconds.clone());
        registry.register_collector(Box::new(Uses(tenants)));
        Self {
            registry,
            calls,
            seconds,
        }
    }

    /// A call has ended.
    pub fn called(&self, tenant: &str, method: &'static str, code: &'static str, took: Duration) {
        let mut labels = vec![("tenant", tenant.to_string()), ("method", method.to_string())];
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        labels.push(("code", code.to_string()));
        self.calls.get_or_create(&labels).inc();
    }

    fn text(&self) -> Result<String, fmt::Error> {
        let mut written = String::new();
        text::encode(&mut written, &self.registry)?;
        Ok(written)
    }
}

/// From a check in a millisecond to an operation that waited for a service for a minute.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 17))
}

/// What each tenant uses, at the moment of the question.
#[derive(Debug)]
struct Uses(Vec<(String, Weak<Tenant>)>);

impl Collector for Uses {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let living = self
            .0
            .iter()
            .filter_map(|(name, tenant)| Some((name, tenant.upgrade()?.usage())));
        let all: Vec<(&String, Usage)> = living.collect();
        let mut counter = |name: &str, help: &str, of: &dyn Fn(&Usage) -> u64| {
            let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            all.iter().try_for_each(|(tenant, usage)| {
                let labels = [("tenant", tenant.as_str())];
                ConstCounter::new(of(usage)).encode(encoder.encode_family(&labels)?)
            })
        };
        counter("guest_calls", "Calls into components", &|usage| usage.calls)?;
        counter("requests", "Requests sent out for components", &|usage| usage.requests)?;
        let mut limits = encoder.encode_descriptor("limits_hit", "Limits that were hit", None, MetricType::Counter)?;
        for (tenant, usage) in &all {
            for (setting, count) in &usage.limits_hit {
                let labels = [("tenant", tenant.as_str()), ("setting", setting)];
                ConstCounter::new(*count).encode(limits.encode_family(&labels)?)?;
            }
        }
        let mut gauge = |name: &str, help: &str, of: &dyn Fn(&Usage) -> usize| {
            let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            all.iter().try_for_each(|(tenant, usage)| {
                let labels = [("tenant", tenant.as_str())];
                let value = i64::try_from(of(usage)).unwrap_or(i64::MAX);
                ConstGauge::new(value).encode(encoder.encode_family(&labels)?)
            })
        };
        gauge("instances", "Instances of components", &|usage| usage.instances)?;
        gauge("memory_bytes", "Linear memory of these", &|usage| usage.memory)
    }
}

/// How many read them at the same time. The descriptors are all tenants', and monitoring needs one.
const READERS: usize = 8;

/// How long one of them may take for everything.
const READING: Duration = Duration::from_secs(10);

/// Answers whoever asks for the metrics, until it is dropped.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>) {
    let readers = Arc::new(Semaphore::new(READERS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&readers).try_acquire_owned() else {
            continue;
        };
        let metrics = Arc::clone(&metrics);
        tokio::spawn(async move {
            let answer = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&metrics, &request))));
            let serving = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            let _ = tokio::time::timeout(READING, serving).await;
            drop(place);
        });
    }
}

fn answer(metrics: &Metrics, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => match metrics.text() {
            Ok(text) => (StatusCode::OK, text),
            Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
        },
        _ => (StatusCode::NOT_FOUND, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    response
}
