//! The filter options that every reader of profiles has.

use anyhow::{Context, Result, bail};
use plumb_analyze::{Filter, Mode, Pattern, ThreadPattern, TimeRange};
use plumb_profile::{EventId, Id, Profile};

/// Which part of a profile to look at.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "Filters (TEXT matches exactly, /TEXT/ is a regular expression)")]
pub struct FilterArgs {
    #[command(flatten)]
    pub samples: SampleFilterArgs,
    /// Only this interval, in seconds since the start: A-B, A- or -B
    #[arg(long, value_name = "A-B", allow_hyphen_values = true)]
    pub time: Option<String>,
}

/// The filters without the interval, for a command in which `--time` is another option.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "Filters (TEXT matches exactly, /TEXT/ is a regular expression)")]
pub struct SampleFilterArgs {
    /// Only threads with this name
    #[arg(long, value_name = "TEXT")]
    pub comm: Vec<String>,
    /// Only processes running this executable (path or file name)
    #[arg(long, value_name = "TEXT")]
    pub exe: Vec<String>,
    /// Only stacks with a frame in this file (path or file name)
    #[arg(long, value_name = "TEXT")]
    pub dso: Vec<String>,
    /// Only stacks with this function (with or without parameters)
    #[arg(long, value_name = "TEXT")]
    pub symbol: Vec<String>,
    /// Only these threads, by ID or name
    #[arg(long, alias = "thread", value_name = "TID|TEXT")]
    pub tid: Vec<String>,
    /// Only these processes
    #[arg(long, value_name = "PID,...", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Only samples taken on these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Only samples of this event
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Only stacks with a matching frame
    #[arg(long, value_name = "REGEX")]
    pub focus: Vec<String>,
    /// Drop stacks with a matching frame
    #[arg(long, value_name = "REGEX")]
    pub ignore: Vec<String>,
    /// Remove matching frames; their callers get their time
    #[arg(long, value_name = "REGEX")]
    pub hide: Vec<String>,
    /// Only samples taken in kernel mode
    #[arg(long, conflicts_with = "user")]
    pub kernel: bool,
    /// Only samples taken in user mode
    #[arg(long)]
    pub user: bool,
    /// Leave out the idle task
    #[arg(long)]
    pub no_idle: bool,
    /// Leave out inlined functions
    #[arg(long)]
    pub no_inline: bool,
    /// Show the interpreter's own frames instead of Python functions
    #[arg(long)]
    pub native: bool,
}

impl SampleFilterArgs {
    /// The filter, for all events together unless one was asked for.
    pub fn filter(&self, profile: &Profile) -> Result<Filter> {
        Ok(Filter {
            except: Vec::new(),
            event: self.event.as_deref().map(|name| event_called(profile, name)).transpose()?,
            cpus: self.cpu.as_deref().map_or(Ok(Vec::new()), cpu_list)?,
            no_idle: self.no_idle,
            comms: patterns(&self.comm, Pattern::parse)?,
            threads: self.tid.iter().map(|text| thread_pattern(text)).collect::<Result<_>>()?,
            pids: self.pid.clone(),
            exes: patterns(&self.exe, Pattern::parse)?,
            mode: match (self.kernel, self.user) {
                (true, _) => Some(Mode::Kernel),
                (_, true) => Some(Mode::User),
                _ => None,
            },
            dsos: patterns(&self.dso, Pattern::parse)?,
            symbols: patterns(&self.symbol, Pattern::parse)?,
            focus: patterns(&self.focus, Pattern::regex)?,
            ignore: patterns(&self.ignore, Pattern::regex)?,
            hide: patterns(&self.hide, Pattern::regex)?,
            no_inline: self.no_inline,
            native: self.native,
            time: None,
        })
    }

    /// One filter for each event that has samples (or the one that was asked for): the weights of different events
    /// can't be added up. Never empty.
    pub fn filter_per_event(&self, profile: &Profile) -> Result<Vec<Filter>> {
        filter_per_event(self.filter(profile)?, profile)
    }
}

impl FilterArgs {
    /// The filter, for all events together unless one was asked for.
    pub fn filter(&self, profile: &Profile) -> Result<Filter> {
        let time = self.time.as_deref().map(time_range).transpose()?;
        Ok(Filter { time, ..self.samples.filter(profile)? })
    }

