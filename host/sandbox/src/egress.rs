//! The one door: every request of a guest passes here. It is taken whole, judged by the URI that is then dialled, given
//! its credential, and sent over the tenant's own pooled connections. Redirects are not followed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http_body_util::{BodyExt, Full, Limited};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

use crate::limits;
use crate::origin::{Origin, is_localhost, is_public};

/// A bearer token. It prints as nothing.
#[derive(Clone)]
pub struct BearerToken(HeaderValue);

impl BearerToken {
    /// A token; none where it has characters that a header cannot carry.
    pub fn new(token: &str) -> Option<Self> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(…)")
    }
}

/// An origin that a component may call, and what its requests there carry.
#[derive(Debug, Clone)]
pub struct AllowedOrigin {
    /// Where.
    pub origin: Origin,
    /// The credential that is attached.
    pub bearer: Option<BearerToken>,
}

/// How long a connection may take to be made. Longer than any network needs, shorter than a person waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a pooled connection is kept for the next request. Google closes idle ones after about four minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// A tenant's way out: its origins, and connections that no other tenant uses.
#[derive(Debug, Clone)]
pub struct Egress {
    origins: Arc<[AllowedOrigin]>,
    client: reqwest::Client,
    response_body: usize,
}

impl Egress {
    /// A way out to these origins. Responses are read up to `response_body` bytes.
    ///
    /// # Errors
    /// When TLS cannot be set up: the platform has no roots.
    pub fn new(origins: Vec<AllowedOrigin>, response_body: usize) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("bindery/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            // A proxy would resolve names itself, beyond what is checked here.
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .dns_resolver(CheckedResolver)
            .build()?;
        Ok(Self {
            origins: origins.into(),
            client,
            response_body,
        })
    }

    /// Whether requests to an origin would be let out.
    pub fn allows(&self, origin: &Origin) -> bool {
        self.origins.iter().any(|allowed| allowed.origin == *origin)
    }

    /// The door for one call, whose requests end with it.
    pub(crate) fn door(&self, call_ends: Instant) -> Door {
        Door {
            egress: self.clone(),
            call_ends,
            guest_ended: CancellationToken::new(),
            sent: 0,
            in_flight: TaskTracker::new(),
            has_written: Arc::default(),
            denials: Denials::default(),
        }
    }

    async fn send(
        &self,
        request: http::Request<WasiBody>,
        wait: Duration,
        denials: &Denials,
        guest_ended: &CancellationToken,
    ) -> Result<http::Response<WasiBody>, Error> {
        let (parts, body) = request.into_parts();
        let body = tokio::select! {
            biased;
            () = guest_ended.cancelled() => return Err(Error::HttpRequestBodySize(None)),
            body = Limited::new(body, limits::REQUEST_BODY).collect() => body
                .map_err(|_| Error::HttpRequestBodySize(Some(limits::REQUEST_BODY as u64)))?
                .to_bytes(),
        };
        let url = Url::parse(&parts.uri.to_string()).map_err(|_| Error::HttpRequestUriInvalid)?;
        let allowed = self.judge(&url).map_err(|denial| {
            denials.push(denial);
            Error::HttpRequestDenied
        })?;
        let mut headers = parts.headers;
        // Set from the URL that is dialled, and from the body that was taken.
        headers.remove(header::HOST);
        headers.remove(header::CONTENT_LENGTH);
        let has_body = !body.is_empty();
        let mut request = self.client.request(parts.method, url).headers(headers).timeout(wait);
        if has_body {
            request = request.body(body);
        }
        if let Some(bearer) = &allowed.bearer {
            request = request.header(header::AUTHORIZATION, bearer.0.clone());
        }
        let response = request.send().await.map_err(|error| transport(&error))?;
        self.receive(response, denials).await
    }

    /// Reads an answer whole, up to the tenant's limit.
    async fn receive(
        &self,
        mut response: reqwest::Response,
        denials: &Denials,
    ) -> Result<http::Response<WasiBody>, Error> {
        let too_large = || {
            denials.push(Denial::ResponseBody(self.response_body));
            Error::HttpResponseBodySize(Some(self.response_body as u64))
        };
        let announced = response.content_length().unwrap_or(0);
        if usize::try_from(announced).map_or(true, |length| length > self.response_body) {
            return Err(too_large());
        }
        let mut answer = http::Response::builder().status(response.status());
        if let Some(headers) = answer.headers_mut() {
            headers.clone_from(response.headers());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| transport(&error))? {
            if body.len() + chunk.len() > self.response_body {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
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
        self.origins
            .iter()
            .find(|allowed| allowed.origin == origin)
            .ok_or_else(|| Denial::new(&origin, "it is not among the component's origins"))
    }
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
    /// A response larger than the tenant's limit, in bytes.
    ResponseBody(usize),
    /// More requests than one call may send.
    Requests,
}

impl Denial {
    fn new(origin: impl ToString, reason: &'static str) -> Self {
        Self::Origin {
            origin: origin.to_string(),
            reason,
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
            Self::ResponseBody(limit) => {
                write!(
                    f,
                    "a response was larger than allowed; the limit is `response_body` = {limit} bytes"
                )
            }
            Self::Requests => write!(f, "the call sent more than {} requests", limits::REQUESTS),
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
    /// A body that the guest has not finished by then is never sent.
    pub(crate) guest_ended: CancellationToken,
    sent: usize,
    /// The call's requests: each is awaited to its end, whatever becomes of the guest.
    pub(crate) in_flight: TaskTracker,
    /// Whether a request was sent that may change something.
    pub(crate) has_written: Arc<AtomicBool>,
    pub(crate) denials: Denials,
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
        self.sent += 1;
        if self.sent > limits::REQUESTS {
            self.denials.push(Denial::Requests);
            return Box::new(std::future::ready(Err(Error::HttpRequestDenied)));
        }
        if !request.method().is_safe() {
            self.has_written.store(true, Ordering::Relaxed);
        }
        let longest = self.call_ends.saturating_duration_since(Instant::now());
        let asked = options.and_then(|options| options.first_byte_timeout);
        let wait = asked.map_or(longest, |asked| asked.min(longest));
        let (egress, denials, guest_ended) = (self.egress.clone(), self.denials.clone(), self.guest_ended.clone());
        let sending = self
            .in_flight
            .spawn(async move { egress.send(request, wait, &denials, &guest_ended).await });
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
        )
        || matches!(
            name.as_str(),
            "keep-alive" | "http2-settings" | "x-goog-user-project" | "x-forwarded-for" | "forwarded"
        )
}

/// Resolves names, and leaves out every address that is not public; `localhost` is this machine and nothing else.
#[derive(Debug)]
struct CheckedResolver;

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_allowed = |address: &SocketAddr| {
                if is_localhost(name.as_str()) {
                    address.ip().is_loopback()
                } else {
                    is_public(address.ip())
                }
            };
            let allowed: Vec<SocketAddr> = found.filter(is_allowed).collect();
            if allowed.is_empty() {
                return Err(format!("`{}` resolves to no address that may be dialled", name.as_str()).into());
            }
            let addresses: Addrs = Box::new(allowed.into_iter());
            Ok(addresses)
        })
    }
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
            bearer: None,
        };
        Egress::new(vec![allow("https://api.example.com"), allow("http://127.0.0.1:9")], 1).unwrap()
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
        ] {
            assert!(is_forbidden(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["accept", "content-type", "x-custom"] {
            assert!(!is_forbidden(&HeaderName::from_static(name)), "{name}");
        }
    }
}
