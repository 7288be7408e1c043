//! Frames of code that a just-in-time compiler wrote, from the map that it leaves in `/tmp/perf-PID.map`.
//!
//! A line holds start and size in hexadecimal, and the rest is the name (`tools/perf/Documentation/jit-interface.txt`).
//! Memory is used again: of overlapping lines the later one holds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::job::{Answer, Job};
use crate::options::Options;
use crate::summary::Missing;

/// Largest map that is read; a large Java program has some ten megabytes.
const MAX_BYTES: u64 = 1 << 30;

/// Resolves the frames of anonymous memory of the process `pid`.
pub(crate) fn solve(job: &Job, pid: u32, options: &Options, answer: &mut Answer) {
    let places = places(pid, options);
    let Some(path) = places.iter().find(|path| path.is_file()) else {
        answer.miss(Missing::NoPerfMap { path: places.into_iter().next().unwrap_or_default() });
        return;
    };
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text));
    if let Err(error) = read {
        answer.miss(Missing::Unreadable { path: path.clone(), error: error.to_string() });
        return;
    }
    answer.summary.sources.push(path.clone());
    let map = Map::parse(&text);
    answer.summary.functions = map.ranges.len();
    if map.damaged > 0 {
        let what = format!("{}: {} lines are no symbols", path.display(), map.damaged);
        answer.miss(Missing::Skipped { what });
    }
    for &(frame, address) in &job.frames {
        if let Some((start, name)) = map.find(address) {
            answer.set_name(frame, name.into_owned(), start);
        }
    }
}

/// Where the map may be: here, or in the process' own mount namespace under its own number.
fn places(pid: u32, options: &Options) -> Vec<PathBuf> {
    let process = options.proc.join(pid.to_string());
    let mut places = vec![options.perf_maps.join(format!("perf-{pid}.map"))];
    let inner = inner_pid(&process).unwrap_or(pid);
    for pid in [inner, pid] {
        let place = process.join(format!("root/tmp/perf-{pid}.map"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The process' number in its own pid namespace.
fn inner_pid(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last()?.parse().ok())
}

/// A map's symbols.
struct Map<'t> {
    /// By start address the end and the name. No two overlap.
    ranges: BTreeMap<u64, (u64, &'t [u8])>,
    /// Lines that are no symbols.
    damaged: usize,
}

impl<'t> Map<'t> {
    fn parse(text: &'t [u8]) -> Self {
        let mut map = Self { ranges: BTreeMap::new(), damaged: 0 };
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match symbol(line) {
                Some((start, end, name)) => map.add(start, end, name),
                None => map.damaged += 1,
            }
        }
        map
    }

    /// Adds a symbol in place of what was there before.
    fn add(&mut self, start: u64, end: u64, name: &'t [u8]) {
        if let Some((&before, &(before_end, before_name))) = self.ranges.range(..start).next_back()
            && before_end > start
        {
            self.ranges.insert(before, (start, before_name));
            if before_end > end {
                self.ranges.insert(end, (before_end, before_name));
            }
        }
        while let Some((&within, &(within_end, within_name))) = self.ranges.range(start..end).next() {
            self.ranges.remove(&within);
            if within_end > end {
                self.ranges.insert(end, (within_end, within_name));
            }
        }
        self.ranges.insert(start, (end, name));
    }

    fn find(&self, address: u64) -> Option<(u64, std::borrow::Cow<'t, str>)> {
        let (&start, &(end, name)) = self.ranges.range(..=address).next_back()?;
        (address < end).then(|| (start, String::from_utf8_lossy(name)))
    }
}

/// Start, end and name; `None` for a line that is damaged or empty of code.
fn symbol(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let text = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = fields.next()?.trim_ascii();
    let end = start.checked_add(size)?;
    (end > start && !name.is_empty()).then_some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, address: u64) -> Option<String> {
        Map::parse(text.as_bytes()).find(address).map(|(_, name)| name.into_owned())
    }

    #[test]
    fn names_may_hold_blanks_and_numbers_a_prefix() {
        let text = "1000 20 LazyCompile:*run /app/a.js:3\n0x2000 0x10 stub\n";
        assert_eq!(find(text, 0x101f).as_deref(), Some("LazyCompile:*run /app/a.js:3"));
        assert_eq!(find(text, 0x1020), None);
        assert_eq!(find(text, 0x2000).as_deref(), Some("stub"));
    }

    #[test]
    fn memory_that_was_used_again_has_its_last_name() {
        let text = "1000 100 old\n1040 40 new\n2000 10 a\n2010 10 b\n1ff0 40 over\n";
        assert_eq!(find(text, 0x1000).as_deref(), Some("old"));
        assert_eq!(find(text, 0x1040).as_deref(), Some("new"));
        assert_eq!(find(text, 0x107f).as_deref(), Some("new"));
        assert_eq!(find(text, 0x1080).as_deref(), Some("old"));
        assert_eq!(find(text, 0x2011).as_deref(), Some("over"));
        assert_eq!(find(text, 0x2030), None);
    }

    #[test]
    fn damaged_lines_are_counted() {
        let map = Map::parse(b"zz 1 a\n10 0 empty\n10 5\n\xff\xff 3 4\n10 5 \xff\xfe\n");
        assert_eq!((map.ranges.len(), map.damaged), (1, 4));
    }
}
