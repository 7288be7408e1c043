//! Frames of code that a just-in-time compiler wrote, from the map that it leaves in `/tmp/perf-PID.map`, and from its jitdump.
//!
//! A line holds start and size in hexadecimal, and the rest is the name (`tools/perf/Documentation/jit-interface.txt`).
//! Memory is used again: of overlapping lines the later one holds.
//!
//! Anybody may write such a file: it has to be the process' user's, or root's. However large it is, what is kept of it is a name for each
//! address that is looked up, and what is read of it has a limit.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plumb_process::{OpenError, open_owned};

use crate::jitdump;
use crate::job::{Answer, FrameAddress, Job};
use crate::options::Options;
use crate::summary::Missing;

/// Most bytes of a map that are read; a large Java program's has some ten million.
const MOST_BYTES: u64 = 256 << 20;

/// No line is longer; of a longer one the beginning is its name.
const LONGEST_LINE: usize = 1 << 16;

/// Resolves the frames of anonymous memory of the process `pid`: by its map, and by its jitdump, which holds where both have a name.
pub(crate) fn solve(job: &Job, pid: u32, options: &Options, answer: &mut Answer) {
    let process = options.process(pid);
    let inner = inner_pid(&process).unwrap_or(pid);
    let mut maps = places((pid, inner), &process, options);
    let held = job.roots.iter().map(|root| root.path().join(format!("tmp/perf-{}.map", root.inner_pid)));
    maps.extend(held);
    let dumps = jitdump::places(&process, inner, &options.perf_maps);
    let owner = owner(pid, options);
    let mut refused = None;
    let mut open = |path: &PathBuf| match open_owned(path, owner) {
        Ok(file) => Some((path.clone(), file)),
        Err(OpenError::NotFound) => None,
        Err(error) => {
            refused.get_or_insert_with(|| match error {
                OpenError::NotOwned { .. } => Missing::NotOwned { path: path.clone(), owner },
                error => Missing::Unreadable { path: path.clone(), error: error.to_string() },
            });
            None
        }
    };
    let (found, dump) = (maps.iter().find_map(&mut open), dumps.iter().find_map(&mut open));
    if found.is_none() && dump.is_none() {
        let none = || Missing::NoPerfMap { path: maps.first().cloned().unwrap_or_default() };
        answer.miss(refused.unwrap_or_else(none));
        return;
    }
    let mut map = Map::new(job.frames.iter().map(|frame| frame.address).collect());
    for (file, is_dump) in [(found, false), (dump, true)] {
        if let Some((path, file)) = file {
            read(&mut map, &path, file, is_dump, answer);
        }
    }
    answer.summary.functions = map.symbols;
    for &FrameAddress { address, frame, .. } in &job.frames {
        if let Some(symbol) = map.find(address) {
            answer.set_name(frame, symbol.name.clone(), symbol.start);
        }
    }
}

/// Reads a map or a jitdump, and says in the answer what is wrong with it.
fn read(map: &mut Map, path: &Path, file: File, is_dump: bool, answer: &mut Answer) {
    let size = file.metadata().map_or(0, |meta| meta.len());
    let damaged = match is_dump {
        true => jitdump::read(file, &mut |start, end, name| {
            map.symbols += 1;
            map.add(start, end, name);
        }),
        false => map.read(file).map(|()| map.damaged),
    };
    match damaged {
        Err(error) => answer.miss(Missing::Unreadable { path: path.to_owned(), error: error.to_string() }),
        Ok(damaged) => {
            answer.summary.sources.push(path.to_owned());
            if damaged > 0 {
                let what = if is_dump { "records make no sense" } else { "lines are no symbols" };
                answer.miss(Missing::Skipped { what: format!("{}: {damaged} {what}", path.display()) });
            }
            if !is_dump && size > MOST_BYTES {
                let what =
                    format!("{}: {size} bytes, of which the first {MOST_BYTES} were read", path.display());
                answer.miss(Missing::Skipped { what });
            }
        }
    }
}

/// Returns the user, besides root, whose maps of this process are trusted: the user of the process; if that has ended unseen, the current user.
fn owner(pid: u32, options: &Options) -> u32 {
    let known = options.users.get(&pid).copied();
    known
        .or_else(|| user(&options.process(pid)))
        .unwrap_or_else(|| user(Path::new("/proc/self")).unwrap_or(0))
}

/// In whose name a process makes files, `process` being its folder in `/proc`.
pub(crate) fn user(process: &Path) -> Option<u32> {
    // Real, effective, saved, and of files.
    field(process, "Uid:")?.split_whitespace().nth(3)?.parse().ok()
}

