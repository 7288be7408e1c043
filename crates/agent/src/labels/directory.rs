//! Assigns each process of a profile to a resource. An ended process without facts of its own gets the resource of its parent.
//!
//! Running processes are inspected from time to time. A process that ended before its inspection is resolved through the process lifetimes in the
//! profile, because a process starts in its parent's control group. One that moved to another group and ended between two inspections is assigned to
//! its parent's.
//!
//! Invariant: memory does not grow with the number of processes that ever ran: only processes of this profile and the last one are remembered.

mod unsampled;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plumb_capture_perf::EndedCgroups;
use plumb_profile::{Life, LifeEnd, Process, ProcessId, Profile};

use super::container;
use super::context::read_context;
use super::process::{ProcessFacts, has_own_hostname, read_cgroup, read_command_line, read_environment};
use super::program::file_name;
use super::relabel::{Attributes, RelabelRules};
pub(crate) use unsampled::{LastLives, Owner, ProcessState};

/// Largest number of resources in a profile; the remaining processes share one.
const RESOURCES: usize = 500;
/// Largest number of ancestors searched.
const ANCESTORS: usize = 64;
/// Parent of the kernel's own threads.
pub(crate) const KTHREADD: u32 = 2;
/// Profiles in which a process that has published no context is looked at for one: SDKs do that some time after the start.
const CONTEXT_LOOKS: u32 = 4;
/// Service name of the processes beyond [`RESOURCES`].
const OTHERS: &str = "other";

/// Facts about a process id.
#[derive(Debug)]
struct Known {
    cgroup: String,
    exe: String,
    facts: Arc<ProcessFacts>,
    /// Generation of the last inspection.
    generation: u32,
    /// Looks for its context that are left.
    looks: u32,
}

/// Identity of a process for its service name.
#[derive(Clone, Copy, Debug)]
struct Subject<'a> {
    /// Path of the program, and the name of a thread as a fallback for an empty path.
    exe: &'a str,
    name: &'a str,
    is_kernel: bool,
}

/// The resources of a profile, and the processes of each.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    /// Attributes of each resource.
    pub attributes: Vec<Attributes>,
    /// Index into `attributes` by process. Processes excluded by a rule are missing.
    pub of_process: BTreeMap<ProcessId, usize>,
}

/// Facts about processes.
#[derive(Debug)]
pub(crate) struct ProcessDirectory {
    /// Attributes of all resources.
    common: Attributes,
    rules: RelabelRules,
    known: HashMap<u32, Known>,
    /// Attributes of containers from their runtimes, and the generation of the last use.
    containers: HashMap<String, (Attributes, u32)>,
    generation: u32,
    /// State of the profile in progress: number of processes inspected, and the facts found.
    seen: usize,
    found: HashMap<ProcessId, Arc<ProcessFacts>>,
    /// Control groups in which its processes ended.
    ended: EndedCgroups,
}

impl ProcessDirectory {
    /// An empty directory.
    pub fn new(common: Attributes, rules: RelabelRules) -> Self {
        let (known, containers, found, ended) = Default::default();
        Self { common, rules, known, containers, generation: 0, seen: 0, found, ended }
    }

    /// Inspects the processes that were sampled for the first time since the last call.
    pub fn look(&mut self, profile: &Profile) {
        for (id, process) in profile.processes.iter().skip(self.seen) {
            if let Some(facts) = self.read(process.pid, profile.strings.get(process.exe)) {
                self.found.insert(id, facts);
            }
        }
        self.seen = profile.processes.len();
    }

    /// Sets the control groups of the processes that ended in the profile that is finished next.
    pub fn learn(&mut self, ended: EndedCgroups) {
        self.ended = ended;
    }

    /// Returns the resources of a profile that was taken out, and prepares for the next profile, which has new ids.
    pub fn finish(&mut self, profile: &Profile) -> Resources {
        self.look(profile);
        let lives: HashMap<ProcessId, &Life> =
            profile.lives.iter().filter_map(|(_, life)| Some((life.process?, life))).collect();
        let names = thread_names(profile);
        let mut resources = Resources::default();
        let mut places: HashMap<Attributes, usize> = HashMap::new();
        for (id, process) in profile.processes.iter() {
            let facts = self.facts_of(profile, lives.get(&id).copied(), id);
            let name = names.get(&id).copied().unwrap_or_default();
            let Some(attributes) = self.attributes(profile, process, name, facts.as_deref()) else {
                continue;
            };
            let place = place_of(attributes, &mut places, &mut resources.attributes);
            resources.of_process.insert(id, place);
        }
        let last = self.generation;
        self.known.retain(|_, known| known.generation == last);
        self.containers.retain(|_, (_, seen)| *seen == last);
        self.generation += 1;
        self.seen = 0;
        self.found.clear();
        self.ended = EndedCgroups::default();
        resources
    }

