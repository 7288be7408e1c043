//! Reports as a user sees them.

use serde_json::Value;

use super::*;
use crate::words::parsed;
use plumb_fixtures::Made;
use plumb_profile::{Found, Frame, Sample};

fn try_report(profile: &Profile, args: &[&str], width: Option<usize>) -> Result<String> {
    let args = parsed::<Args>("report", args)?;
    let mut text = Vec::new();
    let mut out = Output::plain(&mut text);
    out.width = width;
    write(profile, &args, &mut out)?;
    drop(out);
    Ok(String::from_utf8(text)?)
}

fn report(profile: &Profile, args: &[&str]) -> String {
    try_report(profile, args, None).unwrap()
}

/// The lines below the head.
fn body(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

const LONG: &str = "std::map<std::string, std::vector<int> >::operator[](std::string const&) const";

fn example() -> Made {
    let mut made = Made::new();
    made.sample("web/7/8", "main@app;send@libc.so;tcp_send@k", 40)
        .sample("web/7/8", &format!("main@app;{LONG}@app"), 30)
        .sample("swapper/0/0", "idle@k", 20)
        .sample("web/7/9", "!;main+pick@app", 10);
    made.profile.meta.command = vec!["app".into(), "--fast".into()];
    made.profile.meta.lost_samples = 3;
    made
}

#[test]
fn the_table_has_perfs_columns() {
    let text = report(&example().profile, &[]);
    assert_eq!(
        body(&text),
        [
            "       80%        0%  web      app                [.] main",
            "       40%       40%  web      [kernel.kallsyms]  [k] tcp_send",
            "       40%        0%  web      libc.so            [.] send",
            "       30%       30%  web      app                [.] std::map<…>::operator[](std::string const&) const",
            "       20%       20%  swapper  [kernel.kallsyms]  [k] idle",
            "       10%       10%  web      app                [.] pick (inlined)",
            "       10%        0%  web      -                  [-] [stack deeper than its copy]",
        ]
    );
}

#[test]
fn a_number_of_samples_that_a_file_does_not_have_is_not_invented() {
    let mut made = example();
    let line = |profile: &Profile| {
        report(profile, &[]).lines().find(|line| line.starts_with("# Samples:")).map(str::to_owned).unwrap()
    };
    assert!(line(&made.profile).contains("4 of cpu-clock"), "{}", line(&made.profile));
    made.profile.meta.untold.samples = true;
    assert!(line(&made.profile).contains("unknown number of cpu-clock"), "{}", line(&made.profile));
}

#[test]
fn a_command_that_is_the_same_in_all_rows_stands_above_them() {
    let mut made = Made::new();
    made.sample("web/7/8", "main@app;send@app", 40).sample("web/7/9", "main@app", 10);
    let text = report(&made.profile, &[]);
    assert!(text.contains("# All of:   web\n#\n"), "{text}");
    assert_eq!(
        body(&text),
        ["      100%       20%  app            [.] main", "       80%       80%  app            [.] send"]
    );
    // Explicitly requested columns are kept.
    let asked = report(&made.profile, &["--sort", "comm,sym"]);
    assert!(body(&asked)[0].contains("  web "), "{asked}");
}

#[test]
fn a_limit_shows_the_first_rows_and_says_what_is_left_out() {
    let text = report(&example().profile, &["--limit", "3"]);
    assert_eq!(body(&text).len(), 3, "{text}");
    assert!(text.contains("# 4 more rows, 60% in themselves: --limit N shows more\n"), "{text}");
    let json: Value = serde_json::from_str(&report(&example().profile, &["--limit", "3", "--json"])).unwrap();
    assert_eq!(json["reports"][0]["rows"].as_array().unwrap().len(), 3);
    assert!(!report(&example().profile, &["--limit", "7"]).contains("more rows"));
}

#[test]
fn long_template_arguments_are_folded_also_where_nobody_looks() {
    let name = format!("std::sort<std::vector<{}>::iterator>", "std::pair<int, int>, ".repeat(4));
    let mut made = Made::new();
    made.sample("web/7/8", &format!("main@app;{name}@app"), 40);
    assert!(report(&made.profile, &[]).contains("[.] std::sort<…>\n"));
    assert!(report(&made.profile, &["--top-down"]).contains(" std::sort<…>"));
    for whole in [&["--full-names"][..], &["--full-names", "--top-down"]] {
        assert!(report(&made.profile, whole).contains(&name), "{whole:?}");
    }
}

/// For the shown event and time, not for the whole recording.
#[test]
fn the_head_says_how_many_of_its_stacks_were_scanned() {
    let mut made = Made::new();
    made.sample("app/7/7", "main@app;work@app", 1).sample("app/7/7", "main@app;work@app", 1);
    let stack = made.profile.samples.iter().next().and_then(|sample| sample.stack).expect("it has one");
    let frame = made.profile.frames[made.profile.stacks.root(stack)];
    let scanned = made.profile.frames.add(Frame { found: Found::Scan, ..frame });
    made.event("cycles", "").sample("app/7/7", "work@app", 1);
    let sample = made.profile.samples.iter().last().expect("there is one");
    let stack = Some(made.profile.stacks.add(None, scanned));
    made.profile.samples.push(Sample { stack, ..sample });
    let text = report(&made.profile, &[]);
    assert!(text.contains("# Stacks:   100% complete\n"), "{text}");
    assert!(text.contains("# Stacks:   100% complete (50% with a caller by stack scan)\n"), "{text}");
}

#[test]
fn the_head_says_how_good_the_recording_is() {
    let text = report(&example().profile, &[]);
    assert!(text.contains("# Command:  app --fast\n"), "{text}");
    assert!(text.contains("# Samples:  4 of cpu-clock, 0.000 s, 3 lost\n"), "{text}");
    assert!(text.contains("# Stacks:   75% complete; cut: 1 stack deeper than its copy\n"), "{text}");
    assert!(!text.contains("# Kept"), "{text}");
    let part = report(&example().profile, &["--tid", "8"]);
    assert!(part.contains("# Kept:     2 samples, 70% of the event's, by filters\n"), "{part}");
}

/// The printed Self shares of all rows, in percent.
fn printed_self(text: &str) -> u64 {
    let digits =
        |line: &str| line[11..20].trim().trim_end_matches('%').replace('.', "").parse::<u64>().unwrap();
    body(text).into_iter().map(digits).sum()
}

#[test]
fn printed_shares_add_up_to_100() {
    let mut made = Made::new();
    for name in 0..7 {
        made.sample("a", &format!("main@app;f{name}@app"), 1);
    }
    assert_eq!(printed_self(&report(&made.profile, &[])), 100);
    assert_eq!(printed_self(&report(&example().profile, &["--sort", "comm"])), 100);
    let relative = report(&example().profile, &["--comm", "web", "--percentage", "relative"]);
    assert_eq!(printed_self(&relative), 100);
    let absolute = report(&example().profile, &["--comm", "web"]);
    assert_eq!(printed_self(&absolute), 80);
    assert_eq!(printed_self(&report(&example().profile, &["--no-idle"])), 100, "idle is separable");
}

#[test]
fn titles_stand_above_their_columns() {
    let columns = [("Self", table::Layout::Number), ("Name", table::Layout::Word)]
        .map(|(title, layout)| table::Column { title, layout });
    let mut text = Vec::new();
    let mut out = Output::plain(&mut text);
    table::write(&columns, &[vec!["100.00%".into(), "main".into()]], false, &mut out).unwrap();
    drop(out);
    assert_eq!(String::from_utf8(text).unwrap(), "#    Self  Name\n# .......  ....\n#\n  100.00%  main\n");
}

#[test]
fn programs_are_chosen_by_their_executables() {
    let mut profile = example().profile;
    let exe = profile.strings.add("/opt/web/server");
    let ids: Vec<_> = profile.processes.iter().filter(|(_, it)| it.pid == 7).map(|(id, _)| id).collect();
    ids.into_iter().for_each(|id| profile.processes.get_mut(id).exe = exe);
    let kept = |exe| printed_self(&report(&profile, &["--exe", exe]));
    for exe in ["server", "/opt/web/server", "/^.opt/"] {
        assert_eq!(kept(exe), 80, "{exe}");
    }
    assert_eq!(kept("[swapper]"), 20, "a process without an executable goes under its name");
    assert_eq!(printed_self(&report(&profile, &["--exe", "server", "--exe", "[swapper]"])), 100);
    for exe in ["serve", "web", "/opt/web"] {
        assert_eq!(kept(exe), 0, "{exe}");
    }
    assert!(try_report(&profile, &["--exe", "/(/"], None).is_err());
}

#[test]
fn a_limit_shows_the_first_roots_of_a_tree() {
    let profile = example().profile;
    let whole = report(&profile, &["--bottom-up"]);
    let cut = report(&profile, &["--bottom-up", "--limit", "1"]);
    let (whole, rest): (Vec<_>, Vec<_>) = (body(&whole), body(&cut));
    assert!(rest.len() < whole.len() && whole.starts_with(&rest), "{rest:#?} of {whole:#?}");
    let roots = |text: &[&str]| text.iter().filter(|line| line.contains('%')).count();
    assert!(roots(&rest) < roots(&whole));
    assert!(cut.contains(": --limit N shows more\n"), "{cut}");
    let json = |args: &[&str]| -> Value { serde_json::from_str(&report(&profile, args)).unwrap() };
    let nodes = |args: &[&str]| json(args)["reports"][0]["trees"][0]["nodes"].as_array().unwrap().clone();
    let (all, few) = (nodes(&["--bottom-up", "--json"]), nodes(&["--bottom-up", "--json", "--limit", "1"]));
    assert!(few.len() < all.len());
    let parent = |node: &Value| node["parent"].as_u64();
    assert_eq!(few.iter().filter(|node| parent(node).is_none()).count(), 1);
    assert!(few.iter().enumerate().all(|(at, node)| parent(node).is_none_or(|parent| parent < at as u64)));
    assert!(!report(&profile, &["--bottom-up", "--limit", "100"]).contains("more row"));
}

#[test]
fn rows_that_are_cut_are_summed_up() {
    let text = report(&example().profile, &["--no-children", "--min", "25"]);
    assert_eq!(body(&text).len(), 2);
    assert!(text.ends_with("# 2 rows below 25 %: 30% in themselves\n"), "{text}");
}

#[test]
fn a_terminal_gets_lines_that_fit() {
    let text = try_report(&example().profile, &[], Some(90)).unwrap();
    for line in body(&text) {
        assert!(line.chars().count() <= 90, "{line}");
    }
    assert!(text.contains("[.] std::map<…>::operator[]\n"), "{text}");
    let full = try_report(&example().profile, &["--full-names"], Some(90)).unwrap();
    assert!(full.contains(LONG) && full.contains("/opt/app"), "{full}");
}

#[test]
fn files_of_one_name_are_told_apart() {
    let mut made = Made::new();
    made.sample("a", "f@one/lib.so", 1).sample("a", "f@two/lib.so", 2);
    let text = report(&made.profile, &["--sort", "dso"]);
    assert_eq!(
        body(&text),
        ["       67%       67%  /opt/two/lib.so", "       33%       33%  /opt/one/lib.so"]
    );
}

#[test]
fn lines_are_shown_with_their_file() {
    let mut made = Made::new();
    made.sample("a", "work:7@app", 3).sample("a", "operator/@app", 1);
    let text = report(&made.profile, &["--sort", "srcline"]);
    assert_eq!(body(&text), ["       75%       75%  work.c:7", "       25%       25%  operator/"]);
}

#[test]
fn trees_show_branches_and_what_was_cut() {
    let mut made = Made::new();
    made.sample("a", "main@app;load@app;parse@app;malloc@libc.so", 60)
        .sample("a", "main@app;load@app;read@libc.so", 30)
        .sample("a", "main@app;init@app", 8)
        .sample("a", "main@app;exit@app", 2);
    let text = report(&made.profile, &["--top-down", "--min", "5"]);
    assert_eq!(
        body(&text),
        [
            "      100%        0%  main  [app]",
            "       90%        0%  ├─ load  [app]",
            "       60%        0%  │  ├─ parse  [app]",
            "       60%       60%  │  │  malloc  [libc.so]",
            "       30%       30%  │  └─ read  [libc.so]",
            "        8%        8%  └─ init  [app]",
        ]
    );
    assert!(text.ends_with("# 1 branch below 5% not shown: 2% together\n"), "{text}");
    let callers = report(&made.profile, &["--callers", "malloc"]);
    assert_eq!(
        body(&callers),
        [
            "       60%  malloc  [libc.so]",
            "       60%  parse  [app]",
            "       60%  load  [app]",
            "       60%  main  [app]"
        ]
    );
}

#[test]
fn long_recursion_is_passed_over() {
    let mut made = Made::new();
    made.sample("a", &format!("main@app;{}leaf@app", "down@app;".repeat(100)), 1);
    let text = report(&made.profile, &["--top-down"]);
    assert_eq!(
        body(&text),
        [
            "      100%        0%  main  [app]",
            "      100%        0%  down  [app]",
            "                      ⋮ 98 more calls of itself",
            "      100%        0%  down  [app]",
            "      100%      100%  leaf  [app]",
        ]
    );
    let all: Value = serde_json::from_str(&report(&made.profile, &["--top-down", "--json"])).unwrap();
    assert_eq!(all["reports"][0]["trees"][0]["nodes"].as_array().unwrap().len(), 102);
}

#[test]
fn a_function_that_is_not_there_is_an_error_with_help() {
    let error = try_report(&example().profile, &["--callers", "SEND"], None).unwrap_err().to_string();
    assert!(error.contains("`SEND`") && error.contains("\n  send\n  tcp_send"), "{error}");
}

#[test]
fn json_has_the_same_figures() {
    let json: Value = serde_json::from_str(&report(&example().profile, &["--json"])).unwrap();
    let report = &json["reports"][0];
    assert_eq!(report["samples"], 4);
    assert_eq!(report["cut_causes"][0]["cause"], "copy-too-short");
    let own: u64 =
        report["rows"].as_array().unwrap().iter().map(|row| row["self_weight"].as_u64().unwrap()).sum();
    assert_eq!(own, 100);
    let main = report["rows"].as_array().unwrap().iter().find(|row| row["sym"] == "main").unwrap();
    assert_eq!(main["children_percent"], 80.0);
    assert_eq!(main["dso"], "/opt/app");
    assert_eq!(main["kind"], "user");
}

#[test]
fn csv_has_a_line_a_row() {
    let text = report(&example().profile, &["--csv", "--sort", "pid,sym", "--comm", "swapper"]);
    assert_eq!(
        text,
        "event,children_percent,self_percent,children_weight,self_weight,children_samples,self_samples,pid,sym\n\
         cpu-clock,20.0000,20.0000,20,20,1,1,0,idle\n"
    );
    let tree = report(&example().profile, &["--csv", "--callers", "tcp_send"]);
    assert_eq!(tree.lines().count(), 4, "{tree}");
}

#[test]
fn events_are_reported_one_by_one() {
    let mut made = Made::new();
    made.sample("a", "f@app", 1).event("faults", "faults").sample("a", "g@app", 10);
    let text = report(&made.profile, &[]);
    assert_eq!(body(&text).iter().filter(|line| line.contains("100%")).count(), 2, "{text}");
    let one = report(&made.profile, &["--event", "faults"]);
    assert!(one.contains("1 of faults, 10 faults") && !one.contains("cpu-clock"), "{one}");
    assert!(try_report(&made.profile, &["--event", "cycles"], None).is_err());
}

#[test]
fn a_profile_without_samples_is_no_error() {
    let text = report(&Made::new().profile, &[]);
    assert!(text.contains("no samples"), "{text}");
    for args in [["--top-down"], ["--json"], ["--csv"], ["--bottom-up"]] {
        report(&Made::new().profile, &args);
    }
}

/// A closed reader, as with `head`.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    for args in [&[][..], &["--json"], &["--csv"], &["--top-down"]] {
        let args = parsed("report", args).expect("they are taken");
        let result = write(&example().profile, &args, &mut Output::plain(Gone));
        assert!(result.is_err());
        assert!(finish(result).is_ok());
    }
    assert!(finish(Err(anyhow::anyhow!("something else"))).is_err());
}

#[test]
fn the_kernels_part_is_told_by_what_it_was_for() {
    let mut made = Made::new();
    made.sample("x/1", "main@app", 60);
    made.sample("x/1", "main@app;asm_exc_page_fault@k;clear_page@k", 25);
    made.sample("x/1", "main@app;do_syscall_64@k;ksys_read@k;clear_page@k", 15);
    let text = report(&made.profile, &[]);
    let section = text.split_once("# Processor time went into").map(|(_, section)| section).unwrap();
    let lines: Vec<&str> = section.lines().skip(1).collect();
    assert_eq!(lines, ["#      60%  user code", "#      25%  page faults", "#      15%  read"]);
    let json: Value = serde_json::from_str(&report(&made.profile, &["--json"])).unwrap();
    assert_eq!(json["reports"][0]["went_into"][1]["name"], "page-fault");
    let mut user = Made::new();
    user.sample("x/1", "main@app", 60);
    assert!(!report(&user.profile, &[]).contains("went into"), "there is nothing more to say");
}
