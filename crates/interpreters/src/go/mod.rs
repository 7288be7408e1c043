//! Goroutines of a Go program that no thread runs: those that wait, and those that wait for a thread.
//!
//! The runtime lists every goroutine (`runtime.allgs`) and keeps the registers of one that is switched out in its `g`
//! (src/runtime/runtime2.go). Its stack is like that of any thread from there on, and unwound by the same tables.
//!
//! Invariant: the list, its entries and the stacks are memory of a process that may be hostile: their number and sizes are bounded.
//!
//! Elsewhere: the stacks of threads, unwinding, Go's tables of functions (plumb-unwind, plumb-symbolize).

mod layout;
mod stripped;

use std::fmt;
use std::fs::File;
use std::ops::Range;

use crate::Memory;
use crate::image::{self, Image, Wanted};
use crate::memory::{Unreadable, head, word_in};

use layout::GLayout;

const SYMBOLS: [Wanted; 2] = [Wanted { name: ALL, bytes: 0 }, Wanted { name: REASONS, bytes: 0 }];
/// A slice of pointers to `g`.
const ALL: &str = "runtime.allgs";
/// An array of strings, by `g.waitreason`. There since Go 1.11.
const REASONS: &str = "runtime.waitReasonStrings";

/// The section of every program of Go.
const BUILD_INFO: &str = ".go.buildinfo";

/// Most goroutines that are read. A program that leaks them may have millions.
const MAX_GOROUTINES: u64 = 1 << 20;
/// Entries of the list that are read at once.
const BLOCK: u64 = 512;
/// Longest text that is read, in bytes.
const MAX_TEXT: u64 = 64;

/// The list of goroutines in a process.
#[derive(Clone, Copy, Debug)]
pub struct GoroutineList {
    all: u64,
    reasons: Option<u64>,
    layout: GLayout,
}

/// A goroutine that no thread runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goroutine {
    /// Number, as in Go's own traces.
    pub id: u64,
    /// Reason for waiting in the runtime's words (`chan receive`); `runnable` if it waits for a thread. Empty if not known.
    pub state: String,
    /// Program counter with which it goes on.
    pub pc: u64,
    /// Stack pointer there.
    pub sp: u64,
    /// Frame pointer there.
    pub fp: u64,
    /// End address of its stack, which grows downwards.
    pub stack_end: u64,
}

/// The reason why goroutines that no thread runs are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoGoroutines {
    /// A version of Go, or what is in its place, that is not known.
    UnknownVersion(String),
    /// The program has no symbols, and no variable of it holds such a list.
    NoList,
    /// The list is not there.
    Unreadable(Unreadable),
}

impl fmt::Display for NoGoroutines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVersion(version) => write!(f, "plumb does not know its version of Go, {version:?}"),
            Self::NoList => f.write_str("the program has no symbols, and none of its variables lists them"),
            Self::Unreadable(Unreadable(at)) => write!(f, "the runtime's memory at {at:#x} can't be read"),
        }
    }
}

impl std::error::Error for NoGoroutines {}

impl From<Unreadable> for NoGoroutines {
    fn from(error: Unreadable) -> Self {
        Self::Unreadable(error)
    }
}

impl GoroutineList {
    /// The list in a process, by its program's file; `None` if it is not one of Go. `bias`: see [`crate::bias`].
    pub fn find(file: &File, memory: &dyn Memory, bias: u64) -> Option<Result<Self, NoGoroutines>> {
        let about = image::section(file, BUILD_INFO)?.wrapping_add(bias);
        Some(version(memory, about).and_then(|version| {
            let layout = GLayout::of_version(&version).ok_or(NoGoroutines::UnknownVersion(version))?;
            Self::locate(file, memory, bias, layout).ok_or(NoGoroutines::NoList)
        }))
    }

    fn locate(file: &File, memory: &dyn Memory, bias: u64, layout: GLayout) -> Option<Self> {
        let image = Image::read(file, &[&SYMBOLS], true);
        let address = |name| image.as_ref()?.address(name).map(|at| at.wrapping_add(bias));
        if let Some(all) = address(ALL) {
            return Some(Self { all, reasons: address(REASONS), layout });
        }
        let moved = |range: Range<u64>| range.start.wrapping_add(bias)..range.end.wrapping_add(bias);
        let variables: Vec<_> = image::variables(file).into_iter().map(moved).collect();
        let stripped::Lists { all, reasons } = stripped::search(memory, &variables);
        Some(Self { all: all?.0, reasons, layout })
    }

