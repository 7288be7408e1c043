//! `deploy/backup.sh`: a copy of a store that a server writes to holds every profile that was acknowledged before, and each once.

#![cfg(feature = "server")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::spun::{folder, text};

/// Nanoseconds of a sample at 100 Hz.
const SAMPLE: u64 = 10_000_000;

/// A server with a store, killed when dropped.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(store: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-agent", "--store"]).arg(store);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("plumb starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        // A copy of a log that is written to may end within a record, which is said first.
        let mut said = String::new();
        let address = loop {
            let Some(line) = lines.next() else { panic!("it does not say where it listens: {said}") };
            let line = line.expect("it is text");
            match line.split_once("listening on http://") {
                Some((_, address)) => break address.to_owned(),
                None => said += &line,
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        let new = Self { child, address };
        assert!(!said.contains("ERROR"), "{said}");
        new
    }

    /// The body of an answer with status 200.
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("it has a head");
        assert!(head.split_whitespace().nth(1) == Some("200"), "{method} {path}: {answer}");
        body.to_owned()
    }

    /// Stores a profile with one sample, in a function of its own.
    fn push(&self, number: u64) {
        self.ask("POST", "/ingest?name=backup&sampleRate=100", &format!("main;f{number} 1\n"));
    }

    /// Time by number of the profile.
    fn profiles(&self) -> BTreeMap<u64, u64> {
        let answer = self.ask("GET", "/api/v1/functions?from=now-1d&limit=1000000", "");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("it is JSON");
        let rows = answer["rows"].as_array().expect("it has rows").iter();
        let own = rows.filter_map(|row| {
            let number = row["function"].as_str()?.strip_prefix('f')?.parse().ok()?;
            Some((number, row["self"].as_u64()?))
        });
        own.collect()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `deploy/backup.sh`, with the commands of a folder before all others.
fn backup(store: &Path, copy: &Path, commands: Option<&Path>) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/backup.sh");
    let path = std::env::var("PATH").expect("it is set");
    let path = commands.map_or(path.clone(), |folder| format!("{}:{path}", folder.display()));
    let output = Command::new(script).args([store, copy]).env("PATH", path).output().expect("it runs");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Opens a copy of the copy, as a server writes to what it opens.
fn restored(copy: &Path, name: &str) -> BTreeMap<u64, u64> {
    let place = folder(name).join("store");
    let copied = Command::new("cp").arg("-a").arg(copy).arg(&place).status();
    assert!(copied.is_ok_and(|status| status.success()));
    Serving::start(&place).profiles()
}

#[test]
fn a_copy_of_a_running_store_has_each_acknowledged_profile_once() {
    let work = folder("backup-running");
    let serving = Serving::start(&work.join("store"));
    let (next, stopping) = (AtomicU64::new(0), AtomicBool::new(false));
    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stopping.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    serving.push(number);
                    acknowledged.lock().expect("nobody panicked").push(number);
                }
            });
        }
        // Segments of the log become blocks, and blocks are merged, while they are copied.
        scope.spawn(|| {
            for task in ["flush", "flush", "flush", "compact"].iter().cycle() {
                if stopping.load(Ordering::Relaxed) {
                    return;
                }
                serving.ask("POST", &format!("/api/v1/admin/{task}"), "");
            }
        });
        // Each copy is new, but for the third, which brings the first up to date.
        let copies = ["first", "second", "first"].map(|name| work.join(name));
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for (number, copy) in copies.iter().enumerate() {
                let enough = acknowledged.lock().expect("nobody panicked").len() + 100;
                while acknowledged.lock().expect("nobody panicked").len() < enough {
                    std::thread::yield_now();
                }
                let before = acknowledged.lock().expect("nobody panicked").clone();
                backup(&work.join("store"), copy, None);
                let there = restored(copy, &format!("backup-restored-{number}"));
                let lost: Vec<&u64> = before.iter().filter(|number| !there.contains_key(number)).collect();
                assert!(lost.is_empty(), "copy {number}: lost {lost:?} of {}", before.len());
                assert!(there.values().all(|&time| time == SAMPLE), "copy {number}: {there:?}");
            }
        }));
        stopping.store(true, Ordering::Relaxed);
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// A command `cp` that first has the server's blocks merged and the merged ones removed, once.
fn merging_cp(work: &Path, store: &Path, merged: &Path) -> PathBuf {
    let commands = work.join("commands");
    std::fs::create_dir(&commands).expect("it is new");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *.parquet*) if [ -d {merged} ]; then\n\
         rm -f {store}/blocks/anonymous/blocks/*/block.json\n\
         mv {merged}/* {store}/blocks/anonymous/blocks/ && rmdir {merged}\nfi ;; esac\n\
         PATH=${{PATH#*:}}\nexec cp \"$@\"\n",
        merged = merged.display(),
        store = store.display(),
    );
    std::fs::write(commands.join("cp"), script).expect("it can be written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(commands.join("cp"), executable).expect("it is ours");
    commands
}

#[test]
fn blocks_that_are_merged_while_they_are_copied_are_there_once() {
    let work = folder("backup-merged");
    let (store, other) = (work.join("store"), work.join("other"));
    let serving = Serving::start(&store);
    for number in 0..6 {
        serving.push(number);
        if number < 5 {
            serving.ask("POST", "/api/v1/admin/flush", "");
        }
    }
    // A second server merges blocks of a copy, which take the place of the first one's while the script runs.
    backup(&store, &other, None);
    let merging = Serving::start(&other);
    merging.ask("POST", "/api/v1/admin/compact", "");
    drop(merging);
    let merged = work.join("merged");
    std::fs::create_dir(&merged).expect("it is new");
    let blocks = |store: &Path| {
        let entries = std::fs::read_dir(store.join("blocks/anonymous/blocks")).expect("it has blocks");
        entries.map(|entry| entry.expect("it can be read").file_name()).collect::<Vec<_>>()
    };
    let old = blocks(&store);
    for block in blocks(&other).into_iter().filter(|block| !old.contains(block)) {
        let from = other.join("blocks/anonymous/blocks").join(&block);
        std::fs::rename(from, merged.join(&block)).expect("it can be moved");
    }
    let commands = merging_cp(&work, &store, &merged);
    let copy = work.join("copy");
    backup(&store, &copy, Some(&commands));
    assert!(!merged.exists(), "they were merged meanwhile");
    assert!(blocks(&copy).iter().all(|block| !old.contains(block)), "those that are gone are in no copy");
    let expected: BTreeMap<u64, u64> = (0..6).map(|number| (number, SAMPLE)).collect();
    assert_eq!(restored(&copy, "backup-merged-restored"), expected);
}

#[test]
fn a_folder_that_is_no_store_is_refused() {
    let work = folder("backup-refused");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/backup.sh");
    let output = Command::new(script).args([&work, &work.join("copy")]).output().expect("it runs");
    assert!(!output.status.success() && text(&output.stderr).contains("is no directory of a plumb server"));
    assert!(!work.join("copy").exists());
}
