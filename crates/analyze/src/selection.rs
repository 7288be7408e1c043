//! The selected part of a profile, in the words of options and URLs: `comm worker`, `time 1-2`, `focus ^parse`.
//!
//! Invariant: a word means the same everywhere. Elsewhere: applying the filter (`filter`, `view`).

use std::fmt;

use plumb_profile::{EventId, Id, Profile};

use crate::filter::{Filter, Mode, SECOND_NS, SecondPart, ThreadPattern, TimeRange, zero_unix_ns};
use crate::pattern::{BadPattern, Pattern};

/// A word of the selection language.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum SelectionWord {
    /// Threads by name.
    Comm,
    /// Processes by executable.
    Exe,
    /// Stacks with a frame in this file.
    Dso,
    /// Stacks with this function.
    Symbol,
    /// Threads by id or name.
    Tid,
    /// Processes by id.
    Pid,
    /// CPUs: `0,2-3`.
    Cpu,
    /// One event.
    Event,
    /// An interval in seconds since the start: `A-B`, `A-` or `-B`; a suffix `@C-D` selects this part of each second.
    Time,
    /// Stacks with a matching frame.
    Focus,
    /// Stacks without a matching frame.
    Ignore,
    /// Removes matching frames from stacks.
    Hide,
    /// Samples taken in the kernel.
    Kernel,
    /// Samples taken in user code.
    User,
    /// Drops samples of the idle task.
    NoIdle,
    /// Removes inlined calls from stacks.
    NoInline,
    /// Shows interpreters' own frames.
    Native,
}

impl SelectionWord {
    /// All words.
    pub const ALL: [SelectionWord; 17] = [
        Self::Comm,
        Self::Exe,
        Self::Dso,
        Self::Symbol,
        Self::Tid,
        Self::Pid,
        Self::Cpu,
        Self::Event,
        Self::Time,
        Self::Focus,
        Self::Ignore,
        Self::Hide,
        Self::Kernel,
        Self::User,
        Self::NoIdle,
        Self::NoInline,
        Self::Native,
    ];

    /// Returns the name that users type, as in an option.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Exe => "exe",
            Self::Dso => "dso",
            Self::Symbol => "symbol",
            Self::Tid => "tid",
            Self::Pid => "pid",
            Self::Cpu => "cpu",
            Self::Event => "event",
            Self::Time => "time",
            Self::Focus => "focus",
            Self::Ignore => "ignore",
            Self::Hide => "hide",
            Self::Kernel => "kernel",
            Self::User => "user",
            Self::NoIdle => "no-idle",
            Self::NoInline => "no-inline",
            Self::Native => "native",
        }
    }

    /// Returns the word with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.name() == name)
    }

    /// Whether the word takes no text.
    pub fn is_flag(self) -> bool {
        matches!(self, Self::Kernel | Self::User | Self::NoIdle | Self::NoInline | Self::Native)
    }
}

/// Words with their texts, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Vec<(SelectionWord, String)>);

/// The reason why a selection is invalid, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSelection(String);

impl fmt::Display for BadSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadSelection {}

impl From<BadPattern> for BadSelection {
    fn from(error: BadPattern) -> Self {
        Self(error.to_string())
    }
}

impl Selection {
    /// Adds a word. A flag's text is ignored.
    pub fn add(&mut self, word: SelectionWord, text: impl Into<String>) {
        self.0.push((word, text.into()));
    }

    /// Returns the selection without some words.
    pub fn without(&self, words: &[SelectionWord]) -> Self {
        Self(self.0.iter().filter(|(word, _)| !words.contains(word)).cloned().collect())
    }

