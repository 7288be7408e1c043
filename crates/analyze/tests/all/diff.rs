//! Comparison of two sides: what is matched, what is marked, and how often that is wrong.
//!
//! The truth is simulated: samples are drawn at random from known shares.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use plumb_analyze::{
    By, Diff, DiffFlame, DiffOptions, DiffRow, Evidence, Filter, Mark, Moved, Per, Subject, View, Visibility,
};
use plumb_fixtures::Made;
use plumb_profile::Profile;

const OPTIONS: DiffOptions = DiffOptions { by: By::Function, children: false, per: Per::Total, alpha: 0.05 };

/// A recording at 1,000 samples a second of stacks with these numbers of samples.
fn recording(stacks: &[(&str, u64)], start_s: u64) -> Profile {
    let mut made = Made::new();
    for &(stack, count) in stacks.iter().filter(|(_, count)| *count > 0) {
        made.sample("app/1", stack, count * 1_000_000);
    }
    made.profile.meta.frequency_hz = Some(1000);
    made.profile.meta.start_unix_ns = start_s * 1_000_000_000;
    made.profile
}

fn views(profiles: &[Profile]) -> Vec<View<'_>> {
    profiles.iter().map(|profile| View::new(profile, &Filter::default())).collect()
}

fn with<T>(
    base: &[Profile],
    new: &[Profile],
    options: DiffOptions,
    then: impl FnOnce(&Diff<'_, '_>) -> T,
) -> T {
    let (base, new) = (views(base), views(new));
    then(&Diff::new(&base, &new, options, |_| None))
}

fn row<'d>(diff: &'d Diff<'_, '_>, name: &str) -> &'d DiffRow {
    let is_it = |row: &&DiffRow| matches!(row.subject, Subject::Function(n) if diff.functions()[n as usize].name == name);
    diff.rows.iter().find(is_it).unwrap_or_else(|| panic!("no row {name}"))
}

fn mark(diff: &Diff<'_, '_>, name: &str) -> Mark {
    row(diff, name).change.mark(0.05)
}

#[test]
fn functions_are_matched_over_builds_and_copies() {
    let base = recording(
        &[
            ("main@app;parse.constprop.0@app", 500),
            ("main@app;parse.cold@app", 100),
            ("malloc@libc-2.31.so", 400),
            // As much as is sampled of a recorder before its target starts.
            ("main@plumb;exec@plumb", 1),
        ],
        0,
    );
    let new = recording(&[("main@app2;parse.isra.0@app2", 600), ("malloc@libc.so.6", 400)], 0);
    with(&[base], &[new], OPTIONS, |diff| {
        assert_eq!(diff.rows.len(), 3, "{:?}", diff.functions());
        assert_eq!(row(diff, "parse").change.samples, [2, 1]);
        assert_eq!(row(diff, "parse").change.value, [6e8, 6e8]);
        assert_eq!(diff.functions().iter().find(|f| f.name == "parse").unwrap().dso, "/opt/app2");
    });
}

#[test]
fn functions_of_one_name_are_told_apart_by_library_and_source() {
    let base = recording(&[("malloc@libc.so.6", 500), ("work@app", 500)], 0);
    let new = recording(&[("malloc@libpool.so", 500), ("work@app", 500)], 0);
    with(&[base], &[new], OPTIONS, |diff| {
        let marks: Vec<Mark> = diff.rows.iter().map(|row| row.change.mark(0.05)).collect();
        assert!(marks.contains(&Mark::New) && marks.contains(&Mark::Vanished), "{marks:?}");
    });
}

