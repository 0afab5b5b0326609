//! Answers that do not end, or are more than they seem.

use std::io::Write;
use std::time::Duration;

use bindery_sandbox::{ErrorCode, Limits};
use bindery_tests::allow;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::quiet::Quiet;
use crate::{ends_with, hostile, told};

/// A service that answers each connection so.
async fn service<F: Future<Output = ()> + Send + 'static>(answer: fn(TcpStream) -> F) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                answer(stream).await;
            });
        }
    });
    origin
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

async fn endless(mut stream: TcpStream) {
    let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 65536], b"\r\n"].concat();
    let _ = stream.write_all(HEAD).await;
    while stream.write_all(&chunk).await.is_ok() {}
}

async fn dripping(mut stream: TcpStream) {
    let _ = stream.write_all(HEAD).await;
    while stream.write_all(b"1\r\nx\r\n").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn endless_head(mut stream: TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
    while stream.write_all(b"x-more: and more\r\n").await.is_ok() {}
}

async fn bomb(mut stream: TcpStream) {
    let body = compressed();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
}

async fn large(mut stream: TcpStream) {
    let body = vec![b'x'; 7 << 20];
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
}

/// A hundred megabytes of nothing.
fn compressed() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let nothing = vec![0; 1 << 20];
    (0..100).for_each(|_| encoder.write_all(&nothing).unwrap());
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bodies_without_end_end_at_their_limit() {
    let origin = service(endless).await;
    let (tenant, quiet) = (
        hostile(vec![allow(&origin)], Limits::default()).await,
        Quiet::begin().await,
    );
    let inputs = json!({"deed": "fetch", "url": origin});
    let error = ends_with(&tenant, inputs, "`response_body` = 8388608 bytes").await;
    assert_eq!(error.code, ErrorCode::ResourceExhausted);
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bodies_that_drip_end_at_the_wall_time() {
    let origin = service(dripping).await;
    let limits = Limits {
        wall_time: Duration::from_secs(2),
        ..Limits::default()
    };
    let (tenant, quiet) = (hostile(vec![allow(&origin)], limits).await, Quiet::begin().await);
    let error = told(&tenant, json!({"deed": "fetch", "url": origin}))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("`wall_time` = 2s") || error.message.contains("HttpResponse"),
        "{error}"
    );
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_heads_without_end_are_no_answer() {
    let quiet = Quiet::begin().await;
    let origin = service(endless_head).await;
    let tenant = hostile(vec![allow(&origin)], Limits::default()).await;
    let error = told(&tenant, json!({"deed": "fetch", "url": origin}))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("Connection") || error.message.contains("Http"),
        "{error}"
    );
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_compressed_bodies_stay_what_they_are() {
    let quiet = Quiet::begin().await;
    let origin = service(bomb).await;
    let limits = Limits {
        response_body: 1 << 20,
        ..Limits::default()
    };
    let tenant = hostile(vec![allow(&origin)], limits).await;
    let seen = told(&tenant, json!({"deed": "fetch", "url": origin})).await.unwrap();
    let body = String::from_utf8_lossy(&compressed()).into_owned();
    assert_eq!(seen, format!("200 {body}"));
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bodies_of_one_call_have_a_limit_together() {
    let origin = service(large).await;
    let (tenant, quiet) = (
        hostile(vec![allow(&origin)], Limits::default()).await,
        Quiet::begin().await,
    );
    ends_with(
        &tenant,
        json!({"deed": "hammer", "url": origin}),
        "`bodies` = 67108864 bytes",
    )
    .await;
    quiet.was_answered().await;
}