/// Returns the possible paths of the map: here, or in the process' own mount namespace under its ID there.
fn places((pid, inner): (u32, u32), process: &Path, options: &Options) -> Vec<PathBuf> {
    let mut places = vec![options.perf_maps.join(format!("perf-{pid}.map"))];
    for pid in [inner, pid] {
        let place = process.join(format!("root/tmp/perf-{pid}.map"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The process ID in the process' own pid namespace.
pub(crate) fn inner_pid(process: &Path) -> Option<u32> {
    field(process, "NSpid:")?.split_whitespace().last()?.parse().ok()
}

fn field(process: &Path, name: &str) -> Option<String> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
}

/// The symbols of some addresses in a perf map.
struct Map {
    /// The addresses, sorted.
    addresses: Vec<u64>,
    /// A tree over the addresses, as an array: the two halves of a node are at twice its index, behind an unused root. A node holds the last line
    /// that covers all of its addresses and not all of its parent's, with the line's number.
    nodes: Vec<Option<(usize, Rc<Symbol>)>>,
    /// Number of lines that are symbols.
    symbols: usize,
    /// Number of malformed lines.
    damaged: usize,
}

/// A symbol.
#[derive(Debug)]
struct Symbol {
    start: u64,
    name: String,
}

impl Map {
    fn new(mut addresses: Vec<u64>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        Map { nodes: vec![None; 2 * addresses.len()], addresses, symbols: 0, damaged: 0 }
    }

    fn read(&mut self, file: File) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 16, file.take(MOST_BYTES));
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if line.len() == LONGEST_LINE && line.last() != Some(&b'\n') {
                skip_line(&mut reader)?;
            }
            self.line(line.strip_suffix(b"\n").unwrap_or(&line));
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        match symbol(line) {
            Some((start, end, name)) => {
                self.symbols += 1;
                self.add(start, end, name);
            }
            None => self.damaged += 1,
        }
    }

    /// Names the addresses within, in the place of what was there before.
    fn add(&mut self, start: u64, end: u64, name: &[u8]) {
        let count = self.addresses.len();
        let within = |end: u64| self.addresses.partition_point(|&address| address < end);
        let (mut from, mut to) = (within(start) + count, within(end) + count);
        if from >= to {
            return;
        }
        let symbol = Rc::new(Symbol { start, name: String::from_utf8_lossy(name).into_owned() });
        while from < to {
            if from % 2 == 1 {
                self.nodes[from] = Some((self.symbols, Rc::clone(&symbol)));
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                self.nodes[to] = Some((self.symbols, Rc::clone(&symbol)));
            }
            (from, to) = (from / 2, to / 2);
        }
    }

    fn find(&self, address: u64) -> Option<&Symbol> {
        let place = self.addresses.binary_search(&address).ok()? + self.addresses.len();
        let above = std::iter::successors(Some(place), |place| Some(place / 2).filter(|&place| place > 0));
        above
            .filter_map(|place| self.nodes[place].as_ref())
            .max_by_key(|(number, _)| *number)
            .map(|(_, one)| &**one)
    }
}

/// Reads on to the end of a line, without keeping it.
fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = reader.fill_buf()?;
        let (length, is_end) = match bytes.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        reader.consume(length);
        if is_end {
            return Ok(());
        }
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

    fn parsed(text: &[u8], addresses: &[u64]) -> Map {
        let mut map = Map::new(addresses.to_vec());
        text.split(|&byte| byte == b'\n').for_each(|line| map.line(line));
        map
    }

    fn find(text: &str, address: u64) -> Option<String> {
        parsed(text.as_bytes(), &[address]).find(address).map(|symbol| symbol.name.clone())
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
        let map = parsed(b"zz 1 a\n10 0 empty\n10 5\n\xff\xff 3 4\n10 5 \xff\xfe\n", &[]);
        assert_eq!((map.symbols, map.damaged), (1, 4));
    }

    /// The tree says what going through all lines for each address would.
    #[test]
    fn many_addresses_have_the_last_line_that_holds_them() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for count in [0, 1, 2, 3, 7, 64, 100] {
            let addresses: Vec<u64> = (0..count).map(|_| random(1000)).collect();
            let lines: Vec<(u64, u64)> = (0..50).map(|_| (random(1000), 1 + random(300))).collect();
            let text: Vec<String> = lines
                .iter()
                .enumerate()
                .map(|(at, (start, size))| format!("{start:x} {size:x} f{at}\n"))
                .collect();
            let map = parsed(text.concat().as_bytes(), &addresses);
            for &address in &addresses {
                let last = lines.iter().rposition(|&(start, size)| (start..start + size).contains(&address));
                let found = map.find(address).map(|symbol| (symbol.start, symbol.name.clone()));
                assert_eq!(found, last.map(|at| (lines[at].0, format!("f{at}"))), "{address} of {count}");
            }
        }
    }

    /// A map with a hole of a terabyte costs no memory, and a limited time; a line without end is one.
    #[test]
    fn what_is_read_is_bounded() {
        use std::io::{Seek, SeekFrom, Write};
        let path = std::env::temp_dir().join(format!("plumb-map-{}", std::process::id()));
        let mut file = File::create_new(&path).unwrap();
        writeln!(file, "1000 10 first").unwrap();
        file.seek(SeekFrom::Start(1 << 40)).unwrap();
        // If the file system does not allow a file of this size, the hole is smaller.
        if file.write_all(b"\n1000 10 last\n").is_err() {
            file.set_len(1 << 30).unwrap();
        }
        let mut map = Map::new(vec![0x1000]);
        map.read(File::open(&path).unwrap()).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((map.symbols, map.damaged), (1, 1));
        assert_eq!(map.find(0x1000).unwrap().name, "first");
    }
}
