//! The one door: every request of a guest passes here. It is taken whole, judged by the URI that is then dialled, given
//! its credential, and sent over the tenant's own pooled connections. Redirects are not followed.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http_body_util::{BodyExt, Full};
use memchr::memmem::Finder;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

use crate::credential::{Attached, Credential, CredentialError};
use crate::limits::{self, Limits};
use crate::origin::Origin;
use crate::resolver::CheckedResolver;
use crate::runtime::Runtime;
use crate::tls::Tls;
use crate::usage::Counters;

/// An origin that a component may call, and what its requests there carry.
#[derive(Debug, Clone)]
pub struct AllowedOrigin {
    /// Where.
    pub origin: Origin,
    /// The credential that is attached.
    pub credential: Option<Arc<dyn Credential>>,
}

/// How long a connection may take to be made. Longer than any network needs, shorter than a person waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a pooled connection is kept for the next request. Google closes idle ones after about four minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// A tenant's way out: its origins, and connections that no other tenant uses.
#[derive(Debug, Clone)]
pub(crate) struct Egress(Arc<Way>);

#[derive(Debug)]
struct Way {
    origins: Vec<AllowedOrigin>,
    user_agent: String,
    response_body: usize,
    counters: Arc<Counters>,
    tls: Arc<Tls>,
    /// For the requests that are under way: as many as calls may be.
    at_once: Semaphore,
    /// Its lookups of names.
    resolver: Arc<CheckedResolver>,
    /// Made for the first request: most tenants are idle, and some never send one.
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl Way {
    fn client(&self) -> Result<&reqwest::Client, Error> {
        let client = self.client.get_or_init(|| {
            reqwest::Client::builder()
                .tls_backend_preconfigured(self.tls.of_tenant()?)
                .user_agent(&self.user_agent)
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                // A proxy would resolve names itself, beyond what is checked here.
                .no_proxy()
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_idle_timeout(IDLE_TIMEOUT)
                .dns_resolver(Arc::clone(&self.resolver))
                .build()
                .map_err(|error| error.to_string())
        });
        let no_tls = |error: &String| Error::InternalError(Some(format!("no TLS on this machine: {error}")));
        client.as_ref().map_err(no_tls)
    }
}

impl Egress {
    /// A way out to these origins, within a tenant's limits.
    pub fn new(
        runtime: &Runtime,
        origins: Vec<AllowedOrigin>,
        user_agent: Option<String>,
        limits: &Limits,
        counters: Arc<Counters>,
    ) -> Self {
        const OWN: &str = concat!("bindery/", env!("CARGO_PKG_VERSION"));
        Self(Arc::new(Way {
            origins,
            user_agent: user_agent.map_or_else(|| OWN.to_string(), |more| format!("{OWN} {more}")),
            response_body: limits.response_body,
            counters,
            tls: Arc::clone(&runtime.tls),
            at_once: Semaphore::new(limits.calls_in_flight),
            resolver: Arc::default(),
            client: OnceLock::new(),
        }))
    }

    /// Whether requests to an origin would be let out.
    pub fn allows(&self, origin: &Origin) -> bool {
        self.0.origins.iter().any(|allowed| allowed.origin == *origin)
    }

    /// The door for one call, whose requests end with it; a closed one lets none out.
    pub(crate) fn door(&self, call_ends: Instant, is_closed: bool) -> Door {
        Door {
            egress: self.clone(),
            call_ends,
            is_closed,
            guest_ended: CancellationToken::new(),
            sent: 0,
            bodies: Bodies::default(),
            in_flight: TaskTracker::new(),
            has_written: Arc::default(),
            denials: Denials::default(),
        }
    }

