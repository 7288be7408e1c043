//! Facts about a running process from /proc: its control group, its command line, and the service that its environment names.
//!
//! Elsewhere: ended processes (`directory`).

use std::fs::File;
use std::io::Read;

use super::cgroup::CgroupFacts;
use super::program::{ProgramName, program_name};
use super::relabel::Attributes;

/// Bytes of a file that are read at most: environments may have megabytes.
const MOST: usize = 64 << 10;

/// The facts about a process that determine its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessFacts {
    pub cgroup: CgroupFacts,
    /// Attributes from its container's runtime.
    pub container: Attributes,
    /// Attributes from its environment: `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`, the pod's name; and what it publishes of itself.
    pub environment: Attributes,
    /// The file that it executes, and the name of its program, if that is another one than the file's.
    pub program: Option<(String, ProgramName)>,
    /// The process belongs to an indexed job, whose pods are numbered.
    pub is_indexed: bool,
    /// False for kernel threads and for a process in the middle of its exec.
    pub has_environment: bool,
}

impl ProcessFacts {
    /// Derives the facts from a process's files. `has_own_hostname` is only called for a process in a pod.
    pub fn of(cgroup: &str, environment: &[u8], has_own_hostname: impl FnOnce() -> bool) -> Self {
        let cgroup = CgroupFacts::parse(cgroup);
        let has_environment = !environment.is_empty();
        let is_indexed = value_of(environment, "JOB_COMPLETION_INDEX").is_some();
        let environment = of_environment(environment, cgroup.pod_uid.is_some() && has_own_hostname());
        Self { cgroup, environment, is_indexed, has_environment, ..Self::default() }
    }

    /// Adds what its command line says of the program in a file.
    pub fn with_program(self, exe: &str, command_line: &[u8]) -> Self {
        let program = program_name(exe, command_line).map(|program| (exe.to_owned(), program));
        Self { program, ..self }
    }

    /// Adds what it publishes of itself: its SDK knows the environment, and more.
    pub fn with_context(mut self, context: &Attributes) -> Self {
        let wanted = context.iter().filter(|(name, value)| is_of_service(name) && !value.is_empty());
        self.environment.extend(wanted.map(|(name, value)| (name.clone(), value.clone())));
        self.environment.retain(|name, value| is_short(name, value));
        self
    }

    /// Facts about an ended process, from the control group in which it ended. `None` if that is not a container's.
    pub fn of_ended(path: &str) -> Option<Self> {
        let cgroup = CgroupFacts::of_path(path);
        cgroup.is_contained().then(|| Self { cgroup, ..Self::default() })
    }

    /// Adds the attributes that `read` returns for its container.
    pub fn with_container(mut self, read: impl FnOnce(&str, Option<&str>) -> Attributes) -> Self {
        let CgroupFacts { container_id, pod_uid, .. } = &self.cgroup;
        self.container = container_id.as_deref().map(|id| read(id, pod_uid.as_deref())).unwrap_or_default();
        self
    }

    /// The workload of the pod named `pod` on this node.
    pub fn workload<'n>(&self, pod: &'n str, node: &str) -> &'n str {
        // The kubelet names a static pod after its file and the node, and its UID is a hash.
        let is_static = self.cgroup.pod_uid.as_deref().is_some_and(|uid| !uid.contains('-'));
        let of_file = pod.strip_suffix(node).and_then(|rest| rest.strip_suffix('-'));
        if let Some(name) = of_file.filter(|name| is_static && !name.is_empty()) {
            return name;
        }
        let name = workload(pod);
        let numbered =
            name.rsplit_once('-').filter(|(_, index)| index.bytes().all(|one| one.is_ascii_digit()));
        match numbered {
            Some((job, _)) if self.is_indexed && !job.is_empty() && name != pod => job,
            _ => name,
        }
    }
}

/// Text of a process's control groups, or `None` if it has ended or cannot be read.
pub(crate) fn read_cgroup(pid: u32) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/cgroup")).ok()?.take(MOST as u64).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Environment of a process; empty if it cannot be read.
pub(crate) fn read_environment(pid: u32) -> Vec<u8> {
    plumb_process::environment(pid, MOST).unwrap_or_default()
}

/// Command line of a process; empty if it cannot be read.
pub(crate) fn read_command_line(pid: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline"));
    let read = file.and_then(|file| file.take(MOST as u64).read_to_end(&mut bytes));
    read.map_or_else(|_| Vec::new(), |_| bytes)
}

/// Whether a process's host name differs from the machine's. In a pod it is then the pod's, unless the pod uses the machine's network.
pub(crate) fn has_own_hostname(pid: u32) -> bool {
    let space = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/uts")).ok();
    space(pid).is_some_and(|own| Some(own) != space(1))
}

/// The value of an environment variable, unless it is missing or empty.
fn value_of<'e>(environment: &'e [u8], name: &str) -> Option<&'e str> {
    environment.split(|&byte| byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok().map(str::trim).filter(|value| !value.is_empty())
    })
}

