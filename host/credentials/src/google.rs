//! What requests carry. Tokens are asked for once for all calls, ahead of the end of those before; one that a service refuses is
//! replaced once.

use std::error::Error;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bindery_sandbox::credential::{Attached, Attaching, Credential, CredentialError};
use google_cloud_auth::credentials::{CacheableResource, Credentials};
use http::Extensions;

use crate::settings::Settings;
use crate::source::Source;

/// How long a token that was asked for because another was refused is not asked for again: a service that refuses whatever comes
/// does not make the host ask for ever.
const NOT_AGAIN: Duration = Duration::from_secs(60);

/// How long a request waits for a token.
const LONGEST: Duration = Duration::from_secs(20);

/// A credential by its settings. It prints as where it comes from.
pub struct GoogleCredential {
    settings: Settings,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    generation: u64,
    /// Made for the first request, and anew after a failure that would stay.
    credentials: Option<Credentials>,
    replaced: Option<Instant>,
}

impl fmt::Debug for GoogleCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GoogleCredential({})", self.settings.source)
    }
}

impl GoogleCredential {
    /// The credential that these settings say.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            current: Mutex::default(),
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn credentials(&self) -> Result<(u64, Credentials), CredentialError> {
        let mut current = self.current();
        if let Some(credentials) = &current.credentials {
            return Ok((current.generation, credentials.clone()));
        }
        let built = self.settings.source.credentials(&self.settings);
        let credentials = built.map_err(|error| self.error(&error, false))?;
        current.generation += 1;
        current.credentials = Some(credentials.clone());
        Ok((current.generation, credentials))
    }

    /// Has the next request begin anew, if nothing else did since.
    fn forget(&self, generation: u64) {
        let mut current = self.current();
        if current.generation == generation {
            current.credentials = None;
        }
    }

    /// Which source it was, what it said, and what to do.
    fn error(&self, error: &dyn Error, is_transient: bool) -> CredentialError {
        let source = &self.settings.source;
        // The innermost cause: what is around it repeats that there is no token.
        let mut innermost = error;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        let said = if error.to_string().contains("body=<") {
            error
        } else {
            innermost
        };
        let acting = match &self.settings.impersonate {
            Some(account) => format!(", acting as `{account}`"),
            None => String::new(),
        };
        let hint = match (source, &self.settings.impersonate) {
            (Source::Metadata, _) | (_, None) => source.hint(),
            (_, Some(_)) => {
                "who acts as it needs the role `roles/iam.serviceAccountTokenCreator` on it, and so does every delegate on the next"
            }
        };
        let mut message = format!("no credential from {source}{acting}: {hint} ({said})");
        for secret in source.secrets() {
            message = message.replace(&secret, "[secret]");
        }
        CredentialError { message, is_transient }
    }
}

impl Credential for GoogleCredential {
    fn attach(&self) -> Attaching<'_> {
        Box::pin(async move {
            let (generation, credentials) = self.credentials()?;
            let headers = tokio::time::timeout(LONGEST, credentials.headers(Extensions::new())).await;
            // What was asked for is still on its way, and the next request may have it.
            let headers = headers.map_err(|late| {
                // On a machine that is not of the cloud, nobody answers at the address of the metadata server.
                self.error(&late, !matches!(self.settings.source, Source::Metadata))
            })?;
            match headers {
                Ok(CacheableResource::New { data, .. }) => {
                    let mut headers = data;
                    for value in headers.values_mut() {
                        value.set_sensitive(true);
                    }
                    Ok(Attached { headers, generation })
                }
                // Only who has seen them before is answered so.
                Ok(CacheableResource::NotModified) => Err(CredentialError {
                    message: format!(
                        "no credential from {}: it says that nothing has changed",
                        self.settings.source
                    ),
                    is_transient: true,
                }),
                Err(error) => {
                    // A source that has failed for good asks no more by itself.
                    if !error.is_transient() {
                        self.forget(generation);
                    }
                    // Nobody is there to be asked again, on a machine that is not of the cloud.
                    let is_transient = error.is_transient() && !matches!(self.settings.source, Source::Metadata);
                    Err(self.error(&error, is_transient))
                }
            }
        })
    }

    fn refused(&self, attached: &Attached) -> bool {
        let mut current = self.current();
        // Another call has seen to it already.
        if attached.generation != current.generation || current.credentials.is_none() {
            return true;
        }
        let is_same = matches!(self.settings.source, Source::Token { .. }) && self.settings.impersonate.is_none();
        if is_same || current.replaced.is_some_and(|replaced| replaced.elapsed() < NOT_AGAIN) {
            return false;
        }
        current.replaced = Some(Instant::now());
        current.credentials = None;
        true
    }
}
