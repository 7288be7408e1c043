//! One stack of hundreds of thousands of calls, and a stack at each depth of a long one: work must grow with the profile, not with its square. The
//! tests check results, and that they arrive at all: quadratic work on this size takes hours.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use plumb_analyze::{
    CacheSizes, ExplainOptions, Explanation, Filter, Flame, Key, Report, ReportOptions, ScriptSources, Tree,
    TreeOptions, View,
};
use plumb_profile::*;

/// The owner of a stack's functions.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    /// The user's program.
    Program,
    /// A system library: no frame of the stack is the user's.
    Library,
    /// Unknown: the functions have no names.
    Nameless,
}

/// A profile whose only long stack has `depth` calls of `functions` functions in turn, with a sample at each `step`th call.
fn deep(depth: usize, functions: usize, step: usize) -> Profile {
    deep_of(Owner::Program, depth, functions, step)
}

fn deep_of(owner: Owner, depth: usize, functions: usize, step: usize) -> Profile {
    let mut profile = Profile::default();
    let (empty, ns, clock) =
        (profile.strings.empty(), profile.strings.add("ns"), profile.strings.add("cpu-clock"));
    let path = profile.strings.add("/app");
    let library = profile.strings.add("/usr/lib/libdeep.so.1");
    let file = if owner == Owner::Library { library } else { path };
    let dso = Dso { path: file, build_id: None, kind: DsoKind::File, addresses: AddressSpace::Svma };
    let dso = profile.dsos.add(dso);
    let event = profile.events.push(Event { name: clock, unit: ns });
    let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: path });
    let thread = profile.threads.push(Thread { process, tid: 1, comm: path });
    let frames: Vec<FrameId> = (0..functions as u64)
        .map(|number| {
            let (dso, address) = (Some(dso), Address(number));
            let frame = Frame { kind: FrameKind::User, dso, address, is_return: true, found: Found::Cfi };
            let frame = profile.frames.add(frame);
            if owner == Owner::Nameless {
                return frame;
            }
            let name = profile.strings.add(&format!("f{number}"));
            let function = Function {
                name,
                linkage_name: empty,
                dso,
                start: Some(address),
                source_file: empty,
                start_line: 0,
            };
            let function = profile.symbols.functions.add(function);
            profile.symbols.set(frame, &[Line { function, file: empty, line: 0, inlined: false }]);
            frame
        })
        .collect();
    let mut stack = None;
    for call in 0..depth {
        stack = Some(profile.stacks.add(stack, frames[call % functions]));
        if (call + 1) % step == 0 {
            let time_ns = call as u64;
            profile.samples.push(Sample {
                time_ns,
                thread,
                cpu: 0,
                event,
                stack,
                syscall: None,
                weight: 1000,
            });
        }
    }
    profile
}

fn explained(profile: &Profile) -> Explanation<'_> {
    let options = ExplainOptions {
        threshold: 10.0,
        call_name: &|_| None,
        calls: Vec::new(),
        sources: &ScriptSources::default(),
        caches: CacheSizes::default(),
        waits: None,
    };
    let filter = Filter::default();
    Explanation::new(Explanation::view(profile, &filter), &filter, &[], &options)
}

/// Runs on such a profile what commands run.
fn look_at(profile: &Profile) {
    let filter = Filter::default();
    let view = View::new(profile, &filter);
    let options = ReportOptions { keys: vec![Key::Symbol], children: true, min_percent: 0.0 };
    let report = Report::new(&view, &filter, &options);
    assert_eq!(report.rows.iter().map(|row| row.own.weight).sum::<u64>(), view.whole().weight);
    let explanation = explained(profile);
    for (function, paths) in explanation.functions.iter().zip(&explanation.paths) {
        let came: u64 = paths.iter().map(|path| path.cost.weight).sum();
        assert!(came <= function.own.weight, "{came} of {}", function.own.weight);
        let named: usize = paths.iter().map(|path| path.callers.len()).sum();
        assert!(named <= 10_000, "{named}");
    }
    let flame = Flame::new(&view, plumb_analyze::Grouping::default());
    assert!(flame.boxes.len() <= profile.stacks.len() + 10);
    let tree = Tree::top_down(&view, TreeOptions::above(0.5));
    assert!(tree.nodes.len() <= profile.stacks.len());
}

#[test]
fn hundreds_of_thousands_of_calls_on_one_stack() {
    // Few functions, as in recursion, and then all different ones.
    look_at(&deep(300_000, 3, 300_000));
    let profile = deep(100_000, 100_000, 100_000);
    look_at(&profile);
    let explanation = explained(&profile);
    let paths: Vec<(usize, bool)> =
        explanation.paths[0].iter().map(|path| (path.callers.len(), path.is_whole)).collect();
    assert_eq!(paths, [(1000, false)], "what is beyond is said to be there");
}

#[test]
fn a_sample_at_each_depth_of_a_long_stack() {
    look_at(&deep(30_000, 30_000, 1));
    look_at(&deep(5_000, 3, 1));
}

#[test]
fn stacks_without_a_frame_of_the_users_code() {
    for owner in [Owner::Library, Owner::Nameless] {
        look_at(&deep_of(owner, 100_000, 3, 100_000));
        look_at(&deep_of(owner, 30_000, 30_000, 1));
    }
}
