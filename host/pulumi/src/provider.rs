//! The protocol's calls. What is done for a resource runs by itself, so that a connection that ends does not cut it short, and a
//! fault in it is an error of that call alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bindery_resource::{PropertyMap, Urn, Value, nearest};
use bindery_sandbox::Runtime;
use prost_types::Struct;
use prost_types::value::Kind;
use pulumi_gestalt_proto::pulumi::pulumirpc::resource_provider_server::ResourceProvider;
use pulumi_gestalt_proto::pulumi::pulumirpc::{
    CallRequest, CallResponse, CheckFailure, CheckRequest, CheckResponse, ConfigureRequest, ConfigureResponse,
    ConstructRequest, ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse,
    GetMappingRequest, GetMappingResponse, GetMappingsRequest, GetMappingsResponse, GetSchemaRequest,
    GetSchemaResponse, InvokeRequest, InvokeResponse, LogSeverity, ParameterizeRequest, ParameterizeResponse,
    PluginAttach, PluginInfo, ProviderHandshakeRequest, ProviderHandshakeResponse, ReadRequest, ReadResponse,
    UpdateRequest, UpdateResponse,
};
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status};

use crate::configuration::{self, Configured, Refused};
use crate::engine_log::EngineLog;
use crate::observer::Observer;
use crate::operation::Operation;
use crate::properties::{encode, from_json};
use crate::run::{EngineRun, Runs};
use crate::served::Served;
use crate::shared_claims::SharedClaims;
use crate::status::of_failures;

/// A provider component, to the engine.
#[derive(Debug)]
pub struct Provider {
    runtime: Runtime,
    served: Arc<Served>,
    log: EngineLog,
    runs: Runs,
    claims: Arc<SharedClaims>,
    configured: Mutex<Option<InForce>>,
    configuring: tokio::sync::Mutex<()>,
    /// The credentials that configurations were checked with, by the URN of the provider resource: what a check gives back is
    /// written into the state, so they are not in it.
    secrets: Mutex<HashMap<String, PropertyMap>>,
    operations: TaskTracker,
    observer: Arc<dyn Observer>,
}

/// The configuration that calls are under.
#[derive(Debug)]
struct InForce {
    configured: Arc<Configured>,
    /// The run, the provider resource and the arguments that it is of.
    run: Arc<EngineRun>,
    urn: String,
    args: Struct,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Provider {
    /// A provider that is not configured yet.
    pub fn new(
        runtime: Runtime,
        served: Arc<Served>,
        engine: Option<String>,
        runs: Runs,
        claims: Arc<SharedClaims>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self {
            runtime,
            served,
            log: EngineLog::new(engine),
            runs,
            claims,
            configured: Mutex::default(),
            configuring: tokio::sync::Mutex::default(),
            secrets: Mutex::default(),
            operations: TaskTracker::new(),
            observer,
        }
    }

    /// What is under way.
    pub fn operations(&self) -> TaskTracker {
        self.operations.clone()
    }

    /// A call on a resource. One that cannot be is heard of.
    fn operation(&self, method: &'static str, urn: &str, token: &str) -> Result<Operation, Status> {
        let operation = self.operation_on(urn, token);
        operation.inspect_err(|status| self.observer.called(method, urn, Duration::ZERO, Err(status)))
    }

    fn operation_on(&self, urn: &str, token: &str) -> Result<Operation, Status> {
        let configured = lock(&self.configured)
            .as_ref()
            .map(|in_force| Arc::clone(&in_force.configured));
        let configured = configured.ok_or_else(|| {
            Status::failed_precondition("the provider is not configured: the engine has to call Configure first")
        })?;
        let parsed = Urn::parse(urn).ok_or_else(|| Status::invalid_argument(format!("`{urn}` is not a URN")))?;
        // Engines before 3.139 send the type in the URN only.
        let token = if token.is_empty() { parsed.token() } else { token };
        let own = self.served.own_token(token);
        let own = own.filter(|own| self.served.component.resource_type(own).is_some());
        let own = own.ok_or_else(|| self.unknown_type(token))?;
        Ok(Operation {
            configured,
            run: self.runs.current(),
            shared: Arc::clone(&self.claims),
            log: self.log.clone(),
            urn: parsed,
            token: own,
        })
    }

    fn unknown_type(&self, token: &str) -> Status {
        let types = self.served.component.types.keys();
        let known: Vec<String> = types.map(|own| self.served.served_token(own.as_str())).collect();
        let hint = match nearest(token, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has `{}`", known.join("`, `")),
        };
        Status::invalid_argument(format!(
            "the provider `{}` has no resource type `{token}`; {hint}",
            self.served.name
        ))
    }

    /// Runs a call by itself, and has it heard of.
    async fn run<T: Send + 'static>(
        &self,
        method: &'static str,
        urn: &str,
        call: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let (observer, urn, started) = (Arc::clone(&self.observer), urn.to_string(), Instant::now());
        let done = self.operations.spawn(async move {
            let ended = call.await;
            observer.called(method, &urn, started.elapsed(), ended.as_ref().map(drop));
            ended
        });
        let answer = done.await;
        let answer = answer.map_err(|_| Status::internal("a fault in the provider's host ended this call"))?;
        answer.map(Response::new)
    }

