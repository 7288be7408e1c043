//! `plumb annotate` as a user meets it: which instruction is blamed, what is said where something is missing, and the raw
//! column beside that of `perf annotate`.
//!
//! Needs gcc and perf_event_open; the comparison needs perf. Where one is missing a test says so and does nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::spun::{may_record, plumb, text};
use plumb_fixtures::{Requirement, compiles, needs, needs_command};
use serde_json::Value;

fn has(tool: &str) -> bool {
    if tool == "perf" { needs(Requirement::PerfCommand) } else { needs_command(Requirement::Binutils, tool) }
}

/// A folder with the program `slow`, unless it can't be made or recorded here.
fn folder(name: &str) -> Option<PathBuf> {
    if !needs(Requirement::Machine) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("src")).expect("the folder for tests can be written");
    if !may_record() {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/slow_spot.c");
    std::fs::copy(source, folder.join("src/slow_spot.c")).expect("it is there");
    build(&folder, "-O2").then_some(folder)
}

/// Builds the program with its build id in it; false without a compiler.
fn build(folder: &Path, level: &str) -> bool {
    let file = folder.join("src/slow_spot.c");
    let mut gcc = Command::new("gcc");
    // The linker looks up what is called before the program runs, not within the function that calls it first.
    gcc.args([level, "-g", "-Wl,--build-id", "-Wl,-z,now", "-o", "slow"]).arg(file).current_dir(folder);
    compiles(&mut gcc)
}

