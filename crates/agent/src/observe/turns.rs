//! Schedules which service is traced next, and when. Pure.
//!
//! Invariant: while over budget the agent still traces, at most one service per [`OVER_BUDGET`]. Otherwise a machine on which it is always
//! over budget would never report what its services do.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::candidates::Candidate;
use crate::labels::Attributes;

/// Pause before a service is traced again, after each trace; the last one repeats.
const REPEATS: [Duration; 4] =
    [Duration::from_secs(15), Duration::from_secs(40), Duration::from_secs(120), Duration::from_secs(300)];
/// Pause between two traces of any services while the agent is over budget.
const OVER_BUDGET: Duration = Duration::from_secs(120);
/// A service that was not a candidate for this long counts as new when it returns.
const FORGET: Duration = Duration::from_secs(3600);
/// Pause between two traces of any services.
const BETWEEN: Duration = Duration::from_secs(1);

/// State of a service: when it was first and last a candidate, when it is traced next, and how many times it was traced.
#[derive(Debug)]
struct Turn {
    first: Instant,
    seen: Instant,
    next: Instant,
    watched: usize,
}

/// The schedule of all services.
#[derive(Debug, Default)]
pub(super) struct Turns {
    known: HashMap<Attributes, Turn>,
    /// End of the last trace.
    last: Option<Instant>,
}

impl Turns {
    /// Registers the current candidates.
    pub fn meet(&mut self, candidates: &[Candidate], now: Instant) {
        self.known.retain(|_, turn| now.saturating_duration_since(turn.seen) < FORGET);
        for one in candidates {
            let turn = self.known.entry(one.attributes.clone());
            turn.or_insert(Turn { first: now, seen: now, next: now, watched: 0 }).seen = now;
        }
    }

