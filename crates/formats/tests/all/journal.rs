//! Journals: a recording written in parts equals one that was never split, and a truncated one is
//! readable up to its last complete segment.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

use crate::support::Dice;
use plumb_formats::native::{self, Journal, ReadError, UNFINISHED};
use plumb_profile::*;

/// A recording as a recorder makes it: rows are added, lives end, names are found later.
struct Recorder {
    dice: Dice,
    profile: Profile,
    now_ns: u64,
}

impl Recorder {
    fn new(seed: u64) -> Self {
        let mut profile = Profile::default();
        let name = profile.strings.add("cpu-clock");
        profile.events.push(Event { name, unit: name });
        Self { dice: Dice(seed), profile, now_ns: 0 }
    }

    fn step(&mut self) {
        let Self { dice, profile, now_ns } = self;
        let number = profile.lives.len() as u64;
        if number == 0 || dice.below(8) == 0 {
            let exe = profile.strings.add(&format!("/bin/{}", dice.below(20)));
            let process = profile.processes.push(Process { pid: number as u32, ppid: 0, exe });
            profile.threads.push(Thread { process, tid: number as u32, comm: exe });
            let dso = profile.dsos.add(Dso {
                path: exe,
                build_id: BuildId::new(&[dice.below(20) as u8 + 1]),
                kind: DsoKind::File,
                addresses: AddressSpace::Svma,
            });
            profile.mappings.push(Mapping { process, dso, start: number, end: number + 1, bias: number });
            profile.lives.push(Life {
                pid: number as u32,
                parent: (number > 0).then(|| Id::from_index(dice.below(number as usize))),
                exe,
                comm: exe,
                begin: Begin::Fork,
                end: LifeEnd::Running,
                start_ns: Some(*now_ns / 1000 * 1000),
                end_ns: None,
                cpu_ns: None,
                peak_rss_bytes: None,
                process: None,
            });
        }
        // An older life ends.
        let life: LifeId = Id::from_index(dice.below(profile.lives.len()));
        let cpu_ns = Some(dice.below(1000) as u64 * 1000);
        // Some ended lives may be removed: nothing more is learnt about them.
        if let Some(life) =
            profile.lives.find_mut(life).filter(|life| life.end == LifeEnd::Running || !may_go(life))
        {
            (life.end, life.end_ns) = (LifeEnd::Exit, Some(*now_ns / 1000 * 1000));
            life.cpu_ns = cpu_ns;
        }
        let frames: Vec<FrameId> = (0..1 + dice.below(12)).map(|depth| frame(profile, dice, depth)).collect();
        let stack = profile.add_stack(&frames);
        *now_ns += 1 + dice.below(1_000_000) as u64;
        profile.samples.push(Sample {
            time_ns: *now_ns,
            thread: Id::from_index(dice.below(profile.threads.len())),
            cpu: dice.below(4) as u32,
            event: Id::from_index(0),
            stack: stack.filter(|_| dice.below(50) > 0),
            syscall: dice.coin().then_some(1),
            weight: dice.number() >> 20,
        });
        if dice.below(10) == 0 {
            self.name();
        }
    }

    /// Names some frames, with or without earlier names.
    fn name(&mut self) {
        let Self { dice, profile, .. } = self;
        for index in 0..profile.frames.len() {
            let frame: FrameId = Id::from_index(index);
            if !profile.symbols.of(frame).is_empty() && dice.below(100) > 0 {
                continue;
            }
            let name = profile.strings.add(&format!("function_{}", dice.below(300)));
            let function = Function {
                name,
                linkage_name: name,
                dso: profile.frames[frame].dso,
                start: None,
                source_file: name,
                start_line: 0,
            };
            let function = profile.symbols.functions.add(function);
            let line = Line { function, file: name, line: dice.below(99) as u32, inlined: false };
            let lines = vec![line; 1 + dice.below(2)];
            profile.symbols.set(frame, &lines);
        }
    }

    fn take_part(&mut self) {
        (self.profile.samples, self.profile.stacks) = (Samples::default(), Stacks::default());
        self.profile.lives.retain(|_, life| life.end == LifeEnd::Running || !may_go(life));
        self.profile.mappings.retain(|mapping| mapping.start % 3 == 0);
    }
}

/// Whether a life is removed with a part, once it has ended.
fn may_go(life: &Life) -> bool {
    life.pid.is_multiple_of(2)
}

/// Few distinct frames at the root, more towards the leaf.
fn frame(profile: &mut Profile, dice: &mut Dice, depth: usize) -> FrameId {
    let dso = Id::from_index(dice.below(profile.dsos.len()));
    let address = Address(dice.below(400 / (1 + depth)) as u64);
    let (kind, found) = (FrameKind::User, Found::Cfi);
    profile.frames.add(Frame { kind, dso: Some(dso), address, is_return: depth > 0, found })
}

