//! The owner of a process by its id, whether it was sampled or not.
//!
//! Elsewhere: processes of a profile (`directory`). Both assign a process to the same service.

use std::collections::HashMap;
use std::sync::Arc;

use plumb_process::{comm, executable};
use plumb_profile::{Life, LifeEnd, LifeId, Profile};

use super::super::process::ProcessFacts;
use super::super::relabel::Attributes;
use super::{ProcessDirectory, Subject};

/// Service name of processes that ended before they were inspected.
const EXITED: &str = "[exited]";

/// The owner of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The service with these attributes.
    Service(Attributes),
    /// None: a rule excludes the process.
    LeftOut,
}

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// Still running.
    Running,
    /// Ended; the exit record may still arrive.
    Ending,
    /// Ended some time ago: no further records will arrive.
    Ended,
}

/// The last lifetime in a profile for each process id.
#[derive(Debug, Default)]
pub(crate) struct LastLives(HashMap<u32, LifeId>);

impl LastLives {
    /// Collects the last lifetimes of a profile.
    pub fn of(profile: &Profile) -> Self {
        Self(profile.lives.iter().map(|(id, life)| (life.pid, id)).collect())
    }
}

impl ProcessDirectory {
    /// Inspects a running process that may never appear in a record.
    pub fn meet(&mut self, pid: u32) {
        if let Some(exe) = executable(pid) {
            self.read(pid, &String::from_utf8_lossy(&exe));
        }
    }

    /// Keeps the facts about a process until the next profile is finished.
    pub fn keep(&mut self, pid: u32) {
        self.remembered(pid, None);
    }

    /// The owner of a process, or `None` if it may be known later. `lives`: of the same profile.
    pub fn owner(
        &mut self,
        profile: &Profile,
        lives: &LastLives,
        pid: u32,
        state: ProcessState,
    ) -> Option<Owner> {
        let life = lives.0.get(&pid).and_then(|&life| profile.lives.get(life));
        match state {
            ProcessState::Running => self.of_running(profile, life, pid),
            ProcessState::Ending => {
                let life = life.filter(|life| life.end == LifeEnd::Exit)?;
                Some(self.of_ended(profile, life, pid))
            }
            ProcessState::Ended => Some(match life {
                Some(life) => self.of_ended(profile, life, pid),
                None => self.of_forgotten(pid),
            }),
        }
    }

    /// The owner of a process, by its lifetime.
    pub fn owner_of_life(&mut self, profile: &Profile, life: &Life) -> Owner {
        let running = match life.end {
            LifeEnd::Running => self.of_running(profile, Some(life), life.pid),
            LifeEnd::Exec | LifeEnd::Exit => None,
        };
        running.unwrap_or_else(|| self.of_ended(profile, life, life.pid))
    }

    /// The owner of a running process, or `None` if it has just ended and nothing is known about it yet.
    fn of_running(&mut self, profile: &Profile, life: Option<&Life>, pid: u32) -> Option<Owner> {
        // Use the program that its samples have, as long as it still runs that program.
        let of_life =
            life.filter(|life| life.end == LifeEnd::Running).map(|life| profile.strings.get(life.exe));
        let now = || executable(pid).map(|path| String::from_utf8_lossy(&path).into_owned());
        let exe = of_life.filter(|exe| !exe.is_empty()).map(str::to_owned).or_else(now);
        // Otherwise it has ended by now, or is a zombie.
        let Some(exe) = exe else { return life.map(|life| self.of_ended(profile, life, pid)) };
        let found = life.and_then(|life| self.found.get(&life.process?).cloned());
        let facts = found.or_else(|| self.read(pid, &exe));
        let name = comm(pid, pid).unwrap_or_default();
        let name = String::from_utf8_lossy(&name);
        let subject = Subject { exe: &exe, name: name.trim_end(), is_kernel: false };
        Some(self.owner_of(subject, facts.as_deref()))
    }

    fn of_ended(&mut self, profile: &Profile, life: &Life, pid: u32) -> Owner {
        let (exe, name) = (profile.strings.get(life.exe), profile.strings.get(life.comm));
        let found = life.process.and_then(|process| self.found.get(&process).cloned());
        let facts = found.or_else(|| self.remembered(pid, Some(exe)));
        let facts = self.with_end(facts, pid).or_else(|| {
            let parent =
                life.parent.and_then(|parent| profile.lives.get(parent)).map_or(0, |parent| parent.pid);
            self.of_ancestors(profile, Some(life), parent)
        });
        self.owner_of(Subject { exe, name, is_kernel: false }, facts.as_deref())
    }