    /// Facts about a process of the profile.
    fn facts_of(
        &mut self,
        profile: &Profile,
        life: Option<&Life>,
        id: ProcessId,
    ) -> Option<Arc<ProcessFacts>> {
        let process = &profile.processes[id];
        let found = match self.found.get(&id).cloned() {
            // The process was inspected in the middle of its exec.
            Some(facts) if !facts.has_environment => {
                self.read(process.pid, profile.strings.get(process.exe)).or(Some(facts))
            }
            found => found,
        };
        let has_ended = life.is_none_or(|life| life.end != LifeEnd::Running);
        let known = if has_ended { self.with_end(found, process.pid) } else { found };
        known.or_else(|| self.inherited(profile, life, process.ppid))
    }

    /// Completes the facts about an ended process with those of the container in which it ended: a process that a runtime starts enters the
    /// container's group only after a while.
    fn with_end(&mut self, found: Option<Arc<ProcessFacts>>, pid: u32) -> Option<Arc<ProcessFacts>> {
        if found.as_ref().is_some_and(|facts| facts.cgroup.is_contained()) {
            return found;
        }
        let Some(facts) = self.ended.get(pid).and_then(ProcessFacts::of_ended) else { return found };
        Some(Arc::new(facts.with_container(|id, pod_uid| self.container(id, pod_uid))))
    }

    /// Attributes that a runtime has for a container. Read once.
    fn container(&mut self, id: &str, pod_uid: Option<&str>) -> Attributes {
        let generation = self.generation;
        let read = || (container::read(id, pod_uid), generation);
        let (attributes, last) = self.containers.entry(id.to_owned()).or_insert_with(read);
        *last = generation;
        attributes.clone()
    }

    /// Reads the facts about a running process from /proc.
    fn read(&mut self, pid: u32, exe: &str) -> Option<Arc<ProcessFacts>> {
        let cgroup = read_cgroup(pid).filter(|_| pid != 0)?;
        let generation = self.generation;
        if let Some(known) =
            self.known.get_mut(&pid).filter(|known| known.cgroup == cgroup && known.exe == exe)
        {
            let is_new = std::mem::replace(&mut known.generation, generation) != generation;
            if is_new && known.looks > 0 {
                known.looks -= 1;
                if let Some(context) = read_context(pid) {
                    known.facts = Arc::new(ProcessFacts::clone(&known.facts).with_context(&context));
                    known.looks = 0;
                }
            }
            return Some(known.facts.clone());
        }
        let facts = ProcessFacts::of(&cgroup, &read_environment(pid), || has_own_hostname(pid));
        let command_line = read_command_line(pid);
        let facts = facts.with_program(exe, &command_line);
        let facts = facts.with_container(|id, pod_uid| self.container(id, pod_uid));
        // Threads of the kernel have neither, and are met again in each profile.
        let context = if command_line.is_empty() { None } else { read_context(pid) };
        let looks = if context.is_some() { 0 } else { CONTEXT_LOOKS - 1 };
        let facts = Arc::new(facts.with_context(&context.unwrap_or_default()));
        if facts.has_environment {
            let (exe, facts) = (exe.to_owned(), facts.clone());
            self.known.insert(pid, Known { cgroup, exe, facts, generation, looks });
        }
        Some(facts)
    }

    /// Facts about the nearest known ancestor of an ended process, unless that is a container runtime. A process that a runtime starts soon
    /// moves to a group of its own, which was not seen, so nothing is known about it.
    fn inherited(
        &mut self,
        profile: &Profile,
        life: Option<&Life>,
        parent: u32,
    ) -> Option<Arc<ProcessFacts>> {
        self.of_ancestors(profile, life, parent).filter(|facts| !facts.cgroup.is_of_runtime())
    }

