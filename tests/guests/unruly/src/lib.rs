//! A provider that does what its input says, and what a provider should not do.
#![cfg(target_family = "wasm")]

mod job;

wit_bindgen::generate!({ path: "wit", world: "provider", generate_all });

use std::hint::black_box;
use std::time::Instant;

use bindery::engine::types::{Change, Effect, Error, ErrorCode, Failure, Footprint};
use exports::unruly::provider::about;
use exports::unruly::test::{probe, probe_plan};
use unruly::test::types::{Config, Deed, ProbeArgs, ProbeState};

struct Unruly;

export!(Unruly);

impl about::Guest for Unruly {
    fn configure(_: Config, _: Vec<String>) -> Result<Vec<String>, Vec<Failure>> {
        Ok(Vec::new())
    }
}

impl probe_plan::Guest for Unruly {
    fn check(_: Config, args: ProbeArgs, _: Vec<String>) -> Result<probe_plan::Checked, Vec<Failure>> {
        Ok(probe_plan::Checked {
            args,
            footprint: None,
            id: None,
        })
    }

    fn diff(_: Config, _: ProbeState, _: ProbeArgs, _: Vec<String>) -> Result<Vec<Change>, Failure> {
        Ok(Vec::new())
    }

    fn footprint_of(_: Config, old: ProbeState) -> Result<Footprint, Failure> {
        Ok(Footprint {
            target: old.id.clone(),
            claim: old.id,
        })
    }
}

impl probe::Guest for Unruly {
    fn create(_: Config, args: ProbeArgs) -> Result<ProbeState, Error> {
        let seen = match args.deed {
            Deed::Answer => "nothing".to_string(),
            Deed::Spin => loop {
                black_box(0);
            },
            Deed::WatchClock => loop {
                black_box(Instant::now());
            },
            Deed::Hoard => {
                let mut hoard = Vec::new();
                loop {
                    hoard.push(black_box(vec![1_u8; 1 << 20]));
                }
            }
            Deed::Recurse => recurse(1).to_string(),
            Deed::Panic => panic!("as it was told to"),
            Deed::Shout => {
                for _ in 0..10_000 {
                    eprintln!("\u{1b}[31mLOUD\u{7}");
                }
                "quiet again".to_string()
            }
            Deed::Fetch => fetch(&args)?,
            Deed::Hammer => loop {
                fetch(&args)?;
            },
            Deed::Abandon => abandon(&args),
        };
        Ok(ProbeState {
            deed: args.deed,
            url: args.url,
            headers: args.headers,
            seen,
            id: "probe".to_string(),
        })
    }

    fn read(_: Config, _: String, last: Option<ProbeState>) -> Result<Option<ProbeState>, Error> {
        Ok(last)
    }

    fn update(_: Config, old: ProbeState, _: ProbeArgs) -> Result<ProbeState, Error> {
        Ok(old)
    }

    fn delete(_: Config, _: ProbeState) -> Result<(), Error> {
        Ok(())
    }
}

#[expect(unconditional_recursion, reason = "what it is for")]
fn recurse(depth: u64) -> u64 {
    black_box(recurse(black_box(depth + 1)) + depth)
}

fn abandon(args: &ProbeArgs) -> String {
    use waki::bindings::wasi::http::outgoing_handler::handle;
    use waki::bindings::wasi::http::types::{Fields, Method, OutgoingRequest, Scheme};
    let url = args.url.as_deref().unwrap_or_default();
    let request = OutgoingRequest::new(Fields::new());
    let _ = request.set_method(&Method::Post);
    let _ = request.set_scheme(Some(&Scheme::Http));
    let _ = request.set_authority(Some(url.trim_start_matches("http://")));
    let body = request.body();
    let response = handle(request, None);
    // Neither is dropped while this instance lives.
    std::mem::forget((body, response));
    "left".to_string()
}

fn fetch(args: &ProbeArgs) -> Result<String, Error> {
    let failed = |what: String| Error {
        code: ErrorCode::Unavailable,
        message: what,
        effect: Effect::None,
        retry_after: None,
    };
    let url = args.url.as_deref().unwrap_or_default();
    // waki takes names that live for ever; this instance does not.
    let name = |name: &String| -> &'static str { name.clone().leak() };
    let headers = args
        .headers
        .iter()
        .flatten()
        .map(|(key, value)| (name(key), value.clone()));
    let response = waki::Client::new()
        .get(url)
        .headers(headers.collect::<Vec<_>>())
        .send()
        .map_err(|error| failed(format!("{error:?}")))?;
    let status = response.status_code();
    let body = response.body().map_err(|error| failed(format!("{error:?}")))?;
    Ok(format!("{status} {}", String::from_utf8_lossy(&body)))
}