/// Everything that a profile says except the numbers of stacks.
fn said(profile: &Profile) -> Vec<String> {
    let lines = profile.frames.iter().map(|(id, frame)| format!("{frame:?} {:?}", profile.symbols.of(id)));
    let samples = profile.samples.iter().map(|sample| {
        let frames: Vec<FrameId> = profile.frames_of(sample.stack).collect();
        let stack = None;
        format!("{:?} {frames:?}", Sample { stack, ..sample })
    });
    let tables = [
        format!("{:?}", profile.strings.iter().collect::<Vec<_>>()),
        format!("{:?}", profile.events),
        format!("{:?}", profile.dsos.rows()),
        format!("{:?} {:?}", profile.processes, profile.threads),
        format!("{:?}", profile.lives),
        format!("{:?}", profile.mappings),
        format!("{:?}", profile.symbols.functions.rows()),
    ];
    tables.into_iter().chain(lines).chain(samples).collect()
}

fn unfinished(bytes: &[u8]) -> Result<(Profile, native::Unfinished), ReadError> {
    native::read_unfinished(Cursor::new(bytes))
}

/// A file whose bytes can be inspected, and that may be full.
#[derive(Clone)]
struct Disk {
    file: Rc<RefCell<Cursor<Vec<u8>>>>,
    room: Rc<Cell<usize>>,
}

impl Disk {
    fn new() -> Self {
        Self { file: Rc::default(), room: Rc::new(Cell::new(usize::MAX)) }
    }

    fn contents(&self) -> Vec<u8> {
        self.file.borrow().get_ref().clone()
    }
}

impl Read for Disk {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.file.borrow_mut().read(to)
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room.get());
        if count == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room.set(self.room.get() - count);
        self.file.borrow_mut().write(&bytes[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.borrow_mut().seek(to)
    }
}

/// A recording with a journal.
struct Recorded {
    /// The journal.
    bytes: Vec<u8>,
    /// The recording that was never split.
    whole: Profile,
    /// The recording that the journal wrote, as read.
    finished: Profile,
    /// End of each segment, and the data recorded by then.
    ends: Vec<(usize, Vec<String>)>,
    /// Number of lives not in memory at the end.
    taken_out: usize,
}

fn recorded(seed: u64, steps: usize) -> Recorded {
    let (mut whole, mut parts) = (Recorder::new(seed), Recorder::new(seed));
    let mut dice = Dice(seed + 1);
    let disk = Disk::new();
    let mut journal = Journal::begin(disk.clone()).unwrap();
    let mut ends = Vec::new();
    for _ in 0..steps {
        whole.step();
        parts.step();
        match dice.below(12) {
            0 => journal.grow(&parts.profile, &parts.profile.meta).unwrap(),
            1 => {
                journal.part(&parts.profile, &parts.profile.meta).unwrap();
                parts.take_part();
                journal.forget(&parts.profile);
            }
            _ => continue,
        }
        ends.push((disk.contents().len(), said(&whole.profile)));
    }
    let mut out = Cursor::new(Vec::new());
    journal.finish(&parts.profile, &mut out).unwrap();
    let finished = native::read(Cursor::new(out.into_inner())).unwrap();
    let taken_out = parts.profile.lives.len() - parts.profile.lives.rows().len();
    Recorded { bytes: disk.contents(), whole: whole.profile, finished, ends, taken_out }
}

#[test]
fn a_recording_in_parts_is_the_one_that_was_never_taken_apart() {
    for seed in 0..20 {
        let Recorded { whole, finished, taken_out, .. } = recorded(seed, 30 + 17 * seed as usize);
        assert_eq!(said(&finished), said(&whole), "seed {seed}");
        assert!(taken_out > 0 || seed == 0, "seed {seed}: lives were out of memory");
        // This includes merging equal stacks.
        let nodes: std::collections::HashSet<_> = finished.stacks.iter().map(|(_, &node)| node).collect();
        assert_eq!(nodes.len(), finished.stacks.len());
    }
}

#[test]
fn a_journal_that_is_cut_anywhere_is_there_up_to_its_last_whole_segment() {
    let Recorded { bytes, ends, .. } = recorded(3, 70);
    assert!(ends.len() > 5, "{} segments", ends.len());
    let near = |end: usize| (end.saturating_sub(1)..=end + 1).chain([end + 8, end + 16, end + 24, end + 30]);
    let mut lengths: Vec<usize> = ends.iter().flat_map(|&(end, _)| near(end)).collect();
    lengths.extend((0..bytes.len()).step_by(4999).chain((0..60).step_by(8)).chain([bytes.len()]));
    for length in lengths.into_iter().filter(|&length| length <= bytes.len()) {
        let whole = ends.iter().rev().find(|&&(end, _)| end <= length);
        match (unfinished(&bytes[..length]), whole) {
            (Ok((profile, how)), Some((end, expected))) => {
                assert_eq!(how.cut_bytes, (length - end) as u64, "{length} bytes");
                assert_eq!(&said(&profile), expected, "{length} bytes");
            }
            (Err(ReadError::NothingWhole { size }), None) => assert_eq!(size, length as u64),
            (found, _) => panic!("{length} bytes: {:?}", found.map(|(_, how)| how)),
        }
    }
}

