//! The hotspot report: what it is of, how sure it is, and what it never says.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use plumb_analyze::{
    Bottleneck, BoundBy, CacheSizes, Cause, ExplainOptions, Explanation, Filter, ModuleKind, Pattern,
    TimeRange, explained_event,
};
use plumb_fixtures::Made;
use plumb_profile::{EventId, Id, Profile, Queued, QueuedThread};

/// So many samples of 1 ms each in each of these stacks.
fn sampled(stacks: &[(&str, u64)]) -> Profile {
    let mut made = Made::new();
    for &(stack, count) in stacks {
        for _ in 0..count {
            made.sample("app/1", stack, 1_000_000);
        }
    }
    let mut profile = made.profile;
    let samples = profile.samples.len() as u64;
    profile.meta.duration_ns = samples * 1_000_000;
    profile.meta.target_cpu_ns = Some(samples * 1_000_000);
    profile.meta.cpus = 2;
    profile
}

fn options(threshold: f64) -> ExplainOptions<'static, 'static> {
    ExplainOptions {
        threshold,
        call_name: &|_| None,
        calls: Vec::new(),
        sources: Box::leak(Box::default()),
        caches: CacheSizes::default(),
        waits: None,
    }
}

fn explain<'p>(profile: &'p Profile, ignore: &[&str]) -> Explanation<'p> {
    let ignore = ignore.iter().map(|text| Pattern::regex(text).unwrap()).collect();
    of(profile, &Filter { ignore, ..Filter::default() })
}

fn of<'p>(profile: &'p Profile, filter: &Filter) -> Explanation<'p> {
    Explanation::new(Explanation::view(profile, filter), filter, &[], &options(10.0))
}

fn name<'a>(report: &'a Explanation<'_>, what: Bottleneck) -> &'a str {
    match what {
        Bottleneck::Function(frame) => &report.view.frame(frame).name,
        Bottleneck::Line(index) => &report.view.frame(report.outlook.lines[index].frame).name,
        Bottleneck::Kernel(row) => &report.time.rows[row].name,
        Bottleneck::Code(cause) => report.causes[cause].rule.name,
        Bottleneck::Calls(index) => report.calls[index].rule.name,
        Bottleneck::Processes(index) => report.processes[index].rule.name,
    }
}

#[test]
fn rows_are_everything_and_modules_are_all_of_user_code() {
    let profile = sampled(&[
        ("main@app;work@app", 500),
        ("main@app;memcpy@libc.so.6", 200),
        ("main@app;draw@libgl.so.1", 100),
        ("main@app;touch@app;asm_exc_page_fault@k;exc_page_fault@k", 150),
        ("main@app;read@libc.so.6;do_syscall_64@k;__x64_sys_read@k", 50),
    ]);
    let report = explain(&profile, &[]);
    let rows: u64 = report.time.rows.iter().map(|row| row.cost.samples).sum();
    assert_eq!(rows, 1000);
    let user = report.time.rows.iter().find(|row| row.cause == Cause::User).unwrap();
    let modules: u64 = report.modules.iter().map(|module| module.cost.samples).sum();
    assert_eq!((user.cost.samples, modules), (800, 800));
    let kinds: Vec<_> = report.modules.iter().map(|module| (module.kind, module.cost.samples)).collect();
    assert_eq!(kinds, [(ModuleKind::Program, 500), (ModuleKind::CLibrary, 200), (ModuleKind::Library, 100)]);
}

#[test]
fn what_is_ignored_is_taken_out_and_the_rest_is_the_whole() {
    let profile = sampled(&[
        ("main@app;alloc@app", 300),
        ("main@app;lookup@app", 200),
        ("main@app;rand@libc.so.6", 500),
    ]);
    let report = explain(&profile, &["^rand$"]);
    assert_eq!((report.left_out.samples, report.view.whole().samples), (500, 500));
    let shares: Vec<_> = report
        .functions
        .iter()
        .map(|one| (&*report.view.frame(one.frame).name, one.own_share.percent))
        .collect();
    assert_eq!(shares, [("alloc", 60.0), ("lookup", 40.0)]);
    // Ignored or not, it took its time.
    assert_eq!(report.pace.cpu_ns, Some(1_000_000_000));
    assert_eq!(report.pace.class(), Some(BoundBy::Cpu));
}

