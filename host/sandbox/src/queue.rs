//! One operation at a time on one target: two writes of one policy would only conflict.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as TurnMutex, OwnedMutexGuard};

/// A resource type's token, and a target.
type Key = (String, String);

/// The turns of a tenant's targets.
#[derive(Debug, Default)]
pub struct Queues {
    turns: Mutex<HashMap<Key, Weak<TurnMutex<()>>>>,
}

impl Queues {
    /// Waits for the turn of a resource type's target. It ends when what is returned is dropped.
    pub async fn turn(&self, token: &str, target: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let key = (token.to_string(), target.to_string());
            let waiting = turns.get(&key).and_then(Weak::upgrade);
            waiting.unwrap_or_else(|| {
                let turn = Arc::new(TurnMutex::new(()));
                turns.insert(key, Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }
}
