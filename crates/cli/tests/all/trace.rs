//! `plumb trace`: the same calls as strace's, none lost silently, and advice for users who may not trace.
//!
//! Needs root, BPF and a C compiler, some tests strace; without them, a test prints so and is skipped.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plumb_fixtures::{Requirement, compiles, needs, skip};

fn plumb(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    // Cargo's library path is irrelevant.
    command
        .env_remove("LD_LIBRARY_PATH")
        .arg("trace")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory with the program.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trace-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/calls.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(folder.join("calls")).arg(source);
    if !compiles(&mut compiler) {
        return None;
    }
    Some(folder)
}

/// Traces a command; returns its lines and plumb's messages. `None`: not possible here.
fn trace(folder: &Path, arguments: &[&str]) -> Option<(Vec<String>, String)> {
    if !needs(Requirement::Bpf) {
        return None;
    }
    let Output { stdout, stderr, status } = plumb(folder, arguments).output().expect("plumb runs");
    let said = text(&stderr);
    assert!(status.success(), "{said}");
    Some((text(&stdout).lines().map(str::to_owned).collect(), said))
}

/// strace's output for the program; `None`: not installed.
fn strace(folder: &Path) -> Option<String> {
    let mut command = Command::new("strace");
    command.env_remove("LD_LIBRARY_PATH").args(["-o", "strace.txt", "./calls"]).current_dir(folder);
    if !command.status().is_ok_and(|status| status.success()) {
        skip(Requirement::Strace, "no strace");
        return None;
    }
    Some(std::fs::read_to_string(folder.join("strace.txt")).expect("strace wrote it"))
}

/// Name and result of the call in a line of plumb or strace, without addresses and names of file descriptors.
fn name_and_result(line: &str) -> Option<(String, String)> {
    let (before, after) = line.split_once('(')?;
    let (before, after) = match before.trim().is_empty() || after.contains(" ms): ") {
        // Times are in brackets too.
        true => after.split_once("): ")?.1.split_once('(')?,
        false => (before, after),
    };
    let name = before.rsplit(' ').next()?;
    let result = after.rsplit_once(" = ")?.1;
    let result = result.trim_start_matches("-1 E").split([' ', '<']).next()?;
    let result = result.trim_start_matches('E');
    let number = result.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let result = number.map_or(result.to_owned(), |number| number.to_string());
    // Addresses differ from run to run.
    let is_address = result.parse::<u64>().is_ok_and(|number| number > 1 << 32);
    Some((name.to_owned(), if is_address { "address".to_owned() } else { result }))
}

#[test]
fn calls_are_those_that_strace_sees() {
    let Some(folder) = folder("strace") else { return };
    let Some(strace) = strace(&folder) else { return };
    let Some((lines, said)) = trace(&folder, &["--", "./calls"]) else { return };
    assert!(said.contains("none dropped"), "{said}");
    let is_call = |line: &&str| !line.contains("---") && !line.contains("+++");
    let mut truth: Vec<_> = strace.lines().filter(is_call).filter_map(name_and_result).collect();
    // The child's calls are not in strace's output.
    let thread =
        |line: &str| Some(line.split_once("): ")?.1.split_once(' ')?.0.rsplit_once('/')?.1.to_owned());
    let first = thread(&lines[0]);
    let ours = lines.iter().filter(|line| thread(line) == first);
    let mut ours: Vec<_> = ours.filter_map(|line| name_and_result(line)).collect();
    assert!(truth.len() > 70, "{} calls", truth.len());
    // Process IDs differ from run to run, exits have no result, and flags are returned by name.
    let is_id = |(name, _): &mut (String, String)| {
        !["clone", "wait4", "kill", "getpid", "exit_group", "set_tid_address", "fcntl"].contains(&&**name)
    };
    truth.retain_mut(is_id);
    ours.retain_mut(is_id);
    let differ = truth.iter().zip(&ours).position(|(one, other)| one != other);
    let at = differ.unwrap_or(truth.len().min(ours.len()));
    let near = |list: &[(String, String)]| list[at.saturating_sub(2)..(at + 3).min(list.len())].to_vec();
    assert!(truth == ours, "they differ at {at}: {:?} and {:?}", near(&truth), near(&ours));
}