    async fn send(
        &self,
        request: http::Request<WasiBody>,
        waits: Waits,
        bodies: &Bodies,
        has_written: &AtomicBool,
        denials: &Denials,
        guest_ended: &CancellationToken,
    ) -> Result<http::Response<WasiBody>, Error> {
        let (parts, body) = request.into_parts();
        let body = tokio::select! {
            biased;
            () = guest_ended.cancelled() => return Err(Error::HttpRequestBodySize(None)),
            body = self.take(body, bodies, denials) => body?,
        };
        let url = Url::parse(&parts.uri.to_string()).map_err(|_| Error::HttpRequestUriInvalid)?;
        let denied = |denial| {
            denials.push(denial);
            Error::HttpRequestDenied
        };
        let allowed = self.judge(&url).map_err(denied)?;
        let mut headers = parts.headers;
        // Set from the URL that is dialled, and from the body that was taken.
        headers.remove(header::HOST);
        headers.remove(header::CONTENT_LENGTH);
        let client = self.0.client()?;
        let send = async |attached: Option<&Attached>| {
            let mut request = client
                .request(parts.method.clone(), url.clone())
                .headers(headers.clone())
                .timeout(waits.until.saturating_duration_since(Instant::now()));
            if !body.is_empty() {
                request = request.body(body.clone());
            }
            if let Some(attached) = attached {
                request = request.headers(attached.headers.clone());
            }
            // Nobody would wait for its answer.
            if guest_ended.is_cancelled() || Instant::now() >= waits.until {
                return Err(Error::ConnectionTerminated);
            }
            self.0.counters.requests.fetch_add(1, Ordering::Relaxed);
            if !parts.method.is_safe() {
                has_written.store(true, Ordering::Relaxed);
            }
            match tokio::time::timeout(waits.first_byte, request.send()).await {
                Ok(response) => response.map_err(|error| transport(&error)),
                Err(_) => Err(Error::HttpResponseTimeout),
            }
        };
        // Each has a connection, until its answer is there. The semaphore is never closed.
        let connection = tokio::select! {
            () = guest_ended.cancelled() => return Err(Error::ConnectionTerminated),
            connection = tokio::time::timeout_at(waits.until, self.0.at_once.acquire()) => connection,
        };
        let _connection = connection.map_err(|_| Error::ConnectionTimeout)?;

        let Some(credential) = &allowed.credential else {
            return self.receive(send(None).await?, &[], bodies, denials).await;
        };
        let attach = async || {
            let attached = tokio::select! {
                () = guest_ended.cancelled() => return Err(Error::ConnectionTerminated),
                attached = tokio::time::timeout_at(waits.until, credential.attach()) => attached,
            };
            match attached {
                Ok(attached) => attached.map_err(|error| denied(Denial::Credential(error))),
                Err(_) => Err(Error::HttpResponseTimeout),
            }
        };
        let mut attached = attach().await?;
        let mut response = send(Some(&attached)).await?;
        if response.status() == http::StatusCode::UNAUTHORIZED && credential.refused(&attached) {
            let refused = attached;
            attached = attach().await?;
            response = send(Some(&attached)).await?;
            return self.receive(response, &[&refused, &attached], bodies, denials).await;
        }
        self.receive(response, &[&attached], bodies, denials).await
    }

    fn limit(&self, what: &'static str, setting: &'static str, value: String) -> Denial {
        self.0.counters.hit(setting);
        Denial::Limit { what, setting, value }
    }

    /// Takes a request's body whole.
    async fn take(&self, mut body: WasiBody, bodies: &Bodies, denials: &Denials) -> Result<Bytes, Error> {
        let mut taken = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if taken.len() + data.len() > limits::REQUEST_BODY {
                let value = format!("{} bytes", limits::REQUEST_BODY);
                denials.push(self.limit("a request's body was larger than allowed", "request body", value));
                return Err(Error::HttpRequestBodySize(Some(limits::REQUEST_BODY as u64)));
            }
            self.keep(bodies, data.len(), denials)?;
            taken.extend_from_slice(&data);
        }
        Ok(taken.into())
    }