#[test]
fn what_is_gone_and_what_came_is_marked_and_what_only_shows_more_is_said_to() {
    let base = [
        ("main@app;getenv@libc.so.6", 4400),
        ("main@app;take@app", 1000),
        ("main@app;find@app", 700),
        ("main@app;tune@app", 40),
    ];
    let new = [
        ("main@app;take@app", 1005),
        ("main@app;find@app", 690),
        ("main@app;tune@app", 42),
        ("main@app;fresh@app", 300),
    ];
    with(&[recording(&base, 0)], &[recording(&new, 0)], OPTIONS, |diff| {
        assert_eq!(diff.evidence, Evidence::Single);
        assert_eq!(mark(diff, "getenv"), Mark::Vanished);
        assert_eq!(mark(diff, "fresh"), Mark::New);
        assert_eq!((mark(diff, "take"), mark(diff, "find")), (Mark::Noise, Mark::Noise));
        assert_eq!(row(diff, "take").change.visibility(0.05), Visibility::More);
        assert_eq!(row(diff, "tune").change.visibility(0.05), Visibility::Newly);
        assert!(row(diff, "getenv").change.high < -4e9);
        assert_eq!(diff.rows[0].change.difference(), -4.4e9, "what changed most comes first");
        // 6.14 s and 2.037 s: runs of the same program do not differ by that much.
        assert_eq!(diff.whole.mark(0.05), Mark::Less);
    });
}

#[test]
fn a_slow_machine_is_no_change_of_a_function_in_single_recordings() {
    let base = [("main@app;a@app", 4000), ("main@app;b@app", 2000), ("main@app;c@app", 1000)];
    let slower = base.map(|(stack, count)| (stack, count * 112 / 100));
    with(&[recording(&base, 0)], &[recording(&slower, 0)], OPTIONS, |diff| {
        assert!(diff.rows.iter().all(|row| row.change.mark(0.05) == Mark::Noise));
        assert_eq!(diff.whole.mark(0.05), Mark::Noise, "12% is what two runs may differ by");
    });
    let much = base.map(|(stack, count)| (stack, count * 14 / 10));
    with(&[recording(&base, 0)], &[recording(&much, 0)], OPTIONS, |diff| {
        assert_eq!(diff.whole.mark(0.05), Mark::More);
        // Seen when other processes had the CPU; a compiler's largest row was marked because of that.
        assert!(diff.rows.iter().all(|row| row.change.mark(0.05) == Mark::Noise), "none stands out");
    });
    let otherwise = base.map(|(stack, count)| (stack, count * 4));
    with(&[recording(&base, 0)], &[recording(&otherwise, 0)], OPTIONS, |diff| {
        assert_eq!(diff.whole.mark(0.05), Mark::More);
        assert!(diff.rows.iter().all(|row| row.change.mark(0.05) == Mark::Noise), "none stands out");
        assert!((3.5..4.5).contains(&diff.speed()[0]), "{:?}", diff.speed());
    });
}

#[test]
fn less_time_but_more_of_all_is_no_change_that_single_recordings_can_tell() {
    let base = [("main@app;a@app", 5000), ("main@app;b@app", 1000), ("main@app;c@app", 500)];
    let new = [("main@app;b@app", 700), ("main@app;c@app", 350)];
    with(&[recording(&base, 0)], &[recording(&new, 0)], OPTIONS, |diff| {
        assert_eq!(mark(diff, "a"), Mark::Vanished);
        assert_eq!(
            (mark(diff, "b"), row(diff, "b").change.visibility(0.05)),
            (Mark::Noise, Visibility::More)
        );
    });
}

#[test]
fn the_kernels_functions_may_differ_more_between_two_runs() {
    let sides = |leaf: &str| {
        let stack = format!("main@app;{leaf}");
        [300, 420].map(|count| [recording(&[("main@app;work@app", 5000), (&stack, count)], 0)])
    };
    for (leaf, name, expected) in [("part@app", "part", Mark::More), ("do_work@k", "do_work", Mark::Noise)] {
        let [base, new] = sides(leaf);
        with(&base, &new, OPTIONS, |diff| assert_eq!(mark(diff, name), expected));
    }
}