#[test]
fn a_share_is_above_the_threshold_only_if_its_interval_is() {
    let many = sampled(&[("main@app;big@app", 1500), ("main@app;small@app", 500), ("main@app", 8000)]);
    let report = explain(&many, &["^main$"]);
    assert!(report.outlook.largest.is_none(), "main is on every stack");
    let report = explain(&many, &[]);
    let above: Vec<&str> = report.outlook.above.iter().map(|&(what, _)| name(&report, what)).collect();
    assert_eq!(above, ["main", "big"]);
    assert!(report.outlook.unsure.is_empty(), "5% of 10,000 samples is below 10%");

    // Again the same shares, but with few samples: 15% may be 10%.
    let few = sampled(&[("main@app;big@app", 15), ("main@app;small@app", 5), ("main@app", 80)]);
    let report = explain(&few, &[]);
    let unsure: Vec<&str> = report.outlook.unsure.iter().map(|&(what, ..)| name(&report, what)).collect();
    assert_eq!(unsure, ["big", "small"]);
    let needed = report.outlook.unsure[0].2.unwrap();
    assert!((200..2000).contains(&needed), "{needed}");
}

#[test]
fn nothing_above_the_threshold_says_so() {
    let stacks: Vec<(String, u64)> = (0..40).map(|i| (format!("main@app;f{i}@app"), 250)).collect();
    let stacks: Vec<(&str, u64)> = stacks.iter().map(|(stack, count)| (&stack[..], *count)).collect();
    let profile = sampled(&stacks);
    let report = explain(&profile, &[]);
    assert!(report.outlook.above.is_empty() && report.outlook.unsure.is_empty());
    let (_, largest) = report.outlook.largest.unwrap();
    assert!((largest.percent - 2.5).abs() < 1e-9 && largest.high < 3.0, "{largest:?}");
}

/// Asking the environment, with the comparing that it calls, is one cause and not two functions.
#[test]
fn a_cause_takes_the_place_of_the_functions_in_it() {
    let profile = sampled(&[
        ("main@app;bench@app;alloc@app;getenv@libc.so.6", 2500),
        ("main@app;bench@app;alloc@app;getenv@libc.so.6;strncmp@libc.so.6", 1900),
        ("main@app;bench@app;alloc@app", 1000),
        ("main@app;bench@app;rand@libc.so.6", 400),
        ("main@app;bench@app", 4200),
    ]);
    let report = explain(&profile, &[]);
    let above: Vec<(&str, f64)> =
        report.outlook.above.iter().map(|&(what, share)| (name(&report, what), share.percent)).collect();
    assert_eq!(above, [("getenv-hot", 44.0), ("bench", 42.0)], "10% for sure is not above 10%");
    let within: Vec<_> = report.causes.iter().map(|cause| (cause.rule.name, cause.within)).collect();
    assert_eq!(within, [("getenv-hot", None), ("string-compare", Some("getenv-hot"))]);
    let cause = &report.causes[0];
    let caller = report.view.frame(cause.callers[0].0);
    assert_eq!((&*caller.name, cause.callers[0].1.samples), ("alloc", 4400));
    // Amdahl on the interval's upper end.
    let gain = report.pace.gain(cause.share);
    assert!(gain.cpu_percent > 44.0 && gain.cpu_percent < 46.0, "{gain:?}");
    assert!((gain.times - 1.0 / (1.0 - gain.cpu_percent / 100.0)).abs() < 1e-9);
}

#[test]
fn what_samples_can_not_resolve_is_no_cause() {
    let with = |count| sampled(&[("main@app;getenv@libc.so.6", count), ("main@app", 20 * count)]);
    assert_eq!(explain(&with(4), &[]).causes.len(), 0, "4 of 84 samples may be chance");
    assert_eq!(explain(&with(400), &[]).causes[0].rule.name, "getenv-hot");
}

