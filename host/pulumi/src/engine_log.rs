//! What the engine shows on a resource. Best effort: a message that cannot be delivered soon is dropped, and no operation
//! waits for longer than that.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pulumi_gestalt_proto::pulumi::pulumirpc::engine_client::EngineClient;
use pulumi_gestalt_proto::pulumi::pulumirpc::{LogRequest, LogSeverity};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

/// How long one message may take. The engine is on this machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many messages wait to be sent.
const WAITING: usize = 1024;

/// The way to the engine.
#[derive(Debug, Clone)]
pub struct EngineLog {
    lines: mpsc::Sender<Line>,
    address: Arc<Mutex<Option<String>>>,
}

#[derive(Debug)]
enum Line {
    Message(String, LogRequest),
    /// Answered when everything before it is sent or dropped.
    Flush(oneshot::Sender<()>),
}

impl EngineLog {
    /// A way to the engine at this address, if one is known yet.
    pub fn new(address: Option<String>) -> Self {
        let (lines, waiting) = mpsc::channel(WAITING);
        tokio::spawn(send(waiting));
        Self {
            lines,
            address: Arc::new(Mutex::new(address)),
        }
    }

    /// The engine is at this address from now on. It is on this machine: another address would have the host knock at whatever door
    /// somebody names.
    pub fn attach(&self, address: &str) {
        if is_here(address) {
            *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.to_string());
        }
    }

    /// Shows a message on a resource; an empty URN is the stack's. An ephemeral one is the resource's status line, and not part of
    /// what is printed at the end.
    pub fn show(&self, severity: LogSeverity, urn: &str, message: String, ephemeral: bool) {
        let address = self.address.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(address) = address else { return };
        let request = LogRequest {
            severity: severity.into(),
            message,
            urn: urn.to_string(),
            stream_id: 0,
            ephemeral,
        };
        // Full means that the engine does not take them: then one more makes no difference.
        let _ = self.lines.try_send(Line::Message(address, request));
    }

    /// Waits until what was shown is with the engine.
    pub async fn flush(&self) {
        let (sent, all_sent) = oneshot::channel();
        if self.lines.try_send(Line::Flush(sent)).is_ok() {
            let _ = timeout(PATIENCE, all_sent).await;
        }
    }
}

fn is_here(address: &str) -> bool {
    match address.rsplit_once(':') {
        Some(("localhost", port)) => port.parse::<u16>().is_ok(),
        _ => address
            .parse::<SocketAddr>()
            .is_ok_and(|address| address.ip().is_loopback()),
    }
}

async fn send(mut lines: mpsc::Receiver<Line>) {
    let mut client: Option<(String, EngineClient<Channel>)> = None;
    while let Some(line) = lines.recv().await {
        match line {
            Line::Flush(sent) => {
                let _ = sent.send(());
            }
            Line::Message(address, request) => {
                if client.as_ref().is_none_or(|(known, _)| *known != address) {
                    let endpoint = Endpoint::from_shared(format!("http://{address}"));
                    client = endpoint
                        .ok()
                        .map(|endpoint| (address, EngineClient::new(endpoint.connect_lazy())));
                }
                if let Some((_, client)) = &mut client {
                    let _ = timeout(PATIENCE, client.log(request)).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn an_engine_is_on_this_machine() {
        for address in ["127.0.0.1:1234", "localhost:1234", "[::1]:1234"] {
            assert!(is_here(address), "{address}");
        }
        for address in [
            "",
            "192.0.2.2:7777",
            "169.254.169.254:80",
            "example.com:80",
            "localhost.example.com:80",
            "127.0.0.1",
        ] {
            assert!(!is_here(address), "{address}");
        }
    }
}