#[test]
fn a_damaged_journal_is_there_up_to_the_damage_or_refused() {
    let Recorded { bytes, ends, .. } = recorded(5, 60);
    let mut dice = Dice(9);
    for _ in 0..200 {
        let mut damaged = bytes.clone();
        let at = UNFINISHED.len() + dice.below(bytes.len() - UNFINISHED.len());
        damaged[at] ^= 1 << dice.below(8);
        let before = ends.iter().rev().find(|&&(end, _)| end <= at);
        match (unfinished(&damaged), before) {
            (Ok((profile, _)), Some((_, expected))) => assert_eq!(&said(&profile), expected, "byte {at}"),
            (Err(ReadError::NothingWhole { .. }), None) => {}
            (found, _) => panic!("byte {at}: {:?}", found.map(|(_, how)| how)),
        }
    }
}

#[test]
fn what_a_full_disk_did_not_take_is_written_once_there_is_room() {
    let (mut whole, mut parts) = (Recorder::new(8), Recorder::new(8));
    let disk = Disk::new();
    let mut journal = Journal::begin(disk.clone()).unwrap();
    for step in 0..90 {
        whole.step();
        parts.step();
        let is_full = step % 3 != 2;
        disk.room.set(if is_full { 100 } else { usize::MAX });
        let meta = Meta::default();
        let written = match step % 2 {
            0 => journal.grow(&parts.profile, &meta),
            _ => journal.part(&parts.profile, &meta),
        };
        assert_eq!(written.is_err(), is_full, "step {step}");
        if written.is_ok() && step % 2 == 1 {
            parts.take_part();
            journal.forget(&parts.profile);
        }
    }
    assert_eq!(said(&unfinished(&disk.contents()).unwrap().0), said(&whole.profile));
    let mut out = Cursor::new(Vec::new());
    disk.room.set(usize::MAX);
    journal.finish(&parts.profile, &mut out).unwrap();
    assert_eq!(said(&native::read(Cursor::new(out.into_inner())).unwrap()), said(&whole.profile));
}

#[test]
fn a_recording_without_parts_has_the_usual_form() {
    let mut recorder = Recorder::new(4);
    (0..50).for_each(|_| recorder.step());
    let mut journal = Journal::begin(Disk::new()).unwrap();
    journal.grow(&recorder.profile, &Meta::default()).unwrap();
    let (mut by_journal, mut plain) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
    journal.finish(&recorder.profile, &mut by_journal).unwrap();
    native::write(&recorder.profile, &mut plain).unwrap();
    assert_eq!(by_journal.into_inner(), plain.into_inner());
}

/// More lives than are written at a time, most of which are removed soon and some late or never.
#[test]
fn lives_of_many_parts_are_all_there_in_their_order() {
    let (mut profile, mut whole) = (Profile::default(), Vec::new());
    let comm = profile.strings.add("sh");
    let mut journal = Journal::begin(Disk::new()).unwrap();
    for part in 0..7_u32 {
        for number in 0..20_000_u32 {
            let life = Life {
                pid: number,
                parent: None,
                exe: comm,
                comm,
                begin: Begin::Fork,
                end: LifeEnd::Running,
                start_ns: Some(u64::from(part) * 1000),
                end_ns: None,
                cpu_ns: None,
                peak_rss_bytes: None,
                process: None,
            };
            profile.lives.push(life.clone());
            whole.push(life);
        }
        // One in a thousand ends five parts later, one of them never.
        let ends = |id: LifeId| match id.index() {
            7000 => false,
            index if index % 1000 == 0 => index / 20_000 + 5 <= part as usize,
            _ => true,
        };
        let ended: Vec<LifeId> = profile.lives.iter().map(|(id, _)| id).filter(|&id| ends(id)).collect();
        for id in ended {
            for life in [profile.lives.get_mut(id), &mut whole[id.index()]] {
                (life.end, life.end_ns) = (LifeEnd::Exit, Some(u64::from(part) * 1000 + 500_000));
            }
        }
        journal.grow(&profile, &Meta::default()).unwrap();
        journal.part(&profile, &Meta::default()).unwrap();
        profile.lives.retain(|_, life| life.end == LifeEnd::Running);
        journal.forget(&profile);
        assert!(profile.lives.rows().len() < 200, "they are out of memory");
    }
    let mut out = Cursor::new(Vec::new());
    journal.finish(&profile, &mut out).unwrap();
    let finished = native::read(Cursor::new(out.into_inner())).unwrap();
    assert!(finished.lives.rows() == whole, "as if they had stayed");
}
