//! The cloud as far as credentials go: services over TLS that accept only tokens which were given out, those that give them out, and
//! a proxy that leads there from the cloud's own names.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The names that its certificate is for.
const NAMES: [&str; 4] = [
    "localhost",
    "oauth2.googleapis.com",
    "iamcredentials.googleapis.com",
    "sts.googleapis.com",
];

/// A request that came in.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// The host that it was sent to, and the path.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: String,
    /// HTTP/1.1 or HTTP/2.
    pub version: Version,
}

impl Arrived {
    /// A header's text.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Known {
    arrived: Vec<Arrived>,
    given: usize,
    valid: HashSet<String>,
    lifetime: u64,
    failures: Vec<StatusCode>,
    policy: Value,
}

/// Services on loopback.
#[derive(Debug)]
pub struct Cloud {
    /// `https://localhost:PORT`, where policies are.
    pub origin: String,
    /// Leads to it from any name: for `HTTPS_PROXY`.
    pub proxy: String,
    /// What gives out tokens in the clear: for `GCE_METADATA_HOST`.
    pub metadata: String,
    /// The roots that trust it, for `SSL_CERT_FILE`; and room for files of the test's own.
    pub folder: TempDir,
    known: Arc<Mutex<Known>>,
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            if let Ok((stream, address)) = self.listener.accept().await
                && let Ok(stream) = self.acceptor.accept(stream).await
            {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a free port")
}

fn address(listener: &TcpListener) -> String {
    listener.local_addr().expect("an address").to_string()
}

impl Cloud {
    /// Starts it.
    pub async fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let known = Arc::new(Mutex::new(Known {
            lifetime: 3600,
            policy: json!({"etag": "BwX0", "version": 1}),
            ..Known::default()
        }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&known));
        let (services, plain, proxy) = (listener().await, listener().await, listener().await);
        let to = address(&services);
        let port = to.rsplit(':').next().unwrap_or_default();
        let cloud = Self {
            origin: format!("https://localhost:{port}"),
            proxy: format!("http://{}", address(&proxy)),
            metadata: address(&plain),
            known,
            folder,
        };
        let tls = Tls {
            listener: services,
            acceptor: TlsAcceptor::from(Arc::new(cloud.certificate())),
        };
        tokio::spawn(axum::serve(tls, router.clone()).into_future());
        tokio::spawn(axum::serve(plain, router).into_future());
        tokio::spawn(async move {
            while let Ok((stream, _)) = proxy.accept().await {
                tokio::spawn(tunnel(stream, to.clone()));
            }
        });
        cloud
    }

    /// A certificate of an authority of its own, whose root is in a file.
    fn certificate(&self) -> ServerConfig {
        let key = || KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, key()).expect("an authority");
        std::fs::write(self.roots(), authority.pem()).expect("the folder can be written");
        let key = key();
        let names = NAMES.map(String::from);
        let certificate = CertificateParams::new(names).expect("names");
        let certificate = certificate.signed_by(&key, &authority).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a certificate and its key");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }

    /// The file of the roots that trust it.
    pub fn roots(&self) -> PathBuf {
        self.folder.path().join("roots.pem")
    }

    /// The environment of a program for which it is the cloud.
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("SSL_CERT_FILE", self.roots().display().to_string()),
            ("HTTPS_PROXY", self.proxy.clone()),
            ("NO_PROXY", "localhost,127.0.0.1".to_string()),
            ("BINDERY_CREDENTIAL_ORIGINS", self.origin.clone()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into()
    }

