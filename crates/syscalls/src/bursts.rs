//! Detects periodic calls: whether they come in bursts, at what interval, and how regularly.
//!
//! Bursts are separated at the pause length that makes them most regular, because pauses within a burst vary with the other load of the machine.

/// Fewest bursts for a result.
const LEAST: usize = 3;
/// Shortest period of bursts, in nanoseconds; anything more frequent is a loop.
const LEAST_NS: u64 = 1_000_000;
/// Smallest ratio of a pause that separates bursts to the next shorter one, which does not.
const JUMP: f64 = 3.0;
/// Largest variation of regular intervals, as a share of their mean.
const REGULAR: f64 = 0.2;

/// Begin and end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Begin of the call.
    pub begin_ns: u64,
    /// End of the call.
    pub end_ns: u64,
}

/// Bursts of periodic calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Number of bursts.
    pub number: usize,
    /// Median interval from the begin of a burst to the begin of the next.
    pub period_ns: u64,
    /// Variation of the intervals: their mean deviation from `period_ns`.
    pub spread_ns: u64,
    /// The intervals vary little, so the calls are driven by a timer.
    pub is_regular: bool,
    /// Median number of calls in a burst.
    pub calls: usize,
    /// Median time from the begin of a burst's first call to the end of its last.
    pub length_ns: u64,
}

/// Sorts the calls and finds bursts. Returns `None` if there are too few calls or the bursts are not distinct.
pub fn bursts(calls: &mut [Moment]) -> Option<Bursts> {
    calls.sort_unstable_by_key(|call| call.begin_ns);
    let mut pauses: Vec<u64> = calls.windows(2).map(|pair| pause(pair[0], pair[1])).collect();
    pauses.sort_unstable();
    // A pause may separate bursts if it is much longer than the next shorter one, or if it is the shortest.
    let jumps =
        pauses.windows(2).filter(|pair| pair[1] as f64 >= JUMP * pair[0].max(1) as f64).map(|pair| pair[1]);
    let candidates = jumps.chain(pauses.first().copied());
    let all = candidates.filter_map(|least| parted(calls, least));
    let found = all.min_by(|one, other| variation(one).total_cmp(&variation(other)))?;
    // Single calls at irregular times are not bursts.
    (found.is_regular || found.calls > 1).then_some(found)
}

fn pause(one: Moment, next: Moment) -> u64 {
    next.begin_ns.saturating_sub(one.end_ns)
}

fn variation(bursts: &Bursts) -> f64 {
    bursts.spread_ns as f64 / bursts.period_ns.max(1) as f64
}

/// The bursts that result if pauses of at least `least_ns` separate them.
fn parted(calls: &[Moment], least_ns: u64) -> Option<Bursts> {
    let all: Vec<&[Moment]> = calls.chunk_by(|one, next| pause(*one, *next) < least_ns).collect();
    if all.len() < LEAST {
        return None;
    }
    let begins: Vec<u64> = all.iter().filter_map(|burst| Some(burst.first()?.begin_ns)).collect();
    let between: Vec<u64> = begins.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let lengths =
        all.iter().filter_map(|burst| Some(burst.last()?.end_ns.saturating_sub(burst.first()?.begin_ns)));
    let period_ns = middle(between.clone()).filter(|&period| period >= LEAST_NS)?;
    let off: u64 = between.iter().map(|time| time.abs_diff(period_ns)).sum();
    let spread_ns = off / between.len() as u64;
    Some(Bursts {
        number: all.len(),
        period_ns,
        spread_ns,
        is_regular: spread_ns as f64 <= REGULAR * period_ns as f64,
        calls: middle(all.iter().map(|burst| burst.len()).collect())?,
        length_ns: middle(lengths.collect())?,
    })
}

/// Median of the values (the upper one of an even number), or `None` if there are none.
pub fn middle<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn call(begin_ns: u64, latency_ns: u64) -> Moment {
        Moment { begin_ns, end_ns: begin_ns + latency_ns }
    }

    /// The first figure in the article that asks for this: three calls each second.
    #[test]
    fn a_daemon_that_reads_each_second_is_found() {
        let times = [
            (0.000, 0.335),
            (0.397, 0.093),
            (0.665, 0.187),
            (1000.545, 1.035),
            (1001.785, 0.258),
            (1002.070, 0.058),
            (2000.946, 1.208),
            (2002.478, 0.199),
            (2002.820, 0.087),
        ];
        let ns = |ms: f64| (ms * 1e6) as u64;
        let mut calls: Vec<_> = times.iter().map(|&(begin, latency)| call(ns(begin), ns(latency))).collect();
        let found = bursts(&mut calls).expect("they are plain");
        assert_eq!((found.number, found.calls, found.is_regular), (3, 3, true));
        assert!(found.period_ns.abs_diff(1000 * MS) < MS, "{found:?}");
        assert!(found.length_ns < 2 * MS, "{found:?}");
    }

    #[test]
    fn a_pause_within_a_burst_does_not_part_it() {
        let mut calls = Vec::new();
        for burst in 0..10 {
            let mut at = burst * 1000 * MS;
            for number in 0..60 {
                calls.push(call(at, 3000));
                // Another program had the CPU for a while, in one of three bursts.
                at += if number == 30 && burst % 3 == 0 { 4 * MS } else { 4000 };
            }
        }
        calls.reverse();
        let found = bursts(&mut calls).expect("they are plain");
        assert_eq!((found.number, found.calls, found.period_ns, found.spread_ns), (10, 60, 1000 * MS, 0));
    }

    #[test]
    fn a_single_call_may_be_regular() {
        let mut calls: Vec<_> =
            (0..20).map(|number| call(number * 50 * MS + number % 3 * 1000, 2000)).collect();
        let found = bursts(&mut calls).expect("it is regular");
        assert_eq!((found.calls, found.number, found.is_regular), (1, 20, true));
    }

    #[test]
    fn a_loop_is_no_burst() {
        let mut calls: Vec<_> = (0..500).map(|number| call(number * 20_000, 5000)).collect();
        assert_eq!(bursts(&mut calls), None);
    }

    #[test]
    fn few_or_scattered_calls_are_no_bursts() {
        assert_eq!(bursts(&mut []), None);
        assert_eq!(bursts(&mut [call(0, 1), call(5, 1)]), None);
        let mut scattered: Vec<_> =
            [0, 3, 50, 57, 130, 131, 300, 420].iter().map(|&ms| call(ms * MS, 100)).collect();
        assert!(bursts(&mut scattered).is_none_or(|found| !found.is_regular));
        let mut odd = [call(u64::MAX, 0), call(0, u64::MAX), call(7, 0), call(7, 0)];
        let _ = bursts(&mut odd);
    }
}