#[test]
fn callers_that_matter_are_told_and_add_up() {
    let mut stacks = vec![
        ("main@app;parse@app;lookup@app".to_owned(), 600),
        ("main@app;resolve@app;lookup@app".to_owned(), 300),
    ];
    stacks.extend((0..20).map(|i| (format!("main@app;many{i}@app;lookup@app"), 5)));
    let stacks: Vec<(&str, u64)> = stacks.iter().map(|(stack, count)| (&stack[..], *count)).collect();
    let profile = sampled(&stacks);
    let report = explain(&profile, &[]);
    let paths: Vec<(Vec<&str>, u64, bool)> = report.paths[0]
        .iter()
        .map(|path| {
            let names = path.callers.iter().map(|&frame| &*report.view.frame(frame).name).collect();
            (names, path.cost.samples, path.is_whole)
        })
        .collect();
    assert_eq!(paths, [(vec!["parse", "main"], 600, true), (vec!["resolve", "main"], 300, true)]);
}

/// A recording in which a thread had this run-queue wait, in milliseconds, and other threads this much that was not observed.
fn queued(mut profile: Profile, waited: u64, unseen: u64) -> Profile {
    let ran_ns = profile.meta.target_cpu_ns.unwrap();
    let waited_ns = waited * 1_000_000;
    let busiest = QueuedThread { tid: 1, ran_ns, waited_ns, ..QueuedThread::default() };
    let unseen_ns = unseen * 1_000_000;
    let (stolen_ns, throttled_ns, busiest) = (0, None, Some(busiest));
    profile.meta.queued = Some(Queued { ran_ns, waited_ns, unseen_ns, stolen_ns, throttled_ns, busiest });
    profile
}

#[test]
fn the_class_is_told_from_what_ran_or_wanted_to_and_the_kernels_share() {
    let user = ("main@app", 100);
    let kernel = |count| ("main@app;do_syscall_64@k;__x64_sys_write@k", count);
    let class = |stacks: &[(&str, u64)], slower: u64, waits: Option<(u64, u64)>| {
        let mut profile = sampled(stacks);
        profile.meta.duration_ns *= slower;
        if let Some((waited, unseen)) = waits {
            profile = queued(profile, waited, unseen);
        }
        explain(&profile, &[]).pace.class()
    };
    assert_eq!(class(&[user], 1, None), Some(BoundBy::Cpu));
    assert_eq!(class(&[user, kernel(150)], 1, None), Some(BoundBy::Kernel));
    assert_eq!(class(&[user, kernel(67)], 1, None), Some(BoundBy::Mixed));
    assert_eq!(class(&[user], 10, Some((0, 0))), Some(BoundBy::Waiting));
    // 100 ms on a processor in 200 ms, and the rest spent in waiting for one, for something else, or half of each.
    assert_eq!(class(&[user], 2, Some((100, 0))), Some(BoundBy::Cpu));
    assert_eq!(class(&[user, kernel(150)], 2, Some((250, 0))), Some(BoundBy::Kernel));
    assert_eq!(class(&[user], 3, Some((0, 0))), Some(BoundBy::Waiting));
    assert_eq!(class(&[user], 2, Some((50, 0))), Some(BoundBy::Mixed));
    // Nobody looked, or threads have ended that may have waited for a processor.
    assert_eq!(class(&[user], 10, None), None);
    assert_eq!(class(&[user], 3, Some((0, 100))), None);
    assert_eq!(class(&[user], 10, Some((0, 100))), Some(BoundBy::Waiting));
    let mut unknown = queued(sampled(&[user]), 0, 0);
    unknown.meta.duration_ns = 0;
    assert_eq!(explain(&unknown, &[]).pace.class(), None);
}

/// Without samples of the kernel, it may have used all CPU time that no sample represents.
#[test]
fn user_code_alone_says_nothing_of_the_kernel() {
    let mut profile = sampled(&[("main@app", 100)]);
    profile.meta.user_only = true;
    profile.meta.target_cpu_ns = Some(110_000_000);
    assert_eq!(explain(&profile, &[]).pace.class(), Some(BoundBy::Cpu));
    profile.meta.target_cpu_ns = Some(400_000_000);
    let report = explain(&profile, &[]);
    assert_eq!((report.pace.class(), report.pace.kernel_percent), (None, 75.0));
}

