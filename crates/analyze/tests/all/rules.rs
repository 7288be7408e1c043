//! Rules on code: each holds for stacks as the habit makes them, and not for those of what looks like it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use plumb_analyze::{Bottleneck, CacheSizes, ExplainOptions, Explanation, Filter, ScriptSources};
use plumb_fixtures::Made;
use plumb_profile::Profile;

/// So many samples of 1 ms each in each of these stacks, by turns, of process 1.
fn profile(stacks: &[(&str, u64)]) -> Profile {
    let mut made = Made::new();
    for _ in 0..10 {
        for (stack, count) in stacks {
            for _ in 0..count / 10 {
                made.sample("app/1", stack, 1_000_000);
            }
        }
    }
    finished(made)
}

fn finished(made: Made) -> Profile {
    let mut profile = made.profile;
    let samples = profile.samples.len() as u64;
    profile.meta.duration_ns = samples * 1_000_000;
    profile.meta.target_cpu_ns = Some(samples * 1_000_000);
    profile.meta.cpus = 2;
    profile
}

/// Returns the rules that hold and are not part of others, each with the user's function and line where it was found.
fn found(profile: &Profile, sources: &ScriptSources) -> Vec<(&'static str, String)> {
    let report = explained(profile, sources);
    let causes = report.causes.iter().filter(|cause| cause.within.is_none());
    let place = |cause: &plumb_analyze::CodeAdvice| {
        let (frame, _) = *cause.places.first().or(cause.functions.first()).unwrap();
        let frame = report.view.frame(frame);
        format!("{}:{}", frame.name, frame.line)
    };
    causes.map(|cause| (cause.rule.name, place(cause))).collect()
}

fn explained<'p>(profile: &'p Profile, sources: &ScriptSources) -> Explanation<'p> {
    let options = ExplainOptions {
        threshold: 10.0,
        call_name: &|_| None,
        calls: Vec::new(),
        sources,
        caches: CacheSizes::default(),
        waits: None,
    };
    let filter = Filter::default();
    Explanation::new(Explanation::view(profile, &filter), &filter, &[], &options)
}

/// Returns the first bottleneck, and whether a reason for its cost is given.
fn first(stacks: &[(&str, u64)]) -> (String, bool) {
    let (profile, sources) = (profile(stacks), ScriptSources::default());
    let report = explained(&profile, &sources);
    let name = |frame| report.view.frame(frame).name.to_string();
    match report.first().unwrap().0 {
        Bottleneck::Code(index) => {
            let cause = &report.causes[index];
            (cause.rule.name.into(), !cause.is_activity)
        }
        Bottleneck::Line(index) => {
            let line = &report.outlook.lines[index];
            (format!("{} calls {}", name(line.frame), name(line.calls[0].0)), false)
        }
        Bottleneck::Function(frame) => (name(frame), false),
        other => panic!("nothing of that is in the profile: {other:?}"),
    }
}

fn rules(stacks: &[(&str, u64)]) -> Vec<&'static str> {
    found(&profile(stacks), &ScriptSources::default()).into_iter().map(|(rule, _)| rule).collect()
}

const LOOP: &str = "_PyEval_EvalFrameDefault@libpython3.11.so";

#[test]
fn reading_text_is_not_writing_it() {
    let (read, write) =
        ("main:3@app;load:7@app;strtod@libc.so.6", "main:3@app;save:9@app;snprintf@libc.so.6");
    assert_eq!(rules(&[(read, 900), ("main:3@app", 100)]), ["text-parsing"]);
    assert_eq!(rules(&[(write, 900), ("main:3@app", 100)]), ["formatting"]);
}

#[test]
fn a_librarys_search_goes_before_the_comparisons_that_it_calls() {
    let search = "main:3@app;is_blocked:5@app;std::find<int*, int>@app;memcmp@libc.so.6";
    assert_eq!(rules(&[(search, 900), ("main:3@app", 100)]), ["linear-search"]);
    let tree = "main:3@app;lookup:5@app;memcmp@libc.so.6";
    assert_eq!(rules(&[(tree, 900), ("main:3@app", 100)]), ["string-compare"]);
}

#[test]
fn expressions_are_compiled_again_only_where_compiling_shows() {
    let (compile, built, matched) = (
        "main:3@app;is_request:5@app;regcomp@libc.so.6",
        "main:3@app;is_request:6@app;regexec@libc.so.6;transit_state@libc.so.6;calloc@libc.so.6",
        "main:3@app;is_request:6@app;regexec@libc.so.6",
    );
    assert_eq!(rules(&[(compile, 400), (built, 300), (matched, 300)]), ["regex-compile"]);
    // An expression that has its states built over and over, compiled once.
    assert_eq!(rules(&[(compile, 30), (built, 700), (matched, 270)]), ["allocation"]);
}

