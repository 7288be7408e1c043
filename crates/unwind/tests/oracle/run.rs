//! Steps a program to its end and compares the unwinder with the shadow stack at every instruction.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::process::Command;

use plumb_unwind::scan::{self, ReadCode};
use plumb_unwind::{Architecture, Avma, Cache, End, Method, Native, Registers, Walked, walk};

use super::arch::{self, Kind};
use super::blame::{Blame, Fault, Proof};
use super::maps::Maps;
use super::ptrace::{Copied, PageStore, Pages, Stop, Tracee};
use super::shadow::{Entry, Shadow};
use crate::reference;

/// Maximum number of frames. No program that is stepped here goes deeper.
const LIMIT: usize = 10_000;

/// Every stack with a number divisible by this, among those found exactly, is examined as a control: there must be no
/// proof against its files.
const CONTROLS: u64 = 1009;

/// Reason why no unwinder can be right (`None`: not proven, so the unwinder is wrong), and the function.
type Place = (Option<Fault>, String);

/// Instructions with the same fault.
#[derive(Default)]
pub struct Misses {
    pub count: u64,
    /// Addresses whose rules are wrong.
    pub places: BTreeSet<u64>,
    /// Description of the first one.
    pub example: String,
}

/// Number of walks with a fault, and a description of the first.
#[derive(Default)]
pub struct Faults {
    pub count: u64,
    pub example: String,
}

/// Results of a program.
#[derive(Default)]
pub struct Report {
    /// Number of instructions compared.
    pub instructions: u64,
    /// Number of instructions at which all callers and the end were right.
    pub exact: u64,
    /// Walks over a copy of the stack, as the kernel makes it, that were wrong.
    pub copied: Faults,
    /// Number of frames compared.
    pub frames: u64,
    /// Number of signal handlers entered.
    pub signals: u64,
    /// Number of threads started. The newest one is stepped.
    pub threads: u64,
    /// Misses by fault and function.
    pub misses: BTreeMap<Place, Misses>,
    /// Misses with a frame that is not a caller's, even after a checked scan.
    pub made_up: Faults,
    /// Number of controls for which no proof was found.
    pub controls: u64,
    /// Controls for which a proof was found: the unwinder corrects the files there.
    pub mended: Vec<String>,
    /// Number of truncated stacks that were scanned.
    pub scanned: u64,
    /// Number of scanned stacks of which all callers were found.
    pub whole: u64,
    /// Number of scanned stacks with a false caller.
    pub misled: u64,
    /// Description of the last one.
    pub misled_example: String,
    /// Description of the end: of the program, or of stepping at the cap.
    pub end: String,
}

struct Runner {
    tracee: Tracee,
    maps: Maps,
    cache: Cache,
    shadow: Shadow,
    kinds: HashMap<u64, Kind>,
    pages: PageStore,
    frames: Vec<Walked>,
    report: Report,
    blame: Blame,
    /// Whether truncated stacks are scanned instead of examined.
    scans: bool,
}

/// Reads code from the process.
struct Code<'a>(&'a Tracee);

impl ReadCode for Code<'_> {
    fn read(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.0.read(at.0, to) == to.len()
    }
}

/// Runs `command`, comparing at most `cap` instructions: from its first instruction, or from the function called
/// `from`.
pub fn run(command: &mut Command, from: Option<&str>, cap: u64) -> io::Result<Report> {
    run_with(command, from, cap, false)
}

/// Runs `command` and scans truncated stacks: every frame found must be a caller, but callers may be missing.
#[cfg(target_arch = "x86_64")]
pub fn run_scanning(command: &mut Command) -> io::Result<Report> {
    run_with(command, None, u64::MAX, true)
}

