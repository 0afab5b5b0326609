//! What the process's monitoring reads, in the form of OpenMetrics: `/metrics` on a loopback port of its own.

use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bindery_sandbox::{Tenant, Usage};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

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

/// Serves them until the process stops.
///
/// # Errors
/// When the port is lost.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>, stopping: CancellationToken) -> io::Result<()> {
    let answer = move || async move { answer(&metrics) };
    let router = Router::new().route("/metrics", get(answer));
    axum::serve(listener, router)
        .with_graceful_shutdown(async move { stopping.cancelled().await })
        .await
}

fn answer(metrics: &Metrics) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
