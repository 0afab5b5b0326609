//! A tenant: one component, configured, with its own origins, connections and limits. What is said here of a resource is
//! pure; what is done to one is in [`crate::operation`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use bindery_resource::{Checked, Claims, Diff, Footprint, PropertyMap, PropertyPath, Urn};
use wasmtime::component::Val;

use crate::answer::{self, Malformed, Record};
use crate::call::Caller;
use crate::commit::Lifecycle;
use crate::component::{Component, ResourceType};
use crate::convert;
use crate::egress::{AllowedOrigin, Egress};
use crate::error::{CallError, CheckError, ConfigureError};
use crate::guest::Guest;
use crate::limits::{Limits, MEMORY_CEILING};
use crate::operation::{Key, lower_state};
use crate::origin::Origin;
use crate::queue::Queues;
use crate::runtime::Runtime;
use crate::schema::outputs_beforehand;
use crate::turns::Turns;
use crate::usage::{Counters, Usage};

/// The longest that a call may take: no clock runs over with it.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// What a tenant is made of.
#[derive(Debug, Clone, Default)]
pub struct TenantOptions {
    /// What the errors of its limits call it.
    pub name: String,
    /// The component's configuration.
    pub config: PropertyMap,
    /// Where it may send requests, and with which credentials.
    pub origins: Vec<AllowedOrigin>,
    /// What is added to the user agent of its requests.
    pub user_agent: Option<String>,
    /// What its calls may use.
    pub limits: Limits,
}

/// A component under one configuration: the boundary between those who do not trust each other. Each of its calls has an instance
/// of its own, each of its requests goes through connections that no other tenant uses, and what it may use of the host is limited
/// whatever others do. Once it is dropped, or ended, its calls end, and what it held is free.
#[derive(Debug)]
pub struct Tenant {
    pub(crate) guest: Arc<Guest>,
    pub(crate) queues: Queues<Key, Lifecycle>,
    /// Where its component will send requests.
    calls: Vec<String>,
    /// Ends what was begun for it.
    _alive: DropGuard,
}

/// One run of an engine: from its first check to its end. Holds the claims of the resources that were checked.
#[derive(Debug, Default, Clone)]
pub struct Run {
    claims: Arc<Mutex<Claims>>,
}

/// Why a resource is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteReason {
    /// It is no longer declared, or another has taken its place. What any resource of the run claims stays.
    NotDeclared,
    /// It makes room for its own replacement, which claims the same and is made next.
    BeforeReplacement,
}

/// What a delete came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone.
    Removed,
    /// It stays, because this resource owns it now.
    KeptFor(Urn),
}

impl Run {
    /// A run in which nothing was checked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up what a resource claims, because it is not made after all.
    pub fn release(&self, urn: &Urn) {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).release(urn);
    }

    /// Who owns a claim that a delete would take away.
    pub(crate) fn keeps(&self, claim: &str, urn: &Urn, reason: DeleteReason) -> Option<Urn> {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = claims.owner(claim)?;
        let makes_room = reason == DeleteReason::BeforeReplacement && owner == urn;
        (!makes_room).then(|| owner.clone())
    }
}

impl Tenant {
    /// Configures a component.
    ///
    /// # Errors
    /// When the component does not accept the configuration.
    pub async fn new(
        runtime: &Runtime,
        component: Arc<Component>,
        options: TenantOptions,
    ) -> Result<Self, ConfigureError> {
        let TenantOptions {
            name,
            config,
            origins,
            user_agent,
            limits,
        } = options;
        // A slot of the pool is no larger, and no call at all would be no limit.
        let limits = Limits {
            memory: limits.memory.min(MEMORY_CEILING),
            calls_in_flight: limits.calls_in_flight.clamp(1, Semaphore::MAX_PERMITS),
            wall_time: limits.wall_time.min(LONGEST),
            ..limits
        };
        let counters = Arc::<Counters>::default();
        let caller = Caller {
            runtime: runtime.clone(),
            tenant: name,
            egress: Egress::new(runtime, origins, user_agent, &limits, Arc::clone(&counters)),
            turns: Turns::of(&runtime.long_turns),
            in_flight: Semaphore::new(limits.calls_in_flight),
            limits,
            counters,
        };
        Self::configured(Arc::new(caller), component, &config, CancellationToken::new()).await
    }

    /// The same tenant under another configuration of its component: the two share their connections, their limits and their use of
    /// the host. It ends with this one at the latest.
    ///
    /// # Errors
    /// When the component does not accept the configuration.
    pub async fn with_config(&self, config: &PropertyMap) -> Result<Self, ConfigureError> {
        let caller = Arc::clone(&self.guest.caller);
        let ended = self.guest.ended.child_token();
        Self::configured(caller, Arc::clone(&self.guest.component), config, ended).await
    }