    /// Returns the words with their texts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (SelectionWord, &str)> {
        self.0.iter().map(|(word, text)| (*word, text.as_str()))
    }

    /// Returns the selection as command-line options.
    pub fn typed(&self) -> String {
        let one = |(word, text): &(SelectionWord, String)| match word.is_flag() {
            true => format!("--{}", word.name()),
            false => format!("--{} {text}", word.name()),
        };
        self.0.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Returns the filter, for all events together unless one is selected.
    ///
    /// # Errors
    /// If a text is invalid for its word, or names an event that the profile lacks.
    pub fn filter(&self, profile: &Profile) -> Result<Filter, BadSelection> {
        self.narrowed(Filter::default(), profile)
    }

    /// Narrows a filter further.
    ///
    /// # Errors
    /// As [`Selection::filter`].
    pub fn narrowed(&self, mut filter: Filter, profile: &Profile) -> Result<Filter, BadSelection> {
        for (word, text) in &self.0 {
            take(&mut filter, *word, text, profile)?;
        }
        Ok(filter)
    }

    /// Returns one filter for each event with samples (or the selected one): weights of different events cannot be added up.
    /// Never empty.
    ///
    /// # Errors
    /// As [`Selection::filter`].
    pub fn filter_per_event(&self, profile: &Profile) -> Result<Vec<Filter>, BadSelection> {
        let filter = self.filter(profile)?;
        if filter.event.is_some() {
            return Ok(vec![filter]);
        }
        let mut sampled = vec![false; profile.events.len()];
        for sample in profile.samples.iter() {
            sampled[sample.event.index()] = true;
        }
        let events: Vec<EventId> =
            profile.events.iter().map(|(id, _)| id).filter(|id| sampled[id.index()]).collect();
        if events.is_empty() {
            return Ok(vec![filter]);
        }
        Ok(events.into_iter().map(|event| Filter { event: Some(event), ..filter.clone() }).collect())
    }
}

fn take(filter: &mut Filter, word: SelectionWord, text: &str, profile: &Profile) -> Result<(), BadSelection> {
    match word {
        SelectionWord::Comm => filter.comms.push(Pattern::parse(text)?),
        SelectionWord::Exe => filter.exes.push(Pattern::parse(text)?),
        SelectionWord::Dso => filter.dsos.push(Pattern::parse(text)?),
        SelectionWord::Symbol => filter.symbols.push(Pattern::parse(text)?),
        SelectionWord::Tid => filter.threads.push(thread_pattern(text)?),
        SelectionWord::Pid => filter.pids.push(pid(text)?),
        SelectionWord::Cpu => filter.cpus.extend(cpu_list(text)?),
        SelectionWord::Event => filter.event = Some(event_called(profile, text)?),
        SelectionWord::Time => {
            filter.time =
                Some(time_range(text, || zero_unix_ns(profile).rem_euclid(SECOND_NS as i64) as u64)?)
        }
        SelectionWord::Focus => filter.focus.push(Pattern::regex(text)?),
        SelectionWord::Ignore => filter.ignore.push(Pattern::regex(text)?),
        SelectionWord::Hide => filter.hide.push(Pattern::regex(text)?),
        SelectionWord::Kernel => filter.mode = Some(Mode::Kernel),
        SelectionWord::User => filter.mode = filter.mode.or(Some(Mode::User)),
        SelectionWord::NoIdle => filter.no_idle = true,
        SelectionWord::NoInline => filter.no_inline = true,
        SelectionWord::Native => filter.native = true,
    }
    Ok(())
}

/// Returns the event with this name; perf's modifier after a colon (`cpu-clock:ppp`) may be left out.
fn event_called(profile: &Profile, name: &str) -> Result<EventId, BadSelection> {
    let names: Vec<&str> =
        profile.events.rows().iter().map(|event| profile.strings.get(event.name)).collect();
    let exact = names.iter().position(|&known| known == name);
    let plain = || names.iter().position(|known| known.split(':').next() == Some(name));
    match exact.or_else(plain) {
        Some(index) => Ok(EventId::from_index(index)),
        None => Err(BadSelection(format!("unknown event `{name}`; the recording has: {}", names.join(", ")))),
    }
}

fn thread_pattern(text: &str) -> Result<ThreadPattern, BadSelection> {
    Ok(match text.parse() {
        Ok(tid) => ThreadPattern::Tid(tid),
        Err(_) => ThreadPattern::Name(Pattern::parse(text)?),
    })
}

fn pid(text: &str) -> Result<u32, BadSelection> {
    text.trim().parse().map_err(|_| BadSelection(format!("--pid {text}: not a process ID")))
}

