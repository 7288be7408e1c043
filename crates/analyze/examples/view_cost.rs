//! Times reports of a large made-up profile: a million samples of 100,000 distinct stacks of 8 to 72 frames.
//!
//! `cargo run --release -p plumb-analyze --example view_cost`

use std::time::Instant;

use plumb_analyze::{Filter, Key, Pattern, Report, ReportOptions, Tree, TreeOptions, View};
use plumb_profile::*;

fn main() {
    let profile = profile();
    println!("{} samples, {} stack nodes", profile.samples.len(), profile.stacks.len());
    let plain = Filter::default();
    let regex = |text| Pattern::regex(text).into_iter().collect();
    let busy = Filter { focus: regex("function_1"), hide: regex("9$"), ..Filter::default() };
    for (name, filter) in [("all", plain), ("focus and hide", busy)] {
        let view = timed(&format!("{name}: view"), || View::new(&profile, &filter));
        timed("  report", || Report::new(&view, &filter, &ReportOptions::default()).rows.len());
        let by_thread = ReportOptions { keys: vec![Key::Tid, Key::Symbol], ..Default::default() };
        timed("  report by thread", || Report::new(&view, &filter, &by_thread).rows.len());
        let options = TreeOptions::above(0.5);
        timed("  tree", || Tree::top_down(&view, options).nodes.len());
        timed("  bottom-up", || Tree::bottom_up(&view, options).nodes.len());
        let middle = Pattern::Exact("function_17".into());
        timed("  callers", || Tree::callers(&view, &middle, options).nodes.len());
        timed("  as a profile", || view.to_profile().stacks.len());
    }
}

fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{name}: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

fn profile() -> Profile {
    let mut dice = Dice(1);
    let mut profile = Profile::default();
    let empty = profile.strings.empty();
    let event = Event { name: profile.strings.add("cpu-clock"), unit: profile.strings.add("ns") };
    let event = profile.events.push(event);
    let frames = frames(&mut profile);
    let mut threads = Vec::new();
    for tid in 0..64 {
        let process = profile.processes.push(Process { pid: tid / 4, ppid: 1, exe: empty });
        let comm = profile.strings.add(&format!("worker {}", tid % 3));
        threads.push(profile.threads.push(Thread { process, tid, comm }));
    }
    // Every stack grows out of a part of an earlier one, as call stacks do.
    let mut stacks: Vec<Vec<FrameId>> = vec![frames[..40].to_vec()];
    for _ in 1..100_000 {
        let earlier = &stacks[dice.roll(stacks.len())];
        let mut stack = earlier[..1 + dice.roll(earlier.len())].to_vec();
        let more = 7 + dice.roll(25);
        stack.extend((0..more).map(|_| frames[dice.roll(frames.len())]));
        stack.truncate(72);
        stacks.push(stack);
    }
    let stacks: Vec<_> = stacks
        .into_iter()
        .map(|mut root_first| {
            root_first.reverse();
            profile.add_stack(&root_first)
        })
        .collect();
    for time_ns in 0..1_000_000 {
        let (thread, stack) = (threads[dice.roll(threads.len())], stacks[dice.roll(stacks.len())]);
        profile.samples.push(Sample {
            time_ns,
            thread,
            cpu: 0,
            event,
            stack,
            syscall: None,
            weight: 1_001_001,
        });
    }
    profile
}

fn frames(profile: &mut Profile) -> Vec<FrameId> {
    let empty = profile.strings.empty();
    let path = profile.strings.add("/usr/bin/large");
    let kind = DsoKind::File;
    let dso = Some(profile.dsos.add(Dso { path, build_id: None, kind, addresses: AddressSpace::Svma }));
    let mut frames = Vec::new();
    for address in 0..50_000_u64 {
        let frame = Frame {
            kind: FrameKind::User,
            dso,
            address: Address(address * 16),
            is_return: true,
            found: Found::Cfi,
        };
        let id = profile.frames.add(frame);
        let mut lines = Vec::new();
        for (number, inlined) in [(address * 7 % 9_000, true), (address / 5, false)] {
            let name = profile.strings.add(&format!("function_{number}"));
            let start = (!inlined).then_some(Address(address / 5 * 80));
            let function =
                Function { name, linkage_name: empty, dso, start, source_file: empty, start_line: 0 };
            let function = profile.symbols.functions.add(function);
            lines.push(Line { function, file: empty, line: 1, inlined });
        }
        profile.symbols.set(id, if address % 3 == 0 { &lines } else { &lines[1..] });
        frames.push(id);
    }
    frames
}
