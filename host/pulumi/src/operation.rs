//! One call on one resource: the engine's message in, the sandbox's answer out.

use std::sync::Arc;
use std::time::Duration;

use bindery_resource::{CheckFailure, ClaimTaken, Footprint, PropertyMap, PropertyPath, Urn};
use bindery_sandbox::error::CheckError;
use bindery_sandbox::operation::Resource;
use bindery_sandbox::schema::RecordType;
use bindery_sandbox::{CallError, Context, Deleted, ErrorCode, Event, OperationError};
use prost_types::Struct;
use pulumi_gestalt_proto::pulumi::pulumirpc::{
    self, CheckRequest, CheckResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse,
    LogSeverity, ReadRequest, ReadResponse, UpdateRequest, UpdateResponse,
};
use tokio::time::Instant;
use tonic::Status;

use crate::configuration::Configured;
use crate::difference;
use crate::engine_log::EngineLog;
use crate::mask::Mask;
use crate::properties::{Properties, decode, encode};
use crate::run::EngineRun;
use crate::shared_claims::SharedClaims;
use crate::status::{of_failures, of_operation};

/// How long an operation may take whose resource has no `customTimeouts`.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The longest that `customTimeouts` can ask for.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// A call on a resource.
#[derive(Debug)]
pub struct Operation {
    /// The provider.
    pub configured: Arc<Configured>,
    /// The engine's run.
    pub run: Arc<EngineRun>,
    /// What the engine's other processes claim.
    pub shared: Arc<SharedClaims>,
    /// Where the engine shows what happens.
    pub log: EngineLog,
    /// The resource.
    pub urn: Urn,
    /// Its type, as the component has it.
    pub token: String,
}

impl Operation {
    /// Checks inputs, and takes the resource's claim.
    pub async fn check(self, request: CheckRequest) -> Result<CheckResponse, Status> {
        let is_new = request.olds.is_none_or(|olds| olds.fields.is_empty());
        let news = match decode(request.news) {
            Ok(news) => news,
            Err(failures) => return Ok(self.refused(failures, &Mask::default())),
        };
        let mask = self.mask(&[&news]);
        let checked = self
            .configured
            .tenant
            .check(&self.run.claims, &self.urn, &self.token, &news.values)
            .await;
        match checked {
            Ok(checked) => {
                if let Err(taken) = self.share(checked.footprint.as_ref()) {
                    let failure = CheckFailure::new(PropertyPath::default(), taken.to_string());
                    return Ok(self.refused(vec![failure], &mask));
                }
                self.run.checked(&self.urn, is_new);
                self.shared.to_make(&self.urn, is_new);
                Ok(CheckResponse {
                    inputs: Some(news.encode_what_came_of_them(&checked.inputs)),
                    failures: Vec::new(),
                })
            }
            Err(CheckError::Failures(failures)) => Ok(self.refused(failures, &mask)),
            Err(CheckError::Claim(taken)) => {
                let failure = CheckFailure::new(PropertyPath::default(), taken.to_string());
                Ok(self.refused(vec![failure], &mask))
            }
            Err(CheckError::Call(error)) => Err(self.status(&error.into())),
        }
    }

    /// Lets the engine's other processes know what the resource claims.
    fn share(&self, footprint: Option<&Footprint>) -> Result<(), ClaimTaken> {
        let Some(Footprint { claim, .. }) = footprint else {
            return Ok(());
        };
        self.shared.take(&self.scoped(claim), &self.urn).map_err(|owner| {
            self.run.claims.release(&self.urn);
            ClaimTaken {
                claim: claim.clone(),
                owner,
                second: self.urn.clone(),
            }
        })
    }

    /// A claim as processes know it that work with other components, or elsewhere.
    fn scoped(&self, claim: &str) -> String {
        format!("{}\n{claim}", self.configured.claim_scope)
    }

    fn refused(&self, failures: Vec<CheckFailure>, mask: &Mask) -> CheckResponse {
        CheckResponse {
            inputs: None,
            failures: failures.iter().map(|failure| check_failure(failure, mask)).collect(),
        }
    }

    /// What would change.
    pub async fn diff(self, request: DiffRequest) -> Result<DiffResponse, Status> {
        let olds = decoded("its state", request.olds)?;
        let news = decoded("its inputs", request.news)?;
        self.mask(&[&olds, &news]);
        let (tenant, token) = (&self.configured.tenant, &self.token);
        let diff = tenant.diff(token, &request.id, &olds.values, &news.values).await;
        let error = match diff {
            Ok(diff) => return Ok(difference::response(diff, &request.ignore_changes)),
            Err(error) => error,
        };
        // Is it the state, or what is declared?
        let is_state = tenant.footprint(token, &request.id, &olds.values).await.is_err();
        let error = if is_state { unusable_state(error) } else { error.into() };
        Err(self.status(&error))
    }

