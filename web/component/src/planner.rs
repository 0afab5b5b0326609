//! What a plan asks of a provider, answered by the planner component. What the sandbox does for any component is done here for the
//! one whose functions are imported.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bindery_resource::convert::{Lowered, lift, lower, restore_unknown};
use bindery_resource::plan::in_one_line;
use bindery_resource::schema::{InputsAndOutputs, ProviderTypes, outputs_beforehand};
use bindery_resource::{
    Change, ChangeKind, CheckFailure, Checked, Claims, Diff, Footprint, PropertyMap, PropertyPath, Urn, Value,
};
use bindery_stack::{CheckError, Provider, ResourceState};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::bindery::compute::backend_bucket_iam_member_plan as bucket_member;
use crate::bindings::bindery::datamigration::migration_job_iam_member_plan as job_member;
use crate::bindings::bindery::engine::types as engine;
use crate::bindings::bindery::iam::types::Config;
use crate::bindings::bindery::networkservices::edge_cache_origin_iam_binding_plan as origin_binding;
use crate::bindings::bindery::provider::about;
use crate::values::Generated;

/// The planner under a configuration.
pub struct Planner {
    types: ProviderTypes,
    config: Config,
    claims: Mutex<Claims>,
}

/// What a check gives, by the generated types' names.
struct RawChecked {
    args: serde_json::Value,
    footprint: Option<engine::Footprint>,
    id: Option<String>,
}

/// The functions of a resource type, with its records as JSON.
trait Plan {
    fn check(
        config: &Config,
        args: serde_json::Value,
        unknown: &[String],
    ) -> Result<Result<RawChecked, Vec<engine::Failure>>, String>;
    fn diff(
        config: &Config,
        old: serde_json::Value,
        new: serde_json::Value,
        unknown: &[String],
    ) -> Result<Result<Vec<engine::Change>, engine::Failure>, String>;
    fn footprint_of(
        config: &Config,
        old: serde_json::Value,
    ) -> Result<Result<engine::Footprint, engine::Failure>, String>;
}

macro_rules! plan {
    ($name:ident, $functions:ident) => {
        struct $name;

        impl Plan for $name {
            fn check(
                config: &Config,
                args: serde_json::Value,
                unknown: &[String],
            ) -> Result<Result<RawChecked, Vec<engine::Failure>>, String> {
                Ok(match $functions::check(config, &generated(args)?, unknown) {
                    Ok(checked) => Ok(RawChecked {
                        args: json(&checked.args)?,
                        footprint: checked.footprint,
                        id: checked.id,
                    }),
                    Err(failures) => Err(failures),
                })
            }

            fn diff(
                config: &Config,
                old: serde_json::Value,
                new: serde_json::Value,
                unknown: &[String],
            ) -> Result<Result<Vec<engine::Change>, engine::Failure>, String> {
                Ok($functions::diff(
                    config,
                    &generated(old)?,
                    &generated(new)?,
                    unknown,
                ))
            }

            fn footprint_of(
                config: &Config,
                old: serde_json::Value,
            ) -> Result<Result<engine::Footprint, engine::Failure>, String> {
                Ok($functions::footprint_of(config, &generated(old)?))
            }
        }
    };
}

plan!(BucketMember, bucket_member);
plan!(JobMember, job_member);
plan!(OriginBinding, origin_binding);

/// Calls a function of the resource type of a token.
macro_rules! of_type {
    ($token:expr, $function:ident ( $($argument:expr),* )) => {
        match $token {
            "bindery:compute/v1:BackendBucketIamMember" => BucketMember::$function($($argument),*),
            "bindery:datamigration/v1:MigrationJobIamMember" => JobMember::$function($($argument),*),
            "bindery:networkservices/v1:EdgeCacheOriginIamBinding" => OriginBinding::$function($($argument),*),
            token => Err(format!("the provider has no resource type `{token}`")),
        }
    };
}

fn generated<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn json(value: &impl Serialize) -> Result<serde_json::Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

