//! The protocol's calls. What is done for a resource runs by itself, so that a connection that ends does not cut it short, and a
//! fault in it is an error of that call alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_resource::{CheckFailure, Urn, nearest};
use bindery_sandbox::Runtime;
use prost_types::Struct;
use pulumi_gestalt_proto::pulumi::pulumirpc::resource_provider_server::ResourceProvider;
use pulumi_gestalt_proto::pulumi::pulumirpc::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConfigureResponse, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse, GetMappingRequest,
    GetMappingResponse, GetMappingsRequest, GetMappingsResponse, GetSchemaRequest, GetSchemaResponse, InvokeRequest,
    InvokeResponse, LogSeverity, ParameterizeRequest, ParameterizeResponse, PluginAttach, PluginInfo,
    ProviderHandshakeRequest, ProviderHandshakeResponse, ReadRequest, ReadResponse, UpdateRequest, UpdateResponse,
};
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status};

use crate::configuration::{self, Configured};
use crate::engine_log::EngineLog;
use crate::mask::Mask;
use crate::operation::{Operation, check_failure};
use crate::properties::from_json;
use crate::run::Runs;
use crate::served::Served;

/// A provider component, to the engine.
#[derive(Debug)]
pub struct Provider {
    runtime: Runtime,
    served: Served,
    log: EngineLog,
    runs: Runs,
    configured: Mutex<Option<Arc<Configured>>>,
    /// The credentials that configurations were checked with, by the URN of the provider resource: what a check gives back is
    /// written into the state, so they are not in it.
    tokens: Mutex<HashMap<String, String>>,
    operations: TaskTracker,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Provider {
    /// A provider that is not configured yet.
    pub fn new(runtime: Runtime, served: Served, engine: Option<String>, runs: Runs) -> Self {
        Self {
            runtime,
            served,
            log: EngineLog::new(engine),
            runs,
            configured: Mutex::default(),
            tokens: Mutex::default(),
            operations: TaskTracker::new(),
        }
    }

    /// What is under way.
    pub fn operations(&self) -> TaskTracker {
        self.operations.clone()
    }

    /// A call on a resource.
    fn operation(&self, urn: &str, token: &str) -> Result<Operation, Status> {
        let configured = lock(&self.configured).clone();
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

    /// Runs a call by itself.
    async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let done = self.operations.spawn(call).await;
        let answer = done.map_err(|_| Status::internal("a fault in the provider's host ended this call"))?;
        answer.map(Response::new)
    }

    /// What a failure in the configuration says to do.
    fn how_to_set(&self, failure: CheckFailure) -> CheckFailure {
        let Some(key) = failure.path.first() else {
            return failure;
        };
        let reason = format!(
            "{}; it is set by `pulumi config set {}:{key} VALUE`, or on the provider resource",
            failure.reason, self.served.name
        );
        CheckFailure { reason, ..failure }
    }

    async fn configure_with(&self, request: ConfigureRequest) -> Result<Configured, Vec<CheckFailure>> {
        let args = request
            .args
            .unwrap_or_else(|| variables(&self.served.name, request.variables));
        let mut read = configuration::read(&self.served, args)?;
        let remembered = request.urn.and_then(|urn| lock(&self.tokens).get(&urn).cloned());
        let stack = || configuration::token_of_the_stack().filter(|_| self.served.is_built_in());
        read.token = read.token.or(remembered).or_else(stack);
        configuration::configure(&self.runtime, &self.served, read).await
    }
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
        self.runs.begin();
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
        let mut inputs = news.unwrap_or_default();
        // They are part of the state from here on, and do not change with the machine that works on it later.
        for (key, value) in self.served.defaults() {
            inputs.fields.entry(key).or_insert(from_json(value.into()));
        }
        let refused = |failures: Vec<CheckFailure>, mask: &Mask| {
            let failures = failures
                .into_iter()
                .map(|failure| check_failure(&self.how_to_set(failure), mask));
            Response::new(CheckResponse {
                inputs: None,
                failures: failures.collect(),
            })
        };
        let read = match configuration::read(&self.served, inputs.clone()) {
            Ok(read) => read,
            Err(failures) => return Ok(refused(failures, &Mask::default())),
        };
        for key in &read.ignored {
            let message = format!(
                "the configuration key `{}:{key}` makes no difference here",
                self.served.name
            );
            self.log.show(LogSeverity::Warning, &urn, message, false);
        }
        for key in &read.withheld {
            inputs.fields.remove(key);
        }
        match &read.token {
            Some(token) => lock(&self.tokens).insert(urn, token.clone()),
            None => lock(&self.tokens).remove(&urn),
        };
        let mask = read.mask.clone();
        let configured = configuration::configure(&self.runtime, &self.served, read).await;
        self.log.flush().await;
        match configured {
            Ok(_) => Ok(Response::new(CheckResponse {
                inputs: Some(inputs),
                failures: Vec::new(),
            })),
            Err(failures) => Ok(refused(failures, &mask)),
        }
    }

    async fn diff_config(&self, _: Request<DiffRequest>) -> Answer<DiffResponse> {
        // The engine compares by itself, and configures the provider anew. No key replaces it: what was granted is found by
        // its id, not by the configuration.
        Ok(Response::new(DiffResponse::default()))
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Answer<ConfigureResponse> {
        let configured = self.configure_with(request.into_inner()).await.map_err(|failures| {
            let failures: Vec<CheckFailure> = failures.into_iter().map(|failure| self.how_to_set(failure)).collect();
            let what = format!("the configuration of `{}` cannot be used", self.served.name);
            crate::status::of_failures(&what, &failures)
        })?;
        *lock(&self.configured) = Some(Arc::new(configured));
        Ok(Response::new(ConfigureResponse {
            accept_secrets: true,
            supports_preview: true,
            accept_resources: true,
            accept_outputs: false,
            supports_autonaming_configuration: false,
        }))
    }

    async fn check(&self, request: Request<CheckRequest>) -> Answer<CheckResponse> {
        let request = request.into_inner();
        let operation = self.operation(&request.urn, &request.r#type)?;
        self.run(operation.check(request)).await
    }

    async fn diff(&self, request: Request<DiffRequest>) -> Answer<DiffResponse> {
        let request = request.into_inner();
        let operation = self.operation(&request.urn, &request.r#type)?;
        self.run(operation.diff(request)).await
    }

    async fn create(&self, request: Request<CreateRequest>) -> Answer<CreateResponse> {
        let request = request.into_inner();
        let operation = self.operation(&request.urn, &request.r#type)?;
        self.run(operation.create(request)).await
    }

    async fn read(&self, request: Request<ReadRequest>) -> Answer<ReadResponse> {
        let request = request.into_inner();
        let operation = self.operation(&request.urn, &request.r#type)?;
        self.run(operation.read(request)).await
    }

    async fn update(&self, request: Request<UpdateRequest>) -> Answer<UpdateResponse> {
        let request = request.into_inner();
        let operation = self.operation(&request.urn, &request.r#type)?;
        self.run(operation.update(request)).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<()> {
        let request = request.into_inner();
        let operation = self.operation(&request.urn, &request.r#type)?;
        self.run(operation.delete(request)).await
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