    async fn configured(
        caller: Arc<Caller>,
        component: Arc<Component>,
        config: &PropertyMap,
        ended: CancellationToken,
    ) -> Result<Self, ConfigureError> {
        let lowered = convert::lower(&component.config, config).map_err(ConfigureError::Failures)?;
        let guest = Guest {
            caller,
            component,
            config: lowered.record,
            ended: ended.clone(),
        };
        let params = vec![guest.config.clone(), paths(&lowered.unknown)];
        let configure = guest.component.configure;
        let value = guest.pure(&configure, "configure", params).await?;
        let contract = |what| malformed("configure", what);
        match answer::result(value).map_err(contract)? {
            Ok(calls) => {
                let calls = answer::payload(calls).and_then(answer::list).map_err(contract)?;
                let calls = calls.into_iter().map(answer::text).collect::<Result<_, _>>();
                Ok(Self {
                    guest: Arc::new(guest),
                    queues: Queues::new(),
                    calls: calls.map_err(contract)?,
                    _alive: ended.drop_guard(),
                })
            }
            Err(failures) => Err(ConfigureError::Failures(
                answer::payload(failures).and_then(answer::failures).map_err(contract)?,
            )),
        }
    }

    /// Ends its calls, now and from now on: each with an error, and what it has under way with its requests' own end.
    pub fn end(&self) {
        self.guest.ended.cancel();
    }

    /// What it uses, and has used.
    pub fn usage(&self) -> Usage {
        self.guest.caller.counters.usage()
    }

    /// The component.
    pub fn component(&self) -> &Component {
        &self.guest.component
    }

    /// The origins that the provider will call under this configuration, and that are not allowed: to say so early.
    pub fn denied_origins(&self) -> Vec<&str> {
        let is_denied = |text: &&str| !Origin::parse(text).is_ok_and(|origin| self.guest.caller.egress.allows(&origin));
        self.calls.iter().map(String::as_str).filter(is_denied).collect()
    }

    /// Checks a resource's inputs, and takes its claim for the run.
    ///
    /// # Errors
    /// Everything that is wrong with the inputs, or who owns what they declare.
    pub async fn check(&self, run: &Run, urn: &Urn, token: &str, inputs: &PropertyMap) -> Result<Checked, CheckError> {
        let ty = self.resource_type(token)?;
        let checked = self.checked(ty, inputs).await?;
        if let Some(footprint) = &checked.footprint {
            run.claims
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(&footprint.claim, urn)?;
        }
        Ok(checked)
    }

    /// What an existing resource occupies.
    ///
    /// # Errors
    /// When the state is not one of this resource type.
    pub async fn footprint(&self, token: &str, id: &str, outputs: &PropertyMap) -> Result<Footprint, CallError> {
        let ty = self.resource_type(token)?;
        self.footprint_of(ty, &lower_state(ty, id, outputs)?).await
    }

    /// Who claims in this run what an existing resource occupies.
    ///
    /// # Errors
    /// When the state is not one of this resource type.
    pub async fn claimed_by(
        &self,
        run: &Run,
        token: &str,
        id: &str,
        outputs: &PropertyMap,
    ) -> Result<Option<Urn>, CallError> {
        let footprint = self.footprint(token, id, outputs).await?;
        let claims = run.claims.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(claims.owner(&footprint.claim).cloned())
    }

    /// Takes the claim of an existing resource that stays as it is, for the run.
    ///
    /// # Errors
    /// Who has it, or that the state is not one of this resource type.
    pub async fn claim(
        &self,
        run: &Run,
        urn: &Urn,
        token: &str,
        id: &str,
        outputs: &PropertyMap,
    ) -> Result<(), CheckError> {
        let footprint = self.footprint(token, id, outputs).await?;
        let mut claims = run.claims.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(claims.take(&footprint.claim, urn)?)
    }

