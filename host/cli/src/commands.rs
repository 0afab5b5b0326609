//! The commands.

use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bindery_emulator::{Emulator, Options};
use bindery_resource::{PropertyMap, Urn};
use bindery_stack::state::Owner;
use bindery_stack::{Deployment, Plan, Provider, ResourceState, StackFile, plan};
use tokio::task::JoinSet;

use crate::apply::{Apply, apply};
use crate::args::{EmulatorOptions, Target};
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use crate::settle::settle;
use crate::show::{self, BOLD, RED, YELLOW};
use crate::store::{Paths, Store};

/// A stack that a command works on.
struct Stack {
    file: StackFile,
    paths: Paths,
    owner: Owner,
}

impl Stack {
    fn open(target: &Target) -> Result<Self, Failure> {
        let shown = target.file.display();
        let text = std::fs::read_to_string(&target.file)
            .map_err(|error| Failure::input(format!("the stack file {shown} cannot be read: {error}")))?;
        let file = StackFile::parse(&text).map_err(|wrong| Failure::diagnostics(&target.file, wrong))?;
        let state_dir = target.state_dir.clone().unwrap_or_else(|| beside(&target.file));
        let paths = Paths::new(&state_dir, &file.name, &target.stack, target.emulate);
        let owner = Owner {
            project: file.name.clone(),
            stack: target.stack.clone(),
            provider: "bindery".to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        };
        Ok(Self { file, paths, owner })
    }

    async fn plan(&self, target: &Target, session: &Session, deployment: &Deployment) -> Result<Plan, Failure> {
        plan(&self.file, &target.stack, deployment, session)
            .await
            .map_err(|wrong| Failure::diagnostics(&target.file, wrong))
    }

    fn heading(&self, what: &str) {
        anstream::println!("{BOLD}{what} {}/{}{BOLD:#}", self.owner.project, self.owner.stack);
    }
}

/// `.bindery` beside the stack file.
fn beside(file: &Path) -> PathBuf {
    file.parent().unwrap_or_else(|| Path::new(".")).join(".bindery")
}

/// Makes what the stack file declares so.
pub async fn up(target: &Target) -> Result<(), Failure> {
    let stack = Stack::open(target)?;
    let store = Store::open(stack.paths.clone(), stack.owner.clone())?;
    let session = Session::start(target, None, Some(&stack.paths.policies())).await?;
    // What is wrong with the file is said before anything is asked of a service.
    stack.plan(target, &session, &Deployment::default()).await?;
    stack.heading("Updating");
    let unsettled = settle(&session, &store).await?;
    let session = Arc::new(session);
    if !store.deployment().resources.is_empty() && store.deployment().config != session.config {
        read_again(target, &session, &store).await?;
    }
    let plan = stack.plan(target, &session, &store.deployment()).await?;
    carry_out(target, session, store, plan, unsettled).await
}

/// Under another configuration what exists may mean something else: the state is brought up to it before it is compared.
async fn read_again(target: &Target, session: &Arc<Session>, store: &Store) -> Result<(), Failure> {
    println!("the configuration has changed since the last run: reading what exists");
    let resources = store.deployment().resources;
    let found = read_all(session, &resources, target.parallel.into()).await;
    let mut known = Vec::new();
    for (resource, found) in resources.into_iter().zip(found) {
        match found {
            Ok(found) => known.extend(found),
            Err(message) => {
                Report::warn(&resource.urn, &format!("it cannot be read: {message}"));
                known.push(resource);
            }
        }
    }
    noted(store.commit(|deployment| deployment.resources = known).await)
}

/// Shows what `up` would do.
pub async fn preview(target: &Target) -> Result<(), Failure> {
    let stack = Stack::open(target)?;
    let session = Session::start(target, None, None).await?;
    let deployment = stack.paths.load(&stack.owner)?;
    stack.heading("Previewing");
    if !deployment.pending_operations.is_empty() {
        println!("an earlier run was interrupted: `up` finds out what became of its operations first");
    }
    show::plan(&stack.plan(target, &session, &deployment).await?);
    Ok(())
}

/// Removes everything that the stack has made.
pub async fn destroy(target: &Target) -> Result<(), Failure> {
    let stack = Stack::open(target)?;
    let store = Store::open(stack.paths.clone(), stack.owner.clone())?;
    let kept = store.deployment().config;
    let session = Session::start(target, Some(&kept), Some(&stack.paths.policies())).await?;
    stack.heading("Destroying");
    let unsettled = settle(&session, &store).await?;
    let plan = Plan::destroy(&store.deployment());
    carry_out(target, Arc::new(session), store, plan, unsettled).await
}

/// Shows a plan, asks, and does it.
async fn carry_out(
    target: &Target,
    session: Arc<Session>,
    store: Store,
    plan: Plan,
    unsettled: HashSet<Urn>,
) -> Result<(), Failure> {
    show::plan(&plan);
    let has_work = !plan.is_empty();
    let is_settled = unsettled.is_empty();
    if has_work && !agreed(target)? {
        return if is_settled { Ok(()) } else { Err(Failure::reported()) };
    }
    // Also where nothing else changes: a later refresh or destroy goes by it.
    if store.deployment().config != session.config {
        let config = session.config.clone();
        noted(store.commit(|deployment| deployment.config = config).await)?;
    }
    stop_on_interrupt(&session);
    let context = Arc::new(Apply::new(session, store, Report::new(&target.file), unsettled));
    let is_done = apply(&context, plan, target.parallel.into()).await;
    if has_work {
        noted(context.store.commit(Deployment::sort).await)?;
    }
    println!("{}", context.report.summary());
    if is_done && is_settled {
        Ok(())
    } else {
        Err(Failure::reported())
    }
}

