//! The engine's side of the protocol: starts the binary as the engine does, speaks with it, hears what it logs, and holds every
//! answer against what the engine takes.

use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use bindery_emulator::{Emulator, Options};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as Wire};
use pulumi_gestalt_proto::pulumi::pulumirpc::engine_server::{Engine as EngineService, EngineServer};
use pulumi_gestalt_proto::pulumi::pulumirpc::resource_provider_client::ResourceProviderClient;
use pulumi_gestalt_proto::pulumi::pulumirpc::{
    CheckFailure, CheckRequest, ConfigureRequest, CreateRequest, CreateResponse, DeleteRequest, DiffRequest,
    DiffResponse, GetRootResourceRequest, GetRootResourceResponse, LogRequest, ReadRequest, ReadResponse,
    RequirePulumiVersionRequest, RequirePulumiVersionResponse, SetRootResourceRequest, SetRootResourceResponse,
    StartDebuggingRequest, UpdateRequest,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

pub const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";
pub const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";
pub const UNKNOWN: &str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

/// What an unknown may come as: a string, a boolean, a number, an array, an asset, an archive, an object.
pub const UNKNOWNS: [&str; 7] = [
    UNKNOWN,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
];

pub const MEMBER: &str = "bindery:compute/v1:BackendBucketIamMember";
pub const BINDING: &str = "bindery:networkservices/v1:EdgeCacheOriginIamBinding";
pub const JOB: &str = "bindery:datamigration/v1:MigrationJobIamMember";

pub const BUCKET: &str = "projects/home/global/backendBuckets/logs";
pub const ORIGIN: &str = "projects/home/locations/global/edgeCacheOrigins/video";

/// What compiled components are kept in from test to test.
pub const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");

/// The engine's end of a connection, and the services that it configures providers for.
pub struct Engine {
    pub client: ResourceProviderClient<Channel>,
    pub channel: Channel,
    pub emulator: Arc<Emulator>,
}

impl Engine {
    /// Attaches to a provider.
    pub async fn attach(port: u16, emulator: Arc<Emulator>) -> Self {
        let channel = connect(port).await;
        Self {
            client: client(&channel),
            channel,
            emulator,
        }
    }
}

/// The binary, started, and what it works with.
pub struct Plugin {
    engine: Engine,
    port: u16,
    pub logs: Logs,
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Deref for Plugin {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl DerefMut for Plugin {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

/// What the engine was told: severity, URN, message, and whether it is a status line.
#[derive(Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<LogRequest>>>);

impl Logs {
    /// All messages so far.
    pub fn all(&self) -> Vec<LogRequest> {
        self.0.lock().unwrap().clone()
    }

    /// Whether there is a message with this in it.
    pub fn has(&self, text: &str) -> bool {
        self.all().iter().any(|log| log.message.contains(text))
    }
}

#[tonic::async_trait]
impl EngineService for Logs {
    async fn log(&self, request: Request<LogRequest>) -> Result<Response<()>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(()))
    }

    async fn get_root_resource(
        &self,
        _: Request<GetRootResourceRequest>,
    ) -> Result<Response<GetRootResourceResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn set_root_resource(
        &self,
        _: Request<SetRootResourceRequest>,
    ) -> Result<Response<SetRootResourceResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn start_debugging(&self, _: Request<StartDebuggingRequest>) -> Result<Response<()>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn require_pulumi_version(
        &self,
        _: Request<RequirePulumiVersionRequest>,
    ) -> Result<Response<RequirePulumiVersionResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

/// How the binary is started.
pub struct Start {
    /// The name of the link to it.
    pub name: &'static str,
    /// Files beside the link.
    pub beside: Vec<(&'static str, Vec<u8>)>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Whether an engine starts it; otherwise engines attach.
    pub by_engine: bool,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            name: "bindery",
            beside: Vec::new(),
            environment: Vec::new(),
            by_engine: true,
        }
    }
}

async fn connect(port: u16) -> Channel {
    let address = Channel::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
    address.connect().await.unwrap()
}

fn client(channel: &Channel) -> ResourceProviderClient<Channel> {
    ResourceProviderClient::new(channel.clone())
        .max_decoding_message_size(400 << 20)
        .max_encoding_message_size(400 << 20)
}

/// Environment variables.
pub fn variables<N: ToString, V: ToString>(all: &[(N, V)]) -> Vec<(String, String)> {
    all.iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

/// A link to the binary under another name, with files beside it.
pub fn link(start: &Start) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in &start.beside {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let program = folder.path().join(format!("pulumi-resource-{}", start.name));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pulumi-resource-bindery"), &program).unwrap();
    (folder, program)
}

/// The binary at a path, in an environment without any of the cloud's variables.
pub fn command(program: &Path, start: &Start) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("BINDERY_CACHE_DIR", CACHE)
        .envs(start.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

impl Plugin {
    /// Starts the binary, as far as the engine does before it configures it.
    pub async fn start(start: Start) -> Self {
        let logs = Logs::default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let engine = listener.local_addr().unwrap().to_string();
        let server = Server::builder().add_service(EngineServer::new(logs.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        let (folder, program) = link(&start);
        let mut command = command(&program, &start);
        if start.by_engine {
            command.args(["--logtostderr", "-v=9", &engine]);
        }
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut port = String::new();
        stdout.read_line(&mut port).unwrap();
        let port: u16 = port
            .trim_end_matches('\n')
            .parse()
            .expect("the first line is the port and nothing else");
        let emulator = Emulator::start(Options::default()).await.unwrap();
        Self {
            engine: Engine::attach(port, Arc::new(emulator)).await,
            port,
            logs,
            stdin: child.stdin.take(),
            child,
            stdout,
            _folder: folder,
        }
    }

    /// Ends the connection without a word, and begins another.
    pub async fn disconnect(&mut self) {
        let nowhere = Channel::from_static("http://127.0.0.1:1").connect_lazy();
        (self.client, self.channel) = (client(&nowhere), nowhere);
        // The other end sees it a little later.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let channel = connect(self.port).await;
        (self.client, self.channel) = (client(&channel), channel);
    }

    /// Starts the binary and configures it for the emulator.
    pub async fn configured() -> Self {
        let mut plugin = Self::start(Start::default()).await;
        plugin.configure(json!({"project": "home"})).await.unwrap();
        plugin
    }

    /// The engine says that its run is over, and begins another.
    pub async fn next_run(&mut self) {
        self.client.cancel(()).await.unwrap();
        self.configure(json!({"project": "home"})).await.unwrap();
    }
}

impl Engine {
    /// Configures it for the emulator, and more.
    pub async fn configure(&mut self, more: Value) -> Result<(), Status> {
        let origin = self.emulator.origin();
        let mut args = json!({
            "version": "0.32.0",
            "computeEndpoint": origin, "datamigrationEndpoint": origin, "networkservicesEndpoint": origin,
        });
        for (key, value) in more.as_object().unwrap() {
            args[key] = value.clone();
        }
        self.configure_with(args).await
    }

    /// Configures it with just this.
    pub async fn configure_with(&mut self, args: Value) -> Result<(), Status> {
        let request = ConfigureRequest {
            args: Some(fields(&args)),
            accept_secrets: true,
            accept_resources: true,
            sends_old_inputs: true,
            sends_old_inputs_to_delete: true,
            urn: Some(provider_urn()),
            ..ConfigureRequest::default()
        };
        self.client.configure(request).await.map(drop)
    }

    /// What a configuration check gives. The engine would print a value beside its key, and it may be a secret.
    pub async fn check_config(&mut self, news: Value) -> Result<Value, Vec<String>> {
        let request = CheckRequest {
            urn: provider_urn(),
            olds: Some(Struct::default()),
            news: Some(fields(&news)),
            ..CheckRequest::default()
        };
        let response = self.client.check_config(request).await.unwrap().into_inner();
        if response.failures.is_empty() {
            Ok(json(response.inputs.as_ref().unwrap()))
        } else {
            assert!(response.failures.iter().all(|failure| failure.property.is_empty()));
            Err(response.failures.into_iter().map(|failure| failure.reason).collect())
        }
    }

    /// Checks a resource's inputs.
    pub async fn try_check(
        &mut self,
        token: &str,
        name: &str,
        olds: &Value,
        news: &Value,
    ) -> Result<Result<Value, Vec<CheckFailure>>, Status> {
        let request = CheckRequest {
            urn: urn(token, name),
            name: name.to_string(),
            r#type: token.to_string(),
            olds: Some(fields(olds)),
            news: Some(fields(news)),
            random_seed: vec![7; 32],
            ..CheckRequest::default()
        };
        let response = self.client.check(request).await?.into_inner();
        Ok(if response.failures.is_empty() {
            Ok(json(response.inputs.as_ref().unwrap()))
        } else {
            Err(response.failures)
        })
    }

    /// Checks the inputs of a resource that are right.
    pub async fn check(&mut self, token: &str, name: &str, olds: &Value, news: &Value) -> Value {
        let checked = self.try_check(token, name, olds, news).await.unwrap().unwrap();
        if !has_unknown(news) {
            assert!(!has_unknown(&checked), "an unknown where nothing was: {checked}");
        }
        // What is right stays as it is.
        let again = self.try_check(token, name, olds, &checked).await.unwrap().unwrap();
        assert_eq!(again, checked);
        checked
    }

    /// What would change, as the engine requires it to be said.
    pub async fn try_diff(&mut self, resource: &Made, news: &Value, ignored: &[&str]) -> Result<DiffResponse, Status> {
        let request = DiffRequest {
            id: resource.id.clone(),
            urn: urn(&resource.token, &resource.name),
            name: resource.name.clone(),
            r#type: resource.token.clone(),
            olds: Some(fields(&resource.outputs)),
            old_inputs: Some(fields(&resource.inputs)),
            news: Some(fields(news)),
            ignore_changes: ignored.iter().map(ToString::to_string).collect(),
        };
        let response = self.client.diff(request).await?.into_inner();
        assert!(response.has_detailed_diff);
        for path in response.detailed_diff.keys() {
            let first = path.split(['.', '[']).next().unwrap().to_string();
            assert!(
                response.diffs.contains(&first),
                "`{path}` is of no property in {:?}",
                response.diffs
            );
        }
        for property in &response.diffs {
            let is_of_it = |path: &String| path.split(['.', '[']).next() == Some(property);
            assert!(response.detailed_diff.keys().any(is_of_it));
        }
        assert!(
            response
                .replaces
                .iter()
                .all(|property| response.diffs.contains(property))
        );
        Ok(response)
    }

    pub async fn diff(&mut self, resource: &Made, news: &Value) -> DiffResponse {
        self.try_diff(resource, news, &[]).await.unwrap()
    }

    /// Creates a resource from checked inputs.
    pub async fn try_create(
        &mut self,
        token: &str,
        name: &str,
        inputs: &Value,
        preview: bool,
        timeout: f64,
    ) -> Result<CreateResponse, Status> {
        let request = CreateRequest {
            urn: urn(token, name),
            name: name.to_string(),
            r#type: token.to_string(),
            properties: Some(fields(inputs)),
            timeout,
            preview,
            ..CreateRequest::default()
        };
        Ok(self.client.create(request).await?.into_inner())
    }

    /// Everything that the engine does for a new resource.
    pub async fn make(&mut self, token: &str, name: &str, news: &Value) -> Made {
        let inputs = self.check(token, name, &json!({}), news).await;
        let planned = self.try_create(token, name, &inputs, true, 0.0).await.unwrap();
        assert_eq!(planned.id, "", "others would take it for known");
        let planned = json(planned.properties.as_ref().unwrap());
        let made = self.try_create(token, name, &inputs, false, 0.0).await.unwrap();
        assert_ne!(made.id, "");
        let outputs = json(made.properties.as_ref().unwrap());
        assert!(!has_unknown(&outputs), "{outputs}");
        for (property, value) in inputs.as_object().unwrap() {
            assert_eq!(outputs[property], *value, "outputs contain the inputs");
        }
        for (property, value) in planned.as_object().unwrap() {
            assert!(outputs.get(property).is_some() && (*value == outputs[property] || has_unknown(value)));
        }
        let made = Made {
            token: token.to_string(),
            name: name.to_string(),
            id: made.id,
            inputs,
            outputs,
        };
        let inputs = made.inputs.clone();
        let diff = self.diff(&made, &inputs).await;
        assert_eq!(
            (diff.changes, diff.diffs.len(), diff.replaces.len()),
            (1, 0, 0),
            "nothing has changed"
        );
        made
    }

    /// Changes a resource in place.
    pub async fn try_update(&mut self, resource: &Made, inputs: &Value, preview: bool) -> Result<Made, Status> {
        let request = UpdateRequest {
            id: resource.id.clone(),
            urn: urn(&resource.token, &resource.name),
            name: resource.name.clone(),
            r#type: resource.token.clone(),
            olds: Some(fields(&resource.outputs)),
            old_inputs: Some(fields(&resource.inputs)),
            news: Some(fields(inputs)),
            preview,
            ..UpdateRequest::default()
        };
        let response = self.client.update(request).await?.into_inner();
        let outputs = json(response.properties.as_ref().unwrap());
        assert!(preview || !has_unknown(&outputs), "{outputs}");
        Ok(Made {
            inputs: inputs.clone(),
            outputs,
            ..resource.clone()
        })
    }

    /// The resource as it is now.
    pub async fn read(&mut self, token: &str, name: &str, id: &str, known: Option<(&Value, &Value)>) -> ReadResponse {
        let request = ReadRequest {
            id: id.to_string(),
            urn: urn(token, name),
            name: name.to_string(),
            r#type: token.to_string(),
            properties: known.map(|(outputs, _)| fields(outputs)),
            inputs: known.map(|(_, inputs)| fields(inputs)),
            ..ReadRequest::default()
        };
        self.client.read(request).await.unwrap().into_inner()
    }

    /// The resource after a refresh.
    pub async fn refresh(&mut self, resource: &Made) -> Option<Made> {
        let known = Some((&resource.outputs, &resource.inputs));
        let read = self.read(&resource.token, &resource.name, &resource.id, known).await;
        if read == ReadResponse::default() {
            return None;
        }
        let (outputs, inputs) = (
            json(read.properties.as_ref().unwrap()),
            json(read.inputs.as_ref().unwrap()),
        );
        assert!(!has_unknown(&outputs) && !has_unknown(&inputs));
        Some(Made {
            id: read.id,
            outputs,
            inputs,
            ..resource.clone()
        })
    }

    pub async fn try_delete(&mut self, resource: &Made) -> Result<(), Status> {
        let request = DeleteRequest {
            id: resource.id.clone(),
            urn: urn(&resource.token, &resource.name),
            name: resource.name.clone(),
            r#type: resource.token.clone(),
            properties: Some(fields(&resource.outputs)),
            old_inputs: Some(fields(&resource.inputs)),
            ..DeleteRequest::default()
        };
        self.client.delete(request).await.map(drop)
    }

    pub async fn delete(&mut self, resource: &Made) {
        self.try_delete(resource).await.unwrap();
    }
}

impl Plugin {
    /// Ends it as the engine does, and gives everything that it printed after the port.
    pub async fn end(mut self) -> String {
        self.client.cancel(()).await.unwrap();
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A resource in the engine's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    pub token: String,
    pub name: String,
    pub id: String,
    pub inputs: Value,
    pub outputs: Value,
}

pub fn urn(token: &str, name: &str) -> String {
    format!("urn:pulumi:dev::tests::{token}::{name}")
}

pub fn provider_urn() -> String {
    urn("pulumi:providers:bindery", "default_0_32_0")
}

pub fn secret(value: &Value) -> Value {
    json!({SIGNATURE: SECRET, "value": value})
}

pub fn member(role: &str, member: &str) -> Value {
    json!({"name": "logs", "role": role, "member": member})
}

pub fn binding(role: &str, members: &[&str]) -> Value {
    json!({"name": "video", "role": role, "members": members})
}

pub fn has_unknown(value: &Value) -> bool {
    let text = value.to_string();
    UNKNOWNS.iter().any(|unknown| text.contains(unknown))
}

/// JSON as the engine's properties.
pub fn fields(value: &Value) -> Struct {
    let fields = value.as_object().unwrap().iter();
    Struct {
        fields: fields.map(|(name, value)| (name.clone(), wire(value))).collect(),
    }
}

fn wire(value: &Value) -> Wire {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(*value),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap()),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(items) => Kind::ListValue(ListValue {
            values: items.iter().map(wire).collect(),
        }),
        Value::Object(_) => Kind::StructValue(fields(value)),
    };
    Wire { kind: Some(kind) }
}

/// The engine's properties as JSON. A value without a kind crashes the engine.
pub fn json(properties: &Struct) -> Value {
    let fields = properties.fields.iter();
    Value::Object(fields.map(|(name, value)| (name.clone(), plain(value))).collect())
}

fn plain(value: &Wire) -> Value {
    match value.kind.as_ref().expect("a value without a kind crashes the engine") {
        Kind::NullValue(_) => Value::Null,
        Kind::BoolValue(value) => json!(value),
        Kind::NumberValue(value) => json!(value),
        Kind::StringValue(text) => json!(text),
        Kind::ListValue(list) => list.values.iter().map(plain).collect(),
        Kind::StructValue(object) => json(object),
    }
}
