//! The commands, and what those share that change something.

mod destroy;
mod import;
mod inspect;
mod preview;
mod refresh;
mod schema;
mod serve;
mod state;
mod up;

use std::collections::HashSet;
use std::sync::Arc;

use bindery_emulator::{Emulator, Options};
use bindery_resource::{PropertyMap, Urn};
use bindery_stack::{Change, Owner, Plan, Targets};
use clap::CommandFactory;
use serde_json::json;

use crate::apply::{Apply, apply};
use crate::args::{Arguments, Command, EmulatorOptions, Place, Run, Selection, Services, State};
use crate::component;
use crate::failure::{Ending, Failure, unwritten};
use crate::interrupt::{asked_to_end, stop_on_interrupt};
use crate::prompt::agreed;
use crate::report::Report;
use crate::session::{Configuration, Session};
use crate::settle::settle;
use crate::show::Detail;
use crate::stack::{self, Stack};
use crate::store::Store;
use bindery_stack::configuration::Needs;

/// Does what a command line asks for.
pub async fn run(command: Command, report: &Report) -> Result<(), Failure> {
    match command {
        Command::Up(run) => up::up(&run, report).await,
        Command::Preview(options) => preview::preview(&options, report).await,
        Command::Refresh(run) => refresh::refresh(&run, report).await,
        Command::Destroy(run) => destroy::destroy(&run, report).await,
        Command::Import(options) => import::import(&options, report).await,
        Command::State {
            command: State::Show { place, resource },
        } => state::show(&place, resource.as_deref(), report),
        Command::State {
            command: State::Export { place },
        } => state::export(&place, report),
        Command::Inspect { component } => inspect::inspect(component.as_ref(), report),
        Command::Schema { component } => schema::schema(component.as_ref(), report),
        Command::Emulator(options) => emulator(&options, report).await,
        Command::Serve { tenants } => serve::serve(&tenants, report).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "bindery", &mut script);
            let script = String::from_utf8_lossy(&script);
            report.answer(&script, "script", json!(script));
            Ok(())
        }
    }
}

impl Selection {
    fn targets(&self) -> Targets {
        Targets::new(self.target.iter().cloned())
    }

    fn detail(&self) -> Detail {
        if self.diff { Detail::Whole } else { Detail::Folded }
    }
}

/// A stack with its provider configured.
struct Opened {
    stack: Stack,
    owner: Owner,
    session: Session,
    /// The values of the stack file's keys.
    config: PropertyMap,
}

/// Which configuration holds where the command line is silent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// The stack file's only.
    File,
    /// That of the run which made what exists.
    State,
}

impl Opened {
    /// Opens a stack for a command that changes nothing.
    async fn to_look(place: &Place, services: &Services, report: &Report) -> Result<Self, Failure> {
        not_both(place.of.emulate, services)?;
        let stack = Stack::open(place, report)?;
        let runtime = component::runtime(report)?;
        let loaded = component::load(&runtime, place.of.component.as_ref())?;
        let owner = stack.owner(&loaded.component);
        let values = stack::configuration(Some(&stack.file), &loaded, &services.config, Needs::Values)?;
        let configuration = Configuration {
            kept: None,
            file: values.settings,
            given: values.given,
            endpoints: &services.endpoint,
            emulate: place.of.emulate,
            policies: None,
            timeout: stack::timeout(services.timeout, Some(&stack.file)),
        };
        let started = Session::start(&runtime, loaded, configuration).await;
        let session = started.map_err(|failure| stack::in_place(Some(&stack.file), &services.config, failure))?;
        Ok(Self {
            stack,
            owner,
            session,
            config: values.keys,
        })
    }

    /// Opens a stack for a command that changes it.
    async fn to_change(run: &Run, kept: Kept, command: &str, report: &Report) -> Result<(Self, Store), Failure> {
        let Run { place, services, .. } = run;
        if !run.yes && !report.can_ask() {
            return Err(Failure::input("with `--json` and `--quiet` nobody is asked").with_hint("pass `--yes`"));
        }
        not_both(place.of.emulate, services)?;
        let stack = Stack::open(place, report)?;
        let runtime = component::runtime(report)?;
        let loaded = component::load(&runtime, place.of.component.as_ref())?;
        let owner = stack.owner(&loaded.component);
        let needs = match kept {
            Kept::File => Needs::Values,
            Kept::State => Needs::Settings,
        };
        let values = stack::configuration(Some(&stack.file), &loaded, &services.config, needs)?;
        let store = Store::open(stack.paths.clone(), owner.clone(), command, report)?;
        let last = store.look(|deployment| deployment.config.clone());
        let policies = stack.paths.policies();
        let configuration = Configuration {
            kept: (kept == Kept::State).then_some(&last),
            file: values.settings,
            given: values.given,
            endpoints: &services.endpoint,
            emulate: place.of.emulate,
            policies: Some(&policies),
            timeout: stack::timeout(services.timeout, Some(&stack.file)),
        };
        let started = Session::start(&runtime, loaded, configuration).await;
        let session = started.map_err(|failure| stack::in_place(Some(&stack.file), &services.config, failure))?;
        stop_on_interrupt(&session, report);
        let opened = Self {
            stack,
            owner,
            session,
            config: values.keys,
        };
        Ok((opened, store))
    }
}

