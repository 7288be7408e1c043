//! Guarantees of the model: sharing, order, completeness, and rejection of foreign numbers.

use plumb_profile::{
    Address, AddressSpace, BuildId, Dso, DsoId, DsoKind, Event, Found, Frame, FrameId, FrameKind, Id, Line,
    Mapping, Past, Process, Profile, Sample, Scope, StringId, Strings, Thread, Truncation,
};

fn code(profile: &mut Profile, address: u64, is_return: bool) -> FrameId {
    profile.frames.add(Frame {
        kind: FrameKind::User,
        dso: None,
        address: Address(address),
        is_return,
        found: Found::Cfi,
    })
}

#[test]
fn stacks_share_their_outer_frames() {
    let mut profile = Profile::default();
    let [main, left, right] = [0x10, 0x20, 0x30].map(|address| code(&mut profile, address, true));
    let a = profile.add_stack(&[left, main]);
    let b = profile.add_stack(&[right, main]);
    assert_ne!(a, b);
    assert_eq!(profile.stacks.len(), 3);
    assert_eq!(profile.add_stack(&[left, main]), a);
    assert_eq!(profile.frames_of(b).collect::<Vec<_>>(), [right, main]);
    assert_eq!(profile.add_stack(&[]), None);
}

#[test]
fn a_marker_at_the_root_makes_a_stack_incomplete() {
    let mut profile = Profile::default();
    let leaf = code(&mut profile, 0x10, false);
    let whole = profile.add_stack(&[leaf]).unwrap();
    let marker = profile.frames.add(Frame::marker(Truncation::CopyTooShort, None));
    let cut = profile.add_stack(&[leaf, marker]).unwrap();
    assert!(profile.is_complete(whole));
    assert!(!profile.is_complete(cut));
    assert_eq!(profile.stacks.root(cut), marker);
}

#[test]
fn a_return_address_is_looked_up_inside_its_call() {
    let mut profile = Profile::default();
    let caller = code(&mut profile, 0x1000, true);
    let leaf = code(&mut profile, 0x1000, false);
    assert_eq!(profile.frames[caller].lookup(), Address(0xfff));
    assert_eq!(profile.frames[leaf].lookup(), Address(0x1000));
}

#[test]
fn ids_from_outside_are_checked() {
    let mut profile = Profile::default();
    let frame = code(&mut profile, 1, false);
    let stack = profile.add_stack(&[frame]).unwrap();
    assert_eq!(profile.frames.check(0), Some(frame));
    assert_eq!(profile.frames.check(1), None);
    assert_eq!(profile.stacks.check(0), Some(stack));
    assert_eq!(profile.stacks.check(u64::MAX), None);
    assert_eq!(Strings::default().check(1), None);
}

#[test]
fn the_empty_string_is_always_there() {
    let mut strings = Strings::default();
    assert_eq!(strings.add(""), strings.empty());
    let name = strings.add("main");
    assert_eq!(strings.add("main"), name);
    assert_eq!(strings.get(name), "main");
    assert_eq!(name, StringId::from_index(1));
}

#[test]
fn symbols_can_be_set_again() {
    let mut profile = Profile::default();
    let frame = code(&mut profile, 1, false);
    assert!(profile.symbols.of(frame).is_empty());
    let name = profile.strings.add("f");
    let empty = profile.strings.empty();
    let function = profile.symbols.functions.add(plumb_profile::Function {
        name,
        linkage_name: empty,
        dso: None,
        start: None,
        source_file: empty,
        start_line: 0,
    });
    let line = |line, inlined| Line { function, file: empty, line, inlined };
    profile.symbols.set(frame, &[line(1, true), line(2, false)]);
    assert_eq!(profile.symbols.of(frame).len(), 2);
    profile.symbols.set(frame, &[line(3, false)]);
    assert_eq!(profile.symbols.of(frame), [line(3, false)]);
}

