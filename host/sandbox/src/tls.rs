//! TLS by rustls, with the roots that this machine trusts. They are read once for a process, and only if something is sent.

use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls_platform_verifier::BuilderVerifierExt;

/// How many services a tenant resumes sessions with.
const RESUMED_SESSIONS: usize = 16;

/// What all tenants' connections share: which certificates are trusted.
#[derive(Debug, Default)]
pub struct Tls(OnceLock<Result<ClientConfig, String>>);

impl Tls {
    /// The configuration of one tenant: sessions are resumed within it only.
    ///
    /// # Errors
    /// When this machine has no roots.
    pub fn of_tenant(&self) -> Result<ClientConfig, String> {
        let shared = self.0.get_or_init(trusted);
        let mut config = shared.clone()?;
        config.resumption = Resumption::in_memory_sessions(RESUMED_SESSIONS);
        Ok(config)
    }
}

fn trusted() -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.and_then(BuilderVerifierExt::with_platform_verifier);
    let mut config = config.map_err(|error| error.to_string())?.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