    /// A refused configuration, which is heard of.
    fn not_configured(&self, urn: &str, refused: Refused, started: Instant) -> CheckResponse {
        let response = not_configured(refused);
        self.heard("check-config", urn, started, &response.failures);
        response
    }

    /// Has it heard of that something was not accepted.
    fn heard(&self, method: &'static str, urn: &str, started: Instant, failures: &[CheckFailure]) {
        let reasons: Vec<&str> = failures.iter().map(|failure| failure.reason.as_str()).collect();
        let status = Status::invalid_argument(reasons.join("; "));
        self.observer.called(method, urn, started.elapsed(), Err(&status));
    }

    async fn configured_by(&self, request: ConfigureRequest) -> Result<ConfigureResponse, Status> {
        let _one_at_a_time = self.configuring.lock().await;
        self.runs.begin();
        let urn = request.urn.unwrap_or_default();
        let args = request.args;
        let args = args.unwrap_or_else(|| variables(&self.served.name, request.variables));
        let run = self.runs.current();
        let is_other = |before: &InForce| {
            Arc::ptr_eq(&before.run, &run) && before.urn != urn && before.args != without_the_engines(args.clone())
        };
        if let Some(before) = lock(&self.configured).as_ref().filter(|before| is_other(before)) {
            // The engine does not say which provider resource a call is for.
            let message = format!(
                "`{urn}` and `{}` have different configurations, and one process that engines attach to can have one only; let \
                 the engine start the provider by itself",
                before.urn
            );
            return Err(Status::failed_precondition(message));
        }
        *lock(&self.configured) = None;
        let configured = self.configure_with(&urn, args.clone()).await.map_err(|refused| {
            let what = format!("the configuration of `{}` cannot be used", self.served.name);
            of_failures(&what, &refused.failures, &refused.mask)
        })?;
        *lock(&self.configured) = Some(InForce {
            configured: Arc::new(configured),
            run,
            urn,
            args: without_the_engines(args),
        });
        Ok(ConfigureResponse {
            accept_secrets: true,
            supports_preview: true,
            accept_resources: true,
            accept_outputs: false,
            supports_autonaming_configuration: false,
        })
    }

    async fn configure_with(&self, urn: &str, args: Struct) -> Result<Configured, Refused> {
        let mut read = configuration::read(&self.served, args)?;
        let is_given = |host: &PropertyMap| host.keys().any(|key| configuration::is_secret(&self.served, key));
        let remembered = lock(&self.secrets).get(urn).cloned().unwrap_or_default();
        // A provider resource of the program's own was given its own credential, or none.
        let is_stacks = Urn::parse(urn).is_none_or(|urn| is_default(urn.name()));
        let other = if is_given(&read.host) {
            PropertyMap::new()
        } else if is_given(&remembered) || !is_stacks {
            remembered
        } else {
            configuration::secrets_of_the_stack(&self.served)
        };
        read.host.extend(other);
        configuration::configure(&self.runtime, &self.served, read).await
    }
}

