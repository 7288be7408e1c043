//! Processes by program, and the advice that follows, from lives and stacks made by hand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed unwrap is a failed test")]

use plumb_analyze::{Filter, Part, Pattern, Procs, TimeRange, View, advise};
use plumb_fixtures::Made;
use plumb_profile::{Begin, Life, LifeEnd, LifeId, Profile};

const MS: u64 = 1_000_000;
/// Time of the first sample of a made profile; the next ones follow at intervals of 1 ms.
const START: u64 = 1_000 * MS;

/// A life whose samples are those of the process with this id and name, if it has any. Times are in ms since the start.
fn life(
    profile: &mut Profile,
    pid: u32,
    comm: &str,
    parent: Option<LifeId>,
    begin: (Begin, u64),
    end: (LifeEnd, u64),
) -> LifeId {
    let thread = profile.threads.rows().iter().find(|thread| {
        profile.strings.get(thread.comm) == comm && profile.processes[thread.process].pid == pid
    });
    let process = thread.map(|thread| thread.process);
    let (exe, comm) = (profile.strings.add(&format!("/bin/{comm}")), profile.strings.add(comm));
    let at = |ms: u64| START + ms * MS;
    profile.lives.push(Life {
        pid,
        parent,
        exe,
        comm,
        begin: begin.0,
        end: end.0,
        start_ns: (begin.0 != Begin::Running).then(|| at(begin.1)),
        end_ns: (end.0 != LifeEnd::Running).then(|| at(end.1)),
        cpu_ns: None,
        peak_rss_bytes: None,
        process,
    })
}

fn program<'a, 'p>(procs: &'a Procs<'p>, name: &str, forked: bool) -> &'a plumb_analyze::Program<'p> {
    procs.programs.iter().find(|program| program.name() == name && program.forked == forked).unwrap()
}

fn with<T>(profile: &Profile, filter: &Filter, look: impl FnOnce(&Procs<'_>, &View<'_>) -> T) -> T {
    let view = View::new(profile, filter);
    look(&Procs::new(&view, filter), &view)
}

const ENTRY: &str = "entry_SYSCALL_64_after_hwframe@k;do_syscall_64@k";

/// A shell runs dirname three times from two functions; then a subshell runs one and execs the next.
fn shell() -> Profile {
    let mut made = Made::new();
    let fork = format!("{ENTRY};__x64_sys_clone@k;kernel_clone@k;copy_process@k;dup_mmap@k");
    made.sample("bash/10", &format!("main@bash;first@bash;__libc_fork@libc;{fork}"), MS); // 0 ms
    made.sample(
        "bash/11",
        &format!("main@bash;execve@libc;{ENTRY};__x64_sys_execve@k;exec_mmap@k;exit_mmap@k"),
        MS,
    ); // 1
    made.sample("dirname/11", "main@dirname", MS); // 2
    made.sample("bash/10", &format!("main@bash;second@bash;__libc_fork@libc;{fork}"), MS); // 3
    made.sample("bash/12", "main@bash;asm_exc_page_fault@k;do_wp_page@k", MS); // 4
    made.sample("dirname/12", &format!("_start@ld;{ENTRY};__x64_sys_openat@k;do_sys_openat2@k"), MS); // 5
    made.sample(
        "dirname/12",
        &format!("_exit@libc;{ENTRY};__x64_sys_exit_group@k;do_exit@k;exit_mmap@k"),
        MS,
    ); // 6
    made.sample("bash/10", "main@bash", MS); // 7
    made.sample("bash/20", "main@bash;eval@bash", MS); // 8
    let mut profile = made.profile;
    let p = &mut profile;
    p.meta.duration_ns = 100 * MS;
    let root = life(p, 10, "bash", None, (Begin::Exec, 0), (LifeEnd::Exit, 100));
    for (pid, at) in [(11, 1), (12, 4), (13, 30)] {
        life(p, pid, "bash", Some(root), (Begin::Fork, at), (LifeEnd::Exec, at + 1));
        life(p, pid, "dirname", Some(root), (Begin::Exec, at + 1), (LifeEnd::Exit, at + 4));
    }
    let subshell = life(p, 20, "bash", Some(root), (Begin::Fork, 50), (LifeEnd::Exec, 60));
    life(p, 21, "bash", Some(subshell), (Begin::Fork, 51), (LifeEnd::Exec, 52));
    life(p, 21, "ls", Some(subshell), (Begin::Exec, 52), (LifeEnd::Exit, 58));
    life(p, 20, "sort", Some(root), (Begin::Exec, 60), (LifeEnd::Exit, 90));
    profile
}