    /// Facts about the nearest known ancestor, found by the process lifetime, if that is known, and by the parent's id.
    fn of_ancestors<'p>(
        &mut self,
        profile: &'p Profile,
        mut life: Option<&'p Life>,
        mut parent: u32,
    ) -> Option<Arc<ProcessFacts>> {
        for _ in 0..ANCESTORS {
            let next = life.and_then(|life| life.parent).and_then(|parent| profile.lives.get(parent));
            if let Some(next) = next {
                if let Some(facts) = next.process.and_then(|process| self.found.get(&process)) {
                    return Some(facts.clone());
                }
                parent = next.pid;
            }
            if parent == 0 {
                return None;
            }
            let generation = self.generation;
            if let Some(known) = self.known.get_mut(&parent) {
                known.generation = generation;
                return Some(known.facts.clone());
            }
            let exe = next.map_or("", |next| profile.strings.get(next.exe));
            if let Some(facts) = self.read(parent, exe) {
                return Some(facts);
            }
            life = Some(next?);
        }
        None
    }

    /// The attributes of a process, or `None` if a rule excludes it.
    fn attributes(
        &self,
        profile: &Profile,
        process: &Process,
        name: &str,
        facts: Option<&ProcessFacts>,
    ) -> Option<Attributes> {
        let exe = profile.strings.get(process.exe);
        let is_kernel = process.pid == KTHREADD || process.ppid == KTHREADD;
        self.attributes_of(Subject { exe, name, is_kernel }, facts)
    }

    fn attributes_of(&self, subject: Subject<'_>, facts: Option<&ProcessFacts>) -> Option<Attributes> {
        let Subject { exe, name, is_kernel } = subject;
        let mut attributes = self.common.clone();
        let node = ["k8s.node.name", "host.name"].iter().find_map(|&name| self.common.get(name));
        let node = node.map_or("", String::as_str);
        let mut set = |name: &str, value: &str| {
            if !value.is_empty() {
                attributes.insert(name.to_owned(), value.to_owned());
            }
        };
        // The facts may be an ancestor's, which runs another program.
        let program = facts.and_then(|facts| facts.program.as_ref()).filter(|(file, _)| file == exe);
        let program = program.map(|(_, program)| program);
        let exe = file_name(exe);
        // Programs in memory have random names.
        let has_name = !exe.is_empty() && !exe.starts_with("memfd:");
        set(
            "service.name",
            if is_kernel {
                "kernel"
            } else if let Some(program) = program {
                &program.name
            } else if has_name {
                exe
            } else {
                name.strip_prefix("memfd:").unwrap_or(name)
            },
        );
        if let Some(facts @ ProcessFacts { cgroup, container, environment, .. }) =
            facts.filter(|_| !is_kernel)
        {
            set("cgroup", &cgroup.path);
            set("k8s.pod.uid", cgroup.pod_uid.as_deref().unwrap_or_default());
            set("container.id", cgroup.container_id.as_deref().unwrap_or_default());
            set("container.name", cgroup.container_name.as_deref().unwrap_or_default());
            set("container.runtime", cgroup.runtime.unwrap_or_default());
            if let Some(unit) = cgroup.unit.as_deref().filter(|_| !cgroup.is_contained()) {
                set("systemd.unit", unit);
                set("service.name", unit.strip_suffix(".service").unwrap_or(unit));
            }
            if let Some(name) = container.get("container.name").filter(|_| cgroup.pod_uid.is_none()) {
                set("service.name", name);
            }
            if let Some(pod) = container.get("k8s.pod.name").or_else(|| environment.get("k8s.pod.name")) {
                set("service.name", facts.workload(pod, node));
            }
            container.iter().for_each(|(name, value)| set(name, value));
            if let Some(program) = program {
                set("service.version", program.version.as_deref().unwrap_or_default());
                set("service.name", if program.is_given { &program.name } else { "" });
            }
            // The process's own environment takes precedence, but its pod name is only a guess.
            let is_better = |name: &str| name.starts_with("service.") || !container.contains_key(name);
            let own = environment.iter().filter(|(name, _)| is_better(name));
            own.for_each(|(name, value)| set(name, value));
        }
        self.rules.apply(&mut attributes).then_some(attributes)
    }
}

/// Name of the first thread of each process.
fn thread_names(profile: &Profile) -> HashMap<ProcessId, &str> {
    let mut names = HashMap::new();
    for (_, thread) in profile.threads.iter() {
        names.entry(thread.process).or_insert_with(|| profile.strings.get(thread.comm));
    }
    names
}

/// Index of a set of attributes, which is added unless there are too many.
pub(crate) fn place_of(
    mut attributes: Attributes,
    places: &mut HashMap<Attributes, usize>,
    all: &mut Vec<Attributes>,
) -> usize {
    if all.len() >= RESOURCES && !places.contains_key(&attributes) {
        attributes.retain(|name, _| name == "host.name");
        attributes.insert("service.name".to_owned(), OTHERS.to_owned());
    }
    *places.entry(attributes).or_insert_with_key(|attributes| {
        all.push(attributes.clone());
        all.len() - 1
    })
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
