//! Origins: where a component may send requests, and with which credential.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;
use url::{Host, Url};

/// `scheme://host[:port]`: https, or http on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: Scheme,
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scheme {
    Http,
    Https,
}

/// Why a text is not an origin that can be allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OriginError {
    /// It is no URL, or more than an origin.
    #[error("`{0}` is not an origin; expected `https://HOST[:PORT]`, without a path")]
    Form(String),
    /// http to another machine.
    #[error("`{0}` is not encrypted; plain http is possible to this machine only (`http://127.0.0.1:PORT`)")]
    NotEncrypted(String),
}

impl Origin {
    /// Parses what an operator writes.
    ///
    /// # Errors
    /// When it is more or less than an origin, or plain http to another machine.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let form = || OriginError::Form(text.to_string());
        let url = Url::parse(text).map_err(|_| form())?;
        let is_bare = url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_bare {
            // What stands beside an origin may be a password.
            let origin = Self::of(&url).ok_or_else(form)?;
            return Err(OriginError::Form(format!("{origin}/…")));
        }
        let origin = Self::of(&url).ok_or_else(form)?;
        if origin.scheme == Scheme::Http && !origin.is_loopback() {
            return Err(OriginError::NotEncrypted(text.to_string()));
        }
        Ok(origin)
    }

    /// The origin of a URL; none where the scheme is neither http nor https.
    pub fn of(url: &Url) -> Option<Self> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        Some(Self {
            scheme,
            host: url.host()?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }

    /// Whether this is the machine itself, by its address or as `localhost`.
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
            Host::Domain(name) => is_localhost(name),
        }
    }

    /// Whether requests are encrypted.
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::Https
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = match self.scheme {
            Scheme::Http => ("http", 80),
            Scheme::Https => ("https", 443),
        };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != default {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

/// The one name that may resolve to this machine.
pub fn is_localhost(name: &str) -> bool {
    name.trim_end_matches('.').eq_ignore_ascii_case("localhost")
}

/// Whether an address is one of the public internet's: what a name of an allowed origin may resolve to. A private one would
/// let whoever answers for the name point the host, with its credential, at a machine beside it.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_protocol = a == 192 && b == 0 && c == 0;
    let is_benchmark = a == 198 && (18..20).contains(&b);
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || is_shared
        || is_protocol
        || is_benchmark)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    let segments = address.segments();
    match segments {
        // NAT64 and 6to4 carry an IPv4 address, which is the one that is reached.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)),
        [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),
        // Everything public is in 2000::/3, less the documentation and protocol ranges.
        [first, second, ..] => {
            (first & 0xe000) == 0x2000 && !(first == 0x2001 && (second == 0xdb8 || second < 0x200)) && first != 0x3fff
        }
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for (text, shown) in [
            ("https://compute.googleapis.com", "https://compute.googleapis.com"),
            ("https://Compute.googleapis.com:443/", "https://compute.googleapis.com"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://localhost:1", "http://localhost:1"),
        ] {
            assert_eq!(Origin::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn more_than_an_origin_is_refused() {
        for text in [
            "compute.googleapis.com",
            "https://host/path",
            "https://host?query",
            "https://user@host",
            "https://:secret@host",
            "ftp://host",
            "https://",
            "file:///etc/passwd",
        ] {
            assert!(matches!(Origin::parse(text), Err(OriginError::Form(_))), "{text}");
        }
        for text in ["http://example.com", "http://10.0.0.1", "http://localhost.example.com"] {
            assert!(
                matches!(Origin::parse(text), Err(OriginError::NotEncrypted(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn private_and_special_addresses_are_not_public() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "fd00:ec2::254",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "8.8.8.8",
            "142.250.0.1",
            "2a00:1450:4001::200a",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
