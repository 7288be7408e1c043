//! The report: which rows there are, what they cost, and that nothing gets lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use plumb_analyze::{
    Cost, Filter, Key, Mode, Pattern, Report, ReportOptions, ThreadPattern, TimeRange, View,
};
use plumb_fixtures::Made;
use plumb_profile::{EventId, Id, Profile};

/// Rows as text: names joined by a space, total, own.
fn rows(profile: &Profile, filter: &Filter, keys: &[Key]) -> Vec<(String, u64, u64)> {
    let view = View::new(profile, filter);
    let options = ReportOptions { keys: keys.to_vec(), ..Default::default() };
    let report = Report::new(&view, filter, &options);
    let own: u64 = report.rows.iter().map(|row| row.own.weight).sum();
    assert_eq!(own + report.unnamed.own.weight, view.part().weight, "Self must add up");
    let name = |row: &plumb_analyze::Row| {
        let texts: Vec<_> = keys.iter().map(|&key| row.key.text(&view, key)).collect();
        texts.join(" ")
    };
    report.rows.iter().map(|row| (name(row), row.total.weight, row.own.weight)).collect()
}

fn symbols(profile: &Profile, filter: &Filter) -> Vec<(String, u64, u64)> {
    rows(profile, filter, &[Key::Symbol])
}

fn row(name: &str, total: u64, own: u64) -> (String, u64, u64) {
    (name.into(), total, own)
}

fn exact(text: &str) -> Vec<Pattern> {
    vec![Pattern::parse(text).unwrap()]
}

fn regex(text: &str) -> Vec<Pattern> {
    vec![Pattern::regex(text).unwrap()]
}

#[test]
fn recursion_counts_once() {
    let mut made = Made::new();
    made.sample("a", "main@app;fib@app;fib@app;fib@app", 5)
        .sample("a", "main@app;even@app;odd@app;even@app;leaf@app", 7)
        .sample("a", "main@app;fib@app;leaf@app", 1)
        .sample("a", "main@app", 2);
    assert_eq!(
        symbols(&made.profile, &Filter::default()),
        [row("main", 15, 2), row("leaf", 8, 8), row("even", 7, 0), row("odd", 7, 0), row("fib", 6, 5),]
    );
}

#[test]
fn inlined_calls_are_rows_of_their_own_unless_unwanted() {
    let mut made = Made::new();
    made.sample("a", "main+helper+tiny@app", 3).sample("a", "main@app;helper@app", 4);
    assert_eq!(
        symbols(&made.profile, &Filter::default()),
        [row("helper", 7, 4), row("main", 7, 0), row("tiny", 3, 3)],
        "the inlined and the outlined helper are one function"
    );
    let no_inline = Filter { no_inline: true, ..Default::default() };
    assert_eq!(symbols(&made.profile, &no_inline), [row("main", 7, 3), row("helper", 4, 4)]);
}

#[test]
fn static_functions_of_one_name_stay_apart() {
    let mut made = Made::new();
    made.sample("a", "main@app;init@one", 3).sample("a", "main@app;init@two", 4);
    assert_eq!(
        rows(&made.profile, &Filter::default(), &[Key::Dso, Key::Symbol]),
        [row("/opt/app main", 7, 0), row("/opt/two init", 4, 4), row("/opt/one init", 3, 3)]
    );
}

#[test]
fn markers_show_in_children_and_take_nothing_for_themselves() {
    let mut made = Made::new();
    made.sample("a", "!;deep@app;deeper@app", 9).sample("a", "main@app;deeper@app", 1);
    assert_eq!(
        symbols(&made.profile, &Filter::default()),
        [
            row("deeper", 10, 10),
            row("[stack deeper than its copy]", 9, 0),
            row("deep", 9, 0),
            row("main", 1, 0)
        ]
    );
}

#[test]
fn samples_without_a_visible_frame_keep_their_weight() {
    let mut made = Made::new();
    made.sample("a", "", 4).sample("a", "!", 2).sample("a", "main@app", 1);
    assert_eq!(
        symbols(&made.profile, &Filter { hide: regex("^main$"), ..Default::default() }),
        [row("[no stack recorded]", 4, 4), row("[stack deeper than its copy]", 2, 2), row("[hidden]", 1, 1)]
    );
}

#[test]
fn addresses_without_symbols_are_told_apart_by_file_and_address() {
    let mut made = Made::new();
    made.sample("a", "0x10@one", 1).sample("a", "0x20@one", 2).sample("a", "0x10@two", 4);
    assert_eq!(
        rows(&made.profile, &Filter::default(), &[Key::Dso, Key::Symbol]),
        [row("/opt/two two+0x10", 4, 4), row("/opt/one one+0x20", 2, 2), row("/opt/one one+0x10", 1, 1)]
    );
}