#[test]
fn values_are_of_what_was_asked_for() {
    let base = || [recording(&[("a@app", 3000), ("b@app", 1000)], 0)];
    let new = || [recording(&[("a@app", 6000), ("b@app", 4000)], 0)];
    let values =
        |per| with(&base(), &new(), DiffOptions { per, ..OPTIONS }, |diff| row(diff, "b").change.value);
    assert_eq!(values(Per::Total), [1e9, 4e9]);
    assert_eq!(values(Per::Second), [0.25e9, 0.4e9]);
    assert_eq!(values(Per::Iteration([10.0, 20.0])), [1e8, 2e8]);
}

#[test]
fn a_function_that_is_inlined_now_keeps_its_row_and_is_said_to_be() {
    let base = recording(&[("main@app;small@app", 900), ("main@app", 3000)], 0);
    let new = recording(&[("main+small@app", 900), ("main@app", 3000)], 0);
    with(&[base], &[new], OPTIONS, |diff| {
        assert_eq!(row(diff, "small").moved, Some(Moved::Inlined));
        assert_eq!(mark(diff, "small"), Mark::Noise);
        assert_eq!(row(diff, "main").moved, None);
    });
}

#[test]
fn without_names_of_inlined_calls_the_caller_that_took_over_is_named() {
    let base =
        [("main@app;loop@app;small@app", 900), ("main@app;loop@app", 1000), ("main@app;other@app", 3000)];
    let new = [("main@app;loop@app", 1880), ("main@app;other@app", 3000)];
    let name = |diff: &Diff<'_, '_>, number: u32| diff.functions()[number as usize].name.clone();
    with(&[recording(&base, 0)], &[recording(&new, 0)], OPTIONS, |diff| {
        let Some(Moved::IntoCaller(caller)) = row(diff, "small").moved else {
            panic!("{:?}", row(diff, "small"))
        };
        assert_eq!(name(diff, caller), "loop");
    });
    with(&[recording(&new, 0)], &[recording(&base, 0)], OPTIONS, |diff| {
        let Some(Moved::OutOfCaller(caller)) = row(diff, "small").moved else {
            panic!("{:?}", row(diff, "small"))
        };
        assert_eq!(name(diff, caller), "loop");
    });
    // Vanished, and no caller took it over.
    with(&[recording(&base, 0)], &[recording(&base[1..], 0)], OPTIONS, |diff| {
        assert_eq!((mark(diff, "small"), row(diff, "small").moved), (Mark::Vanished, None));
    });
}

#[test]
fn rows_are_lines_stacks_or_causes_as_asked() {
    let base = [recording(&[("main:3@app;work:7@app", 500), ("main:3@app;work:8@app", 500)], 0)];
    let new =
        [recording(&[("main:3@app;work:7@app", 500), ("main:3@app;do_syscall_64@k;ksys_read@k", 500)], 0)];
    let count = |by| with(&base, &new, DiffOptions { by, ..OPTIONS }, |diff| diff.rows.len());
    assert_eq!(count(By::Function), 2);
    assert_eq!(count(By::Line), 3);
    assert_eq!(count(By::Path), 2);
    with(&base, &new, DiffOptions { by: By::Syscall, ..OPTIONS }, |diff| {
        let named = |row: &DiffRow| match &row.subject {
            Subject::Cause(_, name) => name.clone(),
            other => panic!("{other:?}"),
        };
        let mut names: Vec<String> = diff.rows.iter().map(named).collect();
        names.sort();
        assert_eq!(names, ["read", "user"]);
    });
    with(&base, &new, DiffOptions { children: true, ..OPTIONS }, |diff| {
        assert_eq!(row(diff, "main").change.share, [1.0, 1.0]);
    });
}

#[test]
fn limits_count_each_sample_once() {
    let base = [recording(
        &[("main@app;parse_a@app;parse_b@app", 500), ("main@app;parse_b@app", 500), ("main@app", 1000)],
        0,
    )];
    let new = [recording(
        &[("main@app;parse_a@app;parse_b@app", 800), ("main@app;parse_b@app", 800), ("main@app", 1000)],
        0,
    )];
    let parse = |diff: &Diff<'_, '_>| diff.together(|function| function.name.starts_with("parse"));
    for children in [false, true] {
        with(&base, &new, DiffOptions { children, ..OPTIONS }, |diff| {
            assert_eq!(parse(diff).value, [1e9, 1.6e9]);
            assert!(parse(diff).p < 1e-4);
        });
    }
}