#[test]
fn shapes_and_exceptions_of_virtual_machines() {
    let shapes = "Builtins_InterpreterEntryTrampoline@node;Builtins_LoadIC_Megamorphic@node";
    assert_eq!(rules(&[(shapes, 600), ("Builtins_InterpreterEntryTrampoline@node", 400)]), ["megamorphic"]);
    let thrown = "JVM_FillInStackTrace@libjvm.so;java_lang_Throwable::fill_in_stack_trace@libjvm.so";
    assert_eq!(rules(&[(thrown, 600), ("JavaMain@libjli.so", 400)]), ["exceptions"]);
}

/// Lines of a Python program with its interpreter's loop.
fn python(stack: &str) -> String {
    format!("Py_RunMain@libpython3.11.so;{stack}")
}

#[test]
fn little_functions_are_called_where_frames_show() {
    let (caller, at) = (python("total:19@py"), python("total:19@py;at:11@py"));
    let push = python("total:19@py;_PyFrame_Push@libpython3.11.so");
    let called = [(&*caller, 400), (&*at, 500), (&*push, 100)];
    assert_eq!(
        found(&profile(&called), &ScriptSources::default()),
        [("python-calls", "total:19".to_owned())]
    );
    // Functions that work: their calls are not what takes the time.
    let work = python("total:19@py;at:11@py;l_divmod@libpython3.11.so");
    assert_eq!(rules(&[(&caller, 100), (&at, 100), (&work, 700), (&push, 100)]), [""; 0]);
    // One function that does all of it.
    assert_eq!(rules(&[(&caller, 1000)]), [""; 0]);
    assert_eq!(rules(&[(LOOP, 1000)]), [""; 0]);
}

#[test]
fn a_scan_is_told_by_its_source() {
    let (head, test) = (python("find:2@py:/a.py"), python("find:3@py:/a.py"));
    let profile = profile(&[(&head, 300), (&test, 600), (&python("run:9@py:/a.py"), 100)]);
    let with = |text: &str| {
        let mut sources = ScriptSources::default();
        sources.add("/a.py", text.lines().map(str::to_owned).collect());
        found(&profile, &sources)
    };
    let search =
        "def find(all, id):\n    for one in all:\n        if one['id'] == id:\n            return one\n";
    let (rule, place) = with(search).remove(0);
    assert_eq!((rule, &place[..5]), ("linear-search", "find:"));
    assert_eq!(with("def find(all):\n    for one in all:\n        total += one['id']\n"), []);
    assert_eq!(found(&profile, &ScriptSources::default()), [], "without the source nobody knows");
}

#[test]
fn messages_that_nobody_reads_cost_what_their_lines_do() {
    const MODULE: &str = "py:/usr/lib/python3.11/logging/__init__.py";
    let call = python(&format!("handle:13@py:/a.py;Logger.debug:1474@{MODULE}"));
    let made = python("handle:13@py:/a.py;PyObject_Repr@libpython3.11.so");
    let other = python("handle:14@py:/a.py");
    let dropped = profile(&[(&call, 100), (&made, 600), (&other, 300)]);
    let causes = found(&dropped, &ScriptSources::default());
    assert_eq!(causes, [("logging", "handle:13".to_owned())]);
    // Again with messages that are written: then making them has a purpose.
    let written = python(&format!("handle:13@py:/a.py;Logger.debug:1474@{MODULE};Logger._log:1622@{MODULE}"));
    assert_eq!(rules(&[(&written, 50), (&made, 600), (&other, 350)]), [""; 0]);
}

/// Two threads that alternately hold Python's lock for `turn` samples.
fn threads(turn: u64, processes: [u32; 2]) -> Vec<&'static str> {
    let mut made = Made::new();
    for at in 0..1000 {
        let which = (at / turn % 2) as usize;
        let who = format!("python/{}/{}", processes[which], which + 1);
        made.sample(&who, &python("work:5@py:/a.py"), 1_000_000);
    }
    let profile = finished(made);
    found(&profile, &ScriptSources::default()).into_iter().map(|(rule, _)| rule).collect()
}

#[test]
fn threads_of_python_take_turns() {
    assert_eq!(threads(5, [1, 1]), ["gil"]);
    assert_eq!(threads(500, [1, 1]), [""; 0], "one after the other");
    assert_eq!(threads(5, [1, 2]), [""; 0], "processes have a lock each");
}

/// Sorting is recognized as an activity, but it is unknown whether the program sorts more often than necessary.
#[test]
fn what_a_program_may_be_made_for_is_no_cause() {
    let sort = "main:3@app;merge:9@app;std::__introsort_loop<int*>@app";
    assert_eq!(first(&[(sort, 900), ("main:3@app", 100)]), ("sorting".into(), false));
    let compare = "main:3@app;sum:9@app;memcmp@glibc-2/libc.so.6";
    assert_eq!(
        first(&[(compare, 220), ("main:3@app;sum:12@app", 200), ("main:4@app", 200)]).0,
        "string-compare"
    );
    assert!(!first(&[(compare, 220), ("main:3@app;sum:12@app", 200), ("main:4@app", 200)]).1);
    // An operation that is slow by nature, and one that takes more than usual.
    let append = "main:3@app;join:9@app;strcat@glibc-2/libc.so.6";
    assert_eq!(first(&[(append, 500), ("main:3@app", 500)]), ("string-scan".into(), true));
    let allocate = "main:3@app;join:9@app;malloc@glibc-2/libc.so.6";
    assert_eq!(first(&[(allocate, 500), ("main:3@app", 500)]), ("allocation".into(), true));
}

