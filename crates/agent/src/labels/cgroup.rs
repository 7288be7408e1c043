//! Facts in the path of a process's control group: the systemd unit, the container, the pod.
//!
//! Source: cgroups(7) for `/proc/PID/cgroup`; systemd.unit(5), "String Escaping for Inclusion in Unit Names"; the names that Docker, containerd,
//! CRI-O and podman use, with the systemd driver (`docker-ID.scope`) and the cgroupfs driver (`docker/ID`), and kubelet's for pods.
//!
//! Elsewhere: reading the file. Input is untrusted: a name that is not understood is neither a container nor a unit.

/// Hexadecimal digits in a container id.
const ID: usize = 64;

/// Prefixes of container scopes, and the runtime that uses each.
const SCOPES: [(&str, &str); 5] = [
    ("docker-", "docker"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-", "cri-o"),
    ("libpod-", "podman"),
];

/// Services that start containers.
const RUNTIMES: [&str; 6] = [
    "containerd.service",
    "docker.service",
    "crio.service",
    "podman.service",
    "kubelet.service",
    "k3s.service",
];

/// Facts in a control group's path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CgroupFacts {
    /// The path up to the first component that contains a number or an id: the same for all runs.
    pub path: String,
    /// The innermost systemd service, such as `nginx.service`. Transient services of a single run do not count.
    pub unit: Option<String>,
    /// The container's id.
    pub container_id: Option<String>,
    /// The container's runtime.
    pub runtime: Option<&'static str>,
    /// Name of a system container (LXC).
    pub container_name: Option<String>,
    /// The pod's UID.
    pub pod_uid: Option<String>,
}

impl CgroupFacts {
    /// Parses the text of `/proc/PID/cgroup`.
    pub fn parse(text: &str) -> Self {
        Self::of_path(path(text))
    }

    /// Whether the group belongs to a container or a pod.
    pub fn is_contained(&self) -> bool {
        self.container_id.is_some() || self.pod_uid.is_some()
    }

    /// Whether the group belongs to a container runtime itself.
    pub fn is_of_runtime(&self) -> bool {
        !self.is_contained() && self.unit.as_deref().is_some_and(|unit| RUNTIMES.contains(&unit))
    }

    /// Parses a path below the root of a hierarchy.
    pub fn of_path(path: &str) -> Self {
        let mut facts = Self::default();
        let mut is_stable = true;
        let mut parent = "";
        for component in path.split('/').filter(|part| !part.is_empty() && *part != "..") {
            is_stable &= facts.take(component, parent);
            if is_stable {
                facts.path.push('/');
                facts.path.push_str(&unescape(component));
            }
            parent = component;
        }
        if facts.path.is_empty() {
            facts.path.push('/');
        }
        facts
    }

    /// Reads one component of the path. Returns whether its name is the same in each run.
    fn take(&mut self, component: &str, parent: &str) -> bool {
        if let Some(uid) = pod_uid(component) {
            self.pod_uid = Some(uid);
            // A container's id may follow in the same component: `kubepods-podUID.slice:cri-containerd:ID`.
            if let Some((runtime, id)) = container(component, parent) {
                (self.runtime, self.container_id) = (runtime, Some(id));
            }
            return false;
        }
        if let Some((runtime, id)) = container(component, parent) {
            (self.runtime, self.container_id) = (runtime.or(self.runtime), Some(id));
            return false;
        }
        if let Some(name) = component.strip_prefix("lxc.payload.").filter(|name| !name.is_empty()) {
            (self.runtime, self.container_name) = (Some("lxc"), Some(name.to_owned()));
            return true;
        }
        if component.ends_with(".scope") {
            // systemd's scopes are sessions, started applications and machines, whose names contain numbers.
            return component == "init.scope";
        }
        if let Some(name) = component.strip_suffix(".service") {
            if is_transient(name) {
                return false;
            }
            self.unit = Some(unescape(component));
        }
        true
    }
}

/// Chooses the most informative path: the one of version 2, else the one in systemd's own hierarchy, else the longest.
fn path(text: &str) -> &str {
    let lines = || {
        text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        })
    };
    let of = |wanted: &str| {
        lines().find(|(controllers, path)| *controllers == wanted && *path != "/").map(|(_, path)| path)
    };
    let longest = || lines().map(|(_, path)| path).max_by_key(|path| path.len());
    of("").or_else(|| of("name=systemd")).or_else(longest).unwrap_or("/")
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|one| one.is_ascii_hexdigit())
}

/// Parses a component with a container id. Returns the runtime, if it is known, and the id.
fn container(component: &str, parent: &str) -> Option<(Option<&'static str>, String)> {
    // `PARENT.slice:RUNTIME:ID`: runc writes this when it is given a systemd path but uses the cgroupfs driver.
    if let Some((before, id)) = component.rsplit_once(':').filter(|(_, id)| is_hex(id, ID)) {
        return Some((runtime(before.rsplit(':').next()?), id.to_owned()));
    }
    let name = component.strip_suffix(".scope").unwrap_or(component);
    for (prefix, runtime) in SCOPES {
        if let Some(id) = name.strip_prefix(prefix).filter(|id| is_hex(id, ID)) {
            return Some((Some(runtime), id.to_owned()));
        }
    }
    if is_hex(name, ID) {
        return Some((runtime(parent), name.to_owned()));
    }
    // Amazon ECS: a task's id and a number.
    let (task, number) = name.split_once('-')?;
    let is_task = is_hex(task, 32) && !number.is_empty() && number.bytes().all(|one| one.is_ascii_digit());
    is_task.then(|| (Some("ecs"), name.to_owned()))
}

fn runtime(name: &str) -> Option<&'static str> {
    let name = name.trim_end_matches(".slice");
    match name {
        "docker" => Some("docker"),
        "cri-containerd" | "containerd" | "default" | "k8s.io" | "moby" => Some("containerd"),
        "crio" => Some("cri-o"),
        "libpod" | "libpod_parent" => Some("podman"),
        _ => None,
    }
}

/// The UID in the name of a pod's group: `podUID`, or with the systemd driver `kubepods-burstable-podUID.slice`, in which the dashes of the UID are
/// underscores. The UID of a static pod is a hash without dashes.
fn pod_uid(component: &str) -> Option<String> {
    let name = component.split(':').next()?;
    let uid = match name.strip_suffix(".slice").filter(|name| name.starts_with("kubepods")) {
        Some(name) => name.rsplit_once("-pod")?.1,
        None => name.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let parts: Vec<&str> = uid.split('-').collect();
    let is_uuid =
        parts.len() == 5 && parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, digits)| is_hex(part, digits));
    (is_uuid || is_hex(&uid, 32)).then_some(uid)
}

/// Whether systemd-run generated the name: `run-u12`, `run-r0123456789abcdef`, `run-p12-i13`.
fn is_transient(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("run-") else { return false };
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let is_random = |text: &str| text.len() >= 16 && text.bytes().all(|one| one.is_ascii_hexdigit());
    rest.strip_prefix(['u', 'p']).is_some_and(is_number) || rest.strip_prefix('r').is_some_and(is_random)
}

/// Removes systemd's escapes from a component: `\x2d` is a byte, and a leading underscore prevents a clash with the kernel's own names.
fn unescape(component: &str) -> String {
    let component = component.strip_prefix('_').unwrap_or(component);
    let mut bytes = Vec::with_capacity(component.len());
    let mut rest = component.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\x").and_then(|digits| std::str::from_utf8(digits.get(..2)?).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