    /// Counts what the host holds for a call.
    fn keep(&self, bodies: &Bodies, more: usize, denials: &Denials) -> Result<(), Error> {
        let held = bodies.0.fetch_add(more, Ordering::Relaxed) + more;
        if held <= limits::BODIES {
            return Ok(());
        }
        let value = format!("{} bytes", limits::BODIES);
        let what = "a call's requests and responses were larger than allowed together";
        denials.push(self.limit(what, "bodies", value));
        Err(Error::HttpResponseBodySize(Some(limits::BODIES as u64)))
    }

    /// Reads an answer whole, up to the tenant's limit.
    async fn receive(
        &self,
        mut response: reqwest::Response,
        attached: &[&Attached],
        bodies: &Bodies,
        denials: &Denials,
    ) -> Result<http::Response<WasiBody>, Error> {
        let limit = self.0.response_body;
        let too_large = || {
            let what = "a response was larger than allowed";
            denials.push(self.limit(what, "response_body", format!("{limit} bytes")));
            Error::HttpResponseBodySize(Some(limit as u64))
        };
        let announced = response.content_length().unwrap_or(0);
        if usize::try_from(announced).map_or(true, |length| length > limit) {
            return Err(too_large());
        }
        // What is compressed or a part could hold the credential unseen, and neither was asked for.
        if !attached.is_empty() && is_encoded(&response) {
            denials.push(Denial::Encoded);
            return Err(Error::HttpRequestDenied);
        }
        let mut answer = http::Response::builder().status(response.status());
        if let Some(headers) = answer.headers_mut() {
            headers.clone_from(response.headers());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| transport(&error))? {
            if body.len() + chunk.len() > limit {
                return Err(too_large());
            }
            self.keep(bodies, chunk.len(), denials)?;
            body.extend_from_slice(&chunk);
        }
        if attached
            .iter()
            .any(|attached| is_in(attached, response.headers(), &body))
        {
            denials.push(Denial::Echo);
            return Err(Error::HttpRequestDenied);
        }
        let body = Full::new(Bytes::from(body))
            .map_err(|never| match never {})
            .boxed_unsync();
        answer
            .body(body)
            .map_err(|error| Error::InternalError(Some(error.to_string())))
    }

    /// The origin that a URL is of, if it is allowed.
    fn judge(&self, url: &Url) -> Result<&AllowedOrigin, Denial> {
        let origin =
            Origin::of(url).ok_or_else(|| Denial::new(url.scheme(), "its scheme is neither http nor https"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Denial::new(&origin, "it names a user"));
        }
        self.0
            .origins
            .iter()
            .find(|allowed| allowed.origin == origin)
            .ok_or_else(|| Denial::new(&origin, "it is not among the component's origins"))
    }
}

/// Whether a response's body is something else than what it stands for, whole.
fn is_encoded(response: &reqwest::Response) -> bool {
    let encodings = response.headers().get_all(header::CONTENT_ENCODING).iter();
    let mut encodings = encodings.filter(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
    response.status() == http::StatusCode::PARTIAL_CONTENT || encodings.next().is_some()
}

/// Whether a service sent back the credential that it was sent: the guest would read it.
fn is_in(attached: &Attached, headers: &HeaderMap, body: &[u8]) -> bool {
    let secrets = attached.headers.get_all(header::AUTHORIZATION).iter();
    // Without the name of the scheme.
    let secrets = secrets.filter_map(|value| value.as_bytes().rsplit(|byte| *byte == b' ').next());
    secrets.filter(|secret| !secret.is_empty()).any(|secret| {
        let finder = Finder::new(secret);
        finder.find(body).is_some() || headers.values().any(|value| finder.find(value.as_bytes()).is_some())
    })
}

/// What the door did not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// A request to another place than the operator wrote down.
    Origin {
        /// Where it would have gone.
        origin: String,
        /// Why it was denied.
        reason: &'static str,
    },
    /// A limit was hit.
    Limit {
        /// What was too much.
        what: &'static str,
        /// The setting's name.
        setting: &'static str,
        /// Its value.
        value: String,
    },
    /// A request of a function that only plans.
    Planning,
    /// There was no credential to send.
    Credential(CredentialError),
    /// A response that held the credential.
    Echo,
    /// A response that could hold it unseen: compressed, or in part.
    Encoded,
}

