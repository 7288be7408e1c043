//! Places of the members of a `g`, by version of Go (src/runtime/runtime2.go, 64-bit). Compared with Go 1.21 to 1.27.

use super::Goroutine;
use crate::Memory;
use crate::memory::word_in;

/// Bytes of a `g` up to its last member that is read.
pub(super) const G_BYTES: usize = 192;

/// `stack.hi`.
const STACK_END: u32 = 8;
/// `m`, the thread that runs it. One can wait for the collector without leaving its thread.
const THREAD: u32 = 48;
/// `sched`, a `gobuf`: stack pointer, program counter, and the address of the `g` itself.
const SCHED: u32 = 56;
const SCHED_G: u32 = SCHED + 16;

/// States of a goroutine. A garbage collection that scans its stack adds another bit.
const RUNNABLE: u32 = 1;
const WAITING: u32 = 4;
const PREEMPTED: u32 = 9;
const LEAKED: u32 = 10;
const SCANNED: u32 = 0x1000;

/// Offsets in a `g` that differ between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GLayout {
    /// `sched.bp`. `gobuf` lost a member before it in 1.25.
    frame_pointer: u32,
    /// `atomicstatus`. `syscallbp` came before it in 1.23.
    status: u32,
}

/// A goroutine that is switched out.
pub(super) struct Parked {
    /// The goroutine, without its state's text.
    pub(super) goroutine: Goroutine,
    /// Number of what it waits for; `None`: for a thread.
    pub(super) reason: Option<u8>,
}

/// Whether there is a `g` at an address: it has its own address in `sched`.
pub(super) fn names_itself(memory: &dyn Memory, at: u64) -> bool {
    at != 0 && memory.word(at.wrapping_add(u64::from(SCHED_G))) == Ok(at)
}

impl GLayout {
    /// The layout of a version such as `go1.26.8`, or `devel go1.27-0123abc`. `None` of versions before 1.15.
    pub(super) fn of_version(version: &str) -> Option<Self> {
        let (_, minor) = version.split_once("go1.")?;
        let minor: u32 = minor.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()?;
        match minor {
            ..15 => None,
            15..23 => Some(Self { frame_pointer: SCHED + 48, status: 144 }),
            23..25 => Some(Self { frame_pointer: SCHED + 48, status: 152 }),
            25.. => Some(Self { frame_pointer: SCHED + 40, status: 144 }),
        }
    }

    /// The goroutine of a `g` with these bytes. `None` if it is on a thread or has ended, or if this is no `g`.
    pub(super) fn parked(self, at: u64, bytes: &[u8; G_BYTES]) -> Option<Parked> {
        let word = |offset: u32| word_in(bytes, offset);
        if word(SCHED_G) != at || word(THREAD) != 0 {
            return None;
        }
        let reason = match word(self.status) as u32 & !SCANNED {
            RUNNABLE => None,
            // `goid`, `schedlink` and `waitsince` are between.
            WAITING | PREEMPTED | LEAKED => Some(word(self.status + 32) as u8),
            _ => return None,
        };
        let goroutine = Goroutine {
            id: word(self.status + 8),
            state: String::new(),
            sp: word(SCHED),
            pc: word(SCHED + 8),
            fp: word(self.frame_pointer),
            stack_end: word(STACK_END),
        };
        Some(Parked { goroutine, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_goes_by_the_version() {
        let of = GLayout::of_version;
        assert_eq!(of("go1.25.0"), of("go1.26.8 X:nodwarf5"));
        assert_eq!(of("devel go1.27-0123abc Tue"), of("go1.25"));
        assert_ne!(of("go1.22.1"), of("go1.23"));
        assert_eq!((of("go1.9"), of("1.26"), of("go1.x"), of("")), (None, None, None, None));
    }

    #[test]
    fn what_does_not_name_itself_is_no_goroutine() {
        let layout = GLayout::of_version("go1.26").unwrap();
        let mut bytes = [0; G_BYTES];
        bytes[SCHED_G as usize] = 0x40;
        bytes[144] = WAITING as u8;
        bytes[152] = 7;
        bytes[176] = 2;
        let parked = layout.parked(0x40, &bytes).unwrap();
        assert_eq!((parked.goroutine.id, parked.reason), (7, Some(2)));
        assert!(layout.parked(0x48, &bytes).is_none());
        bytes[THREAD as usize] = 1;
        assert!(layout.parked(0x40, &bytes).is_none(), "it is on a thread");
    }
}
