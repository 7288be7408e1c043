//! Flame graphs of hand-made profiles.

use plumb_analyze::{BoxKind, Cost, Filter, Flame, FlameChart, Grouping, View};
use plumb_fixtures::Made;
use plumb_profile::Profile;

/// The boxes as an indented list: name, own samples, line if there is one.
fn text(profile: &Profile, filter: &Filter, grouping: Grouping) -> String {
    let view = View::new(profile, filter);
    let flame = Flame::new(&view, grouping);
    assert_eq!(flame.total(), view.part(), "every sample is in the picture once");
    let mut text = String::new();
    for one in &flame.boxes {
        let label = &flame.labels[one.label as usize];
        let line = if one.line > 0 { format!(" {}:{}", label.file, one.line) } else { String::new() };
        text += &format!("{}{} {}{line}\n", "  ".repeat(one.depth as usize), label.name, one.own.samples);
    }
    text
}

fn check(profile: &Profile, grouping: Grouping, expected: &str) {
    let lines: Vec<&str> =
        expected.lines().map(|line| line.strip_prefix("        ").unwrap_or(line)).collect();
    assert_eq!(text(profile, &Filter::default(), grouping).trim_end(), lines.join("\n").trim());
}

#[test]
fn addresses_of_one_function_are_one_box_and_names_give_the_order() {
    let mut made = Made::new();
    made.sample("app/1", "main:3@app;zeta@app", 10);
    made.sample("app/1", "main:5@app;alpha@app", 10);
    made.sample("app/1", "main:5@app;alpha@app;vfs_read@k", 10);
    made.sample("app/1", "main:3@app;zeta@app;zeta@app", 10);
    made.sample("app/1", "main:5@app", 10);
    check(
        &made.profile,
        Grouping::None,
        "all 0
          main 1 /src/main.c:5
            alpha 1
              vfs_read 1
            zeta 1
              zeta 1",
    );
}

#[test]
fn stacks_can_be_kept_apart_by_what_they_belong_to() {
    let mut made = Made::new();
    made.sample("work/1/1", "main@app", 10);
    made.sample("work/1/2", "main@app", 10);
    made.sample("io/1/3", "main@app;read@libc.so.6", 10);
    check(&made.profile, Grouping::None, "all 0\n  main 2\n    read 1");
    check(&made.profile, Grouping::Comm, "all 0\n  io 0\n    main 0\n      read 1\n  work 0\n    main 2");
    let by_thread =
        "all 0\n  io (3) 0\n    main 0\n      read 1\n  work (1) 0\n    main 1\n  work (2) 0\n    main 1";
    check(&made.profile, Grouping::Thread, by_thread);
    assert!(text(&made.profile, &Filter::default(), Grouping::Process).contains("(1) 0\n"));
}

#[test]
fn kinds_follow_from_where_code_is() {
    let mut made = Made::new();
    let exe = made.profile.strings.add("/opt/plugin.so");
    made.sample("app/1", "!;main@app;puts@libc.so.6;outer+inner@app;vfs_read@k", 10);
    made.sample("app/1", "start@plugin.so", 10);
    made.sample("app/1", "0x1234@app", 10);
    let process = made.profile.threads.rows()[0].process;
    made.profile.processes.get_mut(process).exe = exe;
    let view = View::new(&made.profile, &Filter::default());
    let flame = Flame::new(&view, Grouping::None);
    let kind = |name: &str| flame.labels.iter().find(|label| label.name == name).map(|label| label.kind);
    for (name, expected) in [
        ("all", BoxKind::Root),
        ("[stack deeper than its copy]", BoxKind::Missing),
        ("main", BoxKind::Program),
        ("puts", BoxKind::Library),
        ("outer", BoxKind::Program),
        ("inner", BoxKind::Inlined),
        ("vfs_read", BoxKind::Kernel),
        // An executed file, whatever its name looks like.
        ("start", BoxKind::Program),
        // Without a symbol the label is the file and address.
        ("app+0x1234", BoxKind::Program),
    ] {
        assert_eq!(kind(name), Some(expected), "{name}");
    }
}

#[test]
fn the_kernels_boxes_say_what_it_ran_for() {
    let mut made = Made::new();
    made.sample("app/1", "main@app;do_syscall_64@k;ksys_read@k;asm_exc_page_fault@k;handle_mm_fault@k", 10);
    made.sample("app/1", "main@app;asm_exc_page_fault@k;handle_mm_fault@k", 10);
    made.sample("app/1", "main@app;do_syscall_64@k;__x64_sys_execve@k;exec_mmap@k", 10);
    made.sample("app/1", "main@app;asm_common_interrupt@k;handle_softirqs@k", 10);
    let view = View::new(&made.profile, &Filter::default());
    let flame = Flame::new(&view, Grouping::None);
    let kinds = |name: &str| -> Vec<BoxKind> {
        flame.labels.iter().filter(|label| label.name == name).map(|label| label.kind).collect()
    };
    assert_eq!(kinds("do_syscall_64"), [BoxKind::Kernel], "the way in is one box for both calls");
    assert_eq!(kinds("handle_mm_fault"), [BoxKind::Kernel, BoxKind::Fault], "in a call, and for itself");
    assert_eq!(kinds("exec_mmap"), [BoxKind::Process]);
    assert_eq!(kinds("handle_softirqs"), [BoxKind::Interrupt]);
}

