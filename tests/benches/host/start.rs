//! From the start of the binary to the first answered check, against a server that has nothing to load.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bindery_tests::engine::program;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use pulumi_gestalt_proto::pulumi::pulumirpc::resource_provider_client::ResourceProviderClient;
use pulumi_gestalt_proto::pulumi::pulumirpc::{CheckRequest, CheckResponse, ConfigureRequest, ConfigureResponse};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

use crate::{PART, millis, quantile, row};

/// How often each is started.
const STARTS: usize = 30;

/// A server that knows two calls of the protocol, and nothing else.
#[derive(Clone)]
struct Empty;

struct Check;

struct Configure;

impl UnaryService<CheckRequest> for Check {
    type Response = CheckResponse;
    type Future = BoxFuture<Response<CheckResponse>, Status>;

    fn call(&mut self, request: Request<CheckRequest>) -> Self::Future {
        let inputs = request.into_inner().news;
        let failures = Vec::new();
        Box::pin(async move { Ok(Response::new(CheckResponse { inputs, failures })) })
    }
}

impl UnaryService<ConfigureRequest> for Configure {
    type Response = ConfigureResponse;
    type Future = BoxFuture<Response<ConfigureResponse>, Status>;

    fn call(&mut self, _: Request<ConfigureRequest>) -> Self::Future {
        Box::pin(async move { Ok(Response::new(ConfigureResponse::default())) })
    }
}

impl NamedService for Empty {
    const NAME: &'static str = "pulumirpc.ResourceProvider";
}

impl Service<http::Request<Body>> for Empty {
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let is_check = request.uri().path().ends_with("/Check");
            Ok(if is_check {
                let codec = tonic_prost::ProstCodec::default();
                tonic::server::Grpc::new(codec).unary(Check, request).await
            } else {
                let codec = tonic_prost::ProstCodec::default();
                tonic::server::Grpc::new(codec).unary(Configure, request).await
            })
        })
    }
}

/// Serves until it is killed.
pub async fn empty_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let server = Server::builder().add_service(Empty);
    // As ours: answers are small, and each is waited for.
    let incoming = TcpListenerStream::new(listener).map(|stream| {
        let stream = stream?;
        stream.set_nodelay(true)?;
        Ok::<_, std::io::Error>(stream)
    });
    server.serve_with_incoming(incoming).await.unwrap();
}

fn text(value: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(value.to_string())),
    }
}

fn fields(all: &[(&str, &str)]) -> Struct {
    Struct {
        fields: all
            .iter()
            .map(|(name, value)| ((*name).to_string(), text(value)))
            .collect(),
    }
}

/// Starts a program, configures it and has it check a resource.
fn time(runtime: &Runtime, start: &mut Command) -> Duration {
    let started = Instant::now();
    let mut child: Child = start.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut port)
        .unwrap();
    let took = runtime.block_on(async {
        let address = format!("http://127.0.0.1:{}", port.trim());
        let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
        let mut client = ResourceProviderClient::new(channel);
        let configure = ConfigureRequest {
            args: Some(fields(&[("project", "home")])),
            ..ConfigureRequest::default()
        };
        client.configure(configure).await.unwrap();
        let check = CheckRequest {
            urn: "urn:pulumi:dev::p::bindery:compute/v1:BackendBucketIamMember::m".to_string(),
            r#type: "bindery:compute/v1:BackendBucketIamMember".to_string(),
            news: Some(fields(&[
                ("name", "logs"),
                ("role", "roles/viewer"),
                ("member", "user:ann@example.com"),
            ])),
            ..CheckRequest::default()
        };
        let checked = client.check(check).await.unwrap().into_inner();
        assert!(checked.failures.is_empty(), "{:?}", checked.failures);
        started.elapsed()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    took
}

/// Both, one after the other.
pub fn first_check(runtime: &Runtime) {
    let cache = TempDir::new().unwrap();
    let plugin = |cache: &Path| {
        let mut plugin = Command::new(program("pulumi-resource-bindery"));
        plugin.env_clear().env("BINDERY_CACHE_DIR", cache);
        plugin
    };
    // The component is compiled once for all.
    time(runtime, &mut plugin(cache.path()));
    let (mut ours, mut empty) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        ours.push(time(runtime, &mut plugin(cache.path())));
        let mut server = Command::new(std::env::current_exe().unwrap());
        empty.push(time(runtime, server.env(PART, "empty-server")));
    }
    let (ours, empty) = (quantile(&mut ours, 0.5), quantile(&mut empty, 0.5));
    row(
        "start of the binary to its first answered check, against an empty server",
        &millis(ours),
        &millis(empty),
        ours.as_secs_f64() / empty.as_secs_f64(),
        "at most 2",
    );
}