/// A line without differences of style: names of arguments and fields, paths of descriptors, addresses, the order of flags.
fn plain(line: &str) -> Option<String> {
    let begin = line.find("): ").map_or(0, |at| at + 3);
    let call = line[begin..].rsplit(' ').count().checked_sub(1).map(|_| &line[begin..])?;
    let call = if begin > 0 { call.split_once(' ')?.1 } else { call };
    let arguments = &call[..call.rfind(") ")?];
    let (mut out, mut word, mut in_text, mut path) = (String::new(), String::new(), false, 0);
    let mut letters = arguments.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => in_text = !in_text,
            '<' if !in_text && word.ends_with(|c: char| c.is_ascii_digit()) => path += 1,
            '>' if !in_text && path > 0 => {
                path -= 1;
                continue;
            }
            _ => {}
        }
        if path > 0 {
            continue;
        }
        let is_name = word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        match letter {
            ':' | '=' if !in_text && is_name => {
                word.clear();
                letters.next_if_eq(&' ');
            }
            '(' | ')' | '{' | '}' | '[' | ']' | ',' | ' ' if !in_text => {
                out += &flags(&word);
                word.clear();
                out.push(letter);
            }
            letter => word.push(letter),
        }
    }
    out += &flags(&word);
    Some(out.replace(", ...", ""))
}

/// Flags in a fixed order, without addresses.
fn flags(word: &str) -> String {
    // Mappings are high in the 47-bit address space, at random addresses.
    let is_address = |part: &str| part.starts_with("0x7") && part.len() == "0x7fffffffffff".len();
    let mut parts: Vec<&str> =
        word.split('|').map(|part| if is_address(part) { "0x7f" } else { part }).collect();
    parts.sort_unstable();
    parts.join("|")
}

#[test]
fn arguments_are_those_that_strace_shows() {
    let Some(folder) = folder("arguments") else { return };
    let Some(strace) = strace(&folder) else { return };
    let Some((lines, _)) = trace(&folder, &["--", "./calls"]) else { return };
    // Calls whose arguments both tools show in the same way and that are the same each time.
    let compared = [
        "openat",
        "newfstatat",
        "lseek",
        "write",
        "read",
        "pread64",
        "dup2",
        "access",
        "mkdir",
        "rename",
        "unlink",
        "rmdir",
        "close",
        "madvise",
        "munmap",
        "mprotect",
        "socket",
        "listen",
        "accept4",
        "sendto",
        "recvfrom",
        "epoll_create1",
        "shutdown",
        "prctl",
        "clock_nanosleep",
        "rt_sigaction",
    ];
    let of = |text: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        let lines: Vec<String> = text.filter_map(plain).collect();
        // The loader's calls are not the program's.
        let begin = lines.iter().position(|line| line.contains("made")).expect("it opens a file of its own");
        let is_compared = |line: &&String| compared.contains(&line.split('(').next().unwrap_or(""));
        lines[begin..].iter().filter(is_compared).cloned().collect()
    };
    let (truth, ours) = (of(&mut strace.lines()), of(&mut lines.iter().map(String::as_str)));
    for (ours, truth) in ours.iter().zip(&truth) {
        // strace omits this field of an action without one.
        assert_eq!(&ours.replace("0, NULL}", "0}"), truth);
    }
    assert!(truth.len() > 30 && ours.len() >= truth.len(), "{} of {}", ours.len(), truth.len());
    let has = |text: &str| {
        assert!(lines.iter().any(|line| line.contains(text)), "{text} is in none of {} lines", lines.len())
    };
    let made = folder.join("made");
    has(&format!("read(fd: 3<{}>", made.display()));
    has(&format!("dup2(oldfd: 3<{0}>, newfd: 77) = 77<{0}>", made.display()));
    has("F_SETFD, arg: FD_CLOEXEC");
    has("cmd: F_GETFL) = O_RDWR");
    has("bind(fd: 3<TCP>, umyaddr: 127.0.0.1:0, addrlen: 16)");
    has("<TCP \u{2192} 127.0.0.1:");
    has("{fd: 5<TCP>, events: POLLIN|POLLOUT, revents: POLLOUT}");
    has("[exited with 3]");
    has("argv: [\"./calls\"]");
}

#[test]
fn what_reads_by_the_clock_is_found() {
    let Some(folder) = folder("clock") else { return };
    let arguments = ["--spikes", "--json", "-e", "getdents64", "--", "./calls", "every", "50", "12", "256"];
    let Some((lines, said)) = trace(&folder, &arguments) else { return };
    let (truth, found): (Vec<_>, Vec<_>) = lines.iter().partition(|line| !line.starts_with('{'));
    let [truth] = &truth[..] else { panic!("the program prints a line: {lines:?}") };
    let (calls, taken) = truth.split_once(' ').expect("two numbers");
    let (calls, taken): (u64, u64) = (calls.parse().expect("a number"), taken.parse().expect("a number"));
    let found: Vec<serde_json::Value> =
        found.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [found] = &found[..] else { panic!("only this: {found:?}") };
    assert_eq!(found["calls"], calls, "{said}");
    assert_eq!(found["file"], "/proc");
    assert_eq!(found["buffer"], serde_json::json!([256, 256]));
    assert_eq!(found["bursts"], 12);
    // Processes start and end while it reads.
    let each = found["calls_per_burst"].as_u64().expect("a number");
    assert!((calls / 12..=calls.div_ceil(12)).contains(&each), "{found}");
    let period = found["period_ns"].as_u64().expect("a number");
    assert!((50_000_000..80_000_000).contains(&period), "{found}");
    // The program's clock includes the tracing overhead and the entry into the kernel, ours excludes both. A thread preempted
    // while it reads the clock measures more, but the median of many is unaffected.
    let half = found["p50_ns"].as_u64().expect("a number");
    assert!(half <= taken + taken / 20 && half + 3000 >= taken / 2, "{half} for {taken}: {found}");
}