#[test]
fn the_picture_keeps_what_vanished_and_marks_only_what_is_no_chance() {
    let base = recording(&[("main@app;old@app;deep@app", 900), ("main@app;same@app", 3000)], 0);
    let new = recording(&[("main@app;same@app", 3020), ("main@app;come@app", 600)], 0);
    with(&[base], &[new], OPTIONS, |diff| {
        let flame = DiffFlame::new(diff);
        let shown: Vec<(u32, &str, [f64; 2], Mark)> = flame
            .boxes
            .iter()
            .map(|one| {
                let name = &*flame.labels[one.label as usize].name;
                (one.depth, name, one.change.value, one.mark)
            })
            .collect();
        assert_eq!(
            shown,
            [
                (0, "all", [3.9e9, 3.62e9], Mark::Noise),
                (1, "main", [3.9e9, 3.62e9], Mark::Noise),
                (2, "come", [0.0, 6e8], Mark::New),
                (2, "old", [9e8, 0.0], Mark::Vanished),
                (3, "deep", [9e8, 0.0], Mark::Vanished),
                (2, "same", [3e9, 3.02e9], Mark::Noise),
            ]
        );
        let own: [f64; 2] = [0, 1].map(|side| flame.boxes.iter().map(|one| one.own[side]).sum());
        assert_eq!(own, diff.whole.value);
    });
}

#[test]
fn boxes_have_the_names_that_the_table_has() {
    let base = recording(&[("main@app;0x1230@libz.so.1", 500), ("main@app;0x4560@libz.so.1", 400)], 0);
    let new = recording(&[("main@app;0x7890@libz.so.1", 500), ("main@app;0x1240@libz.so.1;!", 400)], 0);
    with(&[base], &[new], OPTIONS, |diff| {
        let flame = DiffFlame::new(diff);
        for label in &flame.labels[1..] {
            let in_table = diff.functions().iter().any(|function| function.name == label.name);
            assert!(in_table, "{} is no row of the table", label.name);
        }
    });
}

#[test]
fn a_picture_of_noise_does_not_differ() {
    let of = |count| recording(&[("main@app;same@app", 3000), ("main@app;f@app", count)], 0);
    for (count, differs) in [(20, false), (900, true)] {
        with(&[of(0)], &[of(count)], OPTIONS, |diff| {
            assert_eq!(DiffFlame::new(diff).differs(), differs, "{count}");
        });
    }
    with(&[of(500)], &[of(510)], OPTIONS, |diff| assert!(!DiffFlame::new(diff).differs()));
}

/// Pseudo-random numbers, the same in every run (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        // Box and Muller's transform.
        (-2.0 * (1.0 - self.next()).ln()).sqrt() * (std::f64::consts::TAU * self.next()).cos()
    }

    /// Draws `count` samples and returns how many hit each function, with probabilities in proportion to `times`.
    fn samples(&mut self, times: &[f64], count: u64) -> Vec<u64> {
        let whole: f64 = times.iter().sum();
        let mut hits = vec![0; times.len()];
        for _ in 0..count {
            let mut at = self.next() * whole;
            let index = times.iter().position(|time| {
                at -= time;
                at < 0.0
            });
            hits[index.unwrap_or(times.len() - 1)] += 1;
        }
        hits
    }
}

const NAMES: [&str; 12] = [
    "f0@app", "f1@app", "f2@app", "f3@app", "f4@app", "f5@app", "f6@app", "f7@app", "f8@app", "f9@app",
    "f10@app", "f11@app",
];
/// Times of the functions: function 1 has a fifth of the total.
const TIMES: [f64; 12] = [30.0, 20.0, 15.0, 10.0, 8.0, 6.0, 4.0, 3.0, 2.0, 1.0, 0.7, 0.3];