#[test]
fn only_what_filters_keep_is_there() {
    let mut made = Made::new();
    made.sample("a/1", "main@app;f@app", 10);
    made.sample("b/2", "main@app;g@libg.so", 10);
    let filter = Filter { pids: vec![2], ..Filter::default() };
    assert_eq!(text(&made.profile, &filter, Grouping::None), "all 0\n  main 0\n    g 1\n");
    let view = View::new(&made.profile, &filter);
    let names: Vec<_> =
        Flame::new(&view, Grouping::None).labels.into_iter().map(|label| label.name).collect();
    assert_eq!(names, ["all", "g", "main"], "labels that no box has are not carried along");
    let nothing = Filter { pids: vec![3], ..Filter::default() };
    assert_eq!(text(&made.profile, &nothing, Grouping::None), "all 0\n");
}

#[test]
fn equal_weights_are_noticed() {
    let each = |weights: &[u64]| {
        let mut made = Made::new();
        for (i, &weight) in weights.iter().enumerate() {
            made.sample("app/1", if i % 2 == 0 { "main@app" } else { "main@app;f@app" }, weight);
        }
        Flame::new(&View::new(&made.profile, &Filter::default()), Grouping::None).weight_of_each()
    };
    assert_eq!(each(&[7, 7, 7]), Some(7));
    assert_eq!(each(&[7, 8, 7]), None);
    assert_eq!(each(&[]), None);
}

#[test]
fn a_box_holds_what_it_called() {
    let mut made = Made::new();
    made.sample("app/1", "main@app;b@app;c@app", 1);
    made.sample("app/1", "main@app;b@app", 2);
    made.sample("app/1", "main@app;a@app;c@app;d@app", 4);
    made.sample("app/1", "other@app", 8);
    let flame = Flame::new(&View::new(&made.profile, &Filter::default()), Grouping::None);
    let names = flame.boxes.iter().map(|one| &*flame.labels[one.label as usize].name);
    let shown: Vec<(&str, u64)> = names.zip(flame.totals().iter().map(|total| total.weight)).collect();
    let expected = [("all", 15), ("main", 7), ("a", 4), ("c", 4), ("d", 4), ("b", 3), ("c", 1), ("other", 8)];
    assert_eq!(shown, expected);
}

#[test]
fn stacks_are_told_from_below_the_root() {
    let mut made = Made::new();
    made.sample("app/1", "main@app;f@app;g@app", 10);
    made.sample("app/1", "main@app;b@app", 20);
    made.sample("app/1", "main@app", 30);
    let flame = Flame::new(&View::new(&made.profile, &Filter::default()), Grouping::None);
    let mut stacks = Vec::new();
    flame.for_each_stack(|path, own: Cost| {
        let names: Vec<&str> = path.iter().map(|label| &*label.name).collect();
        stacks.push(format!("{} {}", names.join(";"), own.weight));
    });
    assert_eq!(stacks, ["main 30", "main;b 20", "main;f;g 10"]);
}

#[test]
fn a_stack_of_any_depth_is_drawn() {
    let mut made = Made::new();
    let deep = "f@app;".repeat(20_000);
    made.sample("app/1", &deep, 10);
    let flame = Flame::new(&View::new(&made.profile, &Filter::default()), Grouping::None);
    assert_eq!(flame.boxes.last().map(|one| one.depth), Some(20_000));
}

#[test]
fn in_the_order_of_time_a_box_is_a_run_of_samples_of_one_thread() {
    let mut made = Made::new();
    // Two threads with alternating samples; each sample is a millisecond after the previous one.
    for stack in ["main@app;b@app", "main@app;a@app", "main@app;a@app;c@app", "main@app;b@app"] {
        made.sample("work/1/1", stack, 20);
        made.sample("io/1/2", "main@app", 10);
    }
    let view = View::new(&made.profile, &Filter::default());
    let chart = FlameChart::new(&view, 100).unwrap();
    assert_eq!(chart.flame.total(), view.part());
    let names = chart.flame.boxes.iter().map(|one| {
        let name = &chart.flame.labels[one.label as usize].name;
        format!("{}{name} {}", "  ".repeat(one.depth as usize), one.own.samples)
    });
    let expected = "all 0\n  work (1) 0\n    main 0\n      b 1\n      a 1\n        c 1\n      b 1\n  io (2) 0\n    main 4";
    assert_eq!(names.collect::<Vec<_>>().join("\n"), expected);
    // The two runs of `b` have times of their own, the second after `a`.
    let (first, a, second) = (&chart.times[3], &chart.times[4], &chart.times[6]);
    assert!(first.end <= a.start && a.end <= second.start, "{:?}", chart.times);
    assert_eq!(chart.times[2], first.start..second.end);
    assert!(FlameChart::new(&view, 5).is_none());
}