fn time_range(text: &str, phase: impl Fn() -> u64) -> Result<TimeRange, BadSelection> {
    let bad = |why: String| BadSelection(format!("--time {text}: {why}"));
    let ns = |part: &str, missing| match part.trim().trim_end_matches('s') {
        "" => Ok(missing),
        seconds => match seconds.parse::<f64>() {
            Ok(seconds) if seconds >= 0.0 => Ok((seconds * 1e9).round() as u64),
            _ => Err(bad(format!("`{part}` is not a number of seconds"))),
        },
    };
    let range = |text: &str, most| {
        let (start, end) = text.split_once('-').ok_or_else(|| bad("expected A-B in seconds".into()))?;
        let (start, end) = (ns(start, 0)?, ns(end, most)?);
        if start >= end {
            return Err(bad("the end must be after the start".into()));
        }
        Ok((start, end))
    };
    let (whole, part) = text.split_once('@').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let is_all = part.is_some() && whole.trim().is_empty();
    let (start, end) = if is_all { (0, u64::MAX) } else { range(whole, u64::MAX)? };
    let part = part.map(|part| range(part, SECOND_NS)).transpose()?;
    if part.is_some_and(|(_, to)| to > SECOND_NS) {
        return Err(bad("the part of each second must lie within 0-1".into()));
    }
    let part = part.map(|(from, to)| SecondPart { from, to, phase: phase() });
    Ok(TimeRange { start, end, part })
}

fn cpu_list(text: &str) -> Result<Vec<u32>, BadSelection> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            // No machine has more CPUs; a huge range must not exhaust the memory.
            (Ok(first), Ok(last)) if first <= last && last < 1 << 16 => cpus.extend(first..=last),
            _ => {
                return Err(BadSelection(format!("--cpu {text}: `{part}` is not a CPU number or range")));
            }
        }
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_either_end_open() {
        let ns = |text| time_range(text, || 0).map(|range| (range.start, range.end)).ok();
        assert_eq!(ns("1.5-2"), Some((1_500_000_000, 2_000_000_000)));
        assert_eq!(ns("1s-2s"), Some((1_000_000_000, 2_000_000_000)));
        assert_eq!(ns("3-"), Some((3_000_000_000, u64::MAX)));
        assert_eq!(ns("-0.1"), Some((0, 100_000_000)));
        for bad in ["5", "2-1", "a-b", "1-nan", "1--2", "1-1"] {
            assert_eq!(ns(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_part_of_each_second_may_follow() {
        let part = |text| time_range(text, || 900_000_000).ok();
        let range = part("1-3@0.2-0.3").unwrap();
        // The recording starts 0.9 s into a second: 0.2 s of the next one come 0.3 s later.
        assert!([1_300_000_000, 2_399_999_999].into_iter().all(|ns| range.contains(ns)));
        assert!(
            ![300_000_000, 1_250_000_000, 1_400_000_000, 3_300_000_000]
                .into_iter()
                .any(|ns| range.contains(ns))
        );
        assert!(part("@0.2-").unwrap().contains(3_300_000_000));
        for bad in ["@", "@1-2", "@0.3-0.2", "1-2@", "1@0-1"] {
            assert_eq!(part(bad), None, "{bad}");
        }
    }

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(cpu_list("0,2-4").unwrap(), [0, 2, 3, 4]);
        for bad in ["", "3-1", "x", "0-99999999"] {
            assert!(cpu_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_thread_is_a_number_or_a_name() {
        assert!(matches!(thread_pattern("42"), Ok(ThreadPattern::Tid(42))));
        assert!(matches!(thread_pattern("worker"), Ok(ThreadPattern::Name(Pattern::Exact(_)))));
        assert!(matches!(thread_pattern("/^w/"), Ok(ThreadPattern::Name(Pattern::Regex(_)))));
        assert!(thread_pattern("/(/").is_err());
    }

    #[test]
    fn words_are_typed_as_they_are_read() {
        let mut selection = Selection::default();
        for word in SelectionWord::ALL {
            assert_eq!(SelectionWord::from_name(word.name()), Some(word));
        }
        selection.add(SelectionWord::Comm, "worker");
        selection.add(SelectionWord::User, "");
        assert_eq!(selection.typed(), "--comm worker --user");
        assert_eq!(selection.without(&[SelectionWord::Comm]).typed(), "--user");
    }
}