    /// Calls `visit` for each entry of the list, in its order, until it returns false: with the goroutine if there is one that no thread runs.
    /// Ended goroutines stay in the list, so there may be many without. Returns whether these were all.
    pub fn visit(
        &self,
        memory: &dyn Memory,
        visit: &mut dyn FnMut(Option<Goroutine>) -> bool,
    ) -> Result<bool, NoGoroutines> {
        let mut reasons = Reasons { at: self.reasons, known: Vec::new() };
        let (list, count) = (memory.word(self.all)?, memory.word(self.all.wrapping_add(8))?);
        let known = count.min(MAX_GOROUTINES);
        for first in (0..known).step_by(BLOCK as usize) {
            let mut block = vec![0; 8 * (known - first).min(BLOCK) as usize];
            let at = list.wrapping_add(8 * first);
            if !memory.read(at, &mut block) {
                return Err(Unreadable(at).into());
            }
            for entry in block.as_chunks().0 {
                if !visit(self.goroutine(memory, u64::from_le_bytes(*entry), &mut reasons)) {
                    return Ok(false);
                }
            }
        }
        Ok(count <= MAX_GOROUTINES)
    }

    /// The goroutine of the `g` at an address. An unreadable one says nothing of the others.
    fn goroutine(&self, memory: &dyn Memory, at: u64, reasons: &mut Reasons) -> Option<Goroutine> {
        let bytes = head::<{ layout::G_BYTES }>(memory, at).ok()?;
        let parked = self.layout.parked(at, &bytes)?;
        let state =
            parked.reason.map_or_else(|| "runnable".to_owned(), |reason| reasons.text(memory, reason));
        Some(Goroutine { state, ..parked.goroutine })
    }
}

/// The runtime's words for what goroutines wait for, each read once.
struct Reasons {
    /// Address of the array.
    at: Option<u64>,
    known: Vec<(u8, String)>,
}

impl Reasons {
    fn text(&mut self, memory: &dyn Memory, reason: u8) -> String {
        if let Some((_, text)) = self.known.iter().find(|(other, _)| *other == reason) {
            return text.clone();
        }
        let at = self.at.map(|at| at.wrapping_add(16 * u64::from(reason)));
        let text = at.and_then(|at| text(memory, at).ok()).unwrap_or_default();
        self.known.push((reason, text.clone()));
        text
    }
}

/// The version in what Go's linker writes about a build (`.go.buildinfo`, src/debug/buildinfo/buildinfo.go), at this address: a text since 1.18,
/// an address of a string before.
fn version(memory: &dyn Memory, at: u64) -> Result<String, NoGoroutines> {
    /// A flag of the sixteenth byte.
    const IS_TEXT: u8 = 2;
    let about = head::<64>(memory, at)?;
    if about[15] & IS_TEXT == 0 {
        return Ok(text(memory, word_in(&about, 16))?);
    }
    let length = usize::from(about[32]).min(about.len() - 33);
    Ok(String::from_utf8_lossy(&about[33..33 + length]).into_owned())
}

/// The text of a Go string at an address: a pointer and a length.
fn text(memory: &dyn Memory, at: u64) -> Result<String, Unreadable> {
    let (start, length) = (memory.word(at)?, memory.word(at.wrapping_add(8))?);
    let mut bytes = vec![0; length.min(MAX_TEXT) as usize];
    if !memory.read(start, &mut bytes) {
        return Err(Unreadable(start));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process whose list never ends and names one goroutine over and over.
    struct Endless;

    const G: u64 = 0x4000;
    const ABOUT: u64 = 0x2000;

    impl Memory for Endless {
        fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
            let word = |at: u64| match at {
                0x1000 => 0x10_0000,
                0x1008 => u64::MAX,
                0x10_0000.. => G,
                _ if at == G + 72 => G,
                _ if at == G + 144 => 4,
                _ if at == G + 152 => 7,
                // A reason beyond the list's end.
                _ if at == G + 176 => 0xff,
                _ => 0,
            };
            if at == ABOUT {
                bytes[15] = 2;
                bytes[32..39].copy_from_slice(b"\x06go1.26");
                return true;
            }
            for (index, part) in bytes.chunks_mut(8).enumerate() {
                part.copy_from_slice(&word(at + 8 * index as u64).to_le_bytes()[..part.len()]);
            }
            true
        }
    }

    #[test]
    fn an_endless_list_is_cut() {
        let layout = GLayout::of_version(&version(&Endless, ABOUT).unwrap()).unwrap();
        let list = GoroutineList { all: 0x1000, reasons: Some(0x8000), layout };
        let mut visits = 0;
        let all = list.visit(&Endless, &mut |goroutine| {
            let goroutine = goroutine.unwrap();
            assert_eq!((goroutine.id, goroutine.state.as_str()), (7, ""));
            visits += 1;
            true
        });
        assert_eq!((all, visits), (Ok(false), MAX_GOROUTINES));
        assert_eq!(list.visit(&Endless, &mut |_| false), Ok(false));
    }

    #[test]
    fn a_list_of_ended_goroutines_can_be_left() {
        // Entries point to memory that holds no goroutine.
        let layout = GLayout::of_version("go1.23").unwrap();
        let list = GoroutineList { all: 0x1000, reasons: None, layout };
        let mut visits = 0;
        let all = list.visit(&Endless, &mut |goroutine| {
            assert_eq!(goroutine, None);
            visits += 1;
            visits < 10
        });
        assert_eq!((all, visits), (Ok(false), 10));
    }
}
