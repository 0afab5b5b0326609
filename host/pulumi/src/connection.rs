//! The protocol on a connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use pulumi_gestalt_proto::pulumi::pulumirpc::resource_provider_server::ResourceProviderServer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::provider::Provider;

/// The largest message that an engine sends, in bytes.
pub const LARGEST_MESSAGE: usize = 400 << 20;

/// A provider as the protocol's service, for messages of at most so many bytes.
pub fn service(provider: Provider, message_bytes: usize) -> ResourceProviderServer<Provider> {
    ResourceProviderServer::new(provider)
        .max_decoding_message_size(message_bytes)
        .max_encoding_message_size(message_bytes)
}

/// A connection of an engine, and what it holds for as long as it is open.
#[derive(Debug)]
pub struct Connection<H> {
    stream: TcpStream,
    _held: H,
}

impl<H> Connection<H> {
    /// An engine has connected.
    pub fn new(stream: TcpStream, held: H) -> Self {
        // Answers are small, and each is waited for.
        let _ = stream.set_nodelay(true);
        Self { stream, _held: held }
    }
}

impl<H> Connected for Connection<H> {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl<H: Unpin> AsyncRead for Connection<H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<H: Unpin> AsyncWrite for Connection<H> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
