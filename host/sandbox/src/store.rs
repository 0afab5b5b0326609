//! What a call has while it runs: its store's data, and the meters of its limits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wasmtime::component::ResourceTable;
use wasmtime::{Engine, ResourceLimiter, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::egress::Door;
use crate::limits::{self, Limits};
use crate::output::Output;
use crate::turns::CpuMeter;
use crate::usage::Counters;

/// The data of one call's store.
pub struct CallState {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    table: ResourceTable,
    door: Door,
    pub(crate) memory: MemoryMeter,
    pub(crate) cpu: Arc<CpuMeter>,
    table_elements: usize,
    /// Whether the guest asked for tables that are too large.
    pub(crate) is_table_exceeded: bool,
}

/// Guest memory against its limit. What it used is given back with it.
#[derive(Debug)]
pub struct MemoryMeter {
    limit: usize,
    used: usize,
    counters: Arc<Counters>,
    /// Whether the guest asked for more.
    pub is_exceeded: bool,
}

impl Drop for MemoryMeter {
    fn drop(&mut self) {
        self.counters.memory.fetch_sub(self.used, Ordering::Relaxed);
    }
}

impl ResourceLimiter for CallState {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // A component may have several memories.
        let more = desired.saturating_sub(current);
        let total = self.memory.used + more;
        let is_within = total <= self.memory.limit;
        if is_within {
            self.memory.used = total;
            self.memory.counters.memory.fetch_add(more, Ordering::Relaxed);
        }
        self.memory.is_exceeded |= !is_within;
        Ok(is_within)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // All of its tables together.
        let total = self.table_elements + desired.saturating_sub(current);
        let is_within = total <= limits::TABLE_ELEMENTS;
        if is_within {
            self.table_elements = total;
        }
        self.is_table_exceeded |= !is_within;
        Ok(is_within)
    }

    // Where there is no pool, nothing else counts these.
    fn instances(&self) -> usize {
        limits::CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        limits::CORE_INSTANCES as usize
    }

    fn memories(&self) -> usize {
        limits::MEMORIES as usize
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
    limits: &Limits,
    counters: &Arc<Counters>,
    cpu: Arc<CpuMeter>,
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
            counters: Arc::clone(counters),
            is_exceeded: false,
        },
        cpu,
        table_elements: 0,
        is_table_exceeded: false,
    };
    let mut store = Store::new(engine, state);
    store.limiter(|state| state);
    store.set_hostcall_fuel(limits::LIFTED_BYTES);
    store.set_epoch_deadline(1);
    // At every tick others get their turn; a guest that has used its time does not get another.
    store.epoch_deadline_callback(|context| {
        let cpu = &context.data().cpu;
        Ok(if cpu.has_time() {
            cpu.take_a_break();
            UpdateDeadline::Yield(1)
        } else {
            UpdateDeadline::Interrupt
        })
    });
    store
}