#[test]
fn names_are_read_back() {
    for cut in Truncation::ALL {
        assert_eq!(Truncation::from_name(cut.name()), Some(cut));
    }
    for scope in Scope::ALL {
        assert_eq!(Scope::from_name(scope.name()), Some(scope));
    }
    let id = BuildId::new(&[0xab, 0x01]).unwrap();
    assert_eq!(id.to_string(), "ab01");
    assert_eq!(BuildId::from_hex("ab01"), Some(id));
    for bad in ["", "a", "zz", "é1", &"00".repeat(65)] {
        assert_eq!(BuildId::from_hex(bad), None, "{bad}");
    }
}

#[test]
fn idle_time_is_known_of_a_whole_machine_only() {
    let mut profile = Profile::default();
    profile.meta.cpus = 2;
    profile.meta.duration_ns = 10;
    profile.meta.target_cpu_ns = Some(5);
    assert_eq!(profile.meta.idle_share(), None);
    profile.meta.scope = Scope::System;
    assert_eq!(profile.meta.idle_share(), Some(0.75));
    profile.meta.target_cpu_ns = Some(21);
    assert_eq!(profile.meta.idle_share(), Some(0.0));
}

/// Three processes of one program, whose samples are 10 ns apart, in turns, on four stacks of four frames.
fn long() -> (Profile, Vec<FrameId>) {
    let mut profile = Profile::default();
    let empty = profile.strings.empty();
    let event = profile.events.push(Event { name: empty, unit: empty });
    let exe = profile.strings.add("/bin/x");
    let frames: Vec<FrameId> = (1..=4).map(|at| code(&mut profile, at * 16, at > 1)).collect();
    let mut threads = Vec::new();
    for pid in 1..=3 {
        let process = profile.processes.push(Process { pid, ppid: 0, exe });
        threads.push(profile.threads.push(Thread { process, tid: pid, comm: empty }));
        let dso = dso(&mut profile);
        profile.mappings.push(Mapping { process, dso, start: u64::from(pid), end: 9, bias: 0 });
    }
    let stacks = [&frames[..1], &frames[1..], &frames[2..], &frames[..]];
    for index in 0..100_usize {
        let (thread, stack) = (threads[index % 3], profile.add_stack(stacks[index % 7 % 4]));
        let time_ns = index as u64 * 10;
        profile.samples.push(Sample {
            time_ns,
            thread,
            cpu: 0,
            event,
            stack,
            syscall: None,
            weight: 1 + index as u64,
        });
    }
    (profile, frames)
}

/// A sample without row numbers, which may change.
type Said = (u64, u32, Vec<FrameId>, u64);

fn said(profile: &Profile) -> Vec<Said> {
    let pid = |sample: &Sample| profile.processes[profile.threads[sample.thread].process].pid;
    let frames = |sample: &Sample| profile.frames_of(sample.stack).collect();
    let say = |sample: Sample| (sample.time_ns, pid(&sample), frames(&sample), sample.weight);
    profile.samples.iter().map(say).collect()
}

/// Returns the weight of the samples that `wanted` accepts.
fn weight(said: &[Said], wanted: impl Fn(&Said) -> bool) -> u64 {
    said.iter().filter(|it| wanted(it)).map(|it| it.3).sum()
}