#[test]
fn tables_and_json_say_what_lines_say() {
    let Some(folder) = folder("tables") else { return };
    let Some((table, _)) = trace(&folder, &["--summary", "--json", "--", "./calls"]) else { return };
    let Some((lines, _)) = trace(&folder, &["--json", "--", "./calls"]) else { return };
    let parse = |line: &String| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    let (table, lines): (Vec<_>, Vec<_>) =
        (table.iter().map(parse).collect(), lines.iter().map(parse).collect());
    for row in &table {
        let calls: Vec<_> = lines.iter().filter(|line| line["call"] == row["call"]).collect();
        assert_eq!(row["calls"], calls.len(), "{row}");
        assert_eq!(row["errors"], calls.iter().filter(|line| line.get("error").is_some()).count(), "{row}");
    }
    assert_eq!(table.iter().filter_map(|row| row["calls"].as_u64()).sum::<u64>(), lines.len() as u64);
    let connect: Vec<_> = lines.iter().filter(|line| line["call"] == "connect").collect();
    assert_eq!(connect[1]["error"], "ENOENT");
    assert_eq!(connect[1]["args"]["uservaddr"], "\"missing.socket\"");
    let Some((picture, _)) = trace(&folder, &["--histogram", "--", "./calls"]) else { return };
    let counts = picture.iter().skip(1).filter_map(|line| line.get(13..22)?.trim().parse::<u64>().ok());
    let measured = lines.iter().filter(|line| line["latency_ns"].is_number()).count() as u64;
    assert_eq!(counts.sum::<u64>(), measured);
}

#[test]
fn stacks_lead_from_the_call_to_the_beginning() {
    let Some(folder) = folder("stack") else { return };
    let Some((lines, said)) = trace(&folder, &["--stack", "--json", "-e", "connect,kill", "--", "./calls"])
    else {
        return;
    };
    assert_eq!(lines.len(), 3, "{said}");
    for line in lines {
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let stack = line["stack"].as_array().expect("a list");
        let names: Vec<&str> = stack.iter().filter_map(|frame| frame["name"].as_str()).collect();
        // The name of the C library's function differs from version to version.
        let call = line["call"].as_str().expect("a name");
        assert!(names[0].contains(call), "{names:?}");
        assert!(names.contains(&"main"), "{names:?}");
        assert_eq!(names.last(), Some(&"_start"), "{names:?}");
    }
}

#[test]
fn groups_are_those_of_their_calls() {
    let Some(folder) = folder("groups") else { return };
    let names = |group: &str| -> Option<Vec<String>> {
        let (lines, _) = trace(&folder, &["-e", group, "--", "./calls"])?;
        Some(lines.iter().filter_map(|line| Some(name_and_result(line)?.0)).collect())
    };
    let Some(net) = names("%net") else { return };
    assert_eq!(net.iter().filter(|name| *name == "socket").count(), 3);
    assert!(net.iter().all(|name| name != "poll" && name != "openat"), "{net:?}");
    let Some(file) = names("%file") else { return };
    assert!(
        file.contains(&"rename".into()) && file.contains(&"execve".into()) && !file.contains(&"read".into())
    );
    let Some(others) = names("!%file,%net,%memory") else { return };
    assert!(
        others.contains(&"read".into())
            && !others.iter().any(|name| net.contains(name) || file.contains(name))
    );
    let output = plumb(&folder, &["-e", "nothing", "true"]).output().expect("plumb runs");
    assert!(text(&output.stderr).contains("no system call nothing"));
}

#[test]
fn what_finds_no_room_is_counted() {
    let Some(folder) = folder("room") else { return };
    let Some((lines, said)) =
        trace(&folder, &["--buffer", "1", "-e", "getppid", "--", "./calls", "getppid", "300000"])
    else {
        return;
    };
    let calls = lines.iter().filter(|line| line.contains("getppid(")).count();
    let gaps =
        lines.iter().filter_map(|line| line.strip_prefix("... ")?.split(' ').next()?.parse::<usize>().ok());
    assert_eq!(calls + gaps.sum::<usize>(), 300_000, "{said}");
    assert!(said.contains("300000 calls"), "{said}");
}