#[test]
fn what_a_sort_has_to_parse_goes_before_the_sort() {
    let parse = "main:3@app;qsort@glibc-2/libc.so.6;by_price:9@app;strtod@glibc-2/libc.so.6";
    let merge = "main:3@app;qsort@glibc-2/libc.so.6";
    assert_eq!(first(&[(parse, 600), (merge, 300), ("main:3@app", 100)]), ("text-parsing".into(), true));
    assert_eq!(first(&[(parse, 200), (merge, 700), ("main:3@app", 100)]), ("sorting".into(), false));
}

/// A line that spends its time in a library is named before a rule on a small part of that.
#[test]
fn a_line_is_named_where_no_rule_knows_what_it_calls() {
    let (shared, scan) = ("main:3@app;pack:9@app;deflate@glibc-2/libz.so.1", ";memcpy@glibc-2/libc.so.6");
    let copies = format!("{shared}{scan}");
    let stacks = [(shared, 700), (&*copies, 130), ("main:3@app", 170)];
    assert_eq!(first(&stacks), ("pack calls deflate".into(), false));
    // A comparison that is called back is the program's own code.
    let back = "main:3@app;pack:9@app;walk@glibc-2/libx.so;visit:20@app";
    assert_eq!(first(&[(back, 900), ("main:3@app", 100)]), ("visit".into(), false));
}

#[test]
fn types_streams_channels_and_files() {
    let cast = "main:3@app;area:5@app;__dynamic_cast@glibc-2/libstdc++.so.6";
    let names = format!("{cast};strcmp@glibc-2/libc.so.6");
    assert_eq!(first(&[(cast, 500), (&names, 400), ("main:3@app", 100)]), ("dynamic-cast".into(), true));
    let stream = "main:3@app;to_int:5@app;std::__cxx11::basic_stringstream<char>::basic_stringstream(int)@glibc-2/libstdc++.so.6";
    let locale = format!("{stream};std::locale::locale()@glibc-2/libstdc++.so.6");
    let stacks = [(stream, 300), (&*locale, 500), ("main:3@app", 200)];
    assert_eq!(first(&stacks), ("stream-construction".into(), true));
    let (send, park) = ("main.feed:5@app;runtime.chansend1@app;runtime.lock2@app", "runtime.park_m@app");
    assert_eq!(
        first(&[(send, 400), (park, 200), ("main.feed:9@app", 400)]),
        ("channel-hand-over".into(), true)
    );
    let (open, flush) = (
        python("log:13@py:/a.py;_io_open@libpython3.11.so"),
        python("log:13@py:/a.py;iobase_exit@libpython3.11.so"),
    );
    let flush = format!("{flush};_io_TextIOWrapper_flush@libpython3.11.so");
    let stacks = [(&*open, 500), (&*flush, 200), (&*python("log:14@py:/a.py"), 300)];
    assert_eq!(first(&stacks), ("reopened-file".into(), true));
}

/// Copies and destructors are written by compilers: what copies is the line that needs the copy.
#[test]
fn objects_are_copied_where_a_line_asks_for_it() {
    let copy = "main:3@app;revenue:35@app;Customer::Customer(Customer const&):7@app;malloc@glibc-2/libc.so.6";
    let free = "main:3@app;revenue:35@app;Customer::~Customer():7@app;free@glibc-2/libc.so.6";
    let profile = profile(&[(copy, 450), (free, 350), ("main:3@app;revenue:36@app", 200)]);
    let found = found(&profile, &ScriptSources::default());
    assert!(found.contains(&("clone", "revenue:35".to_owned())), "{found:?}");
    assert!(found.iter().all(|(_, place)| place == "revenue:35"), "{found:?}");
}

#[test]
fn a_share_that_two_findings_have_is_promised_once() {
    // A third of the formatting is copying; most copying is done by the program itself.
    let stacks = [
        ("main@app:1;f@app:10;snprintf@libc;memcpy@libc", 100),
        ("main@app:1;f@app:10;snprintf@libc", 200),
        ("main@app:1;g@app:20;memcpy@libc", 500),
        ("main@app:1;h@app:30", 200),
    ];
    let (profile, sources) = (profile(&stacks), ScriptSources::default());
    let report = explained(&profile, &sources);
    let apart: Vec<_> = report.causes.iter().filter(|cause| cause.within.is_none()).collect();
    let promised: f64 = apart.iter().filter_map(|cause| cause.gain).map(|gain| gain.low).sum();
    let spent = 80.0;
    assert!(apart.len() >= 2 && promised <= spent, "{promised}: {:?}", report.causes);
}