    /// The options as they would be typed.
    pub fn typed(&self) -> String {
        let FilterArgs { samples, time } = self;
        let mut parts = Vec::new();
        let mut texts = |name: &str, values: &[String]| {
            parts.extend(values.iter().map(|value| format!("--{name} {value}")));
        };
        texts("comm", &samples.comm);
        texts("exe", &samples.exe);
        texts("dso", &samples.dso);
        texts("symbol", &samples.symbol);
        texts("tid", &samples.tid);
        texts("pid", &samples.pid.iter().map(u32::to_string).collect::<Vec<_>>());
        texts("cpu", samples.cpu.as_slice());
        texts("event", samples.event.as_slice());
        texts("time", time.as_slice());
        texts("focus", &samples.focus);
        texts("ignore", &samples.ignore);
        texts("hide", &samples.hide);
        for (name, set) in [
            ("--kernel", samples.kernel),
            ("--user", samples.user),
            ("--no-idle", samples.no_idle),
            ("--no-inline", samples.no_inline),
            ("--native", samples.native),
        ] {
            if set {
                parts.push(name.to_owned());
            }
        }
        parts.join(" ")
    }

    /// As [`SampleFilterArgs::filter_per_event`].
    pub fn filter_per_event(&self, profile: &Profile) -> Result<Vec<Filter>> {
        filter_per_event(self.filter(profile)?, profile)
    }
}

fn filter_per_event(filter: Filter, profile: &Profile) -> Result<Vec<Filter>> {
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

fn patterns<E: std::error::Error + Send + Sync + 'static>(
    texts: &[String],
    parse: impl Fn(&str) -> Result<Pattern, E>,
) -> Result<Vec<Pattern>> {
    texts.iter().map(|text| Ok(parse(text)?)).collect()
}

/// The event of that name; what perf puts behind a colon (`cpu-clock:ppp`) may be left out.
fn event_called(profile: &Profile, name: &str) -> Result<EventId> {
    let names: Vec<&str> =
        profile.events.rows().iter().map(|event| profile.strings.get(event.name)).collect();
    let exact = names.iter().position(|&known| known == name);
    let plain = || names.iter().position(|known| known.split(':').next() == Some(name));
    match exact.or_else(plain) {
        Some(index) => Ok(EventId::from_index(index)),
        None => bail!("unknown event `{name}`; the recording has: {}", names.join(", ")),
    }
}

fn thread_pattern(text: &str) -> Result<ThreadPattern> {
    Ok(match text.parse() {
        Ok(tid) => ThreadPattern::Tid(tid),
        Err(_) => ThreadPattern::Name(Pattern::parse(text)?),
    })
}

fn time_range(text: &str) -> Result<TimeRange> {
    let (start, end) =
        text.split_once('-').with_context(|| format!("--time {text}: expected A-B in seconds"))?;
    let ns = |part: &str, missing| match part.trim().trim_end_matches('s') {
        "" => Ok(missing),
        seconds => match seconds.parse::<f64>() {
            Ok(seconds) if seconds >= 0.0 => Ok((seconds * 1e9).round() as u64),
            _ => bail!("--time {text}: `{part}` is not a number of seconds"),
        },
    };
    let range = TimeRange { start: ns(start, 0)?, end: ns(end, u64::MAX)? };
    if range.start >= range.end {
        bail!("--time {text}: the end must be after the start");
    }
    Ok(range)
}

fn cpu_list(text: &str) -> Result<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            // No machine has more processors; a huge range must not fill the memory.
            (Ok(first), Ok(last)) if first <= last && last < 1 << 16 => cpus.extend(first..=last),
            _ => bail!("--cpu {text}: `{part}` is not a CPU number or range"),
        }
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_either_end_open() {
        let ns = |text| time_range(text).map(|range| (range.start, range.end)).ok();
        assert_eq!(ns("1.5-2"), Some((1_500_000_000, 2_000_000_000)));
        assert_eq!(ns("1s-2s"), Some((1_000_000_000, 2_000_000_000)));
        assert_eq!(ns("3-"), Some((3_000_000_000, u64::MAX)));
        assert_eq!(ns("-0.1"), Some((0, 100_000_000)));
        for bad in ["5", "2-1", "a-b", "1-nan", "1--2", "1-1"] {
            assert_eq!(ns(bad), None, "{bad}");
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
}