fn drawn(random: &mut Random, times: &[f64], count: u64, start_s: u64) -> Profile {
    let counts = random.samples(times, count);
    let stacks: Vec<(&str, u64)> = NAMES.into_iter().zip(counts).collect();
    recording(&stacks, start_s)
}

/// Returns how many of `trials` mark anything, and how many mark function 1.
fn marked(trials: u32, mut sides: impl FnMut(u32) -> (Vec<Profile>, Vec<Profile>)) -> (u32, u32) {
    let mut counts = (0, 0);
    for trial in 0..trials {
        let (base, new) = sides(trial);
        with(&base, &new, OPTIONS, |diff| {
            counts.0 += u32::from(diff.rows.iter().any(|row| row.change.mark(0.05) != Mark::Noise));
            counts.1 += u32::from(mark(diff, "f1") == Mark::More);
        });
    }
    counts
}

#[test]
fn of_single_recordings_of_the_same_little_is_marked() {
    let mut random = Random(1);
    let (any, _) = marked(400, |_| {
        // The machine's speed differs between runs, and so does the number of samples.
        let mut one = || {
            let count = (7000.0 * (0.07 * random.normal()).exp()) as u64;
            vec![drawn(&mut random, &TIMES, count, 0)]
        };
        (one(), one())
    });
    assert!(any <= 20, "{any} of 400 trials marked something");
}

#[test]
fn a_function_that_costs_a_quarter_more_is_found_in_single_recordings() {
    let mut random = Random(2);
    let mut times = TIMES;
    times[1] *= 1.25;
    let (_, found) = marked(100, |_| {
        (vec![drawn(&mut random, &TIMES, 7000, 0)], vec![drawn(&mut random, &times, 7350, 0)])
    });
    assert!(found >= 90, "{found} of 100");
}

/// A recording with a time for each sample, of functions in the order in which they were sampled.
fn sampled(functions: impl Iterator<Item = usize>) -> Profile {
    let mut made = Made::new();
    for function in functions {
        made.sample("app/1", NAMES[function], 1_000_000);
    }
    made.profile.meta.frequency_hz = Some(1000);
    made.profile
}

/// A recording of a program that calls its functions in turn, each time for as long as they take: 1,000 samples a second, of which one in three is
/// random and the others keep step with the program.
fn in_turn(random: &mut Random, times: &[f64], count: u64) -> Profile {
    let whole: f64 = times.iter().sum();
    let mut phase = random.next();
    sampled((0..count).map(|_| {
        phase = (phase + 0.381_966) % 1.0;
        let mut at = whole * if random.next() < 0.35 { random.next() } else { phase };
        let reached = times.iter().position(|time| {
            at -= time;
            at < 0.0
        });
        reached.unwrap_or(times.len() - 1)
    }))
}

#[test]
fn a_tenth_more_of_a_fifth_is_found_in_single_recordings_of_regular_samples() {
    let mut random = Random(4);
    let mut times = TIMES;
    // 22% of the total.
    times[1] = 0.22 / 0.78 * (times.iter().sum::<f64>() - 20.0);
    let speed = |random: &mut Random| (7000.0 * (0.05 * random.normal()).exp()) as u64;
    let (mut any, mut found) = (0, 0);
    for _ in 0..40 {
        let base = in_turn(&mut random, &TIMES, 7000);
        let (again, more) = (speed(&mut random), speed(&mut random));
        let [again, more] =
            [(&TIMES, again), (&times, more)].map(|(times, count)| in_turn(&mut random, times, count));
        let base = [base];
        with(&base, &[again], OPTIONS, |diff| {
            any += u32::from(diff.rows.iter().any(|row| row.change.mark(0.05) != Mark::Noise));
        });
        with(&base, &[more], OPTIONS, |diff| found += u32::from(mark(diff, "f1") == Mark::More));
    }
    assert!(any <= 5, "{any} of 40 trials of the same marked something");
    assert!(found >= 28, "{found} of 40");
}

