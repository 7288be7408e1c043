//! Profiles made up for tests: every variant of every enum, all optional values there and missing.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use plumb_profile::*;

/// A small reproducible source of numbers (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Often a number from the edges, where encodings differ.
    pub fn number(&mut self) -> u64 {
        match self.below(5) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << 63,
            3 => self.next() % 1000,
            _ => self.next(),
        }
    }

    fn text(&mut self) -> String {
        let pieces =
            ["", "a", "std::vector<int, std::allocator<int> >", "ä€😀", "\u{0}\n;", "[kernel.kallsyms]"];
        (0..self.below(4)).map(|_| pieces[self.below(pieces.len())]).collect::<String>()
            + &self.next().to_string()
    }
}

fn string(profile: &mut Profile, dice: &mut Dice) -> StringId {
    match dice.below(4) {
        0 => profile.strings.empty(),
        1 => {
            let count = profile.strings.len() as u64;
            profile.strings.check(dice.next() % count).unwrap()
        }
        _ => profile.strings.add(&dice.text()),
    }
}

fn any<I: Id>(count: usize, dice: &mut Dice) -> Option<I> {
    (count > 0).then(|| I::from_index(dice.below(count)))
}

fn maybe<I: Id>(count: usize, dice: &mut Dice) -> Option<I> {
    if dice.coin() { any(count, dice) } else { None }
}

/// A profile with about `size` rows a table (0: empty).
pub fn profile(seed: u64, size: usize) -> Profile {
    let dice = &mut Dice(seed);
    let mut profile = Profile { meta: meta(dice), ..Profile::default() };
    for _ in 0..size.min(5) {
        let (name, unit) = (string(&mut profile, dice), string(&mut profile, dice));
        profile.events.push(Event { name, unit });
    }
    for row in 0..size {
        let dso = dso(&mut profile, dice, row);
        profile.dsos.add(dso);
        let exe = string(&mut profile, dice);
        profile.processes.push(Process { pid: dice.number() as u32, ppid: dice.number() as u32, exe });
        let (process, comm) = (any(profile.processes.len(), dice).unwrap(), string(&mut profile, dice));
        profile.threads.push(Thread { process, tid: dice.number() as u32, comm });
        let life = life(&mut profile, dice, row);
        profile.lives.push(life);
        let (one, other) = (dice.number(), dice.number());
        profile.mappings.push(Mapping {
            process,
            dso: any(profile.dsos.len(), dice).unwrap(),
            start: one.min(other),
            end: one.max(other),
            bias: dice.number(),
        });
    }
    symbols(&mut profile, dice, size);
    for row in 0..size {
        let caller = maybe(profile.stacks.len(), dice);
        let frame = any(profile.frames.len(), dice).unwrap();
        profile.stacks.add(caller, frame);
        let sample = Sample {
            time_ns: if row == 0 { u64::MAX } else { dice.number() },
            thread: any(profile.threads.len(), dice).unwrap(),
            cpu: dice.number() as u32,
            event: any(profile.events.len(), dice).unwrap(),
            stack: maybe(profile.stacks.len(), dice),
            syscall: if dice.coin() { Some(dice.number() as u32) } else { None },
            // The sum of all has to fit too.
            weight: dice.number() >> 20,
        };
        profile.samples.push(sample);
    }
    profile
}

/// A life by itself: its number is like no other's, so that an end by exec has no next life that tells when.
fn life(profile: &mut Profile, dice: &mut Dice, row: usize) -> Life {
    let end = LifeEnd::ALL[row % 3];
    Life {
        pid: row as u32,
        parent: maybe(profile.lives.len(), dice),
        exe: string(profile, dice),
        comm: string(profile, dice),
        begin: Begin::ALL[dice.below(3)],
        end,
        start_ns: dice.coin().then(|| dice.number() / 1000 * 1000),
        end_ns: (dice.coin() && end != LifeEnd::Exec).then(|| dice.number() / 1000 * 1000),
        cpu_ns: dice.coin().then(|| dice.number() / 1000 * 1000),
        peak_rss_bytes: dice.coin().then(|| dice.number()),
        process: maybe(profile.processes.len(), dice),
    }
}

fn symbols(profile: &mut Profile, dice: &mut Dice, size: usize) {
    for _ in 0..size {
        let function = Function {
            name: string(profile, dice),
            linkage_name: string(profile, dice),
            dso: maybe(profile.dsos.len(), dice),
            start: dice.coin().then(|| Address(dice.number())),
            source_file: string(profile, dice),
            start_line: dice.number() as u32,
        };
        profile.symbols.functions.add(function);
    }
    for row in 0..size {
        let frame = frame(profile, dice, row);
        let id = profile.frames.add(frame);
        let lines: Vec<Line> = (0..dice.below(4))
            .map(|_| Line {
                function: any(profile.symbols.functions.len(), dice).unwrap(),
                file: string(profile, dice),
                line: dice.number() as u32,
                inlined: dice.coin(),
            })
            .collect();
        profile.symbols.set(id, &lines);
    }
}

