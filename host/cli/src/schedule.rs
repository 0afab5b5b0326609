//! Runs tasks at the same time, each after those that it waits for.

use std::collections::{HashMap, VecDeque};
use std::future::Future;

use tokio::task::{Id, JoinSet};

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It did what it was to do.
    Done,
    /// It failed.
    Failed,
    /// It was not begun, because one that it waits for failed.
    Skipped,
}

/// Runs tasks `0..after.len()`, at most `parallel` of them at once; `after` lists for each the tasks that it waits for.
pub async fn run<F>(after: &[Vec<usize>], parallel: usize, task: impl Fn(usize) -> F) -> Vec<End>
where
    F: Future<Output = End> + Send + 'static,
{
    let mut queue = Queue::new(after);
    let mut running = JoinSet::new();
    let mut indices: HashMap<Id, usize> = HashMap::new();
    loop {
        while running.len() < parallel
            && let Some(index) = queue.ready.pop_front()
        {
            let work = task(index);
            let handle = running.spawn(async move { (index, work.await) });
            indices.insert(handle.id(), index);
        }
        match running.join_next_with_id().await {
            Some(Ok((id, (index, end)))) => {
                indices.remove(&id);
                queue.ended(index, end);
            }
            // A task that panicked: what waits for it is never begun.
            Some(Err(error)) => {
                if let Some(index) = indices.remove(&error.id()) {
                    queue.ended(index, End::Failed);
                }
            }
            // Tasks that wait for each other: one of them has to be the first.
            None if queue.force_one() => {}
            None => break,
        }
    }
    queue.ends.into_iter().map(|end| end.unwrap_or(End::Failed)).collect()
}

/// What can be begun, and what waits for what.
struct Queue {
    ready: VecDeque<usize>,
    ends: Vec<Option<End>>,
    /// For each task how many it still waits for; none once it is ready.
    missing: Vec<Option<usize>>,
    /// For each task those that wait for it.
    waiting: Vec<Vec<usize>>,
    /// Where the search for a task to force goes on.
    next_forced: usize,
}

impl Queue {
    fn new(after: &[Vec<usize>]) -> Self {
        let mut queue = Self {
            ready: VecDeque::new(),
            ends: vec![None; after.len()],
            missing: vec![None; after.len()],
            waiting: vec![Vec::new(); after.len()],
            next_forced: 0,
        };
        for (index, needed) in after.iter().enumerate() {
            for needed in needed {
                if let Some(waiting) = queue.waiting.get_mut(*needed) {
                    waiting.push(index);
                }
            }
            if needed.is_empty() {
                queue.ready.push_back(index);
            } else if let Some(missing) = queue.missing.get_mut(index) {
                *missing = Some(needed.len());
            }
        }
        queue
    }

    /// Notes how a task ended, and what that does to those that wait for it.
    fn ended(&mut self, index: usize, end: End) {
        let mut ended = vec![(index, end)];
        while let Some((index, end)) = ended.pop() {
            if let Some(slot) = self.ends.get_mut(index) {
                *slot = Some(end);
            }
            for next in self.waiting.get(index).into_iter().flatten() {
                let Some(slot) = self.missing.get_mut(*next) else {
                    continue;
                };
                // None: it was begun, or skipped, already.
                let Some(missing) = slot else { continue };
                if end != End::Done {
                    *slot = None;
                    ended.push((*next, End::Skipped));
                } else if *missing > 1 {
                    *missing -= 1;
                } else {
                    *slot = None;
                    self.ready.push_back(*next);
                }
            }
        }
    }

    /// Makes the first task ready that waits, if there is one.
    fn force_one(&mut self) -> bool {
        while let Some(slot) = self.missing.get_mut(self.next_forced) {
            if slot.take().is_some() {
                self.ready.push_back(self.next_forced);
                return true;
            }
            self.next_forced += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[tokio::test]
    async fn each_task_runs_after_those_that_it_waits_for() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let ends = run(&[vec![2], vec![], vec![1]], 8, |index| {
            let order = Arc::clone(&order);
            async move {
                order.lock().unwrap().push(index);
                End::Done
            }
        })
        .await;
        assert_eq!(ends, [End::Done; 3]);
        assert_eq!(*order.lock().unwrap(), [1, 2, 0]);
    }

    #[tokio::test]
    async fn tasks_that_wait_for_each_other_are_done_all_the_same() {
        let ends = run(&[vec![1], vec![0], vec![0]], 8, |_| async { End::Done }).await;
        assert_eq!(ends, [End::Done; 3]);
    }

    #[tokio::test]
    async fn a_task_that_panics_has_failed_and_every_end_is_known() {
        let ends = run(&[vec![1], vec![2], vec![]], 8, |index| async move {
            assert!(index != 2, "as it was told to");
            End::Done
        })
        .await;
        assert_eq!(ends, [End::Skipped, End::Skipped, End::Failed]);
    }

    #[tokio::test]
    async fn what_waits_for_a_failure_is_skipped_and_the_rest_is_done() {
        let ends = run(&[vec![], vec![0], vec![1], vec![]], 1, |index| async move {
            if index == 0 { End::Failed } else { End::Done }
        })
        .await;
        assert_eq!(ends, [End::Failed, End::Skipped, End::Skipped, End::Done]);
    }
}
