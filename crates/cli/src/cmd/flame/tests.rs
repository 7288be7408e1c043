//! Output files for a small hand-made profile.

use std::io::Read;
use std::sync::Arc;

use plumb_analyze::{Filter, Flame, Grouping, View};
use plumb_profile::{
    Address, AddressSpace, Dso, DsoKind, Event, Found, Frame, FrameId, FrameKind, Function, Line, Process,
    Profile, Sample, Samples, Scope, Truncation,
};

use super::{Args, Facts, FlameFormat, draw, format_of, svg};
use crate::loaded;
use crate::words::parsed;
use plumb_documents::flame::payload;

/// Adds a frame with its functions and lines: innermost inlined call first.
fn frame(profile: &mut Profile, kind: DsoKind, path: &str, lines: &[(&str, u32)]) -> FrameId {
    let addresses = if kind == DsoKind::Kernel { AddressSpace::Avma } else { AddressSpace::Svma };
    let path = profile.strings.add(path);
    let dso = profile.dsos.add(Dso { path, build_id: None, kind, addresses });
    let address = Address(0x1000 + profile.frames.len() as u64);
    let side = if kind == DsoKind::Kernel { FrameKind::Kernel } else { FrameKind::User };
    let id = profile.frames.add(Frame {
        kind: side,
        dso: Some(dso),
        address,
        is_return: false,
        found: Found::Cfi,
    });
    let lines: Vec<Line> = lines
        .iter()
        .enumerate()
        .map(|(index, &(name, line))| {
            let inlined = index + 1 < lines.len();
            let file = if line > 0 { format!("/src/{name}.c") } else { String::new() };
            let file = profile.strings.add(&file);
            let linkage_name = profile.strings.empty();
            let name = profile.strings.add(name);
            let start = (!inlined).then_some(address);
            let function =
                Function { name, linkage_name, dso: Some(dso), start, source_file: file, start_line: 0 };
            Line { function: profile.symbols.functions.add(function), file, line, inlined }
        })
        .collect();
    profile.symbols.set(id, &lines);
    id
}

/// Six samples: a system call, an inlined call, a truncated stack.
fn example() -> Profile {
    let mut profile = Profile::default();
    let (name, unit) = (profile.strings.add("cpu-clock"), profile.strings.add("ns"));
    let event = profile.events.push(Event { name, unit });
    let exe = profile.strings.add("/opt/app");
    let process = profile.processes.push(Process { pid: 7, ppid: 1, exe });
    let comm = profile.strings.add("app");
    let thread = profile.threads.push(plumb_profile::Thread { process, tid: 7, comm });
    let main = frame(&mut profile, DsoKind::File, "/opt/app", &[("main", 7)]);
    let sum = frame(&mut profile, DsoKind::File, "/opt/app", &[("sum", 0)]);
    let add = frame(&mut profile, DsoKind::File, "/opt/app", &[("add", 3), ("sum", 0)]);
    let read = frame(&mut profile, DsoKind::File, "/opt/libc.so.6", &[("read", 0)]);
    let vfs = frame(&mut profile, DsoKind::Kernel, "[kernel.kallsyms]", &[("vfs_read", 0)]);
    let deep = frame(&mut profile, DsoKind::File, "/opt/app", &[("deep", 0)]);
    let cut = profile.frames.add(Frame::marker(Truncation::CopyTooShort, None));
    let stacks: [&[FrameId]; 6] =
        [&[vfs, read, main], &[add, main], &[sum, main], &[deep, cut], &[vfs, read, main], &[add, main]];
    for (index, stack) in stacks.into_iter().enumerate() {
        let stack = profile.add_stack(stack);
        let time_ns = index as u64 * 1_000_050;
        profile.samples.push(Sample {
            time_ns,
            thread,
            cpu: 0,
            event,
            stack,
            syscall: None,
            weight: 1_000_050,
        });
    }
    profile
}

fn facts() -> Facts {
    Facts {
        title: "app </script> --fast".into(),
        command: Some("app </script> --fast".into()),
        samples: 6,
        recorded: 6,
        complete: Some(5),
        lost: 1,
        event: Some("cpu-clock".into()),
        unit: "ns".into(),
        weighs: Some("CPU time".into()),
        hz: Some(999),
        ..Facts::default()
    }
}

