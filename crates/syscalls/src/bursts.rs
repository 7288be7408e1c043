//! Calls that come again and again: whether they come in bursts, how often, and how regularly.
//!
//! What parts bursts is the pause that makes them most regular; pauses within a burst vary with whatever else the machine does.

/// Fewer bursts than this say nothing.
const LEAST: usize = 3;
/// What comes more often than this, in nanoseconds, is a loop.
const LEAST_NS: u64 = 1_000_000;
/// A pause that parts bursts is so many times as long as the next shorter one that doesn't.
const JUMP: f64 = 3.0;
/// How much the times between bursts may vary, as a share of their mean, to be called regular.
const REGULAR: f64 = 0.2;

/// A call, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// What was found of calls that come again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// How many there were.
    pub number: usize,
    /// The middle one of the times from the beginning of one to that of the next.
    pub period_ns: u64,
    /// By how much these times vary: the mean of what they are off that.
    pub spread_ns: u64,
    /// They vary little: something does it by the clock.
    pub is_regular: bool,
    /// The middle one of the numbers of calls.
    pub calls: usize,
    /// The middle one of the times from the first call's beginning to the last one's end.
    pub length_ns: u64,
}

/// Finds bursts; `None`: there are too few calls, or they don't stand out. The calls are sorted.
pub fn bursts(calls: &mut [Moment]) -> Option<Bursts> {
    calls.sort_unstable_by_key(|call| call.begin_ns);
    let mut pauses: Vec<u64> = calls.windows(2).map(|pair| pause(pair[0], pair[1])).collect();
    pauses.sort_unstable();
    // Each pause may be what parts bursts if it is much longer than the next shorter one, or if there is no shorter one.
    let jumps =
        pauses.windows(2).filter(|pair| pair[1] as f64 >= JUMP * pair[0].max(1) as f64).map(|pair| pair[1]);
    let candidates = jumps.chain(pauses.first().copied());
    let all = candidates.filter_map(|least| parted(calls, least));
    let found = all.min_by(|one, other| variation(one).total_cmp(&variation(other)))?;
    // Single calls at no regular times are just calls.
    (found.is_regular || found.calls > 1).then_some(found)
}

fn pause(one: Moment, next: Moment) -> u64 {
    next.begin_ns.saturating_sub(one.end_ns)
}

fn variation(bursts: &Bursts) -> f64 {
    bursts.spread_ns as f64 / bursts.period_ns.max(1) as f64
}

/// The bursts that are parted by pauses of at least this.
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

/// The middle one of some values in their order, of an even number the upper; `None` if there are none.
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

    /// The first picture of the article that asks for this: three calls each second.
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
                // Another program had the processor for a while, once in three bursts.
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