impl Planner {
    /// Configures the planner.
    ///
    /// # Errors
    /// What it does not accept.
    pub fn configured(types: ProviderTypes, config: &PropertyMap) -> Result<Self, Vec<CheckFailure>> {
        let lowered: Lowered<serde_json::Value> = lower::<Generated>(&types.config, config)?;
        let config: Config =
            generated(lowered.record).map_err(|reason| vec![CheckFailure::new(PropertyPath::default(), reason)])?;
        about::configure(&config, &texts(&lowered.unknown)).map_err(failures)?;
        Ok(Self {
            types,
            config,
            claims: Mutex::default(),
        })
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ty(&self, token: &str) -> Result<&InputsAndOutputs, String> {
        let ty = self.types.types.get(token);
        ty.ok_or_else(|| format!("the provider has no resource type `{token}`"))
    }

    fn checked(&self, token: &str, inputs: &PropertyMap) -> Result<Checked, CheckError> {
        let ty = self.ty(token).map_err(CheckError::Other)?;
        let args = lower::<Generated>(&ty.args, inputs).map_err(CheckError::Failures)?;
        let checked = of_type!(token, check(&self.config, args.record, &texts(&args.unknown)));
        let checked = checked.map_err(CheckError::Other)?;
        let checked = checked.map_err(|found| CheckError::Failures(failures(found)))?;
        let mut inputs = lift::<Generated>(&ty.args, checked.args).map_err(CheckError::Other)?;
        restore_unknown(&mut inputs, &args.unknown);
        Ok(Checked {
            inputs,
            footprint: checked.footprint.map(footprint),
            id: checked.id,
        })
    }

    fn lowered_state(&self, token: &str, id: &str, outputs: &PropertyMap) -> Result<serde_json::Value, String> {
        let mut state = outputs.clone();
        state.insert("id".to_string(), Value::String(id.to_string()));
        let lowered = lower::<Generated>(&self.ty(token)?.state, &state).map_err(|wrong| in_one_line(&wrong))?;
        if lowered.unknown.is_empty() {
            return Ok(lowered.record);
        }
        let unknown = lowered.unknown.into_iter();
        let unknown: Vec<_> = unknown
            .map(|path| CheckFailure::new(path, "is not known yet"))
            .collect();
        Err(in_one_line(&unknown))
    }

    fn footprint(&self, state: &ResourceState) -> Result<Footprint, String> {
        let token = state.urn.token();
        let old = self.lowered_state(token, &state.id, &state.outputs)?;
        let found = of_type!(token, footprint_of(&self.config, old))?;
        found
            .map(footprint)
            .map_err(|found| in_one_line(&failures(vec![found])))
    }

    fn compared(&self, old: &ResourceState, inputs: &PropertyMap) -> Result<Diff, String> {
        let token = old.urn.token();
        let state = self.lowered_state(token, &old.id, &old.outputs)?;
        let new = lower::<Generated>(&self.ty(token)?.args, inputs).map_err(|wrong| in_one_line(&wrong))?;
        let changes = of_type!(token, diff(&self.config, state, new.record, &texts(&new.unknown)))?;
        let changes = changes.map_err(|found| in_one_line(&failures(vec![found])))?;
        let mut diff = Diff {
            changes: changes.into_iter().map(change).collect(),
            delete_before_replace: false,
        };
        if !diff.changes.is_empty() {
            let checked = self.checked(token, inputs).map_err(|error| match error {
                CheckError::Failures(wrong) => in_one_line(&wrong),
                error => error.to_string(),
            })?;
            // As in the sandbox: two with different ids can be there at once.
            let may_collide = checked.id.is_none_or(|id| id == old.id);
            diff.delete_before_replace = may_collide && checked.footprint == Some(self.footprint(old)?);
        }
        Ok(diff)
    }
}

impl Provider for Planner {
    fn types(&self) -> BTreeMap<String, Arc<[String]>> {
        let names = self.types.types.iter().map(|(token, ty)| {
            let names = ty.state.properties.iter().map(|property| property.name.clone());
            (token.clone(), names.filter(|name| name != "id").collect())
        });
        names.collect()
    }

    async fn check(&self, urn: &Urn, inputs: &PropertyMap) -> Result<Checked, CheckError> {
        let checked = self.checked(urn.token(), inputs)?;
        if let Some(footprint) = &checked.footprint {
            self.claims().take(&footprint.claim, urn)?;
        }
        Ok(checked)
    }

    async fn diff(&self, old: &ResourceState, inputs: &PropertyMap) -> Result<Diff, String> {
        self.compared(old, inputs)
            .map_err(|error| format!("its state cannot be compared: {error}"))
    }

    async fn claim(&self, state: &ResourceState) -> Result<(), CheckError> {
        let footprint = self
            .footprint(state)
            .map_err(|error| CheckError::Other(format!("its state cannot be used: {error}")))?;
        Ok(self.claims().take(&footprint.claim, &state.urn)?)
    }

    fn preview(&self, token: &str, inputs: &PropertyMap) -> Result<PropertyMap, String> {
        let ty = self.ty(token)?;
        Ok(outputs_beforehand(&ty.args, &ty.state, inputs))
    }
}

fn texts(paths: &[PropertyPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn path(text: &str) -> PropertyPath {
    PropertyPath::parse(text).unwrap_or_default()
}

fn failures(found: Vec<engine::Failure>) -> Vec<CheckFailure> {
    let failure = |found: engine::Failure| CheckFailure::new(path(&found.path), found.reason);
    found.into_iter().map(failure).collect()
}

fn footprint(found: engine::Footprint) -> Footprint {
    Footprint {
        target: found.target,
        claim: found.claim,
    }
}

fn change(found: engine::Change) -> Change {
    Change {
        path: path(&found.path),
        kind: match found.kind {
            engine::ChangeKind::Add => ChangeKind::Add,
            engine::ChangeKind::Update => ChangeKind::Update,
            engine::ChangeKind::Remove => ChangeKind::Remove,
        },
        replaces: found.replaces,
    }
}

/// What a future gives that waits for nothing: imports answer at once.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}