/// Emulated services are at no other origin.
fn not_both(emulate: bool, services: &Services) -> Result<(), Failure> {
    if emulate && !services.endpoint.is_empty() {
        return Err(Failure::input("`--emulate` and `--endpoint` exclude each other").with_hint("choose one of them"));
    }
    Ok(())
}

/// A run that changes something, once its plan is made.
struct Changing<'c> {
    run: &'c Run,
    report: &'c Report,
    stack: &'c Stack,
    session: Arc<Session>,
    store: Arc<Store>,
    unsettled: HashSet<Urn>,
    /// What was found before the plan was made, and is part of the state once that is agreed to.
    found: Vec<Change>,
    /// All that was to be read before the plan was made was read.
    is_read: bool,
    /// The values of the file's keys; none where what is declared does not count.
    declared: Option<PropertyMap>,
}

impl Changing<'_> {
    /// Shows a plan, asks, and does it.
    async fn carry_out(self, plan: Plan) -> Result<(), Failure> {
        let Self {
            run,
            report,
            stack,
            session,
            store,
            unsettled,
            found,
            is_read,
            declared,
        } = self;
        report.plan(&plan, run.selection.detail());
        let is_settled = unsettled.is_empty() && is_read;
        // Also by its new name a resource is left alone.
        let renamed = plan.renamed.iter().filter(|(old, _)| unsettled.contains(old));
        let unsettled = renamed
            .map(|(_, new)| new.clone())
            .chain(unsettled.iter().cloned())
            .collect();
        let has_work = !plan.is_empty() || !plan.renamed.is_empty();
        let is_agreed = if has_work {
            agreed(run, &session.cancel).await
        } else {
            Ok(true)
        };
        if !matches!(is_agreed, Ok(true)) {
            store.close().await.map_err(unwritten)?;
            is_agreed?;
            return if is_settled {
                Ok(())
            } else {
                Err(Failure::reported(Ending::Failed))
            };
        }
        let mut changes = found;
        // Also where nothing else changes: a later refresh or destroy goes by it.
        if is_read && store.look(|deployment| deployment.config != session.config) {
            changes.push(Change::Configure(session.config.clone()));
        }
        if !plan.renamed.is_empty() {
            changes.push(Change::Rename(plan.renamed.clone()));
        }
        if !changes.is_empty() {
            store.commit(changes).await.map_err(unwritten)?;
        }
        let declared_file = declared.map(|config| (Arc::clone(&stack.file), stack.name.as_str(), config));
        let has_outputs = declared_file.is_some();
        let (session, store_too) = (Arc::clone(&session), Arc::clone(&store));
        let cancel = session.cancel.clone();
        let context = Arc::new(Apply::new(session, store_too, report.clone(), unsettled, declared_file));
        let mut is_done = apply(&context, plan, stack.parallel(run.parallel)).await;
        if has_outputs {
            match context.outputs() {
                Ok(outputs) => give(&store, report, outputs).await?,
                Err(wrong) => {
                    is_done = false;
                    wrong.into_iter().for_each(|diagnostic| report.problem(&diagnostic));
                }
            }
        } else if store.look(|deployment| deployment.is_empty() && !deployment.outputs.is_empty()) {
            store
                .commit(vec![Change::Export(PropertyMap::new())])
                .await
                .map_err(unwritten)?;
        }
        store.close().await.map_err(unwritten)?;
        report.summary();
        match is_done && is_settled {
            true => Ok(()),
            false if cancel.is_cancelled() => Err(Failure::reported(Ending::Interrupted)),
            false => Err(Failure::reported(Ending::Failed)),
        }
    }
}

/// Keeps and shows what the stack gives to others. What is not known, because it was no target or failed, keeps its last
/// value in the state.
async fn give(store: &Store, report: &Report, mut outputs: PropertyMap) -> Result<(), Failure> {
    report.outputs(&outputs);
    let last = store.look(|deployment| deployment.outputs.clone());
    outputs.retain(|name, value| {
        if value.has_unknown()
            && let Some(last) = last.get(name)
        {
            *value = last.clone();
        }
        !value.has_unknown()
    });
    if outputs == last {
        return Ok(());
    }
    store.commit(vec![Change::Export(outputs)]).await.map_err(unwritten)
}

/// Settles what an interrupted run left.
async fn settled(opened: &Opened, run: &Run, store: &Store, report: &Report) -> Result<HashSet<Urn>, Failure> {
    settle(&opened.session, store, report, opened.stack.parallel(run.parallel)).await
}

/// Serves the emulator until it is interrupted.
async fn emulator(options: &EmulatorOptions, report: &Report) -> Result<(), Failure> {
    let started = Emulator::start(Options {
        port: options.port,
        file: options.file.clone(),
        ..Options::default()
    });
    let emulator = started.await.map_err(|error| {
        Failure::run(format!("the emulator cannot start: {error}")).with_hint("choose another port with `--port`")
    })?;
    let origin = emulator.origin();
    let text = format!(
        "policies of compute, datamigration and networkservices at {origin}\nuse it with --endpoint compute={origin} \
         --endpoint datamigration={origin} --endpoint networkservices={origin}"
    );
    report.answer(&text, "origin", json!(origin));
    report.end_document("done");
    asked_to_end().await;
    Ok(())
}