fn dso(profile: &mut Profile, dice: &mut Dice, row: usize) -> Dso {
    let kinds = [
        DsoKind::File,
        DsoKind::Script,
        DsoKind::Vdso,
        DsoKind::Kernel,
        DsoKind::KernelModule,
        DsoKind::Anonymous { pid: dice.number() as u32 },
    ];
    let spaces = [AddressSpace::Svma, AddressSpace::FileOffset, AddressSpace::Avma];
    let bytes: Vec<u8> = (0..dice.below(65)).map(|_| dice.next() as u8).collect();
    Dso {
        path: string(profile, dice),
        build_id: BuildId::new(&bytes),
        kind: kinds[row % kinds.len()],
        addresses: match kinds[row % kinds.len()] {
            DsoKind::Script => AddressSpace::Line,
            _ => spaces[row % spaces.len()],
        },
    }
}

fn frame(profile: &Profile, dice: &mut Dice, row: usize) -> Frame {
    let founds = [Found::Sampled, Found::Cfi, Found::FramePointer, Found::Stitched, Found::Scan];
    let dso = maybe(profile.dsos.len(), dice);
    let kind = match row % 3 {
        0 => FrameKind::User,
        1 => FrameKind::Kernel,
        _ => return Frame::marker(Truncation::ALL[row / 3 % Truncation::ALL.len()], dso),
    };
    Frame {
        kind,
        dso,
        address: Address(dice.number()),
        is_return: dice.coin(),
        found: founds[row % founds.len()],
    }
}

fn queued(dice: &mut Dice) -> Queued {
    Queued {
        ran_ns: dice.number(),
        waited_ns: dice.number(),
        unseen_ns: dice.number(),
        stolen_ns: dice.number(),
        throttled_ns: dice.coin().then(|| dice.number()),
        busiest: dice.coin().then(|| QueuedThread {
            pid: dice.number() as u32,
            tid: dice.number() as u32,
            comm: dice.text(),
            lived_ns: dice.number(),
            ran_ns: dice.number(),
            waited_ns: dice.number(),
            unseen_ns: dice.number(),
        }),
    }
}

fn meta(dice: &mut Dice) -> Meta {
    Meta {
        recorder: dice.text(),
        command: (0..dice.below(4)).map(|_| dice.text()).collect(),
        exit_status: dice.coin().then(|| dice.number() as u8),
        host: dice.text(),
        kernel: dice.text(),
        arch: dice.text(),
        cpus: dice.number() as u32,
        start_unix_ns: dice.number(),
        start_ns: dice.number(),
        duration_ns: dice.number(),
        frequency_hz: dice.coin().then(|| dice.number() as u32),
        occurrences: (0..dice.below(4)).map(|_| dice.coin().then(|| dice.number())).collect(),
        scope: Scope::ALL[dice.below(Scope::ALL.len())],
        user_only: dice.coin(),
        target_cpu_ns: dice.coin().then(|| dice.number()),
        queued: dice.coin().then(|| queued(dice)),
        recorder_cpu_ns: dice.coin().then(|| dice.number()),
        lost_samples: dice.number(),
        damaged_records: dice.number(),
        stack_copy_bytes: dice.number() as u32,
        by_kernel: dice.coin(),
        untold: Untold { cuts: dice.coin(), samples: dice.coin() },
        symbolized: dice.coin(),
        warnings: (0..dice.below(4)).map(|_| dice.text()).collect(),
    }
}

/// Fails unless both hold the same rows under the same ids.
pub fn assert_equal(one: &Profile, other: &Profile) {
    assert_eq!(one.meta, other.meta);
    assert!(one.strings.iter().eq(other.strings.iter()), "strings differ");
    assert_eq!(one.events, other.events);
    assert_eq!(one.dsos.rows(), other.dsos.rows());
    assert_eq!(one.processes, other.processes);
    assert_eq!(one.threads, other.threads);
    assert_eq!(one.lives, other.lives);
    assert_eq!(one.mappings, other.mappings);
    assert_eq!(one.frames.rows(), other.frames.rows());
    assert_eq!(one.symbols.functions.rows(), other.symbols.functions.rows());
    for (frame, _) in one.frames.iter() {
        assert_eq!(one.symbols.of(frame), other.symbols.of(frame));
    }
    assert!(one.stacks.iter().eq(other.stacks.iter()), "stacks differ");
    assert_eq!(one.samples, other.samples);
}
