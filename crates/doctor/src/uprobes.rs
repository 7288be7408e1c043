//! Uprobes of any tool that are set now: which of them the kernel single-steps, and where they cost less.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plumb_analyze::cut_middle;
use plumb_capture_perf::Tracefs;
use plumb_process::{Uprobe, parse_uprobe_events, uprobes_in_processes};
use plumb_symbolize::{ProbeSite, ProbeStep, probe_site};

use crate::finding::Finding;
use crate::finding::FindingState::{Good, Limited};

/// Most probes that are named.
const NAMED: usize = 5;
/// Most probes whose files are read: one of them may be large.
const LOOKED_AT: usize = 100;

/// Columns of a name.
const WIDTH: usize = 60;

/// The probes of one instruction.
struct Probed {
    /// `GROUP/EVENT` of each that tracefs lists.
    names: Vec<String>,
    has_return: bool,
    path: PathBuf,
    site: ProbeSite,
}

/// Returns a finding on the cost of active uprobes; `None` if there are none, or this user may not see them.
pub(super) fn finding() -> Option<Finding> {
    let listed = Tracefs::open().and_then(|tracefs| fs::read_to_string(tracefs.path().join("uprobe_events")));
    let mut all = parse_uprobe_events(&listed.unwrap_or_default());
    all.extend(uprobes_in_processes());
    said(&probed(all))
}

/// Groups probes by instruction, and looks at the instructions.
fn probed(all: Vec<Uprobe>) -> Vec<Probed> {
    let mut places: BTreeMap<(PathBuf, u64), (Vec<String>, bool)> = BTreeMap::new();
    for Uprobe { path, offset, name, is_return } in all {
        // A path through the root directory of a process would lead to a file of this one.
        let is_inside = path.starts_with("/proc");
        let path = if is_inside { path } else { fs::canonicalize(&path).unwrap_or(path) };
        let place = places.entry((path, offset)).or_default();
        place.0.extend(name);
        place.1 |= is_return;
    }
    let options = plumb_symbolize::Options::default();
    let look = |((path, offset), (names, has_return)): ((PathBuf, u64), _)| {
        let site = probe_site(&path, offset, &options);
        Probed { names, has_return, path, site }
    };
    places.into_iter().take(LOOKED_AT).map(look).collect()
}

fn said(all: &[Probed]) -> Option<Finding> {
    let what = "uprobes";
    let of = |step: ProbeStep| all.iter().filter(move |one| one.site.step == step);
    let (stepped, emulated) = (of(ProbeStep::Stepped).count(), of(ProbeStep::Emulated).count());
    let unknown = all.len() - stepped - emulated;
    let number = match all.len() {
        0 => return None,
        1 => "set at 1 instruction".to_owned(),
        count => format!("set at {count} instructions"),
    };
    let rest = if unknown > 0 { format!(", {unknown} unknown") } else { String::new() };
    if stepped == 0 {
        return Some(Finding::new(Good, what, format!("{number}: {emulated} emulated by the kernel{rest}")));
    }
    let named: Vec<String> = of(ProbeStep::Stepped).take(NAMED).map(Probed::text).collect();
    let more = if stepped > NAMED { format!(" and {} more", stepped - NAMED) } else { String::new() };
    let text = format!(
        "{number}: {stepped} single-stepped by the kernel, which costs each pass several times as much (up to 10 us), {emulated} \
         emulated{rest}; single-stepped: {}{more}",
        named.join(", ")
    );
    let remedies: Vec<String> = of(ProbeStep::Stepped).filter_map(Probed::remedy).take(NAMED).collect();
    let finding = Finding::new(Limited, what, text);
    Some(if remedies.is_empty() {
        finding
    } else {
        finding.remedy(format!("probe these instead, which the kernel emulates: {}", remedies.join(", ")))
    })
}

impl Probed {
    /// `FILE:FUNCTION+OFFSET (GROUP/EVENT)`.
    fn text(&self) -> String {
        let place = self.place(self.site.distance);
        if self.names.is_empty() { place } else { format!("{place} ({})", self.names.join(", ")) }
    }

    /// An instruction to probe instead. The return address is on top of the stack at the entry alone.
    fn remedy(&self) -> Option<String> {
        self.site.better.filter(|_| !self.has_return).map(|better| self.place(better))
    }

    fn place(&self, distance: u64) -> String {
        let file = self.path.file_name().map_or(self.path.as_path(), Path::new).display();
        let function = self.site.function.as_deref().unwrap_or("code without a name");
        let function = cut_middle(function, WIDTH);
        if distance == 0 { format!("{file}:{function}") } else { format!("{file}:{function}+{distance}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(step: ProbeStep, better: Option<u64>, has_return: bool) -> Probed {
        let site = ProbeSite { function: Some("f".into()), distance: 0, step, better };
        Probed { names: vec!["g/f".into()], has_return, path: "/opt/a".into(), site }
    }

    #[test]
    fn stepped_probes_are_named_with_a_better_place() {
        assert_eq!(said(&[]), None);
        let good = said(&[one(ProbeStep::Emulated, None, false)]).expect("there is one");
        assert_eq!((good.state, good.remedy.as_str()), (Good, ""));
        let all = [one(ProbeStep::Stepped, Some(4), false), one(ProbeStep::Unknown, None, false)];
        let limited = said(&all).expect("there are two");
        assert_eq!(limited.state, Limited);
        assert!(limited.says.contains("set at 2 instructions: 1 single-stepped"), "{}", limited.says);
        assert!(limited.says.ends_with("single-stepped: a:f (g/f)"), "{}", limited.says);
        assert!(limited.remedy.ends_with(": a:f+4"), "{}", limited.remedy);
        let returns = said(&[one(ProbeStep::Stepped, Some(4), true)]).expect("there is one");
        assert_eq!(returns.remedy, "", "a return is probed at the entry");
    }
}
