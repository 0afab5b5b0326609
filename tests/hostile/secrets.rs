//! Those that look for what is not theirs.

use std::sync::Arc;

use bindery_sandbox::Limits;
use bindery_sandbox::credential::BearerToken;
use bindery_sandbox::egress::AllowedOrigin;
use bindery_tests::{Server, allow};
use serde_json::json;

use crate::quiet::Quiet;
use crate::{hostile, told};

const TOKEN: &str = "ya29.Zq8-vT3xKw7Rb1Lp5Nc9Md2Hf6Js0Gy4";

fn with_token(server: &Server) -> Vec<AllowedOrigin> {
    vec![AllowedOrigin {
        credential: Some(Arc::new(BearerToken::new(TOKEN).unwrap())),
        ..allow(&server.origin)
    }]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_memory_holds_no_byte_of_the_token() {
    let quiet = Quiet::begin().await;
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 23\r\n\r\nwhat the service answers";
    let server = Server::start(Some(answer)).await;
    let tenant = hostile(with_token(&server), Limits::default()).await;
    let seen = told(&tenant, json!({"deed": "dump", "url": server.origin}))
        .await
        .unwrap();
    assert!(server.requests()[0].contains(&format!("authorization: Bearer {TOKEN}")));
    let digits = seen.split(' ').next().unwrap();
    assert!(digits.len() > 2 << 16, "{}", digits.len());
    let in_memory = |text: &str| {
        let text: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        digits.contains(&text)
    };
    assert!(in_memory("what the service answer"), "the memory is that of the call");
    // Nor any part of it.
    for part in TOKEN.as_bytes().windows(6) {
        assert!(!in_memory(std::str::from_utf8(part).unwrap()));
    }
    assert!(!in_memory("Bearer "));
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_services_that_send_the_token_back_do_not_reach_the_guest() {
    let quiet = Quiet::begin().await;
    const IN_BODY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 45\r\n\r\nit was ya29.Zq8-vT3xKw7Rb1Lp5Nc9Md2Hf6Js0Gy4 !";
    const IN_HEADER: &str =
        "HTTP/1.1 200 OK\r\nx-sent: Bearer ya29.Zq8-vT3xKw7Rb1Lp5Nc9Md2Hf6Js0Gy4\r\ncontent-length: 0\r\n\r\n";
    // In these it could be, where nobody looks.
    const COMPRESSED: &str = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx";
    const IN_PART: &str = "HTTP/1.1 206 Partial Content\r\ncontent-length: 9\r\n\r\nya29.Zq8-";
    for (answer, said) in [
        (IN_BODY, "held the credential of its request"),
        (IN_HEADER, "held the credential of its request"),
        (COMPRESSED, "was compressed or partial"),
        (IN_PART, "was compressed or partial"),
    ] {
        let server = Server::start(Some(answer)).await;
        let tenant = hostile(with_token(&server), Limits::default()).await;
        let error = told(&tenant, json!({"deed": "fetch", "url": server.origin}))
            .await
            .unwrap_err();
        assert!(error.message.contains(said), "{error}");
        assert!(!error.message.contains(TOKEN), "{error}");
    }
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_looks_at_the_host_find_nothing() {
    let (tenant, quiet) = (hostile(vec![], Limits::default()).await, Quiet::begin().await);
    let seen = told(&tenant, json!({"deed": "look"})).await.unwrap();
    // No variable, no argument, no input. For files there is nothing that could be imported.
    assert_eq!(seen, "[] [] \"\" true");
    quiet.was_answered().await;
}