#[test]
fn several_recordings_find_more_than_single_ones_but_not_what_changes_from_run_to_run() {
    let mut random = Random(5);
    let mut times = TIMES;
    times[1] *= 1.1;
    // f4 takes 4% of the total in one run and 12% in another, on either side.
    let mut sides = |times: &[f64; 12]| {
        let mut side = |times: &[f64; 12], starts: [u64; 3]| {
            starts.map(|start| {
                let mut times = *times;
                times[4] *= 0.5 + random.next();
                let count = (7000.0 * (0.05 * random.normal()).exp()) as u64;
                let mut profile = in_turn(&mut random, &times, count);
                profile.meta.start_unix_ns = start;
                profile
            })
        };
        (side(&TIMES, [1, 4, 5]), side(times, [2, 3, 6]))
    };
    let (mut found, mut wrong) = (0, 0);
    for _ in 0..12 {
        let (base, new) = sides(&times);
        with(&base, &new, OPTIONS, |diff| {
            assert_eq!(diff.evidence, Evidence::Turns);
            found += u32::from(mark(diff, "f1") == Mark::More);
            wrong += u32::from(mark(diff, "f4") != Mark::Noise);
        });
    }
    assert!(found >= 10, "{found} of 12");
    assert!(wrong <= 2, "{wrong} of 12");
}

#[test]
fn what_runs_in_one_stretch_has_to_differ_by_more_than_what_is_spread() {
    // f1 first, then the others in turn.
    let stretch =
        |first: usize| sampled((0..first + 5600).map(|at| if at < first { 1 } else { [0, 2, 3][at % 3] }));
    // An equal number of samples, spread over the recording.
    let spread = |all: usize, of_f1: usize| {
        sampled((0..all).map(move |at| if at * of_f1 % all < of_f1 { 1 } else { [0, 2, 3][at % 3] }))
    };
    with(&[stretch(1400)], &[stretch(1580)], OPTIONS, |diff| assert_eq!(mark(diff, "f1"), Mark::Noise));
    with(&[spread(7000, 1400)], &[spread(7180, 1580)], OPTIONS, |diff| {
        assert_eq!(mark(diff, "f1"), Mark::More)
    });
}

/// A function's row and its boxes agree, even if it is called from several places or calls others.
#[test]
fn the_picture_marks_the_rows_of_the_table() {
    let of = |less: u64, callee: u64| {
        recording(
            &[
                ("main@app;one@app;copy@app", 700 - less),
                ("main@app;two@app;copy@app", 600 - less),
                ("main@app;three@app;copy@app", 500 - less),
                ("main@app;work@app", 2000),
                ("main@app;busy@app", 600 + less),
                ("main@app;busy@app;callee@app", callee),
                ("main@app;a@app", 900),
                ("main@app;b@app", 800),
            ],
            0,
        )
    };
    for children in [false, true] {
        with(&[of(0, 900)], &[of(300, 300)], DiffOptions { children, ..OPTIONS }, |diff| {
            let flame = DiffFlame::new(diff);
            let marks = |name: &str| -> Vec<Mark> {
                let of = flame.boxes.iter().filter(|one| flame.labels[one.label as usize].name == *name);
                of.map(|one| one.mark).collect()
            };
            assert_eq!(mark(diff, "copy"), Mark::Less);
            for name in ["copy", "callee", "work", "a", "b"] {
                let row = mark(diff, name);
                assert!(marks(name).iter().all(|&mark| mark == row), "{name}: {row:?} {:?}", marks(name));
            }
            // More own time, less in its callee: each as its table says.
            assert_eq!(marks("busy"), [mark(diff, "busy")], "{children}");
        });
    }
}