impl Denial {
    fn new(origin: impl ToString, reason: &'static str) -> Self {
        Self::Origin {
            origin: origin.to_string(),
            reason,
        }
    }

    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. })
    }

    pub(crate) const fn of_credential(&self) -> Option<&CredentialError> {
        match self {
            Self::Credential(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Origin { origin, reason } => write!(
                f,
                "a request to `{origin}` was denied: {reason}; to allow it, add to the component's manifest:\n\
                 [[origin]]\nurl = \"{origin}\""
            ),
            Self::Limit { what, setting, value } => write!(f, "{what}; the limit is `{setting}` = {value}"),
            Self::Planning => f.write_str("a request was denied: a function that plans sends none"),
            Self::Credential(error) => write!(f, "a request had no credential: {error}"),
            Self::Encoded => f.write_str(
                "a response to a request with a credential was compressed or partial, and was kept from the component",
            ),
            Self::Echo => f.write_str("a response held the credential of its request, and was kept from the component"),
        }
    }
}

/// What was denied in one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Denials(Arc<Mutex<Vec<Denial>>>);

impl Denials {
    fn push(&self, denial: Denial) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(denial);
    }

    pub(crate) fn take(&self) -> Vec<Denial> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The door of one call.
#[derive(Debug)]
pub(crate) struct Door {
    egress: Egress,
    call_ends: Instant,
    is_closed: bool,
    /// A body that the guest has not finished by then is never sent.
    pub(crate) guest_ended: CancellationToken,
    sent: usize,
    /// What is left of the bodies of its requests and responses, in bytes.
    bodies: Bodies,
    /// The call's requests: each is awaited to its end, whatever becomes of the guest.
    pub(crate) in_flight: TaskTracker,
    /// Whether a request was sent that may change something.
    pub(crate) has_written: Arc<AtomicBool>,
    pub(crate) denials: Denials,
}

/// How many bytes of bodies the host has held for a call.
#[derive(Debug, Clone, Default)]
struct Bodies(Arc<AtomicUsize>);

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
struct Waits {
    /// Until its answer begins.
    first_byte: Duration,
    /// Until its answer is there.
    until: Instant,
}

type Sent = (
    http::Response<WasiBody>,
    Box<dyn Future<Output = Result<(), Error>> + Send>,
);

impl WasiHttpHooks for Door {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(is_forbidden)
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        if self.is_closed {
            self.denials.push(Denial::Planning);
            return Box::new(std::future::ready(Err(Error::HttpRequestDenied)));
        }
        self.sent += 1;
        if self.sent > limits::REQUESTS {
            let value = limits::REQUESTS.to_string();
            let limit = self.egress.limit("a call sent too many requests", "requests", value);
            self.denials.push(limit);
            return Box::new(std::future::ready(Err(Error::HttpRequestDenied)));
        }
        let asked = options.and_then(|options| options.first_byte_timeout);
        let waits = Waits {
            first_byte: asked.map_or(limits::FIRST_BYTE, |asked| asked.min(limits::FIRST_BYTE)),
            until: self.call_ends,
        };
        let (egress, denials, guest_ended) = (self.egress.clone(), self.denials.clone(), self.guest_ended.clone());
        let (bodies, has_written) = (self.bodies.clone(), Arc::clone(&self.has_written));
        let sending = self.in_flight.spawn(async move {
            egress
                .send(request, waits, &bodies, &has_written, &denials, &guest_ended)
                .await
        });
        Box::new(async move {
            let response = sending
                .await
                .map_err(|error| Error::InternalError(Some(error.to_string())))??;
            let done: Box<dyn Future<Output = _> + Send> = Box::new(std::future::ready(Ok(())));
            Ok((response, done))
        })
    }
}

