//! The findings on rhythms, and on waits for locks.

use super::{Finding, FindingKind, ServiceFacts, is_cpu_time, of_values, percent_text, short};

/// Fewest threads that wait for locks at any time to be worth a mention: of all, and for each busy CPU of the service.
const WAITING: [f64; 2] = [0.3, 0.2];

/// Bursts of a service's values that come back after the same time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceRhythm {
    /// Profile type of the values.
    pub profile_type: String,
    /// Usual time from the beginning of one burst to that of the next, in nanoseconds.
    pub period_ns: u64,
    /// The times between which nine of ten are.
    pub spread_ns: [u64; 2],
    /// Usual length of a burst in nanoseconds; `None`: shorter than a profile.
    pub lasts_ns: Option<u64>,
    /// Times that are near the usual one, and all.
    pub regular: [usize; 2],
    /// Beginning of the first burst, as text.
    pub since: String,
    /// The function that bursts are made of.
    pub function: String,
    /// A caller of it with as much.
    pub caller: Option<String>,
    /// Part of the service's values that bursts have beyond what there is at other times.
    pub share: f64,
    /// Mean excess of a burst.
    pub each: f64,
    /// Sum of that over all bursts.
    pub value: f64,
}

/// Waits of a service for locks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockWaits {
    /// Profile type of the waits.
    pub profile_type: String,
    /// The function that takes the lock.
    pub function: String,
    /// A caller of it with as much.
    pub caller: Option<String>,
    /// Mean number of threads of all instances that wait at any time.
    pub threads: f64,
    /// Part of the profile type's values.
    pub share: f64,
    /// Time of the recording in nanoseconds.
    pub lasted_ns: u64,
}

/// Returns the finding about a rhythm.
pub fn of_rhythm(rhythm: &ServiceRhythm, facts: &ServiceFacts) -> Finding {
    let is_cpu = is_cpu_time(&rhythm.profile_type);
    let period = seconds(rhythm.period_ns);
    let lasts = rhythm.lasts_ns.map_or_else(String::new, |ns| format!(" for {}", seconds(ns)));
    let name = short(&rhythm.function);
    let each = seconds(rhythm.each.max(0.0) as u64);
    let percent = 100.0 * rhythm.share;
    let title = if is_cpu {
        format!("{name} runs every {period}{lasts}: {} of its CPU time", percent_text(percent))
    } else {
        format!("every {period} its threads wait for a lock in {name}, {each} in all")
    };
    let values = (&*rhythm.profile_type, percent, rhythm.value);
    let subject = if is_cpu { name } else { lock(&rhythm.function) };
    let mut found = of_values(facts, FindingKind::Rhythm, [subject, title], values);
    if is_cpu {
        found.details.push(format!("Each time {each} of CPU time beyond what it takes otherwise."));
    }
    found.period_ns = Some(rhythm.period_ns);
    found.evidence.function = Some(rhythm.function.clone());
    found.details.extend(rhythm.caller.as_ref().map(|caller| format!("Called by {}.", short(caller))));
    let [low, high] = rhythm.spread_ns.map(seconds);
    let [near, all] = rhythm.regular;
    let spread = if low == high { String::new() } else { format!(", nine of ten are {low} to {high}") };
    found
        .details
        .push(format!("Since {}; {near} of {all} intervals are near {period}{spread}.", rhythm.since));
    let remedy = if is_cpu {
        "find the timer or job that starts it; do less each time, spread it over the interval, or run it where no request waits for it"
    } else {
        "find what holds the lock that often: hold it for less time, or do that work outside of it"
    };
    found.remedy = Some(remedy.into());
    found
}

/// Returns the finding about waits for locks, if many threads wait.
pub fn of_lock_waits(waits: &LockWaits, facts: &ServiceFacts) -> Option<Finding> {
    let busy = facts.cpu_ns.max(0) as f64 / waits.lasted_ns.max(1) as f64;
    if waits.threads < WAITING[0].max(WAITING[1] * busy) {
        return None;
    }
    let title = format!(
        "{:.1} threads at any time wait for a lock in {}, while {busy:.1} CPUs are busy",
        waits.threads,
        short(&waits.function)
    );
    let values = (&*waits.profile_type, 100.0 * waits.share, 0.0);
    let mut found = of_values(facts, FindingKind::Wait, [lock(&waits.function), title], values);
    found.evidence.function = Some(waits.function.clone());
    found.details.extend(waits.caller.as_ref().map(|caller| format!("Called by {}.", short(caller))));
    found.remedy = Some("hold the lock for less time, split it, or give each thread data of its own".into());
    Some(found)
}

/// The subject of waits for a lock that a function takes.
fn lock(function: &str) -> String {
    format!("lock in {}", short(function))
}

/// A time in the unit that a person would take.
fn seconds(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match seconds {
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        ..120.0 => format!("{seconds:.1} s"),
        ..7200.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn rhythm() -> ServiceRhythm {
        ServiceRhythm {
            profile_type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned(),
            period_ns: 10_000_000_000,
            spread_ns: [9_900_000_000, 10_200_000_000],
            lasts_ns: Some(800_000_000),
            regular: [88, 90],
            since: "2026-11-29 10:00 UTC".to_owned(),
            function: "rebuild_index(int)".to_owned(),
            caller: Some("main".to_owned()),
            share: 0.4,
            each: 8e8,
            value: 72e9,
        }
    }

    #[test]
    fn a_rhythm_says_what_how_often_how_long_and_how_much() {
        let (cpu_ns, machine_ns) = (180_000_000_000, Some(720_000_000_000));
        let facts = ServiceFacts { cpu_ns, machine_ns, ..ServiceFacts::default() };
        let found = of_rhythm(&rhythm(), &facts);
        assert_eq!(found.title, "rebuild_index runs every 10.0 s for 800 ms: 40% of its CPU time");
        assert_eq!((found.cpu_ns, found.of_machine_percent), (72_000_000_000, Some(10.0)));
        assert!(found.details.iter().any(|one| one.contains("88 of 90 intervals")), "{:?}", found.details);
        let lock = ServiceRhythm {
            profile_type: "off_cpu:off_cpu:nanoseconds::".to_owned(),
            period_ns: 60_000_000_000,
            ..rhythm()
        };
        let found = of_rhythm(&lock, &facts);
        assert_eq!(found.title, "every 60.0 s its threads wait for a lock in rebuild_index, 800 ms in all");
        assert_eq!((found.cpu_ns, found.kind), (0, FindingKind::Rhythm), "waits are no CPU time");
        assert_eq!(found.of_machine_percent, None);
    }

    #[test]
    fn waits_are_told_if_many_threads_wait_beside_those_that_run() {
        let of = |threads, cpu_ns| {
            let waits = LockWaits {
                function: "put".to_owned(),
                threads,
                share: 0.5,
                lasted_ns: 1_000_000_000,
                ..LockWaits::default()
            };
            of_lock_waits(&waits, &ServiceFacts { cpu_ns, ..ServiceFacts::default() })
        };
        let title = of(3.0, 2_000_000_000).unwrap().title;
        assert_eq!(title, "3.0 threads at any time wait for a lock in put, while 2.0 CPUs are busy");
        assert_eq!(of(0.2, 100), None);
        assert_eq!(of(1.0, 8_000_000_000), None);
    }
}
