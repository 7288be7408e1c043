//! Output for two hand-made sides.

use std::sync::Arc;

use plumb_analyze::{Diff, DiffOptions, Filter};

use super::shown::iterations;
use super::*;
use crate::words::parsed;
use plumb_documents::flame::difference;
use plumb_fixtures::Made;

fn args(words: &[&str]) -> Args {
    parsed("diff", words).expect("they are taken")
}

/// A change that removed getenv: samples before and after, at 1,000 a second.
const STACKS: [(&str, u64, u64); 5] = [
    ("main:3@app;getenv:9@libc.so.6", 4400, 0),
    ("main:3@app;take:5@app", 1000, 1005),
    ("main:3@app;find@app;do_syscall_64@k;ksys_read@k", 2000, 1990),
    ("main:3@app;tune@app", 40, 42),
    ("main:3@app;fresh@app", 0, 300),
];

fn recording(name: &str, count: impl Fn(&(&str, u64, u64)) -> u64) -> Recording {
    let mut made = Made::new();
    for stack in STACKS.iter().filter(|stack| count(stack) > 0) {
        made.sample("app/1", stack.0, count(stack) * 1_000_000);
    }
    made.profile.meta.frequency_hz = Some(1000);
    Recording { path: name.into(), profile: Arc::new(made.profile), filter: Filter::default() }
}

fn with_shown<T>(words: &[&str], then: impl FnOnce(&Shown<'_, '_>) -> T) -> T {
    let args = args(words);
    let (base, new) = ([recording("old.plumb", |s| s.1)], [recording("new.plumb", |s| s.2)]);
    let (base_views, new_views) = (views(&base), views(&new));
    let per = per(&args, "cpu-clock", "ns").expect("it has a meaning");
    let options = DiffOptions { by: args.by.into(), children: args.children, per, alpha: args.alpha };
    let diff = Diff::new(&base_views, &new_views, options, |_| None);
    then(&Shown {
        diff: &diff,
        sides: [&base, &new],
        views: [&base_views, &new_views],
        event: "cpu-clock".into(),
        unit: "ns".into(),
        args: &args,
    })
}

