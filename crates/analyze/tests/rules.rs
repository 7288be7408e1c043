//! Rules on code: each holds for stacks as the habit makes them, and not for those of what looks like it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use plumb_analyze::{CacheSizes, ExplainOptions, Explanation, Filter, ScriptSources};
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

/// The rules that hold and are no part of others, with the user's function and line that each is found in.
fn found(profile: &Profile, sources: &ScriptSources) -> Vec<(&'static str, String)> {
    let options = ExplainOptions {
        threshold: 10.0,
        call_name: &|_| None,
        calls: Vec::new(),
        sources,
        caches: CacheSizes::default(),
        waits: None,
    };
    let filter = Filter::default();
    let report = Explanation::new(Explanation::view(profile, &filter), &filter, &[], &options);
    let causes = report.causes.iter().filter(|cause| cause.within.is_none());
    let place = |cause: &plumb_analyze::CodeAdvice| {
        let (frame, _) = *cause.places.first().or(cause.functions.first()).unwrap();
        let frame = report.view.frame(frame);
        format!("{}:{}", frame.name, frame.line)
    };
    causes.map(|cause| (cause.rule.name, place(cause))).collect()
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
    // The same where messages are written: making them is for something.
    let written = python(&format!("handle:13@py:/a.py;Logger.debug:1474@{MODULE};Logger._log:1622@{MODULE}"));
    assert_eq!(rules(&[(&written, 50), (&made, 600), (&other, 350)]), [""; 0]);
}

/// Two threads that have Python's time by turns of so many samples.
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
