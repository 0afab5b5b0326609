//! What a call has while it runs: its store's data, and the meters of its limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::component::ResourceTable;
use wasmtime::{CallHook, Engine, ResourceLimiter, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::egress::Door;
use crate::limits::{self, Limits};
use crate::output::Output;

/// The epochs that have passed in a process.
pub type Clock = Arc<AtomicU64>;

/// The data of one call's store.
pub struct CallState {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    table: ResourceTable,
    door: Door,
    pub(crate) memory: MemoryMeter,
    pub(crate) cpu: CpuMeter,
}

/// Guest memory against its limit.
#[derive(Debug)]
pub struct MemoryMeter {
    limit: usize,
    used: usize,
    /// Whether the guest asked for more.
    pub is_exceeded: bool,
}

/// Guest CPU time against its limit, in ticks of the epoch. What passes in host calls is given back: resetting the budget
/// there would let a loop over a clock run for ever.
#[derive(Debug)]
pub struct CpuMeter {
    clock: Clock,
    started: u64,
    in_host_since: Option<u64>,
    in_host: u64,
    budget: u64,
    /// Whether the budget is used up.
    pub is_exceeded: bool,
}

impl CpuMeter {
    fn new(clock: Clock, limits: &Limits) -> Self {
        let budget = limits.cpu_time.as_millis() / limits::TICK.as_millis();
        Self {
            started: clock.load(Ordering::Relaxed),
            clock,
            in_host_since: None,
            in_host: 0,
            budget: u64::try_from(budget).unwrap_or(u64::MAX).max(1),
            is_exceeded: false,
        }
    }

    fn enter_host(&mut self) {
        self.in_host_since = Some(self.clock.load(Ordering::Relaxed));
    }

    fn leave_host(&mut self) {
        if let Some(since) = self.in_host_since.take() {
            self.in_host += self.clock.load(Ordering::Relaxed).saturating_sub(since);
        }
    }

    /// Whether the guest may go on.
    fn has_time(&mut self) -> bool {
        let elapsed = self.clock.load(Ordering::Relaxed).saturating_sub(self.started);
        self.is_exceeded = elapsed.saturating_sub(self.in_host) > self.budget;
        !self.is_exceeded
    }
}

impl ResourceLimiter for CallState {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // A component may have several memories.
        let total = self.memory.used + desired.saturating_sub(current);
        let is_within = total <= self.memory.limit;
        if is_within {
            self.memory.used = total;
        }
        self.memory.is_exceeded |= !is_within;
        Ok(is_within)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= limits::TABLE_ELEMENTS)
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: &mut self.door,
        }
    }
}

/// A store for one call.
pub fn new_store(
    engine: &Engine,
    clock: &Clock,
    limits: &Limits,
    door: Door,
    stdout: &Output,
    stderr: &Output,
) -> Store<CallState> {
    let mut table = ResourceTable::new();
    table.set_max_capacity(limits::RESOURCES);
    let mut http = WasiHttpCtx::new();
    http.set_field_size_limit(limits::HEADER_BYTES);
    let wasi = WasiCtx::builder()
        .stdout(stdout.clone())
        .stderr(stderr.clone())
        .max_random_size(limits::RANDOM_BYTES)
        .build();
    let state = CallState {
        wasi,
        http,
        table,
        door,
        memory: MemoryMeter {
            limit: limits.memory,
            used: 0,
            is_exceeded: false,
        },
        cpu: CpuMeter::new(Arc::clone(clock), limits),
    };
    let mut store = Store::new(engine, state);
    store.limiter(|state| state);
    store.set_hostcall_fuel(limits::LIFTED_BYTES);
    store.call_hook(|mut context, hook| {
        let cpu = &mut context.data_mut().cpu;
        match hook {
            // A host call may itself call the guest: its allocator, for what is handed to it.
            CallHook::CallingHost | CallHook::ReturningFromWasm => cpu.enter_host(),
            CallHook::ReturningFromHost | CallHook::CallingWasm => cpu.leave_host(),
        }
        Ok(())
    });
    store.set_epoch_deadline(1);
    // At every tick others get their turn; a guest that has used its budget does not get another.
    store.epoch_deadline_callback(|mut context| {
        Ok(if context.data_mut().cpu.has_time() {
            UpdateDeadline::Yield(1)
        } else {
            UpdateDeadline::Interrupt
        })
    });
    store
}