/// Facts about the whole recording are not applied to a selection of threads or of time, or where CPU time was stolen.
#[test]
fn what_is_known_of_the_whole_is_not_said_of_a_part() {
    let mut profile = queued(sampled(&[("main@app", 100)]), 0, 0);
    profile.meta.duration_ns *= 10;
    let of_thread = Filter { comms: vec![Pattern::regex("app").unwrap()], ..Filter::default() };
    assert_eq!(of(&profile, &of_thread).pace.class(), None);
    let of_time =
        Filter { time: Some(TimeRange { start: 0, end: 900_000_000, part: None }), ..Filter::default() };
    assert_eq!(of(&profile, &of_time).pace.class(), None);
    profile.meta.queued.as_mut().unwrap().stolen_ns = 600_000_000;
    assert_eq!(explain(&profile, &[]).pace.class(), None, "it may have been kept from running");
}

#[test]
fn who_had_the_processor_is_told_as_far_as_it_is_known() {
    let profile = queued(sampled(&[("main@app", 100)]), 100, 0);
    assert!(explain(&profile, &[]).pace.is_held_up_by_others());
    let mut two = queued(sampled(&[("main@app", 100)]), 100, 0);
    two.meta.target_cpu_ns = Some(200_000_000);
    assert!(!explain(&two, &[]).pace.is_held_up_by_others(), "its other thread ran as long");
}

/// A program that sleeps for nine tenths of its time can't be made faster than by a tenth with less processor time; one that others keep
/// from the processor can.
#[test]
fn gains_on_the_clock_are_bounded_by_the_time_on_processors_or_waiting_for_one() {
    let mut profile = sampled(&[("main@app;getenv@libc.so.6", 1000)]);
    profile.meta.duration_ns *= 10;
    let gain = |profile: &Profile| {
        let report = explain(profile, &[]);
        let gain = report.pace.gain(report.causes[0].share);
        (gain.cpu_percent, gain.clock_percent)
    };
    assert_eq!(gain(&profile), (100.0, Some(100.0)), "it may be kept from the processor all the time");
    assert_eq!(gain(&queued(profile.clone(), 0, 0)), (100.0, Some(10.0)));
    assert_eq!(gain(&queued(profile, 4000, 1000)), (100.0, Some(60.0)));

    // Half of that time is ignored: all of the rest is half of the clock's tenth.
    let mut profile = sampled(&[("main@app;getenv@libc.so.6", 1000), ("main@app;rand@libc.so.6", 1000)]);
    profile.meta.duration_ns *= 10;
    let profile = queued(profile, 0, 0);
    let report = explain(&profile, &["^rand$"]);
    let gain = report.pace.gain(report.causes[0].share);
    assert_eq!((gain.cpu_percent, gain.clock_percent), (100.0, Some(5.0)));
}

#[test]
fn waits_are_an_event_of_their_own() {
    let mut made = Made::new();
    for _ in 0..100 {
        made.sample("app/1", "main@app", 1_000_000);
    }
    made.event("off-cpu", "ns");
    made.sample("app/1", "main@app;read@libc.so.6;do_syscall_64@k;__x64_sys_read@k", 900_000_000);
    made.sample("app/1", "main@app;lock@libc.so.6;do_syscall_64@k;__x64_sys_futex@k", 100_000_000);
    let profile = made.profile;
    let filter = Filter { event: explained_event(&profile), ..Filter::default() };
    assert_eq!(filter.event, Some(EventId::from_index(0)));
    let report = of(&profile, &filter);
    assert_eq!(report.view.whole().samples, 100, "waiting is no processor time");
    let rows: Vec<(&str, u64)> =
        report.waits[0].time.rows.iter().map(|row| (&row.name[..], row.cost.weight)).collect();
    assert_eq!(rows, [("read", 900_000_000), ("futex", 100_000_000)]);
}

/// Code without names may be a single function, so the verdict is not that nothing is left to do.
#[test]
fn code_without_names_leaves_the_verdict_open() {
    let mut stacks: Vec<(String, u64)> =
        (0..50).map(|i| (format!("main@app;0x{:x}@app", 4096 + i), 30)).collect();
    stacks.extend((0..40).map(|i| (format!("main@app;f{i}@app"), 200)));
    let stacks: Vec<(&str, u64)> = stacks.iter().map(|(stack, count)| (&stack[..], *count)).collect();
    let profile = sampled(&stacks);
    let report = explain(&profile, &[]);
    assert!(report.outlook.above.is_empty() && report.outlook.unsure.is_empty());
    let hidden = report.outlook.hidden.expect("15.8% has no name");
    assert!((hidden.percent - 1500.0 / 95.0).abs() < 1e-9 && !report.outlook.is_done());
}
