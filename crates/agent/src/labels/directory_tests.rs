//! Labels of running processes, of ended ones, and of very many.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::process::{Command, Stdio};

use plumb_profile::{Begin, Life, LifeEnd, LifeId};

use super::super::process::read_environment;
use super::*;

/// An id that no process has.
const GONE: u32 = u32::MAX - 7;

fn add(profile: &mut Profile, pid: u32, ppid: u32, exe: &str) -> ProcessId {
    let exe = profile.strings.add(exe);
    profile.processes.push(Process { pid, ppid, exe })
}

fn life(profile: &mut Profile, pid: u32, parent: Option<LifeId>, process: Option<ProcessId>) -> LifeId {
    let (exe, comm) = (profile.strings.empty(), profile.strings.empty());
    let (start_ns, end_ns, cpu_ns, peak_rss_bytes) = (Some(1), Some(2), None, None);
    profile.lives.push(Life {
        pid,
        parent,
        exe,
        comm,
        begin: Begin::Fork,
        end: LifeEnd::Exit,
        start_ns,
        end_ns,
        cpu_ns,
        peak_rss_bytes,
        process,
    })
}

fn directory() -> ProcessDirectory {
    ProcessDirectory::new(Attributes::new(), RelabelRules::default())
}

fn service(resources: &Resources, process: ProcessId) -> &str {
    &resources.attributes[resources.of_process[&process]]["service.name"]
}

#[test]
fn a_process_that_has_ended_belongs_to_its_ancestors() {
    let mut running = Command::new("sleep")
        .arg("100")
        .env("OTEL_SERVICE_NAME", "ancestor")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = running.id();
    // spawn returns before the kernel has set up the new environment.
    while read_environment(pid).is_empty() {
        std::thread::yield_now();
    }
    let mut profile = Profile::default();
    // Resolved through two lifetimes, of which only the first still runs; through the parent's id; not at all.
    let by_lives = add(&mut profile, GONE, GONE - 1, "/usr/bin/cc1");
    let by_parent = add(&mut profile, GONE - 2, pid, "/usr/bin/as");
    let unknown = add(&mut profile, GONE - 3, GONE - 4, "/usr/bin/ld");
    let first = life(&mut profile, pid, None, None);
    let second = life(&mut profile, GONE - 1, Some(first), None);
    life(&mut profile, GONE, Some(second), Some(by_lives));
    let mut directory = directory();
    let resources = directory.finish(&profile);
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(service(&resources, by_lives), "ancestor");
    assert_eq!(service(&resources, by_parent), "ancestor");
    assert_eq!(service(&resources, unknown), "ld");
    // Facts are remembered for one more profile.
    assert_eq!(service(&directory.finish(&profile), by_parent), "ancestor");
    directory.finish(&Profile::default());
    assert_eq!(service(&directory.finish(&profile), by_parent), "as");
    assert!(directory.known.is_empty());
}

#[test]
fn very_many_programs_are_few_series() {
    let mut profile = Profile::default();
    let all: Vec<ProcessId> =
        (0..2000).map(|n| add(&mut profile, GONE - n, 0, &format!("/tmp/conftest{n}"))).collect();
    let resources = directory().finish(&profile);
    assert_eq!(resources.of_process.len(), all.len(), "each has a place");
    assert_eq!(resources.attributes.len(), RESOURCES + 1);
    assert_eq!(service(&resources, all[1999]), OTHERS);
}

