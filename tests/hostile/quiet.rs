//! A tenant that does what tenants do, beside one that does not.

use std::time::{Duration, Instant};

use bindery_sandbox::{Limits, Run};
use bindery_tests::{BUILT_IN, properties, tenant, urn};
use serde_json::json;
use tokio::task::JoinHandle;

const MEMBER: &str = "bindery:compute/v1:BackendBucketIamMember";

/// The longest that an answer may take, on a machine with two cores and other tests on them.
const SOON: Duration = Duration::from_secs(3);

/// It asks and is answered, again and again, until it is dropped.
pub struct Quiet(JoinHandle<()>);

impl Quiet {
    /// Begins.
    pub async fn begin() -> Self {
        let tenant = tenant(&BUILT_IN, json!({"project": "home"}), &[], Limits::default()).await;
        let inputs = properties(json!({"name": "logs", "role": "roles/viewer", "member": "user:ann@example.com"}));
        let asking = tokio::spawn(async move {
            loop {
                let started = Instant::now();
                let run = Run::new();
                tenant.check(&run, &urn(MEMBER, "m"), MEMBER, &inputs).await.unwrap();
                let took = started.elapsed();
                assert!(took < SOON, "{took:?}");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        Self(asking)
    }

    /// It was answered all the time.
    pub async fn was_answered(self) {
        // Once more, now that the other has done what it does.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!self.0.is_finished(), "{:?}", self.0.await);
        self.0.abort();
    }
}