    /// Makes a resource, or says what that would give.
    pub async fn create(self, request: CreateRequest) -> Result<CreateResponse, Status> {
        let news = decoded("its inputs", request.properties)?;
        self.mask(&[&news]);
        if request.preview {
            return Ok(CreateResponse {
                // What is made later has no id that others could refer to.
                id: String::new(),
                properties: Some(self.preview(&news)?),
                refresh_before_update: false,
            });
        }
        let context = self.context(request.timeout);
        let made = self.configured.tenant.create(&context, &self.token, &news.values).await;
        self.log.flush().await;
        // Its claim stays also where it was not made: it is declared, and the engine may try again without another check.
        self.run.made(&self.urn);
        self.shared.to_make(&self.urn, false);
        let made = made.map_err(|error| self.status(&error))?;
        Ok(CreateResponse {
            id: made.id,
            properties: Some(news.encode_what_came_of_them(&made.outputs)),
            refresh_before_update: false,
        })
    }

    /// Changes a resource in place, or says what that would give.
    pub async fn update(self, request: UpdateRequest) -> Result<UpdateResponse, Status> {
        let olds = decoded("its state", request.olds)?;
        let news = decoded("its inputs", request.news)?;
        self.mask(&[&olds, &news]);
        let properties = if request.preview {
            self.preview(&news)?
        } else {
            let old = Resource {
                id: request.id,
                outputs: olds.values,
            };
            let context = self.context(request.timeout);
            let changed = self
                .configured
                .tenant
                .update(&context, &self.token, &old, &news.values)
                .await;
            self.log.flush().await;
            let changed = changed.map_err(|error| self.status(&error))?;
            news.encode_what_came_of_them(&changed.outputs)
        };
        Ok(UpdateResponse {
            properties: Some(properties),
            refresh_before_update: false,
        })
    }

    fn preview(&self, news: &Properties) -> Result<Struct, Status> {
        let outputs = self.configured.tenant.preview(&self.token, &news.values);
        let outputs = outputs.map_err(|error| self.status(&error.into()))?;
        Ok(news.encode_what_came_of_them(&outputs))
    }