#[test]
fn what_is_folded_keeps_its_sums_between_the_times_that_matter() {
    let (mut profile, frames) = long();
    let before = said(&profile);
    let times = [0, 155, 500, 790];
    let running = profile.processes.iter().filter(|(_, it)| it.pid != 2).map(|(id, _)| id).collect();
    let new = profile.fold(&Past { kept: 20, times: &times, running: &running, nodes: 100 });
    let after = said(&profile);
    assert_eq!(after[after.len() - 20..], before[80..], "what is kept is as it was");
    assert!(after.len() <= 20 + 4 * 3 * 4, "{}", after.len());
    for (index, &from) in times.iter().enumerate() {
        for &to in times[index + 1..].iter().chain([&u64::MAX]) {
            for frame in &frames {
                for pid in [1, 3] {
                    let is = |it: &Said| (from..to).contains(&it.0) && it.2.contains(frame) && it.1 == pid;
                    assert_eq!(weight(&after, is), weight(&before, is), "{from} to {to}, {pid}");
                }
                let all = |it: &Said| (from..to).contains(&it.0) && it.2.contains(frame);
                assert_eq!(weight(&after, all), weight(&before, all), "{from} to {to}");
            }
        }
    }
    assert!(after.is_sorted_by_key(|it| it.0 / 500), "stretches are in order");
    // The ended process has its own pid only in the samples that were not folded.
    assert_eq!(weight(&after, |it| it.1 == 2), weight(&before[80..], |it| it.1 == 2));
    let ended = profile.processes.rows().iter().find(|it| it.pid == Process::ENDED).unwrap();
    assert_eq!(profile.strings.get(ended.exe), "/bin/x");
    for (old, new) in new.processes {
        assert_eq!(profile.processes[new].pid, old.index() as u32 + 1);
    }
    // Again, without time boundaries: the same sums.
    profile.fold(&Past { kept: 0, times: &[], running: &Default::default(), nodes: 100 });
    let last = said(&profile);
    assert!(last.len() <= 4 && last.iter().all(|it| it.1 == Process::ENDED));
    for frame in &frames {
        let has = |it: &Said| it.2.contains(frame);
        assert_eq!(weight(&last, has), weight(&before, has));
    }
    assert!(profile.mappings.is_empty() && profile.processes.len() == 1);
}

#[test]
fn the_rarest_calls_are_folded_where_there_are_too_many() {
    let (mut profile, frames) = long();
    // Very many stacks that differ in their innermost frames, each seen once, below one seen again and again.
    let (event, thread) = (profile.samples.get(0).unwrap().event, profile.samples.get(0).unwrap().thread);
    let rare: Vec<FrameId> = (1..=1000).map(|at| code(&mut profile, at * 0x1000, false)).collect();
    for (index, &frame) in rare.iter().enumerate() {
        let stack = profile.add_stack(&[frame, frames[1], frames[2]]);
        let time_ns = 1000 + index as u64;
        profile.samples.push(Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight: 1 });
    }
    let before = said(&profile);
    profile.fold(&Past { kept: 10, times: &[], running: &Default::default(), nodes: 20 });
    let after = said(&profile);
    assert!(profile.stacks.len() <= 2 * 20 + 10 + 3, "{}", profile.stacks.len());
    let folded = profile.frames.add(Frame::marker(Truncation::Folded, None));
    let marked = weight(&after, |it| it.2.contains(&folded));
    assert_eq!(weight(&after, |_| true), weight(&before, |_| true), "all of it is there");
    for frame in &frames {
        let has = |it: &Said| it.2.contains(frame);
        assert_eq!(weight(&after, has), weight(&before, has), "callers have what they called");
    }
    assert!((970..=990).contains(&marked), "{marked}");
}

#[test]
fn what_is_folded_keeps_its_own_time() {
    let (mut profile, frames) = long();
    let (event, thread) = (profile.samples.get(0).unwrap().event, profile.samples.get(0).unwrap().thread);
    // Three functions called from a thousand places.
    let hot = [1, 2, 3].map(|at| code(&mut profile, at * 0x100_0000, false));
    for index in 0..3000_usize {
        let caller = code(&mut profile, 0x1000 * (index as u64 + 1), false);
        let stack = profile.add_stack(&[hot[index % 3], caller, frames[2]]);
        let time_ns = 1000 + index as u64;
        profile.samples.push(Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight: 1 });
    }
    let before = said(&profile);
    for _ in 0..2 {
        profile.fold(&Past { kept: 10, times: &[], running: &Default::default(), nodes: 20 });
        assert!(profile.stacks.len() <= 2 * 20 + 3 * 10, "{}", profile.stacks.len());
        let after = said(&profile);
        for frame in hot {
            let own = |it: &Said| it.2[0] == frame;
            assert_eq!(weight(&after, own), weight(&before, own));
        }
    }
}

fn dso(profile: &mut Profile) -> DsoId {
    let path = profile.strings.add("/lib/x.so");
    profile.dsos.add(Dso { path, build_id: None, kind: DsoKind::File, addresses: AddressSpace::Svma })
}

