//! Runs tasks at the same time, each after those that it waits for.

use std::collections::HashMap;
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
    let mut ends: Vec<Option<End>> = vec![None; after.len()];
    let mut waiting: Vec<usize> = (0..after.len()).collect();
    let mut running = JoinSet::new();
    let mut indices = HashMap::new();
    loop {
        let mut has_skipped = false;
        let mut blocked = Vec::new();
        for index in waiting {
            let needed: Vec<Option<End>> = after
                .get(index)
                .into_iter()
                .flatten()
                .map(|needed| ends.get(*needed).copied().flatten())
                .collect();
            if needed.iter().any(|end| matches!(end, Some(End::Failed | End::Skipped))) {
                set(&mut ends, index, End::Skipped);
                has_skipped = true;
            } else if needed.iter().all(|end| *end == Some(End::Done)) && running.len() < parallel {
                start(&mut running, &mut indices, index, task(index));
            } else {
                blocked.push(index);
            }
        }
        waiting = blocked;
        if running.is_empty() && has_skipped {
            continue;
        }
        if running.is_empty() && !waiting.is_empty() {
            // Tasks that wait for each other: one of them has to be the first.
            let index = waiting.remove(0);
            start(&mut running, &mut indices, index, task(index));
        }
        match running.join_next().await {
            Some(Ok((index, end))) => set(&mut ends, index, end),
            // A task that panicked: what waits for it is never begun.
            Some(Err(error)) => {
                if let Some(index) = indices.get(&error.id()) {
                    set(&mut ends, *index, End::Failed);
                }
            }
            None => break,
        }
    }
    ends.into_iter().map(|end| end.unwrap_or(End::Failed)).collect()
}

fn start(
    running: &mut JoinSet<(usize, End)>,
    indices: &mut HashMap<Id, usize>,
    index: usize,
    work: impl Future<Output = End> + Send + 'static,
) {
    let handle = running.spawn(async move { (index, work.await) });
    indices.insert(handle.id(), index);
}

fn set(ends: &mut [Option<End>], index: usize, end: End) {
    if let Some(slot) = ends.get_mut(index) {
        *slot = Some(end);
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