fn run_with(command: &mut Command, from: Option<&str>, cap: u64, scans: bool) -> io::Result<Report> {
    let tracee = Tracee::start(command)?;
    let mut runner = Runner {
        tracee,
        maps: Maps::default(),
        cache: Cache::default(),
        shadow: Shadow::default(),
        kinds: HashMap::new(),
        pages: PageStore::default(),
        frames: Vec::new(),
        report: Report::default(),
        blame: Blame::default(),
        scans,
    };
    runner.refresh();
    if let Some(name) = from {
        runner.begin_at(name)?;
    }
    runner.steps(cap)?;
    Ok(runner.report)
}

impl Runner {
    /// Runs to the function called `name`. The active calls there are taken from the unwinder, provided that gimli
    /// finds the same.
    fn begin_at(&mut self, name: &str) -> io::Result<()> {
        let mut address = self.maps.address_of(name);
        if let (None, Some(entry)) = (address, self.tracee.entry()) {
            // Libraries are mapped once the program reaches its entry point.
            self.tracee.run_to(entry)?;
            self.refresh();
            address = self.maps.address_of(name);
        }
        self.tracee.run_to(address.ok_or_else(|| io::Error::other(format!("there is no symbol {name}")))?)?;
        self.refresh();
        let start = self.tracee.registers()?;
        let mut memory = Pages::new(&self.tracee, &mut self.pages, start.sp());
        walk(&self.maps, &mut memory, &mut self.cache, &start, LIMIT, &mut self.frames);
        let (reference, end) = reference::callers(&self.maps, &mut memory, &start, LIMIT);
        let calls = self.frames.iter().skip(1).map(|frame| frame.pc.0);
        assert_eq!(end, reference::End::Root);
        assert!(calls.eq(reference.iter().map(|caller| caller.registers.ip())), "gimli differs at {name}");
        self.shadow.begin(reference.iter().map(arch::entry));
        Ok(())
    }

    fn steps(&mut self, cap: u64) -> io::Result<()> {
        let mut old = self.tracee.registers()?;
        let mut pending = 0;
        self.compare(&old);
        loop {
            if self.report.instructions >= cap {
                self.report.end = "left at the cap".to_owned();
                return Ok(());
            }
            let kind = self.kind(old.ip());
            let ends = arch::sequence_ends(kind, old.ip(), |at| self.tracee.read_u64(at));
            let stop = match ends.is_empty() {
                true => self.tracee.step(pending)?,
                false => self.tracee.run_to_any(&ends, pending)?,
            };
            let delivered = std::mem::take(&mut pending);
            match stop {
                Stop::Ended(how) => {
                    self.report.end = how;
                    return Ok(());
                }
                Stop::Signal(signal) => {
                    pending = signal;
                    // The instruction may have run: an interrupted system call has.
                    if self.tracee.registers()?.ip() == old.ip() {
                        continue;
                    }
                }
                Stop::Exec => {
                    self.shadow.clear();
                    self.cache.clear();
                    self.refresh();
                    old = self.tracee.registers()?;
                    continue;
                }
                Stop::Thread => {
                    self.tracee.follow_thread()?;
                    self.shadow.clear();
                    self.report.threads += 1;
                    old = self.tracee.registers()?;
                    continue;
                }
                Stop::Step => {}
            }
            let new = self.tracee.registers()?;
            let repeats = new.ip() == old.ip() && new.sp() == old.sp() && kind == Kind::Other;
            self.follow(kind, &old, &new, delivered);
            if !repeats && pending == 0 {
                self.compare(&new);
            }
            old = new;
        }
    }

    /// Updates the shadow stack and the mappings.
    fn follow(&mut self, kind: Kind, old: &Registers, new: &Registers, delivered: i32) {
        let tracee = &self.tracee;
        let read = |at| tracee.read_u64(at);
        let call = old.get(arch::SYSTEM_CALL).filter(|_| kind == Kind::Syscall).map(u64::cast_signed);
        if delivered != 0 && arch::enters_handler(delivered, new, read) {
            self.report.signals += 1;
            self.shadow.signalled(old, new, read);
        } else if call == Some(libc::SYS_rt_sigreturn) {
            self.shadow.signal_returned();
        } else {
            self.shadow.stepped(kind, old, new, read);
        }
        let maps_change = [libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_mremap];
        if call.is_some_and(|call| maps_change.contains(&call)) {
            self.refresh();
        }
    }

