//! What a process' control group says of it: systemd's unit, the container, the pod.
//!
//! Source: cgroups(7) for `/proc/PID/cgroup`; systemd.unit(5), "String Escaping for Inclusion in Unit Names"; the names that Docker, containerd,
//! CRI-O and podman give, with the systemd driver (`docker-ID.scope`) and the cgroupfs driver (`docker/ID`), and kubelet's for pods.
//!
//! Not here: reading the file. Bytes are others' choice: whatever is not understood is no container and no unit.

/// Hexadecimal digits of a container's id.
const ID: usize = 64;

/// What begins the scope of a container, and the runtime that writes it.
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

/// What a control group says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CgroupFacts {
    /// The path, up to what is named by a number or an id: the same for all runs.
    pub path: String,
    /// The innermost service of systemd, such as `nginx.service`; not one that was made for a single run.
    pub unit: Option<String>,
    /// The id of the container.
    pub container_id: Option<String>,
    /// What runs the container.
    pub runtime: Option<&'static str>,
    /// The name of a system container (LXC).
    pub container_name: Option<String>,
    /// The pod's UID.
    pub pod_uid: Option<String>,
}

impl CgroupFacts {
    /// Of the text of `/proc/PID/cgroup`.
    pub fn parse(text: &str) -> Self {
        Self::of_path(path(text))
    }

    /// Whether it is a container's, or a pod's.
    pub fn is_contained(&self) -> bool {
        self.container_id.is_some() || self.pod_uid.is_some()
    }

    /// Whether it is the group of what starts containers itself.
    pub fn is_of_runtime(&self) -> bool {
        !self.is_contained() && self.unit.as_deref().is_some_and(|unit| RUNTIMES.contains(&unit))
    }

    /// Of a path below the root of a hierarchy.
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

    /// Takes a component of the path; whether it is named the same in each run.
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
            // systemd makes scopes for sessions, applications that were started, machines: their names have numbers.
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

/// The path that says most: version 2's, or where that is not used, systemd's own hierarchy, or the longest.
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

/// The runtime, if it is known, and the id.
fn container(component: &str, parent: &str) -> Option<(Option<&'static str>, String)> {
    // `PARENT.slice:RUNTIME:ID`: runc writes this where it was to use systemd and uses the file system.
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
    // Amazon's: a task's id and a number.
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

/// The UID in the name of a pod's group: `podUID`, or with systemd's driver `kubepods-burstable-podUID.slice`, where dashes of the UID are
/// underscores. That of a static pod is a hash, without dashes.
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

/// Whether systemd-run made up the name: `run-u12`, `run-r0123456789abcdef`, `run-p12-i13`.
fn is_transient(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("run-") else { return false };
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let is_random = |text: &str| text.len() >= 16 && text.bytes().all(|one| one.is_ascii_hexdigit());
    rest.strip_prefix(['u', 'p']).is_some_and(is_number) || rest.strip_prefix('r').is_some_and(is_random)
}

/// A component without systemd's escapes: `\x2d` is a byte, and an underscore in front keeps a name from being one of the kernel's.
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