fn written(words: &[&str], write: fn(&Shown<'_, '_>, &mut Output<'_>) -> Result<()>) -> String {
    let mut bytes = Vec::new();
    with_shown(words, |shown| write(shown, &mut Output::plain(&mut bytes)).expect("it is written"));
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn the_table_names_what_is_gone_new_and_newly_visible() {
    let table = written(&[], text::write);
    let line = |name: &str| {
        let found = table.lines().find(|line| line.ends_with(name));
        found.unwrap_or_else(|| panic!("{name}: {table}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(line("[.] getenv").starts_with("59% 0% 4.400 s 0 -100.0% -4."), "{table}");
    assert!(line("[.] getenv").contains(" eliminated "), "{table}");
    assert!(line("[.] fresh").contains("300.0 ms - +"), "{table}");
    assert!(line("[.] fresh").ends_with(" new [.] fresh"), "{table}");
    assert!(line("[.] tune").contains(" newly visible "), "{table}");
    assert!(line("[.] take").contains(" more visible "), "{table}");
    assert!(table.contains("# Verdict: faster: cpu-clock 7.440 s before, 3.337 s now, -55.1% ["), "{table}");
    // Marked rows come first, by size of the change.
    let at = |name: &str| table.find(name).unwrap_or(usize::MAX);
    assert!(at("getenv") < at("fresh") && at("fresh") < at("ksys_read"), "{table}");
}

#[test]
fn a_narrow_terminal_gets_fewer_columns_and_no_longer_lines() {
    for (width, heads, not_shown) in [
        (120, "Base  New  Base value  New value   Change  Interval  Note", ""),
        (60, "Change  Note", "Base value, New value, Interval"),
        (40, "Change  Note", "Base, New, Base value, New value, Interval"),
    ] {
        let mut bytes = Vec::new();
        with_shown(&[], |shown| {
            text::write(shown, &mut Output::lines(&mut bytes, width, false)).expect("it is written");
        });
        let table = String::from_utf8(bytes).expect("it is text");
        assert!(table.lines().all(|line| line.chars().count() <= width), "{width}: {table}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        assert!(table.lines().any(|line| words(line).contains(&words(heads))), "{width}: {table}");
        // Remarks are wrapped between words.
        let said = words(&table.replace("\n# ", " "));
        let closing = format!("not shown at this width: {not_shown}");
        assert_eq!(said.contains("not shown"), !not_shown.is_empty(), "{width}: {table}");
        assert!(not_shown.is_empty() || said.contains(&closing), "{width}: {table}");
        assert!(
            table.contains("-100.0%") && table.contains("eliminated") && table.contains("[.] getenv"),
            "{width}: {table}"
        );
    }
}

#[test]
fn markdown_has_the_rows_and_marks_of_the_text() {
    let (table, markdown) = (written(&[], text::write), written(&["--md"], markdown::write));
    for (name, note) in [("getenv", "eliminated"), ("fresh", "new")] {
        let line = table.lines().find(|line| line.ends_with(name)).expect("it has a row");
        let row = markdown.lines().find(|line| line.contains(&format!("`{name}`"))).expect("it has a row");
        assert!(line.contains(note) && row.contains(&format!("**{note}**")), "{line} {row}");
    }
    let unmarked = markdown.lines().find(|line| line.contains("`take`")).expect("it has a row");
    assert!(!unmarked.contains("**") && unmarked.contains("more visible"), "{unmarked}");
    let verdict = |text: &str| text.split_once("Verdict: ").map(|(_, rest)| rest[..40].to_owned());
    assert_eq!(verdict(&table), verdict(&markdown));
}

#[test]
fn other_rows_and_outputs_hold_the_same() {
    let lines = written(&["--by", "line"], text::write);
    assert!(lines.contains("getenv.c:9 [.] getenv"), "{lines}");
    let paths = written(&["--by", "path"], text::write);
    assert!(paths.contains("ksys_read < do_syscall_64 < find < main"), "{paths}");
    let calls = written(&["--by", "syscall"], text::write);
    assert!(calls.contains("user code") && calls.contains("  read\n"), "{calls}");
    let markdown = written(&["--md"], markdown::write);
    assert!(markdown.contains("| `getenv` | 59% | 0% | 4.400 s | 0 | **-100.0%** | "), "{markdown}");
    assert!(markdown.contains(" | **eliminated** |\n"), "{markdown}");
    let json: serde_json::Value =
        serde_json::from_str(&written(&["--json"], machine::json)).expect("it is JSON");
    assert_eq!(json["rows"][0]["function"], "getenv");
    assert_eq!(json["rows"][0]["mark"], "eliminated");
    assert_eq!(json["rows"][0]["value"], serde_json::json!([4.4e9, 0.0]));
    assert_eq!(json["evidence"], "single");
    let cpu: serde_json::Value =
        serde_json::from_str(&written(&["--json", "--per", "cpu-s"], machine::json)).expect("it is JSON");
    assert_eq!(cpu["rows"][0]["value"][1], 0.0);
    assert!((cpu["rows"][0]["value"][0].as_f64().expect("a number") - 4.4e9 / 7.44).abs() < 1.0);
}

#[test]
fn limits_fail_on_what_costs_more_and_is_no_chance() {
    let exceeded = |limit: &str| {
        with_shown(&["--fail-on", limit], |shown| {
            let limit = &shown.args.fail_on[0];
            limit.check(shown.diff).expect("it can be checked");
            limit.is_exceeded(shown.diff)
        })
    };
    assert!(exceeded("func:fresh>1%"));
    assert!(exceeded("func:f*>1%"));
    // 300 ms of 7.44 s are 4%.
    assert!(!exceeded("func:fresh>5%"));
    assert!(!exceeded("func:take>0%") && !exceeded("total>0%"));
    let unknown =
        with_shown(&["--fail-on", "func:absent>1%"], |shown| shown.args.fail_on[0].check(shown.diff));
    assert!(unknown.is_err_and(|error| error.to_string().contains("no function")));
}

#[test]
fn two_files_or_files_apart_by_dashes_are_sides() {
    let files = |words: &[&str]| sides(&args(words)).map(|sides| sides.map(|side| side.len())).ok();
    assert_eq!(files(&["a", "b"]), Some([1, 1]));
    assert_eq!(files(&["a", "b", "--", "c"]), Some([2, 1]));
    assert_eq!(files(&["a", "--", "b", "c"]), Some([1, 2]));
    assert_eq!(files(&["a"]), None);
    assert_eq!(files(&["a", "b", "c"]), None);
    assert_eq!(iterations("10,20"), Ok([10.0, 20.0]));
    assert!(iterations("10").is_err() && iterations("0,1").is_err() && iterations("a,b").is_err());
    assert!(per(&args(&["--per", "iteration", "a", "b"]), "cpu-clock", "ns").is_err());
    assert!(per(&args(&["--per", "cpu-s", "a", "b"]), "page-faults", "page-faults").is_err());
}

#[test]
fn a_file_on_both_sides_is_found_under_any_name() {
    let [base, other] = ["Cargo.toml", "src/main.rs"].map(PathBuf::from);
    let again = vec![other.clone(), "src/../Cargo.toml".into()];
    assert_eq!(in_both(&[vec![base.clone()], again]), Some(Path::new("src/../Cargo.toml")));
    assert_eq!(in_both(&[vec![base], vec![other, "-".into(), "no/such".into()]]), None);
}

#[test]
fn nothing_falls_by_more_than_all_of_it() {
    let change = |ends| plumb_documents::percent::with_interval(ends);
    assert_eq!(change([-0.975, -1.128, -0.823]), "-97.5% [-100.0% .. -82.3%]");
    assert_eq!(change([0.1, -0.2, 0.4]), "+10.0% [-20.0% .. +40.0%]");
    let table = written(&[], text::write);
    let getenv = table.lines().find(|line| line.ends_with("getenv")).expect("it has a row");
    assert!(getenv.contains(" -4.400 s .. -"), "{getenv}");
}

#[test]
fn the_page_gets_what_its_tests_read() {
    // web/test/page.test.mjs reads the same file and checks its meaning. PLUMB_BLESS=1 rewrites it.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/testdata/diff.payload");
    let bytes = with_shown(&[], |shown| {
        difference::encode(shown.diff, &picture::facts(shown), &picture::names(shown)).expect("it is encoded")
    });
    if std::env::var_os("PLUMB_BLESS").is_some() {
        std::fs::write(path, &bytes).expect("it is written");
    }
    let known = std::fs::read(path).expect("it is there");
    assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&known));
}

#[test]
fn pictures_show_what_vanished() {
    let svg = with_shown(&[], |shown| picture::draw(shown, flame::FlameFormat::Svg).expect("it is drawn"));
    let svg = String::from_utf8(svg).expect("it is text");
    let fill = |name: &str| {
        let from = svg.find(&format!("<title>{name}")).unwrap_or_else(|| panic!("{name}"));
        svg[from..]
            .split_once("fill=\"")
            .and_then(|(_, rest)| rest.split_once('"'))
            .map(|(fill, _)| fill.to_owned())
    };
    assert_eq!(fill("getenv").as_deref(), Some("rgb(113,167,234)"));
    assert_eq!(fill("fresh").as_deref(), Some("rgb(239,115,108)"));
    assert_eq!(fill("take").as_deref(), Some("rgb(222,224,227)"));
    // 4.4 of 4.4 + 0.3 + 0.005 + 0.01 + 0.002 s.
    assert!(svg.contains("<title>getenv\u{2060}\u{2060}\u{2060}\u{2060} (4,400,000,000 ns, 93.2"), "{svg}");
    let page = with_shown(&[], |shown| picture::draw(shown, flame::FlameFormat::Html).expect("it is drawn"));
    assert!(
        String::from_utf8(page)
            .is_ok_and(|page| page.contains("<title>old.plumb → new.plumb · plumb diff</title>"))
    );
}
