//! Configuration keys that the host answers, and that no component sees: how it gets the credential of the built-in
//! provider's requests.

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostKey {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub docs: &'static str,
    /// Whether its value is a credential.
    pub secret: bool,
    /// What a configuration that sets it is told, where nothing comes of it.
    pub without: Option<Without>,
}

/// What becomes of a key that does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// It cannot be accepted: requests would go out with another credential, or none.
    Refused,
    /// It makes no difference to a grant.
    Ignored,
}

/// The keys of the built-in provider.
pub const HOST_KEYS: [HostKey; 7] = [
    HostKey {
        name: "accessToken",
        docs: "An OAuth 2.0 access token for the provider's requests. Without it, the environment variable \
               `GOOGLE_OAUTH_ACCESS_TOKEN` is read. It is never written into the state.",
        secret: true,
        without: None,
    },
    HostKey {
        name: "credentials",
        docs: "A service account's key, as JSON or as a file. Not supported yet.",
        secret: true,
        without: Some(Without::Refused),
    },
    HostKey {
        name: "impersonateServiceAccount",
        docs: "The service account to act as. Not supported yet.",
        secret: false,
        without: Some(Without::Refused),
    },
    HostKey {
        name: "impersonateServiceAccountDelegates",
        docs: "The accounts through which to act as the service account, separated by commas. Not supported yet.",
        secret: false,
        without: Some(Without::Refused),
    },
    HostKey {
        name: "scopes",
        docs: "The scopes to ask for, separated by commas. Not supported yet.",
        secret: false,
        without: Some(Without::Refused),
    },
    HostKey {
        name: "quotaProject",
        docs: "The project whose quota is used. Not supported yet.",
        secret: false,
        without: Some(Without::Refused),
    },
    HostKey {
        name: "appendUserAgent",
        docs: "What is added to the user agent of requests. Not supported yet: it is ignored, with a warning.",
        secret: false,
        without: Some(Without::Ignored),
    },
];

/// Keys of the package that programs were written for before, under its name. They are accepted, and make no difference.
pub const GOOGLE_NATIVE_KEYS: [&str; 3] = ["disablePartnerName", "partnerName", "zone"];