fn noted(written: io::Result<()>) -> Result<(), Failure> {
    written.map_err(|error| Failure::run(format!("the state cannot be written: {error}")))
}

/// Reads what exists, and notes what has changed.
pub async fn refresh(target: &Target) -> Result<(), Failure> {
    let stack = Stack::open(target)?;
    let store = Store::open(stack.paths.clone(), stack.owner.clone())?;
    let kept = store.deployment().config;
    let session = Arc::new(Session::start(target, Some(&kept), Some(&stack.paths.policies())).await?);
    stack.heading("Refreshing");
    let mut is_done = settle(&session, &store).await?.is_empty();
    stop_on_interrupt(&session);
    let resources = store.deployment().resources;
    let found = read_all(&session, &resources, target.parallel.into()).await;
    let mut drifted = 0;
    let mut refreshed = Vec::new();
    for (resource, found) in resources.into_iter().zip(found) {
        match found {
            Ok(Some(found)) => {
                drifted += usize::from(show_drift(&session, &resource, &found).await);
                refreshed.push(found);
            }
            Ok(None) => {
                anstream::println!(
                    "{RED} - {}{RED:#}  {} is gone",
                    resource.urn.name(),
                    resource.urn.token()
                );
                drifted += 1;
            }
            Err(message) => {
                Failure::run(format!("resource `{}`: {message}", resource.urn.name())).report();
                is_done = false;
                refreshed.push(resource);
            }
        }
    }
    match drifted {
        0 if !is_done => {}
        0 => println!("nothing has changed"),
        1 => println!("1 resource has changed; `up` mends it"),
        count => println!("{count} resources have changed; `up` mends them"),
    }
    // What a person would not call a change, a new etag or another spelling, is noted without a word.
    if refreshed != store.deployment().resources && (drifted == 0 || agreed(target)?) {
        noted(store.commit(|deployment| deployment.resources = refreshed).await)?;
    }
    if is_done { Ok(()) } else { Err(Failure::reported()) }
}

type Found = Result<Option<ResourceState>, String>;

async fn read_all(session: &Arc<Session>, resources: &[ResourceState], parallel: usize) -> Vec<Found> {
    let turns = Arc::new(tokio::sync::Semaphore::new(parallel));
    let mut reading = JoinSet::new();
    for (index, resource) in resources.iter().cloned().enumerate() {
        let (session, turns) = (Arc::clone(session), Arc::clone(&turns));
        reading.spawn(async move {
            let _turn = turns.acquire().await;
            let urn = resource.urn.clone();
            let context = session.context(move |event| Report::on_event(&urn, &event));
            let found = session
                .tenant
                .read(&context, resource.urn.token(), &resource.id, Some(&resource.outputs))
                .await;
            let found = found.map(|found| {
                found.map(|found| ResourceState {
                    id: found.id,
                    outputs: found.outputs,
                    ..resource
                })
            });
            (index, found.map_err(|error| error.to_string()))
        });
    }
    let mut all: Vec<Found> = vec![Err("it was not read".to_string()); resources.len()];
    while let Some(Ok((index, found))) = reading.join_next().await {
        if let Some(slot) = all.get_mut(index) {
            *slot = found;
        }
    }
    all
}

/// Shows what is no longer as it was declared. True if anything is.
async fn show_drift(session: &Session, old: &ResourceState, found: &ResourceState) -> bool {
    let diff = match session.diff(found, &old.inputs).await {
        Ok(diff) => diff,
        Err(message) => {
            Report::warn(&old.urn, &message);
            return false;
        }
    };
    // What is read in the same words has not changed, whatever the configuration's defaults are by now.
    if diff.changes.is_empty() || old.outputs == found.outputs {
        return false;
    }
    anstream::println!("{YELLOW} ~ {}{YELLOW:#}  {}", old.urn.name(), old.urn.token());
    for change in &diff.changes {
        let shown = |properties: &PropertyMap| {
            change
                .path
                .get(properties)
                .map_or("(none)".to_string(), ToString::to_string)
        };
        println!(
            "     {}: {} → {}",
            change.path,
            shown(&old.outputs),
            shown(&found.outputs)
        );
    }
    true
}

/// Serves the emulator until it is interrupted.
pub async fn emulator(options: &EmulatorOptions) -> Result<(), Failure> {
    let started = Emulator::start(Options {
        port: options.port,
        file: options.file.clone(),
        ..Options::default()
    });
    let emulator = started
        .await
        .map_err(|error| Failure::run(format!("the emulator cannot start: {error}")))?;
    let origin = emulator.origin();
    println!("policies of compute, datamigration and networkservices at {origin}");
    println!(
        "use it with --endpoint compute={origin} --endpoint datamigration={origin} --endpoint networkservices={origin}"
    );
    tokio::signal::ctrl_c().await.map_err(Failure::run)
}

/// Asks before anything is changed.
fn agreed(target: &Target) -> Result<bool, Failure> {
    if target.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(
            Failure::input("nobody can be asked here, because the input is not a terminal").with_hint("pass `--yes`"),
        );
    }
    print!("Do this? [y/N] ");
    io::stdout().flush().map_err(Failure::run)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Failure::run)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The first interrupt ends the run after what is under way.
fn stop_on_interrupt(session: &Session) {
    let cancel = session.cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            eprintln!("stopping after what is under way; interrupt again to stop at once");
            cancel.cancel();
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    });
}