    fn refresh(&mut self) {
        for range in self.maps.refresh(&self.tracee) {
            self.cache.invalidate(range);
            self.kinds.clear();
        }
    }

    fn kind(&mut self, ip: u64) -> Kind {
        let tracee = &self.tracee;
        *self.kinds.entry(ip).or_insert_with(|| {
            let mut code = [0; 15];
            let length = tracee.read(ip, &mut code);
            arch::kind(&code[..length])
        })
    }

    fn compare(&mut self, start: &Registers) {
        let mut memory = Pages::new(&self.tracee, &mut self.pages, start.sp());
        let end = walk(&self.maps, &mut memory, &mut self.cache, start, LIMIT, &mut self.frames);
        self.report.instructions += 1;
        self.report.frames += self.frames.len() as u64;
        if !self.is_right(end) {
            if self.scans {
                self.scan(start);
            } else {
                self.report_miss(start, end);
            }
            return;
        }
        self.report.exact += 1;
        if !self.scans {
            self.compare_copied(start);
        }
        if self.report.exact.is_multiple_of(CONTROLS) {
            self.control(start);
        }
    }

    /// Returns whether the walk found all callers and the end.
    fn is_right(&self, end: End) -> bool {
        let mut callers = self.shadow.callers();
        let mut found = self.frames.iter().skip(1);
        loop {
            match (callers.next(), found.next()) {
                (None, None) => return end == End::Root,
                (Some(true_caller), Some(frame)) => {
                    let slot = frame.slot == Avma(0) || true_caller.may_be_at(frame.slot.0);
                    if frame.pc.0 != true_caller.address || frame.is_return == true_caller.is_signal || !slot
                    {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }

    /// Checks that a stack that was found exactly is also found from a kernel's copy of it.
    fn compare_copied(&mut self, start: &Registers) {
        let mut memory = Copied::new(&self.tracee, &mut self.pages, start.sp());
        let end = walk(&self.maps, &mut memory, &mut self.cache, start, LIMIT, &mut self.frames);
        if self.is_right(end) {
            return;
        }
        self.report.copied.count += 1;
        if self.report.copied.example.is_empty() {
            let last = self.frames.last().map_or(0, |frame| frame.pc.0);
            self.report.copied.example = format!(
                "at {}: {} frames, then {end:?} after {}",
                self.maps.describe(start.ip()),
                self.frames.len(),
                self.maps.describe(last)
            );
        }
    }

    /// Scans a truncated stack and compares the result with the truth.
    fn scan(&mut self, start: &Registers) {
        let (mut memory, mut code) =
            (Pages::new(&self.tracee, &mut self.pages, start.sp()), Code(&self.tracee));
        let end =
            scan::walk(&self.maps, &mut code, &mut memory, &mut self.cache, start, LIMIT, &mut self.frames);
        if !self.frames.iter().any(|frame| frame.found == Method::Scan) {
            return;
        }
        self.report.scanned += 1;
        let mut truth = self.shadow.callers();
        let stranger = self.frames.iter().skip(1).position(|frame| {
            let is_it = |entry: &&Entry| {
                entry.address == frame.pc.0 && (frame.slot.0 == 0 || entry.may_be_at(frame.slot.0))
            };
            truth.find(is_it).is_none()
        });
        let count = self.shadow.callers().count();
        if let Some(at) = stranger {
            self.report.misled += 1;
            let place = |pc| self.maps.describe(pc);
            let chain: Vec<_> =
                self.frames.iter().take(at + 2).map(|f| (place(f.pc.0), f.found, f.slot)).collect();
            let truth: Vec<_> = self.shadow.callers().map(|e| (place(e.address), e.slot)).collect();
            self.report.misled_example = format!("{chain:#?} then {end:?}, in truth {truth:#?}");
        } else if count + 1 == self.frames.len() && end == End::Root {
            self.report.whole += 1;
        }
    }

    /// Examines a stack that was found exactly.
    fn control(&mut self, start: &Registers) {
        let truth: Vec<Entry> = self.shadow.callers().copied().collect();
        let mut memory = Pages::new(&self.tracee, &mut self.pages, start.sp());
        match self.blame.prove(&self.maps, &mut memory, start, &truth, truth.len()) {
            Err(_) => self.report.controls += 1,
            // The frame was found by convention.
            Ok(Proof { fault: Fault::NoRules, .. }) => {}
            Ok(Proof { fault: Fault::WrongRules, at, evidence }) => {
                self.report.mended.push(format!("{}: {evidence}", self.maps.describe(at)));
            }
        }
    }

    /// Checks that all frames are callers, in order. An exception that is about to be handled has overwritten return addresses, with those of
    /// frames further out or that of its handler.
    fn find_made_up(&mut self, end: End) {
        let mut truth = self.shadow.callers();
        let made_up = self.frames.iter().skip(1).position(|frame| {
            let is_it = |entry: &&Entry| {
                let there = self.tracee.read_u64(frame.slot.0).map(|word| Native::code_address(word, 48));
                entry.address == frame.pc.0 || entry.may_be_at(frame.slot.0) && there == Some(frame.pc.0)
            };
            truth.find(is_it).is_none()
        });
        let Some(at) = made_up else { return };
        self.report.made_up.count += 1;
        if self.report.made_up.example.is_empty() {
            let place = |pc: u64| self.maps.describe(pc);
            let frames: Vec<_> = self.frames.iter().take(at + 2).map(|frame| place(frame.pc.0)).collect();
            let truth: Vec<_> = self.shadow.callers().map(|entry| place(entry.address)).collect();
            self.report.made_up.example = format!("{frames:#?} then {end:?}, in truth {truth:#?}");
        }
    }

    /// Determines and records whose fault a miss is.
    fn report_miss(&mut self, start: &Registers, end: End) {
        let truth: Vec<Entry> = self.shadow.callers().copied().collect();
        let is_right = |(frame, entry): &(&Walked, &Entry)| {
            frame.pc.0 == entry.address
                && frame.is_return != entry.is_signal
                && (frame.slot == Avma(0) || entry.may_be_at(frame.slot.0))
        };
        let right = self.frames.iter().skip(1).zip(&truth).take_while(is_right).count();
        let mut code = Code(&self.tracee);
        let with: (_, &mut dyn ReadCode, _, _) = (
            &self.maps,
            &mut code,
            &mut Pages::new(&self.tracee, &mut self.pages, start.sp()),
            &mut self.cache,
        );
        let end = scan::resume(true, with, start, end, LIMIT, &mut self.frames);
        self.find_made_up(end);
        let mut memory = Pages::new(&self.tracee, &mut self.pages, start.sp());
        let (fault, at, why) = match self.blame.prove(&self.maps, &mut memory, start, &truth, right) {
            Ok(proof) => (Some(proof.fault), proof.at, proof.evidence),
            // The last correct frame had the wrong rule.
            Err(why) => (None, right.checked_sub(1).map_or(start.ip(), |last| truth[last].address - 1), why),
        };
        let maps = &self.maps;
        let misses = self.report.misses.entry((fault, maps.function(at))).or_default();
        misses.count += 1;
        misses.places.insert(at);
        if misses.example.is_empty() {
            let here = maps.describe(start.ip());
            let found =
                self.frames.get(right + 1).map_or(format!("{end:?}"), |frame| maps.describe(frame.pc.0));
            misses.example =
                format!("at {here}: {why}; {right} of {} callers found, then {found}", truth.len());
        }
    }
}
