//! Names of code that a just-in-time compiler wrote, from its jitdump: the file that `perf inject --jit` reads
//! (`tools/perf/Documentation/jitdump-specification.txt`). A process that writes one has it mapped.
//!
//! Not here: the code in it, unwind information and lines.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::{Endian, Endianness};

/// `JiTD` as a number.
const MAGIC: u32 = 0x4a69_5444;
/// Bytes of the header before what newer versions add, and of what each record begins with.
const HEADER: usize = 40;
const RECORD: usize = 16;
/// Kinds of records.
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
/// Most records that are read, and functions that are remembered for when they are moved.
const MOST_RECORDS: usize = 1 << 23;
const MOST_NAMES: usize = 1 << 20;
/// Longest name.
const LONGEST_NAME: usize = 1 << 12;

/// Returns the paths where the jitdump of a process with this ID in its own pid namespace may be: the files of that name that it has mapped; for
/// a process that has ended, the usual locations of compilers.
pub(crate) fn places(process: &Path, inner_pid: u32, usual: &Path) -> Vec<PathBuf> {
    let name = format!("jit-{inner_pid}.dump");
    let Ok(maps) = fs::read(process.join("maps")) else {
        return vec![usual.join(&name), PathBuf::from(&name)];
    };
    let mut places = Vec::new();
    for line in plumb_process::parse_maps(&maps) {
        let path = Path::new(std::ffi::OsStr::from_bytes(line.path));
        if path.file_name().is_some_and(|file| file == &*name)
            && let Ok(inside) = path.strip_prefix("/")
        {
            let place = process.join("root").join(inside);
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// Calls `add` with start, end and name of each function in the order in which they were written; returns how many records make no sense.
pub(crate) fn read(file: File, add: &mut dyn FnMut(u64, u64, &[u8])) -> io::Result<usize> {
    let mut input = BufReader::with_capacity(1 << 16, file);
    let mut header = [0; HEADER];
    input.read_exact(&mut header)?;
    let endian = [Endianness::Little, Endianness::Big];
    let endian = endian.into_iter().find(|endian| number(&header, 0, *endian) == Some(MAGIC));
    let endian = endian.ok_or_else(|| io::Error::other("it does not begin as a jitdump does"))?;
    let size = number(&header, 8, endian).map_or(HEADER as u64, u64::from);
    skip(&mut input, size.saturating_sub(HEADER as u64))?;
    let mut names: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut damaged = 0;
    let mut body = Vec::new();
    for _ in 0..MOST_RECORDS {
        let mut head = [0; RECORD];
        match input.read_exact(&mut head) {
            Ok(()) => {}
            // The process is writing the next one.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
        let (kind, size) = (number(&head, 0, endian), number(&head, 4, endian).unwrap_or(0) as usize);
        // Without a size nobody knows where the next one begins.
        let Some(size) = size.checked_sub(RECORD) else { return Ok(damaged + 1) };
        body.clear();
        input.by_ref().take(size.min(48 + LONGEST_NAME) as u64).read_to_end(&mut body)?;
        skip(&mut input, (size - body.len()) as u64)?;
        let is_known = match kind {
            Some(CODE_LOAD) => load(&body, endian, add, &mut names),
            Some(CODE_MOVE) => moved(&body, endian, add, &names),
            _ => Some(()),
        };
        damaged += usize::from(is_known.is_none());
    }
    Ok(damaged)
}

/// Process, thread, address, address of the code, its size, its number, its name.
fn load(
    body: &[u8],
    endian: Endianness,
    add: &mut dyn FnMut(u64, u64, &[u8]),
    names: &mut HashMap<u64, Vec<u8>>,
) -> Option<()> {
    let [start, size, index] = [16, 24, 32].map(|at| word(body, at, endian));
    let name = body.get(40..)?.split(|&byte| byte == 0).next()?;
    let end = start?.checked_add(size?)?;
    if end > start? && !name.is_empty() {
        add(start?, end, name);
    }
    if names.len() < MOST_NAMES {
        names.insert(index?, name.to_vec());
    }
    Some(())
}

/// Process, thread, address, old and new address of the code, its size, its number.
fn moved(
    body: &[u8],
    endian: Endianness,
    add: &mut dyn FnMut(u64, u64, &[u8]),
    names: &HashMap<u64, Vec<u8>>,
) -> Option<()> {
    let [start, size, index] = [24, 32, 40].map(|at| word(body, at, endian));
    let end = start?.checked_add(size?)?;
    if let Some(name) = names.get(&index?).filter(|name| !name.is_empty() && Some(end) > start) {
        add(start?, end, name);
    }
    Some(())
}

fn skip(input: &mut BufReader<File>, bytes: u64) -> io::Result<()> {
    input.seek_relative(i64::try_from(bytes).map_err(io::Error::other)?)
}

fn number(bytes: &[u8], at: usize, endian: Endianness) -> Option<u32> {
    Some(endian.read_u32(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize, endian: Endianness) -> Option<u64> {
    Some(endian.read_u64(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A jitdump in either byte order: functions, and functions that are moved.
    fn made(is_big: bool, records: &[(u32, &[u64], &[u8])]) -> Vec<u8> {
        let half = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let word = |value: u64| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut bytes: Vec<u8> = [MAGIC, 1, 48, 62, 0, 7].into_iter().flat_map(half).collect();
        bytes.extend([0_u64, 0, 0x1111].into_iter().flat_map(word));
        for (kind, words, tail) in records {
            let size = RECORD + 8 + 8 * words.len() + tail.len();
            bytes.extend([half(*kind), half(size as u32)].concat());
            bytes.extend(word(5));
            bytes.extend([half(7), half(7)].concat());
            bytes.extend(words.iter().flat_map(|&value| word(value)));
            bytes.extend(*tail);
        }
        bytes
    }

    /// Start, end and name.
    type Named = (u64, u64, String);

    fn functions(bytes: &[u8]) -> io::Result<(Vec<Named>, usize)> {
        let name = format!("plumb-jitdump-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        File::create(&path)?.write_all(bytes)?;
        let mut found = Vec::new();
        let mut add =
            |start, end, name: &[u8]| found.push((start, end, String::from_utf8_lossy(name).into_owned()));
        let damaged = read(File::open(&path)?, &mut add);
        fs::remove_file(&path)?;
        damaged.map(|damaged| (found, damaged))
    }

    #[test]
    fn functions_and_their_moves_are_read_in_both_byte_orders() {
        for is_big in [false, true] {
            let dump = made(
                is_big,
                &[
                    (CODE_LOAD, &[0x1000, 0x1000, 0x40, 1], b"Lazy:run /a.js:3\0\x90\x90"),
                    (2, &[0x1000, 0], b""),
                    (CODE_MOVE, &[0x2000, 0x1000, 0x2000, 0x40, 1], b""),
                    (CODE_MOVE, &[0x3000, 0x1000, 0x3000, 0x40, 9], b""),
                ],
            );
            let name = "Lazy:run /a.js:3".to_owned();
            let expected = vec![(0x1000, 0x1040, name.clone()), (0x2000, 0x2040, name)];
            assert_eq!(functions(&dump).unwrap(), (expected, 0));
        }
    }

    #[test]
    fn what_is_damaged_or_not_written_yet_ends_it() {
        let load: (u32, &[u64], &[u8]) = (CODE_LOAD, &[0x1000, 0x1000, 0x40, 1], b"f\0");
        let whole = made(false, &[load, load]);
        for cut in HEADER + 8..whole.len() {
            let (found, _) = functions(&whole[..cut]).unwrap();
            assert!(found.len() <= 2 && found.iter().all(|function| function.0 == 0x1000), "{cut}");
        }
        // A size below its own, and one beyond the end; code that wraps around.
        let mut none = made(false, &[load]);
        none[52..56].copy_from_slice(&3_u32.to_le_bytes());
        assert_eq!(functions(&none).unwrap(), (Vec::new(), 1));
        none[52..56].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(functions(&none).unwrap().0.len(), 1);
        let wrong = made(false, &[(CODE_LOAD, &[0, u64::MAX, 2, 1], b"f\0"), load]);
        assert_eq!(functions(&wrong).unwrap().1, 1);
        assert!(functions(b"JiTDtruncated").is_err() && functions(&[0; 64]).is_err());
    }
}
