//! The recorder's settings and environment: sampling periods, the program. Invariant: nothing is assumed that the file does not
//! contain, except async-profiler's documented defaults.

use std::collections::HashMap;

use super::chunk::Chunk;
use super::event::JfrEvent;
use crate::foreign::ForeignError;

/// async-profiler's default interval in nanoseconds, and that of its wall clock.
const DEFAULT_INTERVAL: u64 = 10_000_000;
const DEFAULT_WALL: u64 = 50_000_000;

/// Settings of all chunks so far; later ones override earlier ones.
#[derive(Default)]
pub(super) struct Settings {
    /// The JDK's periods by event type, in nanoseconds.
    periods: HashMap<i64, u64>,
    /// async-profiler's settings: the sampled event, its interval, and the wall clock interval.
    pub event: Option<String>,
    interval: Option<u64>,
    wall: Option<u64>,
    /// async-profiler's version.
    pub profiler: Option<String>,
    /// The virtual machine.
    pub machine: Machine,
}

/// The virtual machine as it describes itself.
#[derive(Default)]
pub(super) struct Machine {
    pub version: String,
    /// The main class or the jar, with its arguments.
    pub arguments: String,
    pub pid: Option<u32>,
}

impl Machine {
    /// Returns the number in a version such as `OpenJDK 64-Bit Server VM (17.0.15+6) for linux-amd64 JRE ...`.
    pub fn release(&self) -> &str {
        let inner = self.version.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        inner.map_or(&*self.version, |(release, _)| release)
    }
}

impl Settings {
    /// Adds a chunk's settings.
    pub fn add(&mut self, chunk: &Chunk<'_>) -> Result<(), ForeignError> {
        for &spot in &chunk.settings {
            let event = chunk.event(spot)?;
            let (name, value) = (chunk.text(&event, "name")?, chunk.text(&event, "value")?);
            match &*name {
                "period" => {
                    let period = nanoseconds(&value).map(|period| (chunk.number(&event, "id"), period));
                    self.periods.extend(period);
                }
                "event" => self.event = (!value.is_empty()).then_some(value),
                "interval" => self.interval = value.parse().ok(),
                "wall" => self.wall = value.parse().ok(),
                "version" => self.profiler = Some(value),
                _ => {}
            }
        }
        for &spot in &chunk.machine {
            let event = chunk.event(spot)?;
            self.machine = Machine {
                version: chunk.text(&event, "jvmVersion")?,
                arguments: chunk.text(&event, "javaArguments")?,
                pid: u32::try_from(chunk.number(&event, "pid")).ok().filter(|&pid| pid > 0),
            };
        }
        Ok(())
    }

    /// Whether async-profiler, not the JDK, wrote the file.
    pub fn is_async_profiler(&self) -> bool {
        self.event.is_some() || self.interval.is_some() || self.wall.is_some()
    }

    /// Returns the kind of an execution sample: a running thread, unless async-profiler samples another event or all threads.
    pub fn kind(&self, kind: JfrEvent, state: &str) -> JfrEvent {
        match (kind, self.event.as_deref()) {
            (JfrEvent::Cpu, Some("wall")) => JfrEvent::Wall,
            // With an additional wall clock, sleeping threads are recognized by their state.
            (JfrEvent::Cpu, _) if state == "STATE_SLEEPING" => JfrEvent::Wall,
            (JfrEvent::Cpu, None | Some("cpu" | "cpu-clock" | "task-clock" | "itimer" | "ctimer")) => {
                JfrEvent::Cpu
            }
            (JfrEvent::Cpu, Some(_)) => JfrEvent::Counter,
            (kind, _) => kind,
        }
    }

    /// Returns the weight of one sample, if the file has it: nanoseconds, or events of a counter.
    pub fn period(&self, kind: JfrEvent, class: i64) -> Option<u64> {
        let or = |period: Option<u64>, default| match period {
            None | Some(0) => Some(default),
            period => period,
        };
        match kind {
            JfrEvent::Wall if self.event.as_deref() == Some("wall") => {
                or(self.wall.or(self.interval), DEFAULT_WALL)
            }
            JfrEvent::Wall => or(self.wall, DEFAULT_WALL),
            // Each counter has its own default.
            JfrEvent::Counter => self.interval.filter(|&interval| interval > 0),
            _ if self.is_async_profiler() => or(self.interval, DEFAULT_INTERVAL),
            _ => self.periods.get(&class).copied(),
        }
    }
}

/// Parses a time in the settings' form, `20 ms`.
fn nanoseconds(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|one: char| one.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().ok()?;
    let factor = match unit.trim() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor).filter(|&period| period > 0)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn periods_are_times_with_a_unit() {
        assert_eq!(nanoseconds("20 ms"), Some(20_000_000));
        assert_eq!(nanoseconds("1s"), Some(1_000_000_000));
        for none in ["everyChunk", "20", "0 ms", "", "99999999999999999999 d", "9999999999999999 d"] {
            assert_eq!(nanoseconds(none), None, "{none}");
        }
    }
}
