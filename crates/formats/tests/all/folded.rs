//! Folded stacks: what FlameGraph's scripts and inferno expect.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use plumb_formats::folded::{self, FoldedOptions};
use plumb_profile::*;

/// Two threads of `work er` in the same stack, one of them cut short, kernel on top, an inlined call and a nameless
/// frame.
fn profile() -> Profile {
    let mut profile = Profile::default();
    let [path, kernel, jit, comm, main, inner, sys] =
        ["/lib/libx.so", "[kernel.kallsyms]", "[anon]", "work er", "main(int;char)", "inner", "sys_read"]
            .map(|text| profile.strings.add(text));
    let empty = profile.strings.empty();
    let mut dso = |path, kind, addresses| profile.dsos.add(Dso { path, build_id: None, kind, addresses });
    let file = dso(path, DsoKind::File, AddressSpace::Svma);
    let kernel = dso(kernel, DsoKind::Kernel, AddressSpace::Avma);
    let jit = dso(jit, DsoKind::Anonymous { pid: 7 }, AddressSpace::Avma);
    let mut frame = |kind, dso, address| {
        let (dso, address) = (Some(dso), Address(address));
        profile.frames.add(Frame { kind, dso, address, is_return: false, found: Found::Cfi })
    };
    let outer = frame(FrameKind::User, file, 0x10);
    let nameless = frame(FrameKind::User, file, 0x1234);
    let compiled = frame(FrameKind::User, jit, 0x99);
    let read = frame(FrameKind::Kernel, kernel, 0x20);
    let cut = profile.frames.add(Frame::marker(Truncation::CopyTooShort, Some(file)));
    let function = |name| Function {
        name,
        linkage_name: empty,
        dso: None,
        start: None,
        source_file: empty,
        start_line: 0,
    };
    let [main, inner, sys] = [main, inner, sys].map(|name| profile.symbols.functions.add(function(name)));
    let line = |function, inlined| Line { function, file: empty, line: 0, inlined };
    profile.symbols.set(outer, &[line(inner, true), line(main, false)]);
    profile.symbols.set(read, &[line(sys, false)]);
    let event = profile.events.push(Event { name: empty, unit: empty });
    let process = profile.processes.push(Process { pid: 7, ppid: 1, exe: path });
    let threads = [7, 8].map(|tid| profile.threads.push(Thread { process, tid, comm }));
    let stacks = [
        profile.add_stack(&[read, outer]),
        profile.add_stack(&[nameless, outer]),
        profile.add_stack(&[compiled, cut]),
        None,
    ];
    for (time_ns, (thread, stack)) in [(0, 0), (1, 0), (0, 1), (0, 2), (1, 3)].into_iter().enumerate() {
        let (thread, stack) = (threads[thread], stacks[stack]);
        profile.samples.push(Sample {
            time_ns: time_ns as u64,
            thread,
            cpu: 0,
            event,
            stack,
            syscall: None,
            weight: 10,
        });
    }
    profile
}

fn folded(options: &FoldedOptions) -> String {
    let mut out = Vec::new();
    folded::write(&profile(), options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn lines_are_sorted_and_threads_of_one_name_are_summed() {
    assert_eq!(
        folded(&FoldedOptions { samples: true, ..FoldedOptions::default() }),
        "work_er 1\n\
         work_er;[stack deeper than its copy];[anon]+0x99 1\n\
         work_er;main(int\\x3bchar);inner;libx.so+0x1234 1\n\
         work_er;main(int\\x3bchar);inner;sys_read 2\n"
    );
}

#[test]
fn inlined_calls_can_be_left_out_and_frames_annotated() {
    assert_eq!(
        folded(&FoldedOptions { inlined: false, annotate: true, samples: false }),
        "work_er 10\n\
         work_er;[stack deeper than its copy];[anon]+0x99_[j] 10\n\
         work_er;main(int\\x3bchar);libx.so+0x1234 10\n\
         work_er;main(int\\x3bchar);sys_read_[k] 20\n"
    );
    let annotated = folded(&FoldedOptions { annotate: true, samples: true, ..FoldedOptions::default() });
    assert!(annotated.contains("main(int\\x3bchar);inner_[i];sys_read_[k] 2\n"), "{annotated}");
}