    /// The service to trace now, of those that are due: the one that was traced least, and of several the one that has waited longest. Services
    /// with long-running processes come first: others have no wake-up interval. While over budget none, until the pause has passed.
    ///
    /// Kernel time does not decide: where new services keep beginning, as in a build, small ones would never be traced.
    pub fn next<'a>(
        &self,
        candidates: &'a [Candidate],
        is_over: bool,
        now: Instant,
    ) -> Option<&'a Candidate> {
        let is_time = self.last.is_none_or(|last| now.saturating_duration_since(last) >= OVER_BUDGET);
        if is_over && !is_time {
            return None;
        }
        let turn = |one: &Candidate| self.known.get(&one.attributes).filter(|turn| turn.next <= now);
        let due = candidates.iter().filter_map(|one| Some((one, turn(one)?)));
        due.min_by_key(|(one, turn)| (!one.is_steady, turn.watched, turn.first)).map(|(one, _)| one)
    }

    /// Notes that a service was traced until now. `found`: one of its processes still existed.
    pub fn watched(&mut self, attributes: &Attributes, found: bool, now: Instant) {
        if found {
            self.last = Some(now);
        }
        if let Some(turn) = self.known.get_mut(attributes) {
            turn.next = now + REPEATS[turn.watched.min(REPEATS.len() - 1)];
            turn.watched += 1;
        }
    }

    /// Time until a service may be due.
    pub fn pause(&self, candidates: &[Candidate], now: Instant) -> Duration {
        let turns = candidates.iter().filter_map(|one| self.known.get(&one.attributes));
        let next = turns.map(|turn| turn.next).min();
        next.map_or(FORGET, |next| next.saturating_duration_since(now)).max(BETWEEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(names: &[&str]) -> Vec<Candidate> {
        let candidate = |name: &&str| Candidate {
            attributes: [("service.name".to_owned(), (*name).to_owned())].into(),
            pids: vec![1],
            is_steady: true,
        };
        names.iter().map(candidate).collect()
    }

    /// Simulates `seconds`, with five for each trace. Returns when each service was traced.
    fn watches(turns: &mut Turns, names: &[&str], is_over: bool, seconds: u64) -> Vec<(u64, String)> {
        let (begin, candidates) = (Instant::now(), candidates(names));
        let (mut second, mut watched) = (0, Vec::new());
        while second < seconds {
            let now = begin + Duration::from_secs(second);
            turns.meet(&candidates, now);
            match turns.next(&candidates, is_over, now) {
                Some(one) => {
                    watched.push((second, one.attributes["service.name"].clone()));
                    turns.watched(&one.attributes, true, now + Duration::from_secs(5));
                    second += 5;
                }
                None => second += 1,
            }
        }
        watched
    }

    #[test]
    fn over_the_budget_each_is_watched_in_turn_one_in_two_minutes() {
        let seen = watches(&mut Turns::default(), &["a", "b", "c"], true, 520);
        let names: Vec<&str> = seen.iter().map(|(_, name)| &**name).collect();
        assert_eq!(names, ["a", "b", "c", "a", "b"], "{seen:?}");
        assert_eq!(seen[0].0, 0, "the first is not put off");
        assert!(seen.windows(2).all(|pair| pair[1].0 - pair[0].0 >= OVER_BUDGET.as_secs()), "{seen:?}");
    }

    #[test]
    fn within_the_budget_a_service_is_watched_ever_more_rarely() {
        let seen = watches(&mut Turns::default(), &["a", "b"], false, 200);
        let of_a: Vec<u64> = seen.iter().filter(|(_, name)| name == "a").map(|(second, _)| *second).collect();
        assert_eq!(of_a, [0, 20, 65, 190], "{seen:?}");
        assert!(seen.len() >= 7, "the other one in between: {seen:?}");
    }

    #[test]
    fn new_services_do_not_put_off_one_that_waits() {
        for is_over in [false, true] {
            let (mut turns, begin) = (Turns::default(), Instant::now());
            // With each trace begins a service that has more kernel time.
            for round in 0..100_u32 {
                let now = begin + OVER_BUDGET * round;
                let new: Vec<String> = (0..2).map(|which| format!("{round}-{which}")).collect();
                let found = candidates(&[&new[0], &new[1], "daemon"]);
                turns.meet(&found, now);
                let next = turns.next(&found, is_over, now).expect("one is due").clone();
                turns.watched(&next.attributes, true, now);
                if next == found[2] {
                    break;
                }
                assert!(round < 3, "over budget: {is_over}");
            }
        }
    }

    #[test]
    fn processes_that_have_ended_take_nobodys_turn() {
        let (mut turns, both, now) = (Turns::default(), candidates(&["gone", "here"]), Instant::now());
        turns.meet(&both, now);
        assert_eq!(turns.next(&both, true, now), Some(&both[0]));
        turns.watched(&both[0].attributes, false, now);
        assert_eq!(turns.next(&both, true, now), Some(&both[1]));
        turns.watched(&both[1].attributes, true, now);
        assert_eq!(turns.next(&both, true, now + OVER_BUDGET / 2), None);
        assert_eq!(turns.next(&both, false, now + OVER_BUDGET / 2), Some(&both[0]), "there is room again");
    }

    #[test]
    fn over_the_budget_whose_processes_go_on_come_first() {
        let (mut turns, mut both, now) =
            (Turns::default(), candidates(&["compiler", "daemon"]), Instant::now());
        both[0].is_steady = false;
        turns.meet(&both, now);
        assert_eq!(turns.next(&both, true, now), Some(&both[1]));
        turns.watched(&both[1].attributes, true, now);
        assert_eq!(turns.next(&both, false, now), Some(&both[0]));
    }

    #[test]
    fn what_is_kept_does_not_grow() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        turns.meet(&candidates(&["a"]), now);
        assert_eq!(turns.pause(&candidates(&["a"]), now), BETWEEN);
        turns.meet(&[], now + FORGET);
        assert!(turns.known.is_empty());
        assert_eq!(turns.pause(&[], now), FORGET);
    }
}