/// An interval excludes 0 exactly where the row is marked.
#[test]
fn intervals_and_marks_do_not_contradict() {
    let mut random = Random(11);
    let (mut marked, mut unmarked) = (0, 0);
    for round in 0..20 {
        let mut side = |change: f64| {
            let stacks: Vec<(String, u64)> = (0..12)
                .map(|number| {
                    let usual = 40.0 + 60.0 * f64::from(number) * (0.8 + 0.4 * random.next());
                    let count = if number % 4 == 0 { usual * change } else { usual };
                    (format!("main@app;f{number}@app"), count as u64)
                })
                .collect();
            recording(&stacks.iter().map(|(stack, count)| (&stack[..], *count)).collect::<Vec<_>>(), 0)
        };
        let (base, new) = (side(1.0), side(1.0 + f64::from(round % 5) / 4.0));
        with(&[base], &[new], OPTIONS, |diff| {
            for row in &diff.rows {
                let change = row.change;
                let is_marked = change.mark(0.05) != Mark::Noise;
                let leaves_out_zero = change.low > 0.0 || change.high < 0.0;
                assert_eq!(is_marked, leaves_out_zero, "{change:?}");
                *if is_marked { &mut marked } else { &mut unmarked } += 1;
            }
        });
    }
    assert!(marked > 20 && unmarked > 20, "{marked} {unmarked}");
}

#[test]
fn what_did_not_change_tells_the_speed_of_a_run() {
    let base = [
        ("main@app;a@app", 4000),
        ("main@app;b@app", 2000),
        ("main@app;c@app", 1000),
        ("main@app;d@app", 900),
    ];
    let mut slower = base.map(|(stack, count)| (stack, count * 112 / 100));
    slower[2].1 = 2000;
    with(&[recording(&base, 0)], &[recording(&slower, 0)], OPTIONS, |diff| {
        let [ratio, low, high] = diff.speed();
        assert!((1.08..1.16).contains(&ratio) && low < 1.12 && high > 1.12, "{ratio} {low} {high}");
        let marks = ["a", "b", "c", "d"].map(|name| mark(diff, name));
        assert_eq!(marks, [Mark::Noise, Mark::Noise, Mark::More, Mark::Noise]);
        // 1000 of the base would take 1120 now.
        let change = row(diff, "c").change;
        assert!((change.low..change.high).contains(&0.88e9), "{change:?}");
    });
}

#[test]
fn of_several_recordings_that_took_turns_little_is_marked_though_functions_vary_from_run_to_run() {
    let mut random = Random(3);
    let varied = |random: &mut Random, times: &[f64]| -> Vec<f64> {
        let speed = (0.05 * random.normal()).exp();
        times.iter().map(|time| time * speed * (0.04 * random.normal()).exp()).collect()
    };
    let mut sides = |factor: f64| {
        let mut times = TIMES;
        times[1] *= factor;
        let (mut base, mut new) = (Vec::new(), Vec::new());
        for (turn, is_new) in
            [false, true, true, false, false, true, true, false, false, true].into_iter().enumerate()
        {
            let times = varied(&mut random, if is_new { &times } else { &TIMES });
            let count = (70.0 * times.iter().sum::<f64>()) as u64;
            let side = if is_new { &mut new } else { &mut base };
            side.push(drawn(&mut random, &times, count, 1 + turn as u64));
        }
        (base, new)
    };
    let (any, _) = marked(200, |_| sides(1.0));
    // One in twenty may; 17 and more of 200 would occur in one of forty such tests.
    assert!(any <= 16, "{any} of 200 trials marked something");
    let (_, found) = marked(50, |_| sides(1.3));
    assert!(found >= 45, "{found} of 50");
}

#[test]
fn which_recordings_took_turns_is_told_by_when_they_were_made() {
    let at = |times: &[u64]| -> Vec<Profile> {
        times.iter().map(|&time| recording(&[("a@app", 100)], time)).collect()
    };
    let evidence = |base: &[u64], new: &[u64]| with(&at(base), &at(new), OPTIONS, |diff| diff.evidence);
    assert_eq!(evidence(&[1], &[2]), Evidence::Single);
    assert_eq!(evidence(&[1, 4, 5], &[2, 3, 6]), Evidence::Turns);
    assert_eq!(evidence(&[1, 2, 3], &[4, 5, 6]), Evidence::Blocked);
    assert_eq!(evidence(&[0, 0], &[0, 0]), Evidence::Blocked, "nobody says when");
}