fn recorded(folder: &Path) {
    let output = plumb(folder, &["record", "-q", "--", "./slow", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = plumb(folder, &[&["annotate", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn rows(listing: &Value) -> &Vec<Value> {
    listing["instructions"].as_array().expect("there are instructions")
}

fn sum(rows: &[Value], key: &str) -> f64 {
    rows.iter().filter_map(|row| row[key].as_f64()).sum()
}

fn words(row: &Value) -> Vec<&str> {
    row["class"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn the_slow_instruction_is_blamed_with_its_line_and_class() {
    let Some(folder) = folder("annotate-blame") else { return };
    recorded(&folder);
    let listing = json(&folder, &["spot"]);
    let rows = rows(&listing);
    let by_line = |row: &&Value| row["places"][0]["function"] == "take" && words(row).contains(&"load");
    let slow = rows.iter().find(by_line).expect("there is the load");
    let adjusted = slow["adjusted_percent_of_function"].as_f64().expect("a number");
    let raw = slow["percent_of_function"].as_f64().expect("a number");
    assert!(adjusted > 80.0 && raw < 20.0, "adjusted {adjusted}, raw {raw}");
    // Both columns hold all samples.
    for key in ["percent_of_function", "adjusted_percent_of_function"] {
        assert!((sum(rows, key) - 100.0).abs() < 0.01, "{key}: {}", sum(rows, key));
    }
    let (share, all) = (&listing["percent_of_all"], &slow["adjusted_percent_of_all"]);
    let product = adjusted * share.as_f64().expect("a number") / 100.0;
    assert!((product - all.as_f64().expect("a number")).abs() < 0.01, "{product} {all}");
    // The line is the inlined function's, and that is told.
    let functions: Vec<&Value> =
        slow["places"].as_array().expect("places").iter().map(|p| &p["function"]).collect();
    assert_eq!(functions, ["take", "spot"]);
    let line = &listing["lines"][0];
    assert!(line["text"].as_str().expect("the source is there").contains("/* SLOW */"), "{line}");
    assert!(line["adjusted_percent_of_function"].as_f64().expect("a number") > 80.0, "{line}");
    let calls = rows.iter().find(|row| words(row).contains(&"call")).expect("rand is called");
    assert!(calls["text"].as_str().expect("text").contains("rand"), "{calls}");
    let global =
        rows.iter().any(|row| row["text"].as_str().is_some_and(|text| text.contains("shared_place")));
    assert!(global, "the variable has its name");
}

#[test]
fn a_row_has_its_shares_of_the_function_and_of_everything_raw_and_adjusted() {
    let Some(folder) = folder("annotate-columns") else { return };
    recorded(&folder);
    let share = json(&folder, &["spot"])["percent_of_all"].as_f64().expect("a number") / 100.0;
    let output = plumb(&folder, &["annotate", "--asm", "spot"]);
    let listing = text(&output.stdout);
    let titles =
        listing.lines().find(|line| line.contains("Adjusted") && line.contains("Self")).expect("titles");
    assert!(
        titles.split_whitespace().collect::<Vec<_>>().join(" ").starts_with("# Self Of all Adjusted Of all"),
        "{titles}"
    );
    // Of all, in each pair of columns that both have a figure.
    let mut pairs = [0; 2];
    for line in listing.lines().filter(|line| !line.starts_with('#') && line.len() > 40) {
        let cell = |columns: std::ops::Range<usize>| {
            let text = line.get(columns)?.trim().trim_end_matches('~').strip_suffix('%')?;
            let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            Some((text.parse::<f64>().ok()?, 0.5_f64 * 0.1_f64.powi(decimals as i32)))
        };
        for (column, (own, all)) in [(0..8, 8..17), (17..28, 28..36)].into_iter().enumerate() {
            // With what each was rounded by.
            if let (Some((own, own_half)), Some((all, all_half))) = (cell(own), cell(all)) {
                assert!((own * share - all).abs() <= own_half * share + all_half + 1e-6, "{line}");
                pairs[column] += 1;
            }
        }
    }
    assert!(pairs.iter().all(|&pairs| pairs > 0), "{listing}");
}

#[test]
fn every_instruction_is_where_and_what_objdump_says() {
    let Some(folder) = folder("annotate-objdump") else { return };
    if !has("objdump") {
        return;
    }
    recorded(&folder);
    let listing = json(&folder, &["spot"]);
    let objdump = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "--disassemble=spot", "slow"])
        .current_dir(&folder)
        .output()
        .expect("objdump runs");
    let theirs: Vec<(u64, String)> = text(&objdump.stdout)
        .lines()
        .filter_map(|line| {
            let (address, text) = line.split_once(":\t")?;
            let mnemonic = text.split_whitespace().next()?.to_owned();
            Some((u64::from_str_radix(address.trim(), 16).ok()?, mnemonic))
        })
        .collect();
    let ours: Vec<(u64, String)> = rows(&listing)
        .iter()
        .map(|row| {
            let address = row["address"].as_str().expect("text").trim_start_matches("0x");
            let text = row["text"].as_str().expect("text").split_whitespace().next().unwrap_or_default();
            (u64::from_str_radix(address, 16).expect("hexadecimal"), text.to_owned())
        })
        .collect();
    assert!(theirs.len() > 5, "{theirs:?}");
    // Suffixes that say an operand's size may differ.
    let same = |a: &str, b: &str| a.starts_with(b) || b.starts_with(a);
    assert_eq!(ours.len(), theirs.len(), "{ours:?}\n{theirs:?}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(ours.0 == theirs.0 && same(&ours.1, &theirs.1), "{ours:?} {theirs:?}");
    }
}

#[test]
fn the_raw_column_is_that_of_perf_annotate() {
    let Some(folder) = folder("annotate-perf") else { return };
    if !has("perf") || !has("objdump") {
        return;
    }
    let perf = |arguments: &[&str]| {
        Command::new("perf")
            .args(arguments)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .expect("perf runs")
    };
    let record = perf(&["record", "-q", "-e", "cpu-clock:u", "-F", "999", "-o", "perf.data", "./slow", "1"]);
    assert!(record.status.success(), "{}", text(&record.stderr));
    let theirs = perf(&["annotate", "--stdio", "-i", "perf.data", "-s", "spot", "--stdio-color", "never"]);
    // `   12.34 :   1139:   lock xadd ...`
    let theirs: Vec<(u64, f64)> = text(&theirs.stdout)
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let share = parts.next()?.trim().parse().ok()?;
            Some((u64::from_str_radix(parts.next()?.trim(), 16).ok()?, share))
        })
        .collect();
    assert!(theirs.len() > 5, "perf annotate lists the function: {theirs:?}");
    let listing = json(&folder, &["perf.data", "spot"]);
    for (address, share) in theirs {
        let address = format!("{address:#x}");
        let row = rows(&listing).iter().find(|row| row["address"] == address.as_str()).expect("it is listed");
        let ours = row["percent_of_function"].as_f64().expect("a number");
        assert!((ours - share).abs() <= 0.011, "{address}: {ours} and perf's {share}");
    }
}

#[test]
fn text_page_and_source_lines_name_the_slow_place() {
    let Some(folder) = folder("annotate-text") else { return };
    recorded(&folder);
    let output = plumb(&folder, &["annotate", "spot"]);
    let both = text(&output.stdout);
    assert!(both.contains("/* SLOW */") && both.contains("load") && both.contains("inlined: take"), "{both}");
    assert!(both.contains("▶") && !both.contains('\x1b'), "{both}");
    let asm = text(&plumb(&folder, &["annotate", "--asm", "spot"]).stdout);
    assert!(!asm.contains("SLOW") && asm.contains("load"), "{asm}");
    let src = text(&plumb(&folder, &["annotate", "--src", "spot"]).stdout);
    let slow = src.lines().find(|line| line.contains("/* SLOW */")).expect("the line is shown");
    assert!(slow.contains('%') && !src.contains("%rax"), "{src}");
    let few = text(&plumb(&folder, &["annotate", "--asm", "--limit", "1", "spot"]).stdout);
    assert!(few.lines().count() < asm.lines().count() && few.contains("load"), "{few}");
    let [one, other] = [["spot", "profile.plumb"], ["profile.plumb", "spot"]]
        .map(|two| plumb(&folder, &[&["annotate"][..], &two].concat()));
    assert!(
        one.status.success() && one.stdout == other.stdout,
        "the order tells nothing: {}",
        text(&one.stderr)
    );
    let page = plumb(&folder, &["annotate", "--html", "-o", "page.html", "spot"]);
    assert!(page.status.success(), "{}", text(&page.stderr));
    let page = std::fs::read_to_string(folder.join("page.html")).expect("it was written");
    assert!(
        page.contains("/* SLOW */") && page.contains("shared_place") && !page.contains("<script"),
        "{page}"
    );
}

#[test]
fn the_page_has_a_column_of_what_is_called_where_something_is() {
    let Some(folder) = folder("annotate-page-columns") else { return };
    recorded(&folder);
    let page = |arguments: &[&str]| {
        let page = plumb(&folder, &[&["annotate", "--html", "-o", "page.html"], arguments].concat());
        assert!(page.status.success(), "{}", text(&page.stderr));
        std::fs::read_to_string(folder.join("page.html")).expect("it was written")
    };
    // Rows have as many cells as there are titles.
    let cells = |row: &str| row.matches("<td").count() + row.matches("<th").count();
    let alone: &[&str] = &["--user", "--ignore", "rand", "spot"];
    for (arguments, is_there) in [(&["main"][..], true), (alone, false)] {
        let page = page(arguments);
        assert_eq!(page.contains(">Called<"), is_there, "{arguments:?}");
        for table in page.split("<table>").skip(1) {
            let rows: Vec<usize> = table.split("<tr").skip(1).map(cells).collect();
            assert!(rows.len() > 1 && rows.iter().all(|&row| row == rows[0]), "{arguments:?}: {rows:?}");
        }
    }
}

#[test]
fn a_function_without_a_symbol_is_named_by_an_address_in_it() {
    let Some(folder) = folder("annotate-stripped") else { return };
    if !has("nm") || !has("strip") {
        return;
    }
    let nm = Command::new("nm").args(["-S", "slow"]).current_dir(&folder).output().expect("nm runs");
    let symbol =
        text(&nm.stdout).lines().find(|line| line.ends_with(" spot")).expect("it is there").to_owned();
    let mut numbers =
        symbol.split(' ').map_while(|number| u64::from_str_radix(number, 16).ok()).collect::<Vec<u64>>();
    let (size, start) = (numbers.pop().expect("a size"), numbers.pop().expect("a start"));
    // By its address a function with a symbol is the same as by its name.
    recorded(&folder);
    let by_name = json(&folder, &["spot"]);
    assert_eq!(json(&folder, &[&format!("{:#x}@slow", start + 1)]), by_name);
    assert!(
        Command::new("strip").args(["-s", "slow"]).current_dir(&folder).status().is_ok_and(|s| s.success())
    );
    recorded(&folder);
    let listing = json(&folder, &[&format!("{:#x}", start + 1)]);
    assert_eq!(listing["function"], format!("slow+{start:#x}"));
    assert_eq!(json(&folder, &[&format!("slow+{start:#x}")]), listing);
    assert_eq!(listing["end"], format!("{:#x}", start + size));
    let (ours, theirs) = (rows(&listing), rows(&by_name));
    let addresses = |rows: &[Value]| rows.iter().map(|row| row["address"].clone()).collect::<Vec<Value>>();
    assert_eq!(addresses(ours), addresses(theirs));
    assert!(listing["percent_of_all"].as_f64().is_some_and(|share| share > 80.0), "{listing}");
    assert!((sum(ours, "adjusted_percent_of_function") - 100.0).abs() < 0.01, "{listing}");
    let shown = text(&plumb(&folder, &["annotate", &format!("{start:#x}")]).stdout);
    assert!(shown.contains("by unwind information"), "{shown}");
    let error = |name: &str| {
        let output = plumb(&folder, &["annotate", name]);
        assert!(!output.status.success(), "{}", text(&output.stdout));
        text(&output.stderr)
    };
    assert!(error("0x1@slow").contains("neither a symbol nor unwind information"), "{}", error("0x1@slow"));
    assert!(error("0x1@nowhere").contains("no sample is in a file of that name"));
}

#[test]
fn what_is_missing_is_said() {
    let Some(folder) = folder("annotate-missing") else { return };
    recorded(&folder);
    let error = |arguments: &[&str]| {
        let output = plumb(&folder, &[&["annotate"], arguments].concat());
        assert!(!output.status.success(), "{}", text(&output.stdout));
        text(&output.stderr)
    };
    let unknown = error(&["no_such_function"]);
    assert!(unknown.contains("hottest are") && unknown.contains("spot@slow"), "{unknown}");
    let similar = error(&["spo"]);
    assert!(similar.contains("similar names") && similar.contains("spot@slow"), "{similar}");
    let several = error(&["/./"]);
    assert!(several.contains("functions are called") && several.contains("spot@slow"), "{several}");
    assert!(plumb(&folder, &["annotate", "spot@slow"]).status.success());
    assert!(error(&["spot@other"]).contains("no function"));

    std::fs::rename(folder.join("src"), folder.join("moved")).expect("it can be moved");
    let gone = text(&plumb(&folder, &["annotate", "spot"]).stdout);
    // One note: which lines, why, and what to do.
    let notes: Vec<&str> = gone.lines().filter(|line| line.contains("not shown:")).collect();
    assert_eq!(notes.len(), 1, "{gone}");
    let asm = json(&folder, &["spot"]);
    let slow = asm["lines"][0]["line"].as_u64().expect("the line is known");
    assert!(
        notes[0].contains(&slow.to_string()) && notes[0].contains("slow_spot.c (no such file)"),
        "{gone}"
    );
    let example = format!("--source-map {}=DIRECTORY", folder.join("src").display());
    assert!(notes[0].contains("--source-map FROM=TO") && notes[0].ends_with(&example), "{gone}");
    let page = plumb(&folder, &["annotate", "--html", "-o", "page.html", "spot"]);
    assert!(page.status.success(), "{}", text(&page.stderr));
    let page = std::fs::read_to_string(folder.join("page.html")).expect("it was written");
    assert_eq!(page.matches("not shown:").count(), 1, "{page}");
    assert!(page.find("not shown:") < page.find("<table>"), "before the table that has no text: {page}");
    let map = format!("{}={}", folder.join("src").display(), folder.join("moved").display());
    let mapped = text(&plumb(&folder, &["annotate", "--source-map", &map, "spot"]).stdout);
    assert!(mapped.contains("/* SLOW */") && !mapped.contains("not shown"), "{mapped}");
    // Another version that is shorter.
    std::fs::write(folder.join("moved/slow_spot.c"), "one\ntwo\n").expect("it can be written");
    let short = text(&plumb(&folder, &["annotate", "--source-map", &map, "spot"]).stdout);
    assert!(short.contains("not shown:") && short.contains("(what is there has 2 lines)"), "{short}");

    std::fs::rename(folder.join("moved"), folder.join("src")).expect("it can be moved");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/slow_spot.c");
    std::fs::copy(source, folder.join("src/slow_spot.c")).expect("it is there");
    assert!(build(&folder, "-O1"), "it was built before");
    let changed = error(&["spot"]);
    assert!(changed.contains("is not the file that was recorded"), "{changed}");
    std::fs::remove_file(folder.join("slow")).expect("it is there");
    let removed = error(&["spot"]);
    assert!(removed.contains("no such file"), "{removed}");
}