/// Attributes in an environment. `is_pod`: its host name is a pod's.
fn of_environment(environment: &[u8], is_pod: bool) -> Attributes {
    let mut attributes = Attributes::new();
    let value = |name: &str| value_of(environment, name);
    if is_pod && let Some(pod) = value("HOSTNAME") {
        attributes.insert("k8s.pod.name".to_owned(), pod.to_owned());
    }
    // Of the specification's resource attributes, only those that name a service or its location; others may differ between runs.
    for pair in value("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default().split(',') {
        let Some((name, value)) = pair.split_once('=') else { continue };
        let (name, value) = (name.trim(), percent_decoded(value.trim()));
        if is_of_service(name) && !value.is_empty() {
            attributes.insert(name.to_owned(), value);
        }
    }
    if let Some(service) = value("OTEL_SERVICE_NAME") {
        attributes.insert("service.name".to_owned(), service.to_owned());
    }
    attributes.retain(|name, value| is_short(name, value));
    attributes
}

/// Whether an attribute names a service or its location.
fn is_of_service(name: &str) -> bool {
    let is_known = ["service.name", "service.namespace", "service.version", "deployment.environment.name"];
    name.starts_with("k8s.") || is_known.contains(&name)
}

fn is_short(name: &str, value: &str) -> bool {
    name.len() <= 200 && value.len() <= 500
}

/// Decodes a value in the encoding of W3C baggage.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The workload of a pod: its name without the suffix that a deployment (`-HASH-RANDOM`), a stateful set or a job (`-NUMBER`), a daemon set
/// (`-RANDOM`), or a cron job (`-MINUTES-RANDOM`) adds.
pub(crate) fn workload(pod: &str) -> &str {
    /// Alphabet of Kubernetes' random names (SafeEncodeString in apimachinery).
    const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let is_safe = |text: &str| text.bytes().all(|one| SAFE.contains(&one));
    let Some((rest, last)) = pod.rsplit_once('-').filter(|(rest, last)| !rest.is_empty() && !last.is_empty())
    else {
        return pod;
    };
    if last.bytes().all(|one| one.is_ascii_digit()) {
        return rest;
    }
    if last.len() != 5 || !is_safe(last) {
        return pod;
    }
    // Minutes since 1970, which have eight digits until 2160.
    let is_minutes = |text: &str| text.len() == 8 && text.bytes().all(|one| one.is_ascii_digit());
    match rest.rsplit_once('-') {
        Some((name, minutes)) if is_minutes(minutes) && !name.is_empty() => name,
        Some((name, hash)) if (6..=10).contains(&hash.len()) && is_safe(hash) && !name.is_empty() => name,
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_service() {
        let read = |environment: &[u8], is_pod| -> Vec<(String, String)> {
            of_environment(environment, is_pod).into_iter().collect()
        };
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(read(b"A=b\0HOSTNAME=h\0", false), pairs(&[]));
        assert_eq!(read(b"HOSTNAME=api-0\0", true), pairs(&[("k8s.pod.name", "api-0")]));
        let all = b"OTEL_RESOURCE_ATTRIBUTES=service.name=a%20b, service.version=1,process.pid=7,x\0X_OTEL_SERVICE_NAME=no\0";
        assert_eq!(read(all, false), pairs(&[("service.name", "a b"), ("service.version", "1")]));
        let both = b"OTEL_SERVICE_NAME=wins\0OTEL_RESOURCE_ATTRIBUTES=service.name=loses\0";
        assert_eq!(read(both, false), pairs(&[("service.name", "wins")]));
        assert_eq!(read(b"OTEL_SERVICE_NAME=\xff\0", false), pairs(&[]));
    }

    #[test]
    fn pods_are_of_workloads() {
        for (pod, expected) in [
            ("checkout-7c5ddbdf54-x2b4k", "checkout"),
            ("node-exporter-x2b4k", "node-exporter"),
            ("postgres-0", "postgres"),
            ("backup-28391040-zq7vw", "backup"),
            ("etcd-control-plane", "etcd-control-plane"),
            ("web", "web"),
            ("-x", "-x"),
        ] {
            assert_eq!(workload(pod), expected, "{pod}");
        }
    }

    #[test]
    fn static_pods_and_those_of_numbered_jobs_are_of_workloads() {
        let of = |uid: &str, environment: &[u8], pod: &'static str| {
            let facts = ProcessFacts::of(&format!("0::/kubepods/pod{uid}"), environment, || true);
            facts.workload(pod, "node-1").to_owned()
        };
        let (random, hash) = ("11111111-2222-3333-4444-555555555555", "0123456789abcdef0123456789abcdef");
        assert_eq!(of(hash, b"A=b", "etcd-node-1"), "etcd");
        assert_eq!(of(hash, b"A=b", "node-1"), "node");
        assert_eq!(of(random, b"A=b", "etcd-node-1"), "etcd-node");
        assert_eq!(of(random, b"A=b", "render-3-x2b4k"), "render-3");
        assert_eq!(of(random, b"JOB_COMPLETION_INDEX=3\0", "render-3-x2b4k"), "render");
        assert_eq!(of(random, b"JOB_COMPLETION_INDEX=3\0", "render-3"), "render");
    }
}