#[test]
fn sort_keys_make_rows_distinct() {
    let mut made = Made::new();
    made.sample("sh/1", "main@sh;read@k", 1)
        .sample("cc/2", "main@cc;read@k", 2)
        .sample("cc/3/3", "main:7@cc;read@k", 4)
        .sample("cc/3/4", "main:9@cc", 8);
    let of = |keys: &[Key]| rows(&made.profile, &Filter::default(), keys);
    assert_eq!(of(&[Key::Comm]), [row("cc", 14, 14), row("sh", 1, 1)]);
    assert_eq!(of(&[Key::Pid]), [row("3", 12, 12), row("2", 2, 2), row("1", 1, 1)]);
    assert_eq!(of(&[Key::Tid, Key::Comm])[..2], [row("4 cc", 8, 8), row("3 cc", 4, 4)]);
    assert_eq!(of(&[Key::Exe]), [row("[cc]", 14, 14), row("[sh]", 1, 1)]);
    assert_eq!(
        of(&[Key::Dso]),
        [row("/opt/cc", 14, 8), row("[kernel.kallsyms]", 7, 7), row("/opt/sh", 1, 0)]
    );
    assert_eq!(
        of(&[Key::SrcLine]),
        [
            row("/src/main.c:9", 8, 8),
            row("read", 7, 7),
            row("/src/main.c:7", 4, 0),
            row("main", 2, 0),
            row("main", 1, 0)
        ]
    );
}

#[test]
fn order_is_by_cost_then_name() {
    let mut made = Made::new();
    for name in ["zeta", "beta", "alpha", "gamma"] {
        made.sample("a", &format!("{name}@app"), if name == "gamma" { 2 } else { 1 });
    }
    let names: Vec<_> = symbols(&made.profile, &Filter::default()).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["gamma", "alpha", "beta", "zeta"]);
}

#[test]
fn rows_below_the_limit_are_summed_up() {
    let mut made = Made::new();
    made.sample("a", "main@app;big@app", 97).sample("a", "main@app;b@app", 2).sample(
        "a",
        "main@app;c@app",
        1,
    );
    let view = View::new(&made.profile, &Filter::default());
    let options = ReportOptions { keys: vec![Key::Symbol], min_percent: 2.5, ..Default::default() };
    let report = Report::new(&view, &Filter::default(), &options);
    assert_eq!(report.rows.len(), 2);
    assert_eq!((report.below.rows, report.below.own), (2, Cost { weight: 3, samples: 2 }));
    let flat = ReportOptions { children: false, ..options };
    let report = Report::new(&view, &Filter::default(), &flat);
    assert_eq!(report.rows.len(), 1, "main has nothing of its own");
    assert_eq!((report.below.rows, report.below.own), (2, Cost { weight: 3, samples: 2 }));
}

fn busy() -> Made {
    let mut made = Made::new();
    made.sample("web/1/1", "main@app;parse(int)@app;malloc@libc.so.6", 1)
        .sample("web/1/2", "main@app;send@libc.so.6;tcp_send@k", 2)
        .sample("swapper/0/0", "idle@k", 4)
        .sample("db/3/3", "main@app;parse(int)@app;parse(int)@app", 8)
        .sample("db/3/4", "!;walk@app", 16);
    made
}

/// Returns the cost that a filter keeps, and the whole.
fn kept(filter: Filter) -> (u64, u64) {
    let made = busy();
    let view = View::new(&made.profile, &filter);
    assert_eq!(view.samples().map(|s| s.sample.weight).sum::<u64>(), view.part().weight);
    symbols(&made.profile, &filter);
    (view.part().weight, view.recorded().weight)
}

#[test]
fn filters_keep_what_they_say() {
    let none = Filter::default;
    assert_eq!(kept(none()), (31, 31));
    assert_eq!(kept(Filter { no_idle: true, ..none() }), (27, 27), "idle is no part of the whole then");
    assert_eq!(kept(Filter { comms: exact("web"), ..none() }), (3, 31));
    assert_eq!(kept(Filter { comms: exact("/^(web|db)$/"), ..none() }), (27, 31));
    assert_eq!(kept(Filter { comms: exact("we"), ..none() }), (0, 31), "exact is exact");
    assert_eq!(kept(Filter { pids: vec![3], ..none() }), (24, 31));
    assert_eq!(kept(Filter { threads: vec![ThreadPattern::Tid(4)], ..none() }), (16, 31));
    assert_eq!(
        kept(Filter { threads: vec![ThreadPattern::Name(exact("db").remove(0))], ..none() }),
        (24, 31)
    );
    assert_eq!(kept(Filter { mode: Some(Mode::Kernel), ..none() }), (6, 31));
    assert_eq!(kept(Filter { mode: Some(Mode::User), ..none() }), (25, 31));
    assert_eq!(kept(Filter { dsos: exact("libc.so.6"), ..none() }), (3, 31), "last part of the path");
    assert_eq!(kept(Filter { dsos: exact("/opt/app"), ..none() }), (27, 31));
    assert_eq!(kept(Filter { symbols: exact("parse"), ..none() }), (9, 31), "without parameters");
    assert_eq!(kept(Filter { symbols: exact("parse(int)"), ..none() }), (9, 31));
    assert_eq!(kept(Filter { focus: regex("^pa"), ..none() }), (9, 31));
    assert_eq!(kept(Filter { ignore: regex("malloc|deeper than"), ..none() }), (14, 31));
    assert_eq!(kept(Filter { focus: regex("parse"), ignore: regex("malloc"), ..none() }), (8, 31));
    assert_eq!(kept(Filter { cpus: vec![1], ..none() }), (10, 10));
    let time = |start, end| Some(TimeRange { start, end, part: None });
    assert_eq!(kept(Filter { time: time(1_000_000, 3_000_000), ..none() }), (6, 6));
}

