//! Gaps in a recording: losses, truncated stacks and the file responsible, missing names and lines.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumb_analyze::{Filter, part_of};
use plumb_profile::{AddressSpace, DsoId, DsoKind, EventId, FrameId, FrameKind, Profile, Scope, StackId};
use plumb_stack_quality::{Cause, Completeness, Runtime, Told};
use plumb_symbolize::Missing as MissingSymbols;

use crate::finding::Finding;
use crate::finding::FindingState::{Good, Limited, Missing};

/// Most files that are named individually.
const FILES: usize = 20;

/// Checks a recording.
pub(super) fn findings(profile: &Profile) -> Vec<Finding> {
    let stacks = Completeness::of(profile);
    let mut findings = vec![samples(profile, stacks.samples), losses(profile)];
    findings.extend(coverage(profile));
    findings.extend(occurrences(profile));
    findings.push(if profile.meta.untold.cuts {
        Finding::new(Limited, "stacks", "complete stacks: unknown")
    } else {
        completeness(&stacks)
    });
    findings.extend(stacks.causes.iter().take(FILES).map(|cause| cut(cause, stacks.samples)));
    findings.extend(names(profile));
    findings.extend(profile.meta.warnings.iter().map(|text| Finding::new(Limited, "warning", text)));
    findings
}

fn samples(profile: &Profile, samples: u64) -> Finding {
    let meta = &profile.meta;
    let command =
        if meta.command.is_empty() { String::new() } else { format!(" of {}", meta.command.join(" ")) };
    let state = if samples == 0 { Missing } else { Good };
    let names = profile.events.rows().iter().map(|event| profile.strings.get(event.name));
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    if names.iter().all(|name| plumb_analyze::is_clock(name)) {
        return Finding::new(state, "samples", format!("{samples}{command}"));
    }
    let command = command.replacen(" of ", ", command: ", 1);
    Finding::new(state, "samples", format!("{samples} of {}{command}", names.join(" and ")))
}

fn losses(profile: &Profile) -> Finding {
    let meta = &profile.meta;
    let text = format!("{} samples lost, {} records damaged", meta.lost_samples, meta.damaged_records);
    if meta.lost_samples == 0 && meta.damaged_records == 0 {
        return Finding::new(Good, "losses", text);
    }
    let finding = Finding::new(Limited, "losses", text);
    if meta.lost_samples == 0 {
        finding
    } else {
        finding.remedy("record at a lower frequency, or as root with larger rings")
    }
}

/// The share of the CPU time that samples represent; unknown for a foreign profile.
fn coverage(profile: &Profile) -> Option<Finding> {
    let meta = &profile.meta;
    let asked = meta.target_cpu_ns? as f64 / 1e9 * f64::from(meta.frequency_hz?);
    if asked < 100.0 {
        return None;
    }
    let percent = plumb_analyze::coverage(profile, &Filter::default())?;
    let text = format!("{percent:.1}% of processor time x frequency");
    let state = if (95.0..=105.0).contains(&percent) { Good } else { Limited };
    let finding = Finding::new(state, "coverage", text);
    Some(if state == Limited && meta.scope == Scope::Inherited {
        finding.remedy("record as root: short-lived processes are missed by inherited events")
    } else {
        finding
    })
}

/// The share of occurrences that samples represent, for events that the kernel counted as well.
fn occurrences(profile: &Profile) -> Vec<Finding> {
    let counted = profile.events.iter().filter_map(|(id, event)| {
        Some((
            id,
            profile.strings.get(event.name),
            profile.meta.occurrences_of(id).filter(|&counted| counted > 0)?,
        ))
    });
    counted.map(|(id, name, counted)| stood_for(profile, id, name, counted)).collect()
}

fn stood_for(profile: &Profile, event: EventId, name: &str, counted: u64) -> Finding {
    let own = profile.samples.iter().filter(|sample| sample.event == event);
    let weight: u64 = own.map(|sample| sample.weight).sum();
    let text = format!("samples stand for {weight} of {counted} {name}");
    let state = if weight as f64 >= counted as f64 * 0.95 { Good } else { Limited };
    let finding = Finding::new(state, "occurrences", text);
    if state == Good { finding } else { finding.remedy("sample each of them: -c 1, or at a higher rate: -F") }
}

fn completeness(stacks: &Completeness) -> Finding {
    let state = if stacks.complete == stacks.samples { Good } else { Limited };
    let complete = format!("{} complete", part_of(stacks.complete, stacks.samples));
    let text = [vec![complete], stacks.limits()].concat().join(", ");
    Finding::new(state, "stacks", text)
}

fn cut(cause: &Cause, samples: u64) -> Finding {
    let text = format!("{} of stacks end: {}", part_of(cause.samples, samples), cause.cut.text());
    Finding::new(Limited, cause.file.as_deref().unwrap_or("stacks"), text).remedy(cause.remedy())
}

/// Missing data of a file, and the number of affected samples.
#[derive(Default)]
struct Lacks {
    names: u64,
    samples: u64,
    /// Whether any of its functions has lines: then functions without lines were written in assembly, or compiled without them.
    has_lines: bool,
}