#[test]
fn a_compacted_profile_says_the_same_of_its_samples_and_has_nothing_else() {
    let (mut profile, frames) = long();
    let name = profile.strings.add("f");
    let function = plumb_profile::Function {
        name,
        linkage_name: name,
        dso: Some(dso(&mut profile)),
        start: None,
        source_file: name,
        start_line: 0,
    };
    let function = profile.symbols.functions.add(function);
    let file = profile.strings.add("f.c");
    profile.symbols.set(frames[1], &[Line { function, file, line: 7, inlined: false }]);
    let said = |profile: &Profile| {
        let frame = |id| (profile.frames[id].address.0, profile.symbols.of(id).len());
        let say = |sample: Sample| {
            let process = profile.threads[sample.thread].process;
            let frames: Vec<(u64, usize)> = profile.frames_of(sample.stack).map(frame).collect();
            (sample.time_ns, profile.processes[process].pid, frames, sample.weight)
        };
        profile.samples.iter().map(say).collect::<Vec<_>>()
    };
    let rows = |profile: &Profile| {
        (profile.strings.len(), profile.frames.len(), profile.stacks.len(), profile.mappings.len())
    };
    let (before, used) = (said(&profile), rows(&profile));
    // Rows without samples, and a mapping that occurs twice.
    for at in 100..200 {
        let frame = code(&mut profile, at * 16, false);
        profile.add_stack(&[frame]);
        profile.strings.add(&format!("name {at}"));
    }
    profile.mappings.push(profile.mappings[0]);
    let compact = profile.compacted();
    assert_eq!(said(&compact), before);
    assert_eq!(rows(&compact), used);
}

#[test]
fn a_stretch_is_summed_up_in_a_profile_of_its_own() {
    let mut profile = Profile::default();
    let empty = profile.strings.empty();
    let event = profile.events.push(Event { name: empty, unit: empty });
    let (exe, comm, name) =
        (profile.strings.add("/bin/x"), profile.strings.add("x"), profile.strings.add("f"));
    let mut thread = |pid| {
        let process = profile.processes.push(Process { pid, ppid: 0, exe });
        profile.threads.push(Thread { process, tid: pid, comm })
    };
    let threads = [thread(1), thread(2), thread(3)];
    let frames: Vec<FrameId> = (1..=4).map(|at| code(&mut profile, at * 16, at > 1)).collect();
    let function = plumb_profile::Function {
        name,
        linkage_name: empty,
        dso: Some(dso(&mut profile)),
        start: None,
        source_file: empty,
        start_line: 0,
    };
    let function = profile.symbols.functions.add(function);
    profile.symbols.set(frames[2], &[Line { function, file: empty, line: 7, inlined: false }]);
    let inner = profile.add_stack(&frames[1..3]);
    let other = profile.add_stack(&frames[3..]);
    for (time_ns, at, stack, weight) in [
        (10, 0, inner, 1),
        (20, 1, inner, 2),
        (30, 0, other, 4),
        (40, 1, inner, 8),
        (50, 1, None, 16),
        (60, 2, inner, 32),
    ] {
        profile.samples.push(Sample {
            time_ns,
            thread: threads[at],
            cpu: 0,
            event,
            stack,
            syscall: None,
            weight,
        });
    }
    let part = profile.summed(20, 60);
    let said: Vec<(u64, u32, u64, Vec<u64>)> = part
        .samples
        .iter()
        .map(|sample| {
            let process = &part.processes[part.threads[sample.thread].process];
            assert_eq!(part.strings.get(process.exe), "/bin/x");
            let stack = part.frames_of(sample.stack).map(|frame| part.frames[frame].address.0).collect();
            (sample.time_ns, process.pid, sample.weight, stack)
        })
        .collect();
    let expected = [(20, 2, 10, vec![32, 48]), (30, 1, 4, vec![64]), (50, 2, 16, vec![])];
    assert_eq!(said, expected);
    assert_eq!((part.processes.len(), part.frames.len(), part.stacks.len()), (2, 3, 3));
    let named: Vec<(&str, u32)> = part
        .frames
        .iter()
        .flat_map(|(id, _)| part.symbols.of(id))
        .map(|line| (part.strings.get(part.symbols.functions[line.function].name), line.line))
        .collect();
    assert_eq!(named, [("f", 7)]);
}