#[test]
fn attributes_say_who_it_is() {
    let mut profile = Profile::default();
    let deleted = add(&mut profile, GONE, 0, "/usr/bin/old (deleted)");
    let kernel = add(&mut profile, GONE - 1, KTHREADD, "");
    let pod = add(&mut profile, GONE - 2, 0, "/app");
    let directory = directory();
    let id = "ab".repeat(32);
    let of = |process: ProcessId, facts: Option<&ProcessFacts>| {
        directory.attributes(&profile, &profile.processes[process], "comm", facts).unwrap()
    };
    assert_eq!(of(deleted, None)["service.name"], "old");
    assert_eq!(of(kernel, None)["service.name"], "kernel");
    let unit = ProcessFacts::of("0::/system.slice/nginx.service", b"", || false);
    let unit = of(deleted, Some(&unit));
    assert_eq!((&*unit["service.name"], &*unit["systemd.unit"]), ("nginx", "nginx.service"));
    let uid = "5d9f2c1e-8a77-4c0b-9b1e-2f6d3a4b5c6d";
    let facts = ProcessFacts::of(
        &format!("0::/kubepods/pod{uid}/{id}"),
        b"HOSTNAME=api-7c5ddbdf54-x2b4k\0OTEL_RESOURCE_ATTRIBUTES=k8s.namespace.name=shop\0",
        || true,
    );
    let attributes: Vec<_> = of(pod, Some(&facts)).into_iter().collect();
    let expected = [
        ("cgroup", "/kubepods"),
        ("container.id", &id),
        ("k8s.namespace.name", "shop"),
        ("k8s.pod.name", "api-7c5ddbdf54-x2b4k"),
        ("k8s.pod.uid", uid),
        ("service.name", "api"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(attributes, expected);
}

/// A container that ended before it was inspected, and a process of the runtime itself.
#[test]
fn who_has_ended_is_of_the_container_in_which_that_was() {
    let mut profile = Profile::default();
    let short = add(&mut profile, GONE, 0, "/app");
    let other = add(&mut profile, GONE - 1, 0, "/app");
    let (uid, id) = ("5d9f2c1e-8a77-4c0b-9b1e-2f6d3a4b5c6d", "ab".repeat(32));
    let mut ended = EndedCgroups::default();
    ended.add(GONE, format!("/kubepods/besteffort/pod{uid}/{id}"));
    ended.add(GONE - 1, "/system.slice/a-service-with-a-rather-long-name.service".to_owned());
    let mut directory = directory();
    directory.learn(ended);
    let resources = directory.finish(&profile);
    let of = |process| &resources.attributes[resources.of_process[&process]];
    assert_eq!(of(short)["k8s.pod.uid"], uid);
    assert_eq!(of(short)["container.id"], id);
    assert!(!of(other).contains_key("systemd.unit"), "that of its parents counts");
    let resources = directory.finish(&profile);
    assert!(
        !resources.attributes[resources.of_process[&short]].contains_key("k8s.pod.uid"),
        "that was the last profile"
    );
}

/// Publishes a context as an SDK does, in a file in memory, and says so.
const PUBLISHES: &str = r"
import ctypes, mmap, os, struct, sys, time
def field(number, text): return bytes([number << 3 | 2, len(text)]) + text
def pair(name, text): return field(1, field(1, name) + field(2, field(1, text)))
payload = field(1, pair(b'service.name', b'basket') + pair(b'service.version', b'1.1') + pair(b'process.pid', b'7'))
fd = os.memfd_create('OTEL_CTX')
os.ftruncate(fd, 4096)
memory = mmap.mmap(fd, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory[32:32 + len(payload)] = payload
memory[0:32] = b'OTEL_CTX' + struct.pack('<IIQQ', 2, len(payload), 1, at + 32)
print('published', flush=True)
time.sleep(100)
";

#[test]
fn a_running_program_has_the_name_that_it_publishes_or_that_of_its_script() {
    use std::io::{BufRead, BufReader};
    let folder = std::env::temp_dir().join(format!("plumb-names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("rebuilds_index.py"),
        "print('runs', flush=True)\nimport time\ntime.sleep(100)\n",
    )
    .unwrap();
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.args(arguments).current_dir(&folder).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "python3 has ended");
        child
    };
    let mut children = [python(&["-c", PUBLISHES]), python(&["rebuilds_index.py"])];
    let mut profile = Profile::default();
    let exes =
        children.each_ref().map(|child| std::fs::read_link(format!("/proc/{}/exe", child.id())).unwrap());
    let [publishes, script] = std::array::from_fn(|place| {
        add(&mut profile, children[place].id(), 1, exes[place].to_str().unwrap())
    });
    let mut directory = directory();
    let resources = directory.finish(&profile);
    // In a unit or a container, that is the service.
    let of_script = directory.read(children[1].id(), exes[1].to_str().unwrap()).unwrap();
    children.iter_mut().for_each(|child| _ = child.kill().and_then(|()| child.wait()));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(service(&resources, publishes), "basket");
    let (_, program) = of_script.program.as_ref().unwrap();
    assert_eq!(program.name, "rebuilds_index");
    if of_script.cgroup.unit.is_none() && !of_script.cgroup.is_contained() {
        assert_eq!(service(&resources, script), "rebuilds_index");
    }
    let attributes = &resources.attributes[resources.of_process[&publishes]];
    assert_eq!(attributes["service.version"], "1.1");
    assert!(!attributes.contains_key("process.pid"), "a series for each run would never end");
}
