//! What a guest prints: kept by line, up to a cap, without control characters. An engine shows it on the resource: stderr
//! as warnings, stdout as debug messages.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::limits;

/// One of a guest's two outputs.
#[derive(Debug, Clone, Default)]
pub struct Output(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Output {
    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = limits::OUTPUT.saturating_sub(kept.bytes.len());
        let end = bytes.len().min(room);
        kept.is_cut |= end < bytes.len();
        kept.bytes.extend_from_slice(bytes.get(..end).unwrap_or_default());
    }

    /// The lines, cleaned for a terminal.
    pub fn lines(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept.bytes);
        let mut lines: Vec<String> = text.lines().map(clean).filter(|line| !line.is_empty()).collect();
        if kept.is_cut {
            lines.push(format!("(more output was cut off after {} bytes)", limits::OUTPUT));
        }
        lines
    }
}

/// A line without escape sequences and control characters, which could rewrite what a terminal shows.
pub fn clean(line: &str) -> String {
    let mut cleaned = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.peek() == Some(&'[') {
            chars.next();
            // A control sequence ends with a byte from `@` to `~`.
            while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
        } else if c == '\t' {
            cleaned.push(' ');
        } else if !c.is_control() && !is_direction(c) {
            cleaned.push(c);
        }
    }
    cleaned
}

/// A message, cleaned in the same way, and cut where it is too long.
pub fn message(text: &str) -> String {
    clean(&cut(text))
}

/// A message, cut where it is too long.
pub fn cut(text: &str) -> Cow<'_, str> {
    match text.get(..text.floor_char_boundary(limits::MESSAGE)) {
        Some(beginning) if beginning.len() < text.len() => Cow::Owned(format!("{beginning} (cut off)")),
        _ => Cow::Borrowed(text),
    }
}

/// Characters that turn the direction of text, so that what is read is not what is there.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.keep(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.keep(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        // Whatever is beyond the cap is taken and dropped: a guest is not stopped for talking too much.
        Ok(limits::OUTPUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_cleaned_and_cut() {
        let output = Output::default();
        output.keep("a \u{1b}[31mred\u{1b}[0m\u{7} line\r\n\n\u{202e}b\tc\n".as_bytes());
        assert_eq!(output.lines(), ["a red line", "b c"]);
        output.keep(&vec![b'x'; limits::OUTPUT]);
        assert!(output.lines().last().unwrap().contains("cut off"));
    }
}
