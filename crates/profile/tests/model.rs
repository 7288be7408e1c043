//! What users of the model rely on: sharing, order, completeness, and doors that keep foreign numbers out.

use plumb_profile::{
    Address, AddressSpace, BuildId, Cut, Dso, DsoId, DsoKind, Event, Found, Frame, FrameId, FrameKind, Id,
    Line, Mapping, Process, Profile, Sample, Scope, StringId, Strings, Thread,
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
    let marker = profile.frames.add(Frame::marker(Cut::CopyTooShort, None));
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
    });
    let line = |line, inlined| Line { function, file: empty, line, inlined };
    profile.symbols.set(frame, &[line(1, true), line(2, false)]);
    assert_eq!(profile.symbols.of(frame).len(), 2);
    profile.symbols.set(frame, &[line(3, false)]);
    assert_eq!(profile.symbols.of(frame), [line(3, false)]);
}

#[test]
fn names_are_read_back() {
    for cut in Cut::ALL {
        assert_eq!(Cut::from_name(cut.name()), Some(cut));
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

#[test]
fn what_is_left_after_forgetting_is_what_was_there() {
    let mut profile = Profile::default();
    let empty = profile.strings.empty();
    let event = profile.events.push(Event { name: empty, unit: empty });
    let frames: Vec<FrameId> = (1..=4).map(|at| code(&mut profile, at * 16, at > 1)).collect();
    let mut threads = Vec::new();
    for pid in 1..=3 {
        let process = profile.processes.push(Process { pid, ppid: 0, exe: empty });
        threads.push(profile.threads.push(Thread { process, tid: pid, comm: empty }));
        let dso = dso(&mut profile);
        profile.mappings.push(Mapping { process, dso, start: u64::from(pid), end: 9, bias: 0 });
    }
    let stacks = [&frames[..1], &frames[1..], &frames[2..], &frames[..]];
    for (index, &thread) in [0, 1, 2, 1].iter().map(|&at: &usize| &threads[at]).enumerate() {
        let stack = profile.add_stack(stacks[index]);
        profile.samples.push(Sample { time_ns: index as u64, thread, cpu: 0, event, stack, weight: 1 });
    }
    // What a sample says, without row numbers that may change.
    let said = |profile: &Profile| -> Vec<(u64, u32, Vec<FrameId>)> {
        let pid = |sample: &Sample| profile.processes[profile.threads[sample.thread].process].pid;
        let say = |sample: Sample| (sample.time_ns, pid(&sample), profile.frames_of(sample.stack).collect());
        profile.samples.iter().map(say).collect()
    };
    let before = said(&profile);
    profile.forget_all_but(2);
    assert_eq!(said(&profile), before[2..]);
    assert_eq!((profile.threads.len(), profile.processes.len(), profile.frames.len()), (2, 2, 4));
    let mapped: Vec<(u32, u64)> = profile
        .mappings
        .iter()
        .map(|mapping| (profile.processes[mapping.process].pid, mapping.start))
        .collect();
    assert_eq!(mapped, [(2, 2), (3, 3)]);
    profile.forget_all_but(5);
    assert_eq!(said(&profile), before[2..], "there are no more to forget");
    profile.forget_all_but(0);
    assert!(profile.samples.is_empty() && profile.stacks.is_empty() && profile.threads.is_empty());
}

fn dso(profile: &mut Profile) -> DsoId {
    let path = profile.strings.add("/lib/x.so");
    profile.dsos.add(Dso { path, build_id: None, kind: DsoKind::File, addresses: AddressSpace::Svma })
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
        profile.samples.push(Sample { time_ns, thread: threads[at], cpu: 0, event, stack, weight });
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
