//! A tenant that does what tenants do, beside one that does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bindery_sandbox::{Limits, Run};
use bindery_tests::{BUILT_IN, properties, tenant, urn};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const MEMBER: &str = "bindery:compute/v1:BackendBucketIamMember";

/// The longest that an answer may take, on a machine with two cores and other tests on them: what starves waits for longer.
const SOON: Duration = Duration::from_secs(8);

/// It asks and is answered, again and again, until it is dropped.
pub struct Quiet {
    asking: JoinHandle<()>,
    /// How many answers it was given.
    answers: Arc<AtomicUsize>,
}

impl Quiet {
    /// Begins.
    pub async fn begin() -> Self {
        let tenant = tenant(&BUILT_IN, json!({"project": "home"}), &[], Limits::default()).await;
        let inputs = properties(json!({"name": "logs", "role": "roles/viewer", "member": "user:ann@example.com"}));
        let answers = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&answers);
        let asking = tokio::spawn(async move {
            loop {
                let (run, urn) = (Run::new(), urn(MEMBER, "m"));
                let check = tenant.check(&run, &urn, MEMBER, &inputs);
                timeout(SOON, check).await.expect("it is answered soon").unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        Self { asking, answers }
    }

    /// It was answered all the time, and is now.
    pub async fn was_answered(self) {
        let until_now = self.answers.load(Ordering::Relaxed);
        assert!(until_now > 0, "nothing was answered");
        let begun = Instant::now();
        // One that was asked by now may have been answered already: the second is of afterwards.
        while self.answers.load(Ordering::Relaxed) < until_now + 2 {
            assert!(
                begun.elapsed() < 2 * SOON && !self.asking.is_finished(),
                "it is no longer answered"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.asking.abort();
    }
}