    /// What would change between what exists and checked inputs.
    ///
    /// # Errors
    /// When the state is not one of this resource type.
    pub async fn diff(
        &self,
        token: &str,
        id: &str,
        old: &PropertyMap,
        inputs: &PropertyMap,
    ) -> Result<Diff, CallError> {
        let ty = self.resource_type(token)?;
        let state = lower_state(ty, id, old)?;
        let new = convert::lower(&ty.args, inputs).map_err(CallError::Properties)?;
        let params = vec![
            self.guest.config.clone(),
            state.clone(),
            new.record,
            paths(&new.unknown),
        ];
        let value = self.guest.pure(&ty.plan.diff, "diff", params).await?;
        let changes = taken("diff", value)?.and_then(answer::list);
        let changes = changes.and_then(|changes| changes.into_iter().map(answer::change).collect());
        let mut diff = Diff {
            changes: changes.map_err(|what| malformed("diff", what))?,
            delete_before_replace: false,
        };
        // Also for an update, which an engine may make a replacement.
        if !diff.changes.is_empty() {
            let (footprint, new_id) = self.occupied_by(ty, inputs).await?;
            // Two with different ids can be there at once, if only while one takes the other's place.
            let may_collide = new_id.is_none_or(|new_id| new_id == id);
            diff.delete_before_replace = may_collide && footprint == Some(self.footprint_of(ty, &state).await?);
        }
        Ok(diff)
    }

    /// What a create or an update of checked inputs will give, as far as it is known beforehand: the inputs, and unknowns
    /// for what only the result says.
    ///
    /// # Errors
    /// When there is no such resource type.
    pub fn preview(&self, token: &str, inputs: &PropertyMap) -> Result<PropertyMap, CallError> {
        let ty = self.resource_type(token)?;
        Ok(outputs_beforehand(&ty.args, &ty.state, inputs))
    }

    pub(crate) fn resource_type(&self, token: &str) -> Result<&ResourceType, CallError> {
        self.guest
            .component
            .resource_type(token)
            .ok_or_else(|| CallError::UnknownType(token.to_string()))
    }

    /// What inputs will occupy, and the id that they will have, as far as both are known.
    pub(crate) async fn occupied_by(
        &self,
        ty: &ResourceType,
        inputs: &PropertyMap,
    ) -> Result<(Option<Footprint>, Option<String>), CallError> {
        match self.checked(ty, inputs).await {
            Ok(checked) => Ok((checked.footprint, checked.id)),
            Err(CheckError::Call(error)) => Err(error),
            Err(CheckError::Failures(failures)) => Err(CallError::Properties(failures)),
            Err(CheckError::Claim(_)) => Ok((None, None)),
        }
    }

    /// What an existing resource occupies.
    pub(crate) async fn footprint_of(&self, ty: &ResourceType, state: &Val) -> Result<Footprint, CallError> {
        let params = vec![self.guest.config.clone(), state.clone()];
        let value = self.guest.pure(&ty.plan.footprint_of, "footprint-of", params).await?;
        taken("footprint-of", value)?
            .and_then(answer::footprint)
            .map_err(|what| malformed("footprint-of", what))
    }

    async fn checked(&self, ty: &ResourceType, inputs: &PropertyMap) -> Result<Checked, CheckError> {
        let args = convert::lower(&ty.args, inputs).map_err(CheckError::Failures)?;
        let params = vec![self.guest.config.clone(), args.record, paths(&args.unknown)];
        let value = self.guest.pure(&ty.plan.check, "check", params).await?;
        let contract = |what| CheckError::Call(malformed("check", what));
        match answer::result(value).map_err(contract)? {
            Ok(checked) => {
                let checked = answer::payload(checked).map_err(contract)?;
                lift_checked(ty, checked, &args.unknown).map_err(contract)
            }
            Err(failures) => {
                let failures = answer::payload(failures).and_then(answer::failures).map_err(contract)?;
                Err(CheckError::Failures(failures))
            }
        }
    }
}

fn lift_checked(ty: &ResourceType, checked: Val, unknown: &[PropertyPath]) -> Result<Checked, Malformed> {
    let mut record = Record::of(checked)?;
    let mut inputs = convert::lift(&ty.args, record.take("args")?)?;
    convert::restore_unknown(&mut inputs, unknown);
    Ok(Checked {
        inputs,
        footprint: answer::option(record.take("footprint")?)?
            .map(answer::footprint)
            .transpose()?,
        id: answer::option(record.take("id")?)?.map(answer::text).transpose()?,
    })
}

/// The value of a `result<T, failure>`; its failure is one of the state's properties.
fn taken(name: &str, value: Val) -> Result<Result<Val, Malformed>, CallError> {
    let result = answer::result(value).map_err(|what| malformed(name, what))?;
    match result {
        Ok(value) => Ok(answer::payload(value)),
        Err(failure) => {
            let failure = answer::payload(failure)
                .and_then(answer::failure)
                .map_err(|what| malformed(name, what))?;
            Err(CallError::Properties(vec![failure]))
        }
    }
}

fn malformed(function: &str, what: Malformed) -> CallError {
    CallError::Contract {
        function: function.to_string(),
        what,
    }
}

fn paths(paths: &[PropertyPath]) -> Val {
    Val::List(paths.iter().map(|path| Val::String(path.to_string())).collect())
}