/// The page of a profile.
fn page(profile: Profile, facts: &Facts) -> String {
    let args = parsed::<Args>("flame", &[""; 0]).expect("none is needed");
    let recording = loaded::recording("app.plumb", Arc::new(profile));
    let bytes = with_flame(&recording.profile, |flame| {
        super::page_file::of_flame(
            &recording,
            (flame, facts),
            &args.filters.parameters(),
            super::NamedFiles::Read,
        )
    });
    String::from_utf8(bytes.unwrap()).expect("it is text")
}

fn with_flame<T>(profile: &Profile, then: impl FnOnce(&Flame<'_>) -> T) -> T {
    then(&Flame::new(&View::new(profile, &Filter::default()), Grouping::None))
}

#[test]
fn the_page_gets_what_its_tests_read() {
    // web/test/page.test.mjs reads the same file and checks its meaning. PLUMB_BLESS=1 rewrites it.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/testdata/small.payload");
    let bytes = with_flame(&example(), |flame| payload::encode(flame, &facts())).unwrap();
    if std::env::var_os("PLUMB_BLESS").is_some() {
        std::fs::write(path, &bytes).unwrap();
    }
    assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&std::fs::read(path).unwrap()));
}

#[test]
fn the_page_says_what_weights_are_of() {
    for (event, unit, expected) in [
        ("cpu-clock", "ns", Some("CPU time")),
        ("off-cpu", "ns", Some("off-cpu")),
        ("page-faults", "page-faults", Some("page-faults")),
        ("", "", None),
    ] {
        let mut profile = example();
        let (name, unit) = (profile.strings.add(event), profile.strings.add(unit));
        *profile.events.get_mut(plumb_profile::Id::from_index(0)) = Event { name, unit };
        let args = parsed::<Args>("flame", &[""; 0]).expect("none is needed");
        let filter = Filter::default();
        let facts = super::facts(&View::new(&profile, &filter), &filter, &args);
        assert_eq!(facts.weighs.as_deref(), expected);
    }
}

#[test]
fn weights_that_differ_are_kept() {
    let mut profile = example();
    let mut heavy = profile.samples.get(0).unwrap();
    heavy.weight = 5;
    profile.samples.push(heavy);
    let bytes = with_flame(&profile, |flame| payload::encode(flame, &facts())).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("\"each\""));
    let even = with_flame(&example(), |flame| payload::encode(flame, &facts())).unwrap();
    assert!(String::from_utf8_lossy(&even).contains("\"each\":1000050"));
}

#[test]
fn hostile_names_stay_in_their_place() {
    let mut profile = example();
    let name = "</script><script>alert(1)</script>;\n_";
    let evil = frame(&mut profile, DsoKind::File, "</title>", &[(name, 0)]);
    let stack = profile.add_stack(&[evil]);
    let sample = Sample { stack, ..profile.samples.get(0).unwrap() };
    profile.samples.push(sample);
    let facts = Facts { title: "</title><script>alert(1)</script>".into(), ..facts() };
    let picture = with_flame(&profile, |flame| svg::picture(flame, &facts).unwrap());
    let page = page(profile, &facts);
    assert_eq!(page.matches("alert(1)").count(), 1, "once, as text of the title");
    assert!(
        page.contains("<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; · plumb flame</title>")
    );
    let picture = String::from_utf8(picture).unwrap();
    assert!(!picture.contains("<script>alert"));
    assert!(picture.contains("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;: _ (1 samples"));
}

#[test]
fn the_page_is_whole_and_needs_nothing_else() {
    let page = page(example(), &facts());
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for outside in ["http://", "https://", "src=\"", "@import", "{{"] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
    }
    let data = page.split_once("id=\"packet\">").unwrap().1.split_once('<').unwrap().0;
    let packed = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
    let mut bytes = Vec::new();
    flate2::read::DeflateDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    let flame = with_flame(&example(), |flame| payload::encode(flame, &facts())).unwrap();
    assert!(bytes.windows(flame.len()).any(|part| part == flame), "the flame graph is in it");
}

