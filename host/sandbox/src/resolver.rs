//! The names of origins: looked up by the system, and of what is found only what may be dialled.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::origin::{is_localhost, is_public};

/// Resolves a tenant's names, and leaves out every address that is not public; `localhost` is this machine and nothing else.
#[derive(Debug)]
pub struct CheckedResolver(Arc<Semaphore>);

impl Default for CheckedResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS)))
    }
}

/// How many names of a tenant are looked up at the same time. Each has a thread, which nothing stops while a name's own server keeps
/// it waiting.
const LOOKUPS: usize = 4;

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookups = Arc::clone(&self.0);
        Box::pin(async move {
            let lookup = lookups.acquire_owned().await?;
            let found = tokio::task::spawn_blocking(move || {
                // Until the thread is done, and not only for as long as somebody waits for it.
                let _lookup = lookup;
                let found = (name.as_str(), 0).to_socket_addrs()?;
                Ok::<_, io::Error>((name, found))
            });
            let (name, found) = found.await??;
            let addresses: Addrs = Box::new(dialled(name.as_str(), found)?.into_iter());
            Ok(addresses)
        })
    }
}

/// Those of a name's addresses that may be dialled.
fn dialled(name: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, String> {
    let is_allowed = |address: &SocketAddr| {
        if is_localhost(name) {
            address.ip().is_loopback()
        } else {
            is_public(address.ip())
        }
    };
    let allowed: Vec<SocketAddr> = found.filter(is_allowed).collect();
    if allowed.is_empty() {
        return Err(format!("`{name}` resolves to no address that may be dialled"));
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_names_addresses_only_public_ones_are_dialled() {
        let dialled = |name: &str, found: &[&str]| {
            let found = found.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0));
            let dialled = dialled(name, found).unwrap_or_default();
            dialled
                .iter()
                .map(|address| address.ip().to_string())
                .collect::<Vec<_>>()
        };
        let all = [
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "169.254.169.254",
            "8.8.8.8",
            "::ffff:127.0.0.1",
        ];
        assert_eq!(dialled("rebound.example", &all), ["8.8.8.8"]);
        assert!(dialled("rebound.example", &all[..4]).is_empty());
        assert_eq!(dialled("localhost", &all), ["127.0.0.1", "::1"]);
        assert!(dialled("localhost", &all[2..5]).is_empty());
    }
}
