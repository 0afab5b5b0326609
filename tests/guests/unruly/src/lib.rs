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
            Deed::Flood => {
                use waki::bindings::wasi::http::types::OutgoingBody;
                for _ in 0..90 {
                    if let Some(Begun { response, body }) = begin(&args, authority(&args), None) {
                        let _ = OutgoingBody::finish(body, None);
                        std::mem::forget(response);
                    }
                }
                std::thread::sleep(std::time::Duration::from_secs(3600));
                "slept".to_string()
            }
            Deed::Smuggle => {
                let path = args.headers.iter().flatten().find(|(name, _)| name == "path");
                smuggle(&args, path.map(|(_, path)| path.as_str()))?
            }
            Deed::Dump => {
                let answer = fetch(&args)?;
                format!("{} {answer}", memory())
            }
            Deed::Look => look(),
            Deed::Sleep => {
                std::thread::sleep(std::time::Duration::from_secs(3600));
                "slept".to_string()
            }
            Deed::BuildText => "x".repeat(100 << 20),
            Deed::BuildList => {
                let headers = vec![(String::new(), String::new()); 6_000_000];
                return Ok(ProbeState {
                    headers: Some(headers),
                    ..state(args, String::new())
                });
            }
            Deed::Grasp => loop {
                use waki::bindings::wasi::http::types::Fields;
                std::mem::forget(Fields::new());
            },
        };
        Ok(state(args, seen))
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

fn state(args: ProbeArgs, seen: String) -> ProbeState {
    ProbeState {
        deed: args.deed,
        url: args.url,
        headers: args.headers,
        seen,
        id: "probe".to_string(),
    }
}

fn authority(args: &ProbeArgs) -> &str {
    args.url.as_deref().unwrap_or_default().trim_start_matches("http://")
}

/// A request that has begun: its body, and the answer to come. None where a part of it is refused.
fn begin(args: &ProbeArgs, authority: &str, path: Option<&str>) -> Option<Begun> {
    use waki::bindings::wasi::http::types::{Fields, Method, OutgoingRequest, Scheme};
    let request = OutgoingRequest::new(Fields::new());
    let method = if args.deed == Deed::Abandon {
        Method::Post
    } else {
        Method::Get
    };
    request.set_method(&method).ok()?;
    request.set_scheme(Some(&Scheme::Http)).ok()?;
    request.set_authority(Some(authority)).ok()?;
    request.set_path_with_query(path.or(Some("/"))).ok()?;
    let body = request.body().ok()?;
    Some(Begun {
        response: waki::bindings::wasi::http::outgoing_handler::handle(request, None).ok()?,
        body,
    })
}

struct Begun {
    response: waki::bindings::wasi::http::types::FutureIncomingResponse,
    body: waki::bindings::wasi::http::types::OutgoingBody,
}

fn abandon(args: &ProbeArgs) -> String {
    // Neither is dropped while this instance lives.
    std::mem::forget(begin(args, authority(args), None));
    "left".to_string()
}

/// What became of a request whose parts are taken as they are.
fn smuggle(args: &ProbeArgs, path: Option<&str>) -> Result<String, Error> {
    use waki::bindings::wasi::http::types::OutgoingBody;
    let failed = |what: String| Error {
        code: ErrorCode::InvalidArgument,
        message: what,
        effect: Effect::None,
        retry_after: None,
    };
    let Begun { response, body } =
        begin(args, authority(args), path).ok_or_else(|| failed("a part was refused".to_string()))?;
    OutgoingBody::finish(body, None).map_err(|error| failed(format!("{error:?}")))?;
    response.subscribe().block();
    match response.get() {
        Some(Ok(Ok(answer))) => Ok(format!("{}", answer.status())),
        answer => Err(failed(format!("{answer:?}"))),
    }
}

/// All of this instance's memory, in hexadecimal digits.
fn memory() -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes = core::arch::wasm32::memory_size(0) << 16;
    let mut digits = String::with_capacity(2 * bytes);
    // Not from the very beginning: nothing may be read from address 0.
    for address in 8..bytes {
        // SAFETY: it is within the memory, which never shrinks.
        let byte = unsafe { (address as *const u8).read_volatile() };
        digits.push(char::from(DIGITS[usize::from(byte >> 4)]));
        digits.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    digits
}

fn look() -> String {
    use std::io::Read;
    let mut input = String::new();
    let read = std::io::stdin().read_to_string(&mut input);
    let variables: Vec<_> = std::env::vars().collect();
    let arguments: Vec<_> = std::env::args().collect();
    format!("{variables:?} {arguments:?} {input:?} {}", read.is_ok())
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
