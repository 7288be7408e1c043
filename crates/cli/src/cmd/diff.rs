//! `plumb diff`: significant changes between recordings.
//!
//! Elsewhere: matching rows and testing them (analyze), making recordings.

mod limit;
pub(in crate::cmd) mod machine;
mod markdown;
mod picture;
mod shown;
#[cfg(test)]
mod tests;
mod text;

use std::io::Write;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use plumb_analyze::{Diff, DiffOptions, Filter, Per, View, is_clock};

use crate::args::FilterArgs;
use crate::exit::Exit;
use crate::render::flame;
use crate::terminal::{Output, finish, say};
use crate::words::parsed;
use plumb_syscalls::Abi;

pub use shown::Args;
use shown::{PerWhat, Recording, Shown};

/// Files compared by default: the previous recording, as `plumb record` keeps it, and the last.
const LAST_TWO: [&str; 2] = ["profile.plumb.old", "profile.plumb"];

/// Writes the changes from one recording to another as text.
pub fn written([base, new]: [&Path; 2], filters: &FilterArgs, out: &mut Output<'_>) -> Result<()> {
    let args = Args { filters: filters.clone(), ..parsed("diff", &[base, new])? };
    compare(&args, out).map(drop)
}

/// Runs `plumb diff`.
pub fn run(args: Args) -> Result<Exit> {
    if let Some(file) = in_both(&sides(&args)?) {
        say!("the same file is on both sides: {}", file.display());
    }
    let for_people = !(args.json || args.md || args.html);
    compare(&args, &mut if for_people { Output::paged() } else { Output::stdout() })
}

fn compare(args: &Args, out: &mut Output<'_>) -> Result<Exit> {
    // Before the work: an unknown file extension is reported at once.
    let format = args.output.as_deref().map(flame::format_of).transpose()?;
    let [base, new] = sides(args)?;
    let [base, new] = [read(&base, args)?, read(&new, args)?];
    let (event, unit) = the_event(base.iter().chain(&new))?;
    let per = per(args, &event, &unit)?;
    let options = DiffOptions { by: args.by.into(), children: args.children, per, alpha: args.alpha };
    let (base_views, new_views) = (views(&base), views(&new));
    for (view, one) in base_views.iter().chain(&new_views).zip(base.iter().chain(&new)) {
        if view.samples().len() == 0 {
            bail!(
                "{}: no samples{}",
                one.path.display(),
                if one.filter.takes_a_part() { " that the filters keep" } else { "" }
            );
        }
    }
    let abi = base.first().and_then(|one| Abi::of_machine(&one.profile.meta.arch));
    let diff = Diff::new(&base_views, &new_views, options, |number| plumb_syscalls::name(abi?, number));
    for limit in &args.fail_on {
        limit.check(&diff)?;
    }
    let shown =
        Shown { diff: &diff, sides: [&base, &new], views: [&base_views, &new_views], event, unit, args };
    if let (Some(output), Some(format), false) = (&args.output, format, args.html) {
        flame::write(output, &picture::draw(&shown, format)?)?;
    }
    finish(match (args.json, args.md, args.html) {
        (true, ..) => machine::json(&shown, out),
        (_, true, _) => markdown::write(&shown, out),
        (_, _, true) => page(&shown, out),
        _ => text::write(&shown, out),
    })?;
    let exceeded = args.fail_on.iter().filter(|limit| limit.is_exceeded(&diff)).inspect(|limit| {
        say!("regression limit exceeded: {limit}");
    });
    Ok(if exceeded.count() > 0 { Exit::LimitExceeded } else { Exit::Success })
}

fn page(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let page = picture::draw(shown, flame::FlameFormat::Html)?;
    crate::render::page::deliver(&page, shown.args.output.as_deref(), "diff", out)?;
    Ok(out.flush()?)
}

fn views(side: &[Recording]) -> Vec<View<'_>> {
    side.iter().map(|one| View::new(&one.profile, &one.filter)).collect()
}

/// The files of both sides.
fn sides(args: &Args) -> Result<[Vec<PathBuf>; 2]> {
    match (&args.base[..], &args.new[..]) {
        ([], []) if LAST_TWO.iter().all(|name| Path::new(name).exists()) => {
            Ok(LAST_TWO.map(|name| vec![name.into()]))
        }
        ([], []) => {
            bail!("plumb diff needs two recordings: plumb diff BASE NEW (there is no {})", LAST_TWO[0])
        }
        ([base, new], []) => Ok([vec![base.clone()], vec![new.clone()]]),
        (base, new) if !base.is_empty() && !new.is_empty() => Ok([base.to_vec(), new.to_vec()]),
        _ => bail!(
            "which recordings are new? plumb diff BASE NEW, or with several of a side plumb diff BASE... -- NEW..."
        ),
    }
}

/// A file that is given on both sides, under whatever name.
fn in_both([base, new]: &[Vec<PathBuf>; 2]) -> Option<&Path> {
    let identity = |path: &PathBuf| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let known: Vec<_> = base.iter().filter_map(identity).collect();
    new.iter().find(|path| identity(path).is_some_and(|one| known.contains(&one))).map(PathBuf::as_path)
}

fn read(paths: &[PathBuf], args: &Args) -> Result<Vec<Recording>> {
    let one = |path: &PathBuf| {
        let profile = Arc::new(crate::load::load(path, &args.filters.symfs)?);
        let mut filters = args.filters.filter_per_event(&profile)?;
        // Of several events, the one that counts CPU time.
        let by_clock = |filter: &Filter| {
            filter.event.is_none_or(|event| is_clock(profile.strings.get(profile.events[event].name)))
        };
        let at = filters.iter().position(by_clock).unwrap_or(0);
        Ok(Recording { path: path.clone(), filter: filters.swap_remove(at), profile })
    };
    paths.iter().map(one).collect()
}

/// Name and unit of the event, which must be the same in all recordings except for perf's modifiers after a colon.
fn the_event<'r>(recordings: impl Iterator<Item = &'r Recording>) -> Result<(String, String)> {
    let mut found: Option<(String, String)> = None;
    for one in recordings {
        let profile = &one.profile;
        let event = one.filter.event.map(|event| &profile.events[event]).or(profile.events.rows().first());
        let text = |id| profile.strings.get(id).to_owned();
        let (name, unit) = event.map_or_else(Default::default, |event| (text(event.name), text(event.unit)));
        let name = name.split(':').next().unwrap_or_default().to_owned();
        match &found {
            None => found = Some((name, unit)),
            // Clocks with different names count the same.
            Some((known, same)) if *known == name || *same == unit && is_clock(known) && is_clock(&name) => {}
            Some((known, _)) => bail!(
                "{}: samples of {name} can't be compared with samples of {known}; --event chooses",
                one.path.display()
            ),
        }
    }
    Ok(found.unwrap_or_default())
}

fn per(args: &Args, event: &str, unit: &str) -> Result<Per> {
    match (args.per, args.iterations) {
        (None | Some(PerWhat::Iteration), Some(counts)) => Ok(Per::Iteration(counts)),
        (Some(PerWhat::Iteration), None) => {
            bail!("--per iteration needs to know how many there were: --iterations BASE,NEW")
        }
        (Some(_), Some(_)) => bail!("--iterations goes with --per iteration"),
        (Some(PerWhat::CpuS), None) if unit != "ns" || !is_clock(event) => {
            bail!("--per cpu-s: {event} does not go by processor time")
        }
        (Some(PerWhat::CpuS), None) => Ok(Per::Second),
        (None | Some(PerWhat::Total), None) => Ok(Per::Total),
    }
}