#[test]
fn processes_are_counted_by_the_program_that_they_became() {
    with(&shell(), &Filter::default(), |procs, _| {
        assert_eq!((procs.processes, procs.most_alive), (6, Some(3)));
        let names: Vec<(String, usize, u64)> = procs
            .programs
            .iter()
            .map(|program| (program.name().to_owned(), program.depth, program.processes))
            .collect();
        let expected = [("bash", 0, 1), ("dirname", 1, 3), ("bash", 1, 1), ("ls", 2, 1), ("sort", 2, 1)];
        assert_eq!(names, expected.map(|(name, depth, count)| (name.to_owned(), depth, count)));
        let dirname = program(procs, "dirname", false);
        assert_eq!(
            (dirname.mean_life_ns, dirname.most_alive, dirname.short.all),
            (Some(4.0 * MS as f64), Some(2), 3)
        );
        assert_eq!(program(procs, "bash", false).forks, 4);
        assert_eq!(program(procs, "bash", true).forks, 1);
        assert_eq!(
            program(procs, "sort", false).mean_life_ns,
            Some(30.0 * MS as f64),
            "not from the subshell's start"
        );
    });
}

#[test]
fn every_sample_is_in_one_program_and_one_part() {
    with(&shell(), &Filter::default(), |procs, view| {
        let own: u64 = procs.programs.iter().map(|program| program.own().weight).sum();
        assert_eq!(own, view.part().weight);
        let dirname = program(procs, "dirname", false);
        let ms = Part::ALL.map(|part| dirname.part(part).weight / MS);
        assert_eq!(ms, [1, 0, 1, 1, 1, 1], "user, fork, exec, fault, exit, kernel");
        assert_eq!((dirname.before_exec.weight, dirname.forking.weight), (2 * MS, 2 * MS));
        assert_eq!(dirname.in_kernel().weight, 4 * MS);
        let bash = program(procs, "bash", false);
        assert_eq!((bash.part(Part::Fork).weight, bash.total.weight), (2 * MS, 9 * MS));
    });
}