#[test]
fn filters_keep_calls() {
    let Some(folder) = folder("filters") else { return };
    let Some((lines, _)) = trace(&folder, &["--failed", "-e", "openat,read,connect", "--", "./calls"]) else {
        return;
    };
    let errors: Vec<_> =
        lines.iter().filter_map(|line| name_and_result(line)).filter(|(name, _)| name != "openat").collect();
    assert_eq!(errors, [("read".to_owned(), "BADF".to_owned()), ("connect".to_owned(), "NOENT".to_owned())]);
    let Some((lines, said)) = trace(&folder, &["--min-time", "2ms", "--", "./calls"]) else { return };
    assert!(lines.iter().any(|line| line.contains("nanosleep(")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("getppid(")), "{lines:?}");
    assert!(said.contains("filtered out"), "{said}");
}

#[test]
fn what_blocks_at_the_end_is_shown() {
    let Some(folder) = folder("blocks") else { return };
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("it is everywhere");
    let pid = sleeper.id().to_string();
    let traced = trace(&folder, &["--duration", "0.3", "-p", &pid]);
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    let Some((lines, _)) = traced else { return };
    assert!(lines.iter().any(|line| line.contains("nanosleep(") && line.contains("unfinished")), "{lines:?}");
    let Some((lines, _)) = trace(&folder, &["-e", "exit_group", "--", "true"]) else { return };
    assert!(
        matches!(&lines[..], [line] if line.contains("exit_group(") && line.ends_with(") = ?")),
        "{lines:?}"
    );
}

/// Waits until plumb's programs are attached, according to its links, and it waits for calls.
fn until_it_traces(pid: u32) {
    let begin = std::time::Instant::now();
    let mut sleeps = 0;
    while sleeps < 4 {
        // No machine is that slow.
        assert!(begin.elapsed().as_secs() < 300, "nothing is traced");
        std::thread::sleep(std::time::Duration::from_millis(50));
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        let is_attached = links.filter(|link| link.as_os_str() == "anon_inode:bpf_link").count() > 0;
        let waits = plumb_process::state(pid, pid) == Some('S');
        sleeps = if is_attached && waits { sleeps + 1 } else { 0 };
    }
}

#[test]
fn of_the_whole_machine_all_but_its_own_are_seen() {
    let Some(folder) = folder("machine") else { return };
    // Skips if it is not possible here.
    if trace(&folder, &["-e", "getppid", "--", "true"]).is_none() {
        return;
    }
    let mut command = plumb(&folder, &["-a", "-e", "rename,rmdir,write", "--duration", "6"]);
    let traced = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("plumb runs");
    let own = format!("/{} ", traced.id());
    until_it_traces(traced.id());
    let mut calls = Command::new("./calls").current_dir(&folder).spawn().expect("it was compiled");
    let theirs = format!("/{} ", calls.id());
    assert!(calls.wait().is_ok_and(|status| status.success()));
    let output = traced.wait_with_output().expect("it ends");
    let (lines, said) = (text(&output.stdout), text(&output.stderr));
    let seen = lines.lines().filter(|line| line.contains(&theirs)).filter_map(name_and_result);
    let seen: Vec<String> = seen.map(|(name, _)| name).collect();
    assert_eq!(seen, ["write", "rename", "rmdir"], "{said}");
    assert!(!lines.lines().any(|line| line.contains(&own)), "its own");
}

#[test]
fn who_may_not_trace_is_told_what_to_do() {
    let mut command = plumb(Path::new("/"), &["true"]);
    // As user nobody; without root this test already runs as another user.
    command.uid(65534).gid(65534);
    let Ok(output) = command.output() else {
        skip(Requirement::Root, "not root, or others may not run what is built here");
        return;
    };
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("can't be traced") && said.contains("sudo"), "{said}");
}

/// A tree is the process with all its descendants, until the last has ended: including one that outlives its parents.
#[test]
fn a_tree_is_seen_until_its_last_has_ended() {
    let Some(folder) = folder("tree") else { return };
    // Skips if it is not possible here.
    if trace(&folder, &["-e", "getppid", "--", "true"]).is_none() {
        return;
    }
    // Starts a child once told to, and ends long before the child does.
    let script = "read line; (sleep 1; exec sleep 0.5) >&- 2>&- & exit 0";
    let mut shell =
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell is everywhere");
    let mut command =
        plumb(&folder, &["-e", "nanosleep,clock_nanosleep,execve", "--tree", &shell.id().to_string()]);
    let traced = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("plumb runs");
    until_it_traces(traced.id());
    drop(shell.stdin.take());
    let _ = shell.wait();
    let output = traced.wait_with_output().expect("it ends by itself");
    let (lines, said) = (text(&output.stdout), text(&output.stderr));
    let sleeps = lines.lines().filter(|line| line.contains("nanosleep(")).count();
    assert_eq!(sleeps, 2, "both sleep: {lines}{said}");
}
