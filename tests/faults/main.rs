//! Several programs of several engines at once on the same targets, under every fault of the services, killed now and then,
//! while somebody else writes too. At every write nothing may be gone that is to stay, and at the end each policy is what
//! the programs declare, what the other writer granted, and nothing else.
//!
//! `SEED=…` draws the same programs, faults and kills again; when each request comes is the machine's. `SOAK_SECONDS=…` goes on
//! for that long.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

mod engines;
mod program;
mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bindery_emulator::{Faults, Settings};
use engines::{Embedded, Engine, Pulumi};
use program::Program;
use world::World;

/// How many times each program changes, unless a time is given.
const ROUNDS: usize = 5;

/// Every fault at once.
fn faults(seed: u64) -> Faults {
    Faults {
        seed,
        writes_only: false,
        latency: Some(0.3),
        latency_ms: 20,
        conflict: 0.05,
        too_many_requests: 0.03,
        retry_after_seconds: 0,
        unavailable_before: 0.04,
        unavailable_after: 0.05,
        reset_before: 0.03,
        reset_after: 0.05,
        truncated: 0.03,
        html: 0.02,
    }
}

/// When a storm is over.
enum Until {
    Rounds(usize),
    Time(Instant),
}

impl Until {
    fn asked() -> Self {
        match std::env::var("SOAK_SECONDS")
            .ok()
            .and_then(|seconds| seconds.parse().ok())
        {
            Some(seconds) => Self::Time(Instant::now() + Duration::from_secs(seconds)),
            None => Self::Rounds(ROUNDS),
        }
    }

    fn is_over(&self, round: usize) -> bool {
        match self {
            Self::Rounds(rounds) => round >= *rounds,
            Self::Time(time) => Instant::now() >= *time,
        }
    }
}

fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("SEED={seed} draws the same programs, faults and kills again");
    seed
}

/// A program goes through its changes.
fn live(world: &World, engine: &dyn Engine, program: &mut Program, until: &Until) {
    for round in 0.. {
        if until.is_over(round) {
            break;
        }
        let can_be_killed = program.change(world);
        world.promise(program);
        engine.write(&program.yaml());
        if engine.can_be_killed() && can_be_killed && program.random.f64() < 0.3 {
            let after = Duration::from_millis(program.random.u64(50..1_500));
            if !engine.up_killed_after(after) {
                continue;
            }
        } else {
            engine.up();
        }
        world.is_done(program);
        program.is_done();
        if program.random.f64() < 0.3 {
            engine.refresh();
        }
    }
}

/// All programs at once, and the end of each.
fn storm(seed: u64, engines: Vec<Box<dyn Engine>>, world: &World) {
    let until = Until::asked();
    world.emulator.set(Settings {
        faults: faults(seed),
        ..Settings::default()
    });
    let is_over = AtomicBool::new(false);
    let mut programs: Vec<Program> = (0..engines.len()).map(|number| Program::new(number, seed)).collect();
    thread::scope(|scope| {
        let other = scope.spawn(|| world.write_as_others(seed, &is_over));
        let living = engines.iter().zip(&mut programs).map(|(engine, program)| {
            let until = &until;
            scope.spawn(move || live(world, engine.as_ref(), program, until))
        });
        let living: Vec<_> = living.collect();
        let ends: Vec<_> = living.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        other.join().unwrap();
        // What one program died of is told before what that did to the others.
        for end in ends {
            end.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    world.emulator.set(Settings::default());
    for (engine, program) in engines.iter().zip(&mut programs) {
        // What was killed last is finished; and of one nothing is left.
        if program.number == 0 {
            program.clear();
            world.promise(program);
            engine.destroy();
        } else {
            engine.up();
        }
        engine.refresh();
    }
    world.is_as(&programs, seed);
}

#[test]
fn several_processes_at_once_under_every_fault() {
    let seed = seed();
    let world = World::new();
    let engines = (0..3).map(|number| Box::new(Embedded::new(&world, number)) as Box<dyn Engine>);
    storm(seed, engines.collect(), &world);
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn both_engines_at_once_under_every_fault() {
    let seed = seed();
    let world = World::new();
    let engines: Vec<Box<dyn Engine>> = vec![
        Box::new(Embedded::new(&world, 0)),
        Box::new(Pulumi::new(&world, 1)),
        Box::new(Embedded::new(&world, 2)),
        Box::new(Pulumi::new(&world, 3)),
    ];
    storm(seed, engines, &world);
}