#[test]
fn starts_tell_the_stacks_below_the_fork() {
    with(&shell(), &Filter::default(), |procs, view| {
        let dirname = program(procs, "dirname", false);
        let stacks: Vec<String> = dirname
            .starts
            .iter()
            .map(|start| {
                view.stack(start.node.unwrap())
                    .map(|frame| frame.name.to_string())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(stacks, ["__libc_fork first main", "__libc_fork second main"]);
        assert!(program(procs, "bash", true).starts.is_empty(), "no sample hit its fork");
    });
}

#[test]
fn a_sample_of_a_fork_is_told_its_child_by_time() {
    let mut made = Made::new();
    let fork = |then: &str| format!("main@sh;{ENTRY};kernel_clone@k;{then}");
    for then in ["copy_process@k", "wake_up_new_task@k", "copy_process@k"] {
        made.sample("sh/1", &fork(then), MS); // 0, 1, 2 ms
    }
    let mut profile = made.profile;
    let root = life(&mut profile, 1, "sh", None, (Begin::Running, 0), (LifeEnd::Running, 0));
    for (pid, name, at) in [(2, "a", 1), (3, "b", 5)] {
        life(&mut profile, pid, "sh", Some(root), (Begin::Fork, at), (LifeEnd::Exec, at + 1));
        life(&mut profile, pid, name, Some(root), (Begin::Exec, at + 1), (LifeEnd::Exit, at + 2));
    }
    // At 1 ms the child a is there: what is still done is done for it. At 2 ms b is being made.
    profile.lives.get_mut(plumb_profile::Id::from_index(1)).start_ns = Some(START + MS / 2);
    with(&profile, &Filter::default(), |procs, _| {
        assert_eq!(program(procs, "a", false).forking.weight, 2 * MS);
        assert_eq!(program(procs, "b", false).forking.weight, MS);
    });
}

#[test]
fn the_outermost_function_that_is_known_decides_the_part() {
    let cases = [
        ("main@x", Part::User),
        ("main@x;asm_exc_page_fault@k;handle_mm_fault@k", Part::Fault),
        ("main@x;el0_da@k;do_mem_abort@k", Part::Fault),
        (
            "main@x;do_syscall_64@k;do_execveat_common.isra.0@k;load_elf_binary@k;asm_exc_page_fault@k",
            Part::Exec,
        ),
        ("main@x;__arm64_sys_execve@k;begin_new_exec@k;exec_mmap@k;mmput@k;exit_mmap@k", Part::Exec),
        ("main@x;do_syscall_64@k;x64_sys_call@k;__se_sys_clone3@k;kernel_clone@k", Part::Fork),
        ("ret_from_fork_asm@k;ret_from_fork@k;schedule_tail@k", Part::Fork),
        ("ret_from_fork_asm@k;ret_from_fork@k;kthread@k;worker_thread@k", Part::Kernel),
        ("main@x;exit_to_user_mode_loop@k;get_signal@k;do_group_exit@k;do_exit@k", Part::Exit),
        ("main@x;do_syscall_64@k;ksys_read@k;vfs_read@k", Part::Kernel),
        ("main@x;do_syscall_64@k;ksys_read@k;copy_to_user@k;asm_exc_page_fault@k", Part::Fault),
        ("do_exit@x", Part::User),
    ];
    for (stack, part) in cases {
        let mut made = Made::new();
        made.sample("x/1", stack, 5);
        with(&made.profile, &Filter::default(), |procs, _| {
            assert_eq!(program(procs, "x", false).part(part).weight, 5, "{stack}");
        });
    }
}

#[test]
fn filters_keep_processes_and_samples_alike() {
    let profile = shell();
    let comms = Filter { comms: vec![Pattern::parse("dirname").unwrap()], ..Filter::default() };
    with(&profile, &comms, |procs, _| {
        assert_eq!(procs.processes, 3);
        assert_eq!(procs.programs.iter().map(|program| program.own().samples).sum::<u64>(), 3);
    });
    let early = Filter { time: Some(TimeRange { start: 0, end: 6 * MS, part: None }), ..Filter::default() };
    with(&profile, &early, |procs, _| {
        assert_eq!(program(procs, "dirname", false).processes, 2);
        assert_eq!(procs.span_ns, 6 * MS);
    });
}

#[test]
fn accounts_are_of_the_processes_that_they_are_known_of() {
    let mut profile = shell();
    let ids: Vec<LifeId> = profile.lives.iter().map(|(id, _)| id).collect();
    // Of one dirname the moments before its exec are missing, of another what came after it.
    for (id, ms) in ids.into_iter().zip([None, Some(1), Some(2), None, Some(4), Some(8), None]) {
        profile.lives.get_mut(id).cpu_ns = ms.map(|ms: u64| ms * MS);
    }
    let accounted = |filter: &Filter| {
        with(&profile, filter, |procs, _| {
            let dirname = program(procs, "dirname", false);
            (dirname.accounted_ns / MS, dirname.accounted)
        })
    };
    assert_eq!(accounted(&Filter::default()), (3, 1));
    let within =
        |end| Filter { time: Some(TimeRange { start: 0, end: end * MS, part: None }), ..Filter::default() };
    assert_eq!(accounted(&within(6)), (3, 1));
    assert_eq!(accounted(&within(4)), (0, 0), "an account is of all its life, of which this is a part");
}

#[test]
fn a_recording_without_samples_is_as_long_as_it_was() {
    let mut profile = Made::new().profile;
    (profile.meta.start_ns, profile.meta.duration_ns) = (START, 7 * MS);
    life(&mut profile, 1, "true", None, (Begin::Exec, 1), (LifeEnd::Exit, 3));
    with(&profile, &Filter::default(), |procs, _| {
        assert_eq!((procs.span_ns, procs.processes, procs.whole.samples), (7 * MS, 1, 0));
    });
}

#[test]
fn only_a_clock_counts_processor_time() {
    for (event, unit, is_time) in [
        ("cpu-clock", "ns", true),
        ("task-clock:u", "ns", true),
        ("cycles", "cycles", false),
        ("off-cpu", "ns", false),
        ("page-faults", "page-faults", false),
    ] {
        let mut made = Made::new();
        made.event(event, unit);
        (0..20).for_each(|_| {
            made.sample("x/1", "main@x;__x64_sys_exit_group@k;do_exit@k", MS);
        });
        let filter = Filter { event: Some(plumb_profile::Id::from_index(1)), ..Filter::default() };
        with(&made.profile, &filter, |procs, _| {
            assert_eq!((procs.is_time, procs.event, procs.unit), (is_time, event, unit));
            assert_eq!(advise(procs).len(), usize::from(is_time), "{event}: exits that take long");
        });
    }
}

#[test]
fn without_lives_there_is_what_was_sampled() {
    let mut profile = shell();
    profile.lives = Default::default();
    with(&profile, &Filter::default(), |procs, view| {
        assert!(!procs.has_lives && procs.most_alive.is_none());
        assert_eq!(
            procs.programs.iter().map(|program| program.own().weight).sum::<u64>(),
            view.part().weight
        );
    });
    with(&Profile::default(), &Filter::default(), |procs, _| assert!(procs.programs.is_empty()));
}

#[test]
fn recursion_without_end_has_a_bottom() {
    let mut profile = Made::new().profile;
    let mut parent = None;
    for pid in 0..1000 {
        let name = format!("p{pid}");
        let child = life(&mut profile, pid + 1, &name, parent, (Begin::Fork, 1), (LifeEnd::Exit, 2));
        parent = Some(child);
    }
    with(&profile, &Filter::default(), |procs, _| {
        assert_eq!(procs.programs.len(), 1000);
        assert!(procs.programs.iter().all(|program| program.depth < 64));
    });
}

/// A shell that forks one process, which execs `count` programs in a row, each for 1 ms, and is sampled as often.
fn chain(names: &[&str], count: usize) -> Profile {
    let mut made = Made::new();
    for _ in 0..count {
        made.sample(&format!("{}/2", names[0]), "main@x;__x64_sys_execve@k;exec_mmap@k", MS);
    }
    let mut profile = made.profile;
    profile.meta.duration_ns = 100 * MS;
    let root = life(&mut profile, 1, "bash", None, (Begin::Exec, 0), (LifeEnd::Exit, 100));
    life(&mut profile, 2, "bash", Some(root), (Begin::Fork, 0), (LifeEnd::Exec, 1));
    for at in 0..count {
        let end = if at + 1 == count { LifeEnd::Exit } else { LifeEnd::Exec };
        let ms = at as u64 + 1;
        life(&mut profile, 2, names[at % names.len()], Some(root), (Begin::Exec, ms), (end, ms + 1));
    }
    profile
}

#[test]
fn a_process_that_execs_again_and_again_is_one_process() {
    with(&chain(&["sh"], 60), &Filter::default(), |procs, _| {
        let sh = program(procs, "sh", false);
        assert_eq!((procs.programs.len(), procs.processes, procs.most_alive), (2, 2, Some(2)));
        assert_eq!((sh.processes, sh.most_alive, sh.short.all, sh.depth), (1, Some(1), 0, 1));
        assert_eq!(sh.mean_life_ns, Some(61.0 * MS as f64));
        assert!(advise(procs).iter().all(|advice| advice.rule.name != "short-processes"));
    });
    with(&chain(&["a", "b", "c"], 60), &Filter::default(), |procs, _| {
        let lines: Vec<_> = procs.programs.iter().map(|one| (one.name(), one.depth, one.processes)).collect();
        assert_eq!(lines, [("bash", 0, 1), ("a", 1, 1), ("b", 2, 1), ("c", 2, 1)]);
        assert_eq!((procs.processes, procs.most_alive), (2, Some(2)));
        assert_eq!(program(procs, "b", false).mean_life_ns, Some(20.0 * MS as f64));
    });
    with(&chain(&["a", "b"], 4), &Filter::default(), |procs, _| {
        let short = |name| {
            let short = program(procs, name, false).short;
            (short.all, short.begun)
        };
        assert_eq!((short("a"), short("b")), ((1, 1), (1, 0)), "5 ms in all");
    });
}

/// Input of a rule: the activities of a parent and its children, with counts.
struct Case {
    children: u32,
    execs: bool,
    life_ms: u64,
    /// Samples of a millisecond: the parent's forks (copying memory or not), the children's exec and exit, other work,
    /// the parent's copying of shared pages, the parent's waiting.
    copying: u64,
    plain_fork: u64,
    exec: u64,
    exit: u64,
    other: u64,
    unsharing: u64,
    waiting: u64,
}

const NOTHING: Case = Case {
    children: 10,
    execs: true,
    life_ms: 50,
    copying: 0,
    plain_fork: 0,
    exec: 0,
    exit: 0,
    other: 0,
    unsharing: 0,
    waiting: 0,
};

/// Names of the rules that hold, with the bounds of their gains in milliseconds. The recording takes 1 s.
fn advice(case: &Case) -> Vec<(&'static str, u64)> {
    let mut made = Made::new();
    let child = if case.execs { "child" } else { "parent" };
    let first_child = format!("{child}/100");
    let mut samples = |count: u64, who: &str, stack: &str| {
        (0..count).for_each(|_| {
            made.sample(who, stack, MS);
        });
    };
    samples(case.copying, "parent/1", "main@x;__x64_sys_clone@k;copy_process@k;dup_mmap@k");
    samples(case.plain_fork, "parent/1", "main@x;__x64_sys_vfork@k;copy_process@k;dup_task_struct@k");
    samples(case.exec, &first_child, "main@x;__x64_sys_execve@k;exec_mmap@k");
    samples(case.exit, &first_child, "main@x;__x64_sys_exit_group@k;exit_mmap@k");
    samples(case.other, "parent/1", "main@x");
    samples(case.unsharing, "parent/1", "main@x;asm_exc_page_fault@k;do_wp_page@k");
    samples(case.waiting, "parent/1", "main@x;__x64_sys_wait4@k;do_wait@k");
    let mut profile = made.profile;
    profile.meta.duration_ns = 1000 * MS;
    let root = life(&mut profile, 1, "parent", None, (Begin::Running, 0), (LifeEnd::Running, 0));
    for number in 0..case.children {
        // After the samples, so that each fork has a next child.
        let at = 900;
        if case.execs {
            life(&mut profile, 100 + number, "parent", Some(root), (Begin::Fork, at), (LifeEnd::Exec, at));
            life(
                &mut profile,
                100 + number,
                "child",
                Some(root),
                (Begin::Exec, at),
                (LifeEnd::Exit, at + case.life_ms),
            );
        } else {
            life(
                &mut profile,
                100 + number,
                "parent",
                Some(root),
                (Begin::Fork, at),
                (LifeEnd::Exit, at + case.life_ms),
            );
        }
    }
    with(&profile, &Filter::default(), |procs, _| {
        advise(procs).iter().map(|advice| (advice.rule.name, (advice.bound.weight + MS / 2) / MS)).collect()
    })
}

#[test]
fn forks_of_a_large_parent_before_an_exec_are_told() {
    let large = Case { copying: 100, exec: 120, other: 200, ..NOTHING };
    // Ten execs of 0.11 ms each would remain.
    assert_eq!(advice(&large), [("fork-then-exec", 100 + 120 - 1)]);
    assert!(advice(&Case { copying: 9, ..large }).is_empty(), "0.9 ms each");
    assert!(advice(&Case { copying: 0, plain_fork: 100, ..large }).is_empty(), "vfork copies nothing");
    let drowned = Case { copying: 10, exec: 1, other: 700, ..NOTHING };
    assert!(advice(&drowned).is_empty(), "11 of 711 ms are below 2%");
}

#[test]
fn forks_of_a_large_parent_without_an_exec_are_told() {
    let snapshot = Case { execs: false, copying: 100, unsharing: 40, other: 200, ..NOTHING };
    assert_eq!(advice(&snapshot), [("fork-without-exec", 140)]);
    assert!(advice(&Case { copying: 9, ..snapshot }).is_empty());
    assert!(advice(&Case { execs: true, copying: 100, exec: 0, other: 9900 - 200, ..NOTHING }).is_empty());
}

#[test]
fn many_short_processes_are_told() {
    let many = Case { children: 60, life_ms: 2, exec: 30, plain_fork: 10, other: 100, ..NOTHING };
    assert_eq!(advice(&many), [("short-processes", 40)]);
    assert!(advice(&Case { children: 40, ..many }).is_empty(), "40 a second");
    assert!(advice(&Case { life_ms: 20, ..many }).is_empty(), "they live longer");
}

#[test]
fn long_exits_are_told() {
    let exits = Case { exit: 20, other: 300, ..NOTHING };
    assert_eq!(advice(&exits), [("exit-teardown", 20)]);
    assert!(advice(&Case { exit: 12, other: 700, ..exits }).is_empty(), "1.7%");
    assert!(advice(&Case { exit: 5, other: 20, ..exits }).is_empty(), "too few samples to tell");
}

#[test]
fn waiting_that_costs_processor_time_is_told() {
    let waits = Case { waiting: 60, other: 300, ..NOTHING };
    assert_eq!(advice(&waits), [("waiting-on-cpu", 60)]);
    assert!(advice(&Case { waiting: 40, ..waits }).is_empty(), "4% of a second");
}

#[test]
fn short_processes_are_told_at_the_program_that_starts_them() {
    let mut made = Made::new();
    for _ in 0..100 {
        made.sample("true/100", "main@x;__x64_sys_execve@k;exec_mmap@k", MS);
    }
    let mut profile = made.profile;
    profile.meta.duration_ns = 1000 * MS;
    let mut parent = None;
    for (pid, name) in ["sh", "make", "runner"].into_iter().enumerate() {
        let begin = if pid == 0 { Begin::Exec } else { Begin::Fork };
        parent = Some(life(&mut profile, pid as u32 + 1, name, parent, (begin, 0), (LifeEnd::Exit, 1000)));
    }
    for pid in 100..200 {
        life(&mut profile, pid, "runner", parent, (Begin::Fork, 900), (LifeEnd::Exec, 901));
        life(&mut profile, pid, "true", parent, (Begin::Exec, 901), (LifeEnd::Exit, 902));
    }
    with(&profile, &Filter::default(), |procs, _| {
        let told: Vec<_> = advise(procs)
            .iter()
            .filter(|advice| advice.rule.name == "short-processes")
            .map(|advice| (procs.programs[advice.program].name(), advice.measured[0].value))
            .collect();
        assert_eq!(told, [("runner", 100.0)]);
    });
}

#[test]
fn processes_without_a_sample_of_a_selected_function_do_not_count() {
    let profile = shell();
    let all = Filter::default();
    with(&profile, &all, |whole, _| {
        let nowhere =
            Filter { focus: vec![Pattern::regex("no_such_function").unwrap()], ..Filter::default() };
        with(&profile, &nowhere, |procs, _| assert_eq!((procs.processes, procs.whole.samples), (0, 0)));
        assert!(whole.processes > 0);
    });
}