/// A configuration check that found something wrong. The engine would show the value beside the key, and it may be a secret that
/// it did not say is one: so the key is named in the reason.
fn not_configured(refused: Refused) -> CheckResponse {
    let failures = refused.failures.iter().map(|failure| {
        let failure = refused.mask.hide_in(failure);
        let reason = match failure.path.first() {
            Some(_) => format!("`{}`: {}", failure.path, failure.reason),
            None => failure.reason,
        };
        CheckFailure {
            property: String::new(),
            reason,
        }
    });
    CheckResponse {
        inputs: None,
        failures: failures.collect(),
    }
}

/// Whether the engine has made a provider resource, from the stack's configuration.
fn is_default(name: &str) -> bool {
    name == "default" || name.starts_with("default_")
}

/// Arguments without what the engine keeps for itself in them.
fn without_the_engines(mut args: Struct) -> Struct {
    args.fields
        .retain(|key, _| !configuration::ENGINES_KEYS.contains(&key.as_str()) && !key.starts_with("__"));
    args
}

/// The arguments of engines that send texts only.
fn variables(package: &str, variables: HashMap<String, String>) -> Struct {
    let prefix = format!("{package}:config:");
    let fields = variables.into_iter().filter_map(|(key, value)| {
        let key = key.strip_prefix(&prefix)?.to_string();
        Some((key, from_json(value.into())))
    });
    Struct {
        fields: fields.collect(),
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ResourceProvider for Provider {
    async fn handshake(&self, request: Request<ProviderHandshakeRequest>) -> Answer<ProviderHandshakeResponse> {
        self.runs.greet();
        self.log.attach(&request.into_inner().engine_address);
        Ok(Response::new(ProviderHandshakeResponse {
            accept_secrets: true,
            accept_resources: true,
            accept_outputs: false,
            supports_autonaming_configuration: false,
        }))
    }

    async fn attach(&self, request: Request<PluginAttach>) -> Answer<()> {
        self.log.attach(&request.into_inner().address);
        Ok(Response::new(()))
    }

    async fn get_plugin_info(&self, _: Request<()>) -> Answer<PluginInfo> {
        let version = self.served.component.version.clone();
        Ok(Response::new(PluginInfo { version }))
    }

    async fn get_schema(&self, request: Request<GetSchemaRequest>) -> Answer<GetSchemaResponse> {
        let request = request.into_inner();
        if !request.subpackage_name.is_empty() {
            return Err(Status::invalid_argument("this package has no subpackages"));
        }
        let schema = self.served.schema().to_string();
        Ok(Response::new(GetSchemaResponse { schema }))
    }

    async fn check_config(&self, request: Request<CheckRequest>) -> Answer<CheckResponse> {
        let CheckRequest { urn, news, .. } = request.into_inner();
        let started = Instant::now();
        let mut inputs = news.unwrap_or_default();
        inputs
            .fields
            .retain(|_, value| !matches!(value.kind, Some(Kind::NullValue(_))));
        // They are part of the state from here on, and do not change with the machine that works on it later.
        for (key, value) in self.served.defaults() {
            inputs.fields.entry(key).or_insert(from_json(value.into()));
        }
        let read = match configuration::read(&self.served, inputs) {
            Ok(read) => read,
            Err(refused) => return Ok(Response::new(self.not_configured(&urn, refused, started))),
        };
        for key in &read.ignored {
            let message = format!(
                "the configuration key `{}:{key}` makes no difference here",
                self.served.name
            );
            self.log.show(LogSeverity::Warning, &urn, message, false);
        }
        let mut secrets = read.host.clone();
        secrets.retain(|key, value| configuration::is_secret(&self.served, key) && *value != Value::Unknown);
        lock(&self.secrets).insert(urn.clone(), secrets);
        let kept = encode(&read.kept.values, &read.kept.secrets);
        let configured = configuration::configure(&self.runtime, &self.served, read).await;
        self.log.flush().await;
        Ok(Response::new(match configured {
            Ok(_) => CheckResponse {
                inputs: Some(kept),
                failures: Vec::new(),
            },
            Err(refused) => self.not_configured(&urn, refused, started),
        }))
    }

    async fn diff_config(&self, _: Request<DiffRequest>) -> Answer<DiffResponse> {
        // The engine compares by itself, and configures the provider anew. No key replaces it: what was granted is found by
        // its id, not by the configuration.
        Ok(Response::new(DiffResponse::default()))
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Answer<ConfigureResponse> {
        let (request, started) = (request.into_inner(), Instant::now());
        let urn = request.urn.clone().unwrap_or_default();
        let ended = self.configured_by(request).await;
        let seen = ended.as_ref().map(drop);
        self.observer.called("configure", &urn, started.elapsed(), seen);
        ended.map(Response::new)
    }

    async fn check(&self, request: Request<CheckRequest>) -> Answer<CheckResponse> {
        let request = request.into_inner();
        // Until then they keep others of the ended run from taking away what was claimed in it.
        if self.runs.is_first() {
            self.claims.clear();
        }
        let operation = self.operation("check", &request.urn, &request.r#type)?;
        let urn = request.urn.clone();
        let started = Instant::now();
        let checked = self.run("check", &urn, operation.check(request)).await?;
        if !checked.get_ref().failures.is_empty() {
            self.heard("check", &urn, started, &checked.get_ref().failures);
        }
        Ok(checked)
    }

    async fn diff(&self, request: Request<DiffRequest>) -> Answer<DiffResponse> {
        let request = request.into_inner();
        let operation = self.operation("diff", &request.urn, &request.r#type)?;
        let urn = request.urn.clone();
        self.run("diff", &urn, operation.diff(request)).await
    }

    async fn create(&self, request: Request<CreateRequest>) -> Answer<CreateResponse> {
        let request = request.into_inner();
        let operation = self.operation("create", &request.urn, &request.r#type)?;
        let urn = request.urn.clone();
        self.run("create", &urn, operation.create(request)).await
    }

    async fn read(&self, request: Request<ReadRequest>) -> Answer<ReadResponse> {
        let request = request.into_inner();
        let operation = self.operation("read", &request.urn, &request.r#type)?;
        let urn = request.urn.clone();
        self.run("read", &urn, operation.read(request)).await
    }

    async fn update(&self, request: Request<UpdateRequest>) -> Answer<UpdateResponse> {
        let request = request.into_inner();
        let operation = self.operation("update", &request.urn, &request.r#type)?;
        let urn = request.urn.clone();
        self.run("update", &urn, operation.update(request)).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<()> {
        let request = request.into_inner();
        let mut operation = self.operation("delete", &request.urn, &request.r#type)?;
        operation.run = self.runs.of_delete();
        let urn = request.urn.clone();
        self.run("delete", &urn, operation.delete(request)).await
    }

    async fn cancel(&self, _: Request<()>) -> Answer<()> {
        self.runs.end();
        Ok(Response::new(()))
    }

    async fn parameterize(&self, _: Request<ParameterizeRequest>) -> Answer<ParameterizeResponse> {
        Err(Status::unimplemented("this package takes no parameters"))
    }

    async fn invoke(&self, _: Request<InvokeRequest>) -> Answer<InvokeResponse> {
        Err(Status::unimplemented("this package has no functions"))
    }

    async fn call(&self, _: Request<CallRequest>) -> Answer<CallResponse> {
        Err(Status::unimplemented("this package has no methods"))
    }

    async fn construct(&self, _: Request<ConstructRequest>) -> Answer<ConstructResponse> {
        Err(Status::unimplemented("this package has no component resources"))
    }

    async fn get_mapping(&self, _: Request<GetMappingRequest>) -> Answer<GetMappingResponse> {
        Err(Status::unimplemented("this package has no mappings"))
    }

    async fn get_mappings(&self, _: Request<GetMappingsRequest>) -> Answer<GetMappingsResponse> {
        Err(Status::unimplemented("this package has no mappings"))
    }
}
