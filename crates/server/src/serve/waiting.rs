//! Connections that have not sent a request yet, in order of arrival: if there are too many, the oldest is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// All of them, by number.
#[derive(Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<Connections>>);

#[derive(Default)]
struct Connections {
    next: u64,
    /// Dropping a sender ends the connection.
    open: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A connection's place among the waiting ones; released by dropping it, or by [`Entry::leave`].
pub(super) struct Entry {
    waiting: Waiting,
    number: u64,
}

/// Completes when a connection has to end, with `Ok` if it left.
pub(super) type Ended = oneshot::Receiver<()>;

impl Waiting {
    fn lock(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection.
    pub fn enter(&self) -> (Entry, Ended) {
        let (sender, ended) = oneshot::channel();
        let mut connections = self.lock();
        let number = connections.next;
        connections.next += 1;
        connections.open.insert(number, sender);
        (Entry { waiting: self.clone(), number }, ended)
    }

    /// Ends the connection that has waited longest; returns whether there was one.
    pub fn end_oldest(&self) -> bool {
        self.lock().open.pop_first().is_some()
    }
}

impl Entry {
    /// Notes that the connection has sent a request: it stays from now on.
    pub fn leave(&self) {
        if let Some(sender) = self.waiting.lock().open.remove(&self.number) {
            let _ = sender.send(());
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_that_waits_goes_first() {
        let waiting = Waiting::default();
        let (first, first_ended) = waiting.enter();
        let (_second, second_ended) = waiting.enter();
        let (third, _third_ended) = waiting.enter();
        first.leave();
        assert_eq!(first_ended.await, Ok(()), "one that left stays");
        assert!(waiting.end_oldest());
        assert!(second_ended.await.is_err(), "it has to end");
        drop(third);
        assert!(!waiting.end_oldest(), "nobody waits any more");
    }
}