#[test]
fn filters_by_function_show_only_its_row() {
    let made = busy();
    let filter = Filter { symbols: exact("parse"), ..Default::default() };
    assert_eq!(symbols(&made.profile, &filter), [row("parse(int)", 9, 8)]);
}

#[test]
fn hidden_frames_hand_their_time_to_callers() {
    let made = busy();
    let filter = Filter { hide: regex("malloc|send"), no_idle: true, ..Default::default() };
    assert_eq!(
        symbols(&made.profile, &filter),
        [
            row("walk", 16, 16),
            row("[stack deeper than its copy]", 16, 0),
            row("main", 11, 2),
            row("parse(int)", 9, 9)
        ]
    );
}

#[test]
fn events_are_looked_at_one_by_one() {
    let mut made = Made::new();
    made.sample("a", "f@app", 1).event("faults", "faults").sample("a", "g@app", 10);
    let filter = Filter { event: Some(EventId::from_index(1)), ..Default::default() };
    assert_eq!(symbols(&made.profile, &filter), [row("g", 10, 10)]);
}

/// Small pseudo-random numbers, the same every time (a linear congruential generator).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn random_profile(dice: &mut Dice) -> Profile {
    let mut made = Made::new();
    let frames = ["a@x", "b@x", "a+b@x", "c+a+c@y", "d@k", "0x40@y", "e:3@z", "b@z", "!"];
    for _ in 0..60 {
        let depth = dice.roll(9);
        let stack: Vec<_> = (0..depth).map(|_| frames[dice.roll(frames.len() as u64) as usize]).collect();
        let who = ["p/1/1", "p/1/2", "q/5/5", "swapper/0/0"][dice.roll(4) as usize];
        made.sample(who, &stack.join(";"), dice.roll(100));
    }
    made.profile
}

fn random_filter(dice: &mut Dice) -> Filter {
    let mut filter = Filter::default();
    let pick = |dice: &mut Dice| regex(["a", "b", "[cd]", "deeper", "0x"][dice.roll(5) as usize]);
    for _ in 0..dice.roll(4) {
        match dice.roll(9) {
            0 => filter.focus = pick(dice),
            1 => filter.ignore = pick(dice),
            2 => filter.hide = pick(dice),
            3 => filter.no_inline = true,
            4 => filter.no_idle = true,
            5 => filter.mode = Some(Mode::User),
            6 => filter.comms = exact("p"),
            7 => filter.dsos = exact("x"),
            _ => filter.symbols = pick(dice),
        }
    }
    filter
}

/// Total cost of each symbol by definition: every sample counts for every distinct symbol on its stack.
fn naive(view: &View<'_>) -> Vec<(String, u64)> {
    let mut totals = std::collections::BTreeMap::new();
    for sample in view.samples() {
        let on_stack: std::collections::BTreeSet<_> =
            view.stack(sample.node).map(|frame| (frame.symbol, frame.name.to_string())).collect();
        for symbol in on_stack {
            *totals.entry(symbol).or_insert(0) += sample.sample.weight;
        }
    }
    let mut totals: Vec<_> = totals.into_iter().map(|((_, name), total)| (name, total)).collect();
    totals.sort();
    totals
}

#[test]
fn any_filter_over_any_profile_adds_up() {
    let mut dice = Dice(1);
    for _ in 0..300 {
        let profile = random_profile(&mut dice);
        let filter = random_filter(&mut dice);
        for keys in
            [&[Key::Comm, Key::Dso, Key::Symbol][..], &[Key::Tid], &[Key::SrcLine], &[Key::Dso, Key::Pid]]
        {
            // Checks that own costs add up.
            rows(&profile, &filter, keys);
        }
        let all = Filter { dsos: Vec::new(), symbols: Vec::new(), ..filter };
        let mut totals: Vec<_> =
            symbols(&profile, &all).into_iter().map(|(name, total, _)| (name, total)).collect();
        totals.sort();
        assert_eq!(totals, naive(&View::new(&profile, &all)));
    }
}

#[test]
fn a_view_can_be_a_profile_of_its_own() {
    let mut dice = Dice(2);
    for _ in 0..200 {
        let profile = random_profile(&mut dice);
        let filter = random_filter(&mut dice);
        let view = View::new(&profile, &filter);
        let alone = view.to_profile();
        let again = View::new(&alone, &Filter::default());
        let stacks = |view: &View<'_>| -> Vec<Vec<String>> {
            let names =
                |node| view.stack(node).map(|frame| frame.name.replace("no stack recorded", "hidden"));
            view.samples().map(|sample| names(sample.node).collect()).collect()
        };
        assert_eq!(stacks(&again), stacks(&view));
        assert_eq!(again.part(), view.part());
    }
}