fn names(profile: &Profile) -> Vec<Finding> {
    let mut stacks: HashMap<StackId, u64> = HashMap::new();
    for stack in profile.samples.iter().filter_map(|sample| sample.stack) {
        *stacks.entry(stack).or_default() += 1;
    }
    let mut files: BTreeMap<DsoId, Lacks> = BTreeMap::new();
    for (stack, samples) in stacks {
        // A file counts once per stack, however often it occurs.
        let frames: BTreeSet<FrameId> = profile.frames_of(Some(stack)).collect();
        let mut seen: BTreeMap<DsoId, bool> = BTreeMap::new();
        for frame in frames {
            if let (Some(dso), FrameKind::User | FrameKind::Kernel) =
                (profile.frames[frame].dso, profile.frames[frame].kind)
            {
                let lines = profile.symbols.of(frame);
                *seen.entry(dso).or_default() |= lines.is_empty();
                files.entry(dso).or_default().has_lines |= lines.iter().any(|line| line.line != 0);
            }
        }
        for (dso, nameless) in seen {
            let lacks = files.entry(dso).or_default();
            lacks.samples += samples;
            lacks.names += samples * u64::from(nameless);
        }
    }
    let mut files: Vec<(DsoId, Lacks)> = files.into_iter().collect();
    files.sort_by_key(|(_, lacks)| std::cmp::Reverse((lacks.names, !lacks.has_lines, lacks.samples)));
    files.iter().take(FILES).filter_map(|(dso, lacks)| file(profile, *dso, lacks)).collect()
}

fn file(profile: &Profile, dso: DsoId, lacks: &Lacks) -> Option<Finding> {
    let dso = &profile.dsos[dso];
    let path = profile.strings.get(dso.path);
    if lacks.names > 0 {
        let text = format!("functions without names in {} of its {} samples", lacks.names, lacks.samples);
        let remedy = match dso.kind {
            DsoKind::Anonymous { pid } if let Some(runtime) = Runtime::of(profile, pid) => {
                runtime.names(&Told::of(profile, pid))
            }
            DsoKind::Anonymous { pid } => {
                MissingSymbols::NoPerfMap { path: format!("/tmp/perf-{pid}.map").into() }.remedy().to_owned()
            }
            kind if kind.is_kernel() => MissingSymbols::KernelHidden.remedy().to_owned(),
            // A file whose headers could not be read.
            DsoKind::File if dso.addresses == AddressSpace::FileOffset => {
                MissingSymbols::Absent { path: path.into() }.remedy().to_owned()
            }
            _ => MissingSymbols::NoSymbols.remedy().to_owned(),
        };
        return Some(Finding::new(Limited, path, text).remedy(remedy));
    }
    // The kernel's lines are rarely available, and rarely missed; without addresses no lines can be found.
    if !lacks.has_lines && dso.kind == DsoKind::File && dso.addresses != AddressSpace::Line {
        let text = "no debug information: no lines, no inlined calls";
        return Some(Finding::new(Limited, path, text).remedy(MissingSymbols::NoDebugInfo.remedy()));
    }
    Some(Finding::new(Good, path, "names are there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_profile::{Address, Dso, Event, Found, Frame, Process, Sample, Thread, Truncation};

    #[test]
    fn files_are_blamed_for_what_they_lack() {
        let mut profile = Profile::default();
        let empty = profile.strings.empty();
        let path = profile.strings.add("/usr/lib/libstripped.so");
        let dso = Dso { path, build_id: None, kind: DsoKind::File, addresses: AddressSpace::Svma };
        let dso = profile.dsos.add(dso);
        let event = profile.events.push(Event { name: empty, unit: empty });
        let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
        let thread = profile.threads.push(Thread { process, tid: 1, comm: empty });
        let code = Frame {
            kind: FrameKind::User,
            dso: Some(dso),
            address: Address(16),
            is_return: false,
            found: Found::Sampled,
        };
        let frames = [
            profile.frames.add(code),
            profile.frames.add(Frame::marker(Truncation::NoUnwindInfo, Some(dso))),
        ];
        let stack = profile.add_stack(&frames);
        profile.samples.push(Sample { time_ns: 0, thread, cpu: 0, event, stack, syscall: None, weight: 1 });
        profile.meta.lost_samples = 3;

        let findings = findings(&profile);
        let of = |what: &str, says: &str| {
            let found = findings.iter().find(|f| f.what.contains(what) && f.says.contains(says));
            found.unwrap_or_else(|| panic!("no {what}: {says} in {findings:?}")).clone()
        };
        assert_eq!(of("losses", "3 samples lost").state, Limited);
        assert_eq!(of("stacks", "0% complete").state, Limited);
        assert!(of("libstripped", "no unwind information").remedy.contains("-fasynchronous-unwind-tables"));
        assert!(!of("libstripped", "without names in 1 of its 1 samples").remedy.is_empty());
    }

    /// `_start` and functions in assembly have no lines in any program.
    #[test]
    fn a_file_has_debug_information_if_one_of_its_functions_has_lines() {
        let (lined, bare) =
            (Lacks { samples: 2, has_lines: true, names: 0 }, Lacks { samples: 2, ..Default::default() });
        let mut profile = Profile::default();
        let path = profile.strings.add("/usr/bin/program");
        let dso = Dso { path, build_id: None, kind: DsoKind::File, addresses: AddressSpace::Svma };
        let dso = profile.dsos.add(dso);
        assert_eq!(file(&profile, dso, &lined).expect("a finding").state, Good);
        let finding = file(&profile, dso, &bare).expect("a finding");
        assert_eq!(finding.state, Limited);
        assert!(finding.says.contains("no debug information"), "{finding:?}");
    }

    #[test]
    fn an_empty_recording_is_no_division_by_zero() {
        let findings = findings(&Profile::default());
        assert_eq!(findings.first().map(|finding| finding.state), Some(Missing));
    }
}
