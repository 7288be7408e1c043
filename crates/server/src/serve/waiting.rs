//! Connections that have asked for nothing yet, in the order of their coming: where there are too many, the oldest goes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// All of them, by number.
#[derive(Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<Connections>>);

#[derive(Default)]
struct Connections {
    next: u64,
    /// Whoever drops one of these ends the connection.
    open: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A connection's place among those that wait; it leaves by being dropped, or by [`Entry::leave`].
pub(super) struct Entry {
    waiting: Waiting,
    number: u64,
}

/// Is done when a connection has to end, and `Ok` when it left.
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

    /// Ends the one that waits longest; says whether there was one.
    pub fn end_oldest(&self) -> bool {
        self.lock().open.pop_first().is_some()
    }
}

impl Entry {
    /// It has asked for something: from now on it stays.
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