    /// Writes a file for a test.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).expect("the folder can be written");
        path.display().to_string()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panics with it")
    }

    /// The requests to a path that has this in it.
    pub fn arrived(&self, path: &str) -> Vec<Arrived> {
        let known = self.known();
        let arrived = known.arrived.iter().filter(|arrived| arrived.path.contains(path));
        arrived.cloned().collect()
    }

    /// How many tokens were given out.
    pub fn given(&self) -> usize {
        self.known().given
    }

    /// No token that was given out is good any more.
    pub fn revoke(&self) {
        self.known().valid.clear();
    }

    /// This token is good.
    pub fn accept(&self, token: &str) {
        self.known().valid.insert(token.to_string());
    }

    /// Tokens are good for so many seconds from now on.
    pub fn lifetime(&self, seconds: u64) {
        self.known().lifetime = seconds;
    }

    /// The next requests for a token are answered so.
    pub fn fail(&self, with: &[StatusCode]) {
        self.known().failures = with.iter().rev().copied().collect();
    }

    /// The members that have a role.
    pub fn members(&self) -> Vec<String> {
        let known = self.known();
        let bindings = known.policy.get("bindings").and_then(Value::as_array).cloned();
        let members = bindings.unwrap_or_default().into_iter().flat_map(|binding| {
            let members = binding.get("members").and_then(Value::as_array).cloned();
            members.unwrap_or_default()
        });
        members
            .filter_map(|member| Some(member.as_str()?.to_string()))
            .collect()
    }
}

/// What a proxy does for `CONNECT`, whatever the name.
async fn tunnel(mut stream: TcpStream, to: String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
    if let Ok(mut to) = TcpStream::connect(to).await {
        let _ = copy_bidirectional(&mut stream, &mut to).await;
    }
}

async fn answer(State(known): State<Arc<Mutex<Known>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap_or_else(|_| Bytes::new());
    let host = parts.uri.host().map(ToString::to_string);
    let host = host.or_else(|| Some(parts.headers.get("host")?.to_str().ok()?.to_string()));
    let path = format!("{}{}", host.unwrap_or_default(), parts.uri.path());
    let arrived = Arrived {
        path: path.clone(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        version: parts.version,
    };
    let is_policy = path.contains("IamPolicy");
    let answer = {
        let mut known = known.lock().expect("nobody panics with it");
        known.arrived.push(arrived.clone());
        if is_policy {
            known.policy(&arrived)
        } else {
            known.token(&arrived)
        }
    };
    // Several that ask at once are to be seen as several.
    tokio::time::sleep(Duration::from_millis(20)).await;
    answer
}

fn refuse(status: StatusCode, message: &str) -> Response {
    let error = json!({"error": {"code": status.as_u16(), "message": message, "status": "UNAUTHENTICATED"}});
    (status, axum::Json(error)).into_response()
}

impl Known {
    /// A policy is read and written with a good token only. One that its caller has signed is as good as its claims.
    fn policy(&mut self, arrived: &Arrived) -> Response {
        let token = arrived.header("authorization").trim_start_matches("Bearer ");
        let is_signed = token.split('.').count() == 3 && token.starts_with("eyJ");
        if !is_signed && !self.valid.contains(token) {
            return refuse(
                StatusCode::UNAUTHORIZED,
                "Request had invalid authentication credentials.",
            );
        }
        if let Ok(sent) = serde_json::from_str::<Value>(&arrived.body) {
            self.policy = sent.get("policy").cloned().unwrap_or(sent);
            self.policy["etag"] = json!(format!("BwX{}", self.arrived.len()));
        }
        axum::Json(self.policy.clone()).into_response()
    }

    fn token(&mut self, arrived: &Arrived) -> Response {
        if let Some(status) = self.failures.pop() {
            return refuse(status, "not now");
        }
        let is_acting = arrived.path.ends_with(":generateAccessToken");
        let token = arrived.header("authorization").trim_start_matches("Bearer ");
        if is_acting && !self.valid.contains(token) {
            return refuse(StatusCode::UNAUTHORIZED, "who is asking?");
        }
        self.given += 1;
        let token = format!("ya29.given-{}", self.given);
        self.valid.insert(token.clone());
        let lifetime = self.lifetime;
        axum::Json(json!({
            "access_token": token, "expires_in": lifetime, "token_type": "Bearer",
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "accessToken": token, "expireTime": "2099-01-01T00:00:00Z",
        }))
        .into_response()
    }
}