#[test]
fn the_svg_names_every_box_with_its_share_and_tells_kinds_apart_by_colour() {
    let bytes = with_flame(&example(), |flame| svg::picture(flame, &facts())).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    for title in [
        "all (6 samples, 100%)",
        "main (5 samples, 83.33%)",
        "sum (3 samples, 50.00%)",
        "add (2 samples, 33.33%)",
        "vfs_read (2 samples, 33.33%)",
        "[stack deeper than its copy] (1 samples, 16.67%)",
    ] {
        assert!(text.contains(&format!("<title>{title}</title>")), "{title}");
    }
    let colour = |title: &str| {
        let from = text.find(&format!("<title>{title} (")).unwrap();
        let fill = text[from..].split_once("fill=\"").unwrap().1;
        fill.split_once('"').unwrap().0.to_owned()
    };
    assert_ne!(colour("main"), colour("vfs_read"));
    assert_ne!(colour("sum"), colour("add"));
    assert!(text.contains("app &lt;/script&gt; --fast"));
    assert!(text.contains("83.3 % complete stacks"));
}

#[test]
fn an_svg_of_a_huge_profile_leaves_out_the_narrowest_boxes_and_says_so() {
    let mut profile = example();
    let first = profile.samples.get(0).unwrap();
    profile.samples = Samples::default();
    for index in 0..5_600 {
        // Two boxes, both a little wider than 0.01 %.
        let names = [("inner", 0), (&*format!("leaf{index}"), 0)];
        let leaf = frame(&mut profile, DsoKind::File, "/opt/app", &names);
        let stack = profile.add_stack(&[leaf]);
        let weight = if index < 10 { 100 } else { 10 };
        let sample = Sample { stack, weight, ..first };
        profile.samples.push(sample);
    }
    let bytes = with_flame(&profile, |flame| svg::picture(flame, &facts())).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("without boxes below 0.02 %"));
    assert!(text.contains("<title>leaf7 ("));
    assert!(!text.contains("<title>leaf77 ("));
}

#[test]
fn equal_input_gives_equal_files() {
    let picture = || with_flame(&example(), |flame| svg::picture(flame, &facts()).unwrap());
    let make = || (page(example(), &facts()), picture());
    // `assert!`, since assert_eq would print both.
    assert!(make() == make());
}

#[test]
fn the_name_says_what_is_written() {
    let format = |name: &str| format_of(std::path::Path::new(name)).ok();
    assert_eq!(format("flame.html"), Some(FlameFormat::Html));
    assert_eq!(format("a.b.SVG"), Some(FlameFormat::Svg));
    assert_eq!(format("flame.png"), None);
    assert_eq!(format("flame"), None);
}

#[test]
fn of_a_machine_programs_are_kept_apart_unless_it_is_asked_for_otherwise() {
    let mut profile = example();
    let mut has_comm = |scope, words: &[&str]| {
        profile.meta.scope = scope;
        let args = parsed::<Args>("flame", words).expect("they are taken");
        let recording = loaded::recording("app.plumb", Arc::new(profile.clone()));
        let svg = draw(&recording, &Filter::default(), &args, FlameFormat::Svg).expect("it has samples");
        String::from_utf8(svg).expect("it is text").contains("<title>app (")
    };
    assert!(has_comm(Scope::System, &[]));
    assert!(!has_comm(Scope::System, &["--by", "none"]));
    assert!(!has_comm(Scope::Cgroup, &[]));
    assert!(has_comm(Scope::Cgroup, &["--by", "comm"]));
}

#[test]
fn the_svg_colours_the_kernel_by_what_it_ran_for() {
    let mut made = plumb_fixtures::Made::new();
    made.sample("x/1", "main@x;do_syscall_64@k;ksys_read@k;clear_page@k", 10);
    made.sample("x/1", "main@x;asm_exc_page_fault@k;clear_page@k", 30);
    let bytes = with_flame(&made.profile, |flame| svg::picture(flame, &facts())).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    // One function in two boxes, told apart by invisible marks.
    let mut boxes = text
        .match_indices("<title>clear_page")
        .map(|(at, _)| text[at..].split_once("fill=\"").unwrap().1.split_once('"').unwrap().0);
    let (one, other) = (boxes.next().unwrap(), boxes.next().unwrap());
    assert!(one != other && boxes.next().is_none(), "{one} {other}");
    assert!(text.contains("red: page faults") && !text.contains("cyan"), "the legend has what is there");
}