    /// The resource as it is: for a refresh, for an import, or to look at it.
    pub async fn read(self, request: ReadRequest) -> Result<ReadResponse, Status> {
        let is_import = request.properties.is_none();
        let olds = decoded("its state", request.properties)?;
        let inputs = decoded("its inputs", request.inputs)?;
        self.mask(&[&olds, &inputs]);
        let component = self.configured.tenant.component();
        let ty = component.resource_type(&self.token);
        let ty = ty.ok_or_else(|| self.status(&CallError::UnknownType(self.token.clone()).into()))?;
        // A program that only looks says of the state what it knows.
        let is_look = olds.values == inputs.values && !has_all(&ty.state, &olds.values);
        let last = (!is_import && !is_look).then_some(&olds.values);
        let context = self.context(0.0);
        let found = self
            .configured
            .tenant
            .read(&context, &self.token, &request.id, last)
            .await;
        self.log.flush().await;
        let Some(found) = found.map_err(|error| self.status(&error))? else {
            return Ok(ReadResponse::default());
        };
        // What the program sets is compared with what is there. Of an import nothing is set yet, and all of it counts.
        let is_set = |name: &str| last.is_none() || inputs.values.contains_key(name);
        let fresh: PropertyMap = found
            .outputs
            .iter()
            .filter(|(name, _)| ty.args.property(name).is_some() && is_set(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        // Either may be marked where the other is not.
        let marked = |values: &PropertyMap| {
            let secrets = [&olds, &inputs].map(|known| known.secrets_in(values));
            encode(values, &secrets.into_iter().flatten().collect())
        };
        Ok(ReadResponse {
            id: found.id,
            properties: Some(marked(&found.outputs)),
            inputs: Some(marked(&fresh)),
            refresh_before_update: false,
        })
    }

    /// Removes a resource, unless another has taken its place.
    pub async fn delete(self, request: DeleteRequest) -> Result<(), Status> {
        if self.run.cancel.is_cancelled() {
            return Err(Status::cancelled("the run is over"));
        }
        let olds = decoded("its state", request.properties)?;
        self.mask(&[&olds]);
        let old = Resource {
            id: request.id,
            outputs: olds.values,
        };
        let context = self.context(request.timeout);
        let reason = self.run.why_deleted(&self.urn);
        let (claims, tenant) = (&self.run.claims, &self.configured.tenant);
        let footprint = tenant.footprint(&self.token, &old.id, &old.outputs).await;
        let footprint = footprint.map_err(|error| self.status(&error.into()))?;
        let shared = self.shared.keeper(&self.scoped(&footprint.claim), &self.urn);
        let deleted = match shared {
            Some(owner) => Ok(Deleted::KeptFor(owner)),
            None => {
                tenant
                    .delete(claims, &context, &self.urn, &self.token, &old, reason)
                    .await
            }
        };
        if let Ok(Deleted::KeptFor(owner)) = &deleted {
            let message = format!("what it granted stays: `{}` declares it now", owner.name());
            self.log.show(
                LogSeverity::Info,
                self.urn.as_str(),
                self.run.secrets.all().hide(&message),
                false,
            );
        }
        self.log.flush().await;
        deleted.map(drop).map_err(|error| self.status(&error))
    }

    /// Until when, and who hears of it.
    fn context(&self, seconds: f64) -> Context {
        let asked = Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|asked| !asked.is_zero());
        let (log, urn, run) = (self.log.clone(), self.urn.clone(), Arc::clone(&self.run));
        Context {
            deadline: Instant::now() + asked.unwrap_or(TIMEOUT).min(LONGEST),
            cancel: self.run.cancel.clone(),
            on_event: Arc::new(move |event| {
                let (severity, message, is_status) = match event {
                    Event::Waiting { wait, reason, .. } => {
                        let wait = wait.as_secs_f64();
                        (
                            LogSeverity::Info,
                            format!("{reason}; trying again in {wait:.1} s"),
                            true,
                        )
                    }
                    Event::Warning(line) => (LogSeverity::Warning, line, false),
                    Event::Debug(line) => (LogSeverity::Debug, line, false),
                };
                log.show(severity, urn.as_str(), run.secrets.all().hide(&message), is_status);
            }),
        }
    }

    /// What hides these secrets; no message of the run shows them from now on.
    fn mask(&self, all: &[&Properties]) -> Mask {
        let mask = Mask::of(all).and(&self.configured.mask);
        self.run.secrets.add(&mask);
        mask
    }

    /// An error for the engine, with what to do about a credential that is missing.
    fn status(&self, error: &OperationError) -> Status {
        let mut error = error.clone();
        let hint = self
            .configured
            .credential_hint
            .as_ref()
            .filter(|hint| !error.message.contains(hint.as_str()));
        if let (ErrorCode::Unauthenticated, Some(hint)) = (error.code, hint) {
            error.message = format!("{}; {hint}", error.message);
        }
        of_operation(&error, &self.run.secrets.all())
    }
}

/// A failure as the engine shows it: beside the program's own value at the property that it starts with, unless something there
/// is secret, which the engine would show.
fn check_failure(failure: &CheckFailure, mask: &Mask) -> pulumirpc::CheckFailure {
    let failure = mask.hide_in(failure);
    let property = failure.path.first().unwrap_or_default().to_string();
    if property.is_empty() {
        return pulumirpc::CheckFailure {
            property,
            reason: failure.reason,
        };
    }
    let is_secret = mask.is_in(&property);
    let reason = if is_secret || failure.path.segments().len() > 1 {
        format!("`{}`: {}", failure.path, failure.reason)
    } else {
        failure.reason
    };
    pulumirpc::CheckFailure {
        property: if is_secret { String::new() } else { property },
        reason,
    }
}

fn decoded(what: &str, properties: Option<Struct>) -> Result<Properties, Status> {
    decode(properties).map_err(|failures| of_failures(&format!("{what} cannot be read"), &failures, &Mask::default()))
}

/// Whether a state has every property that each has.
fn has_all(state: &RecordType, values: &PropertyMap) -> bool {
    let mut needed = state
        .properties
        .iter()
        .filter(|property| !property.optional && property.name != "id");
    needed.all(|property| values.contains_key(&property.name))
}

/// A state that another provider made lacks what this one needs.
fn unusable_state(error: CallError) -> OperationError {
    let mut error = OperationError::from(error);
    if error.code == ErrorCode::InvalidArgument {
        error.message = format!(
            "its state cannot be compared: {}; a resource that another provider has made moves by `pulumi import`",
            error.message
        );
    }
    error
}