    /// The owner of a process that is not in the profile.
    fn of_forgotten(&mut self, pid: u32) -> Owner {
        let facts = self.remembered(pid, None);
        let exe = self.known.get(&pid).map_or(EXITED, |known| &known.exe);
        self.owner_of(Subject { exe, name: EXITED, is_kernel: false }, facts.as_deref())
    }

    fn owner_of(&self, subject: Subject<'_>, facts: Option<&ProcessFacts>) -> Owner {
        self.attributes_of(subject, facts).map_or(Owner::LeftOut, Owner::Service)
    }

    /// Facts found while a process ran, if it ran program `exe`.
    fn remembered(&mut self, pid: u32, exe: Option<&str>) -> Option<Arc<ProcessFacts>> {
        let generation = self.generation;
        let known = self.known.get_mut(&pid).filter(|known| exe.is_none_or(|exe| exe == known.exe))?;
        known.generation = generation;
        Some(known.facts.clone())
    }
}

#[cfg(test)]
mod tests {
    use plumb_profile::Begin;

    use super::super::Known;
    use super::*;
    use crate::labels::RelabelRules;

    /// An id that no process has.
    const GONE: u32 = u32::MAX - 7;

    fn add_life(profile: &mut Profile, pid: u32, parent: Option<LifeId>, exe: &str, end: LifeEnd) -> LifeId {
        let (exe, comm) = (profile.strings.add(exe), profile.strings.empty());
        let (start_ns, end_ns, cpu_ns, peak_rss_bytes, process) = Default::default();
        let begin = Begin::Fork;
        profile.lives.push(Life {
            pid,
            parent,
            exe,
            comm,
            begin,
            end,
            start_ns,
            end_ns,
            cpu_ns,
            peak_rss_bytes,
            process,
        })
    }

    fn directory(rules: &[&str]) -> ProcessDirectory {
        let rules = rules.iter().filter_map(|rule| rule.parse().ok()).collect();
        ProcessDirectory::new(Attributes::new(), RelabelRules(rules))
    }

    fn service(owner: Option<Owner>) -> Option<String> {
        match owner {
            Some(Owner::Service(attributes)) => attributes.get("service.name").cloned(),
            _ => None,
        }
    }

    #[test]
    fn who_has_ended_is_what_it_ran_last_once_that_is_known() {
        let mut profile = Profile::default();
        let shell = add_life(&mut profile, GONE, None, "/bin/sh", LifeEnd::Exec);
        let running = add_life(&mut profile, GONE, Some(shell), "/usr/bin/cc1", LifeEnd::Running);
        let mut directory = directory(&["drop:service.name=secret"]);
        let mut owner =
            |profile: &Profile, pid, state| directory.owner(profile, &LastLives::of(profile), pid, state);
        assert_eq!(owner(&profile, GONE, ProcessState::Ending), None, "its exit is not known yet");
        assert_eq!(service(owner(&profile, GONE, ProcessState::Ended)).as_deref(), Some("cc1"));
        assert_eq!(owner(&profile, GONE - 1, ProcessState::Running), None);
        assert_eq!(owner(&profile, GONE - 1, ProcessState::Ending), None);
        assert_eq!(service(owner(&profile, GONE - 1, ProcessState::Ended)).as_deref(), Some(EXITED));
        profile.lives.get_mut(running).end = LifeEnd::Exit;
        assert_eq!(service(owner(&profile, GONE, ProcessState::Ending)).as_deref(), Some("cc1"));
        add_life(&mut profile, GONE - 2, None, "/bin/secret", LifeEnd::Exit);
        assert_eq!(owner(&profile, GONE - 2, ProcessState::Ending), Some(Owner::LeftOut));
    }

    #[test]
    fn who_runs_is_known_though_no_sample_hit_it_and_is_remembered() {
        let own = std::process::id();
        let exe = executable(own).map(|path| String::from_utf8_lossy(&path).into_owned());
        let exe = exe.expect("it can be read");
        let (mut directory, mut profile) = (directory(&[]), Profile::default());
        let found = directory.owner(&profile, &LastLives::default(), own, ProcessState::Running);
        assert!(service(found.clone()).is_some());
        // The facts found while it ran are used, although none of them can be read any more.
        let facts = directory.remembered(own, Some(&exe)).expect("it was looked at");
        assert!(directory.remembered(own, Some("/bin/other")).is_none(), "that was another program");
        directory.known.clear();
        directory.meet(own);
        directory.keep(own);
        assert!(directory.remembered(own, Some(&exe)).is_some());
        let known = Known { cgroup: String::new(), exe: exe.clone(), facts, generation: 0, looks: 0 };
        directory.known.insert(GONE, known);
        add_life(&mut profile, GONE, None, &exe, LifeEnd::Exit);
        let lives = LastLives::of(&profile);
        assert_eq!(directory.owner(&profile, &lives, GONE, ProcessState::Ending), found);
    }
}
