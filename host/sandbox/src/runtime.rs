//! The engine that all components of a process share.

use std::sync::Arc;
use std::thread;

use wasmtime::component::Linker;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::p2::bindings::{cli, random};
use wasmtime_wasi::random::WasiRandom;

use crate::cache::Cache;
use crate::component::{Component, LoadError};
use crate::instances::Instances;
use crate::limits::{self, Limits};
use crate::store::CallState;
use crate::tls::Tls;
use crate::turns::LongTurns;

/// Loads components, and lends them instances. Cheap to clone; one for a process.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) engine: Engine,
    /// One for each instance of the pool.
    pub(crate) instances: Arc<Instances>,
    pub(crate) long_turns: LongTurns,
    pub(crate) tls: Arc<Tls>,
    linker: Arc<Linker<CallState>>,
    cache: Option<Cache>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runtime")
    }
}

impl Runtime {
    /// An engine for one tenant with the default limits.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly compiled here.
    pub fn new() -> wasmtime::Result<Self> {
        Self::for_calls(Limits::default().calls_in_flight)
    }

    /// An engine with a pool of instances for tenants that have so many calls in flight together, by their limits: up to 1,792 of them
    /// none ever waits for another tenant's. Without a pool where the machine has not the address space for it.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly compiled here.
    pub fn for_calls(calls_in_flight: usize) -> wasmtime::Result<Self> {
        // A tenant may hold as many as are free beside the reserve.
        let instances = calls_in_flight.saturating_mul(2 * limits::RESERVE) / (limits::RESERVE - 1);
        let instances = instances.clamp(limits::RESERVE, limits::INSTANCES);
        let count = u32::try_from(instances)?;
        let engine = Engine::new(&config(pool(count)))
            .or_else(|_| Engine::new(&config(InstanceAllocationStrategy::OnDemand)))?;
        start_ticking(&engine);
        Ok(Self {
            linker: Arc::new(linker(&engine)?),
            engine,
            instances: Instances::new(instances, instances / limits::RESERVE),
            long_turns: LongTurns::new(),
            tls: Arc::default(),
            cache: None,
        })
    }

    /// The same, which keeps what it compiles.
    #[must_use]
    pub fn with_cache(self, cache: Cache) -> Self {
        Self {
            cache: Some(cache),
            ..self
        }
    }

    /// Compiles a component, and reads what it is. Nothing of it runs.
    ///
    /// # Errors
    /// When it is not a component, imports what it does not get, or does not keep to the contract.
    pub fn load(&self, bytes: &[u8]) -> Result<Component, LoadError> {
        Component::load(&self.engine, &self.linker, self.cache.as_ref(), bytes)
    }
}

fn pool(instances: u32) -> InstanceAllocationStrategy {
    let mut pool = PoolingAllocationConfig::default();
    let core = instances * limits::CORE_INSTANCES;
    pool.total_component_instances(instances)
        .total_core_instances(core)
        .total_memories(instances * limits::MEMORIES)
        .max_core_instances_per_component(limits::CORE_INSTANCES)
        .max_tables_per_component(limits::CORE_INSTANCES)
        .max_memories_per_component(limits::MEMORIES)
        .total_tables(core)
        .total_stacks(instances)
        .table_elements(limits::TABLE_ELEMENTS)
        .max_memory_size(limits::MEMORY_CEILING);
    pool.into()
}

fn config(allocation: InstanceAllocationStrategy) -> Config {
    let mut config = Config::new();
    config
        .allocation_strategy(allocation)
        .epoch_interruption(true)
        .max_wasm_stack(limits::STACK)
        // No component-model async: stores and calls are cheaper without.
        .concurrency_support(false);
    config
}

/// Advances the epoch for as long as the engine lives.
fn start_ticking(engine: &Engine) {
    let engine = engine.weak();
    thread::spawn(move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            thread::sleep(limits::TICK);
        }
    });
}

/// The answers to what a provider may import: see [`crate::imports`].
fn linker(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    let l = &mut linker;
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(l)?;
    random::insecure::add_to_linker::<_, WasiRandom>(l, |state: &mut CallState| state.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(l, |state: &mut CallState| state.ctx().ctx.random())?;
    cli::environment::add_to_linker::<_, WasiCli>(l, CallState::cli)?;
    cli::exit::add_to_linker::<_, WasiCli>(l, CallState::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(l, CallState::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(l, CallState::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, CallState::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, CallState::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, CallState::cli)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(l)?;
    Ok(linker)
}
