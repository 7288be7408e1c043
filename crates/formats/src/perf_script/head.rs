//! The line above a stack: `comm pid/tid [cpu] time: period event:`. Parts may be missing.

/// Start of the names of other records than samples, which `--show-task-events`, `--show-mmap-events` and others of perf's options print.
const RECORD: &str = "PERF_RECORD_";

/// The parsed line.
#[derive(Debug, PartialEq)]
pub(super) struct Head<'a> {
    pub comm: &'a str,
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    pub cpu: Option<u32>,
    pub time_ns: Option<u64>,
    pub period: Option<u64>,
    /// Event name, empty if missing.
    pub event: &'a str,
    /// The part after the event: a tracepoint's arguments, or the frame if stacks were not recorded.
    pub rest: &'a str,
}

impl Head<'_> {
    /// Whether the line is that of another record than a sample: of a process, a mapping, a loss.
    pub fn is_record(&self) -> bool {
        self.event.starts_with(RECORD)
    }
}

/// Parses the line. Names of threads may contain spaces and numbers: the first position after which the rest is valid counts.
pub(super) fn head(line: &str) -> Option<Head<'_>> {
    let words: Vec<(usize, &str)> = words(line).collect();
    (1..words.len()).find_map(|at| {
        let (start, ids) = words[at];
        let (pid, tid) = match ids.split_once('/') {
            Some((pid, tid)) => (Some(number(pid)?), number(tid)?),
            None => (None, number(ids)?),
        };
        let head = Head {
            comm: line[..start].trim(),
            pid,
            tid: Some(tid),
            cpu: None,
            time_ns: None,
            period: None,
            event: "",
            rest: "",
        };
        behind_ids(head, line, &words[at + 1..])
    })
}

fn behind_ids<'a>(mut head: Head<'a>, line: &'a str, mut words: &[(usize, &'a str)]) -> Option<Head<'a>> {
    let mut next = |wanted: &dyn Fn(&'a str) -> bool| {
        let (&(start, word), rest) = words.split_first()?;
        wanted(word).then(|| {
            words = rest;
            (start, word)
        })
    };
    let cpu = next(&|word| word.starts_with('[') && word.ends_with(']'));
    head.cpu = cpu.and_then(|(_, word)| number(word.trim_matches(['[', ']'])));
    let time = next(&|word| time_ns(word).is_some());
    head.time_ns = time.and_then(|(_, word)| time_ns(word));
    if let Some((_, word)) = next(&|word| word.starts_with(RECORD)) {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        head.event = &word[..word.bytes().position(|byte| !is_name(byte)).unwrap_or(word.len())];
        return Some(head);
    }
    let period = next(&|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    // A number that is too large makes the line invalid.
    head.period = period.map(|(_, word)| word.parse().ok()).map_or(Some(None), |number| number.map(Some))?;
    let event = next(&|word| {
        word.len() > 1 && word.ends_with(':') && !word.starts_with(['[', '(']) && time_ns(word).is_none()
    });
    if let Some((start, word)) = event {
        head.event = word.trim_end_matches(':');
        head.rest = line[start + word.len()..].trim();
        return Some(head);
    }
    // Without an event only a time distinguishes such a line from others.
    (time.is_some() && next(&|_| true).is_none()).then_some(head)
}

fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = line.as_ptr() as usize;
    line.split_ascii_whitespace().map(move |word| (word.as_ptr() as usize - start, word))
}

fn number(word: &str) -> Option<u32> {
    // perf prints -1 for unknown ids.
    if word == "-1" { Some(plumb_profile::Process::UNKNOWN) } else { word.parse().ok() }
}

/// Parses `seconds.fraction:` into nanoseconds.
fn time_ns(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let places = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction.parse::<u64>().ok()? * places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_prints_is_understood() {
        let line = "web server 2 1234/5678  [003]  4711.012345:    1001001 cpu-clock:pppH: ";
        let expected = Head {
            comm: "web server 2",
            pid: Some(1234),
            tid: Some(5678),
            cpu: Some(3),
            time_ns: Some(4_711_012_345_000),
            period: Some(1_001_001),
            event: "cpu-clock:pppH",
            rest: "",
        };
        assert_eq!(head(line), Some(expected));
        let plain = head("swapper     0 100.000000001: cycles: ").unwrap();
        assert_eq!((plain.tid, plain.time_ns, plain.event), (Some(0), Some(100_000_000_001), "cycles"));
        let trace = head("cat 7 [000] 1.5: syscalls:sys_enter_read: fd: 0x3, count: 8").unwrap();
        assert_eq!((trace.event, trace.rest), ("syscalls:sys_enter_read", "fd: 0x3, count: 8"));
        for line in [
            "sh 9/9 [000] 2.5: PERF_RECORD_COMM exec: sh:9/9",
            "sh 9 PERF_RECORD_COMM: sh:9/9",
            "sh 9 2.5: PERF_RECORD_FORK(9:9):(8:8)",
            "sh 9 2.5: PERF_RECORD_MMAP2 9/9: [0x400000(0x1000) @ 0 fd:01 7 0]: r-xp /bin/sh",
        ] {
            let record = head(line).unwrap();
            assert!(record.is_record() && !record.event.contains([':', '(']), "{record:?}");
            assert_eq!((record.comm, record.tid), ("sh", Some(9)));
        }
        let without_event = head("sh 9/9 2.000001: ").unwrap();
        assert_eq!((without_event.comm, without_event.event), ("sh", ""));
        for other in ["main;work 12", "\tffff main (/x)", "a", "", "foo 12 bar", "comm x 2.5:"] {
            assert_eq!(head(other), None, "{other}");
        }
    }
}