/// Headers that are the host's: credentials, and how the message is carried.
fn is_forbidden(name: &HeaderName) -> bool {
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
        || name.as_str().starts_with("proxy-")
        || matches!(
            *name,
            header::AUTHORIZATION
                | header::COOKIE
                | header::HOST
                | header::CONNECTION
                | header::TE
                | header::TRAILER
                | header::TRANSFER_ENCODING
                | header::UPGRADE
                | header::CONTENT_LENGTH
                | header::EXPECT
                // The host looks for the credential in what comes back, so it comes back as it is.
                | header::ACCEPT_ENCODING
                | header::RANGE
                | header::IF_RANGE
        )
        || matches!(
            name.as_str(),
            "keep-alive" | "http2-settings" | "x-goog-user-project" | "x-forwarded-for" | "forwarded"
        )
}

/// What a client's error means to a guest, which must know whether the request was sent.
fn transport(error: &reqwest::Error) -> Error {
    let causes: Vec<String> = std::iter::successors(std::error::Error::source(error), |error| error.source())
        .map(ToString::to_string)
        .collect();
    let said = causes.join(": ");
    let is_tls = said.contains("certificate") || said.contains("UnknownIssuer");
    if error.is_connect() && is_tls {
        return Error::TlsCertificateError;
    }
    if error.is_connect() && error.is_timeout() {
        return Error::ConnectionTimeout;
    }
    if error.is_connect() {
        let is_name = said.contains("dns error") || said.contains("resolves to no address");
        return if is_name {
            Error::DnsError {
                rcode: Some(said),
                info_code: None,
            }
        } else {
            Error::ConnectionRefused
        };
    }
    if error.is_timeout() {
        return Error::HttpResponseTimeout;
    }
    if error.is_body() || error.is_decode() {
        return Error::HttpResponseIncomplete;
    }
    Error::ConnectionTerminated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn egress() -> Egress {
        let allow = |text| AllowedOrigin {
            origin: Origin::parse(text).unwrap(),
            credential: None,
        };
        let origins = vec![allow("https://api.example.com"), allow("http://127.0.0.1:9")];
        Egress::new(
            &Runtime::new().unwrap(),
            origins,
            None,
            &Limits::default(),
            Arc::default(),
        )
    }

    #[test]
    fn only_the_exact_origin_is_allowed() {
        let egress = egress();
        for url in [
            "https://api.example.com/a?b",
            "https://API.example.com:443/",
            "http://127.0.0.1:9/x",
        ] {
            assert!(egress.judge(&Url::parse(url).unwrap()).is_ok(), "{url}");
        }
        for url in [
            "http://api.example.com/",
            "https://api.example.com:8443/",
            "https://api.example.com.evil.example/",
            "https://evil.example/https://api.example.com/",
            "https://api.example.com@evil.example/",
            "https://user:secret@api.example.com/",
            "https://x@api.example.com/",
            "http://127.0.0.1:10/",
            "http://[::ffff:127.0.0.1]:9/",
            "ftp://api.example.com/",
        ] {
            assert!(egress.judge(&Url::parse(url).unwrap()).is_err(), "{url}");
        }
    }

    #[test]
    fn a_denial_says_the_line_that_would_allow_it_and_no_secret() {
        let url = Url::parse("https://user:secret@other.example/path?token=secret").unwrap();
        let denial = egress().judge(&url).unwrap_err().to_string();
        assert!(denial.contains("url = \"https://other.example\""), "{denial}");
        assert!(!denial.contains("secret"), "{denial}");
    }

    #[test]
    fn the_hosts_headers_are_forbidden() {
        for name in [
            "authorization",
            "cookie",
            "host",
            "proxy-authorization",
            "proxy-x",
            "transfer-encoding",
            "connection",
            "accept-encoding",
            "range",
        ] {
            assert!(is_forbidden(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["accept", "content-type", "x-custom"] {
            assert!(!is_forbidden(&HeaderName::from_static(name)), "{name}");
        }
    }
}
