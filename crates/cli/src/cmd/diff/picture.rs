//! The comparison as a file: the HTML page, opened on it, or a differential flame graph as an SVG.

use anyhow::{Context, Result};
use plumb_analyze::DiffFlame;
use plumb_documents::answers::{LoadedRecording, NamedFiles};
use plumb_documents::change::{ComparedNames, ComparedSide, ComparedSides};
use plumb_documents::flame::{difference, difference_svg};
use plumb_documents::page_file;
use serde_json::Value;

use super::Shown;
use crate::loaded;
use crate::render::change as words;
use crate::render::flame::{Facts, FlameFormat};

/// The file's content.
pub(super) fn draw(shown: &Shown<'_, '_>, format: FlameFormat) -> Result<Vec<u8>> {
    match format {
        FlameFormat::Html => page(shown),
        FlameFormat::Svg => {
            let verdict = words::verdict(shown.diff, &shown.event, &shown.unit);
            difference_svg::draw(&DiffFlame::new(shown.diff), &facts(shown), &verdict)
                .context("drawing the SVG")
        }
    }
}

/// The page of the first recording of each side, opened on the comparison of all of them.
fn page(shown: &Shown<'_, '_>) -> Result<Vec<u8>> {
    let facts = facts(shown);
    let [base, new] = shown.sides;
    let first = new.first().into_iter().chain(base.first());
    let recordings: Vec<LoadedRecording> =
        first.map(|one| loaded::recording(&one.path.display().to_string(), one.profile.clone())).collect();
    let mut packet = page_file::packet(&recordings, "diff", NamedFiles::Read);
    packet.lead.title = Some(facts.title.clone());
    for (id, one) in new.first().into_iter().chain(base.first()).enumerate() {
        let event = one.filter.event.map(|event| one.profile.strings.get(one.profile.events[event].name));
        let typed = shown.args.filters.parameters();
        let parameters = match event.filter(|_| typed.get("event").is_none() && one.profile.events.len() > 1)
        {
            Some(event) => typed.with("event", event),
            None => typed,
        };
        page_file::ask_views(&mut packet, &recordings, id, &parameters);
        packet.ask((&recordings, id), "/flame", &parameters, &[]);
    }
    packet.put(0, "/diff", serde_json::to_vec(&document(shown)?)?);
    packet.put(0, "/diff/flame", difference::encode(shown.diff, &facts, &names(shown))?);
    Ok(page_file::page(packet, &format!("{} · plumb diff", facts.title))?)
}

/// The data for the page's table.
fn document(shown: &Shown<'_, '_>) -> Result<Value> {
    let names = names(shown);
    let side = |side: usize| {
        let parts = || shown.views[side].iter().map(|view| view.part());
        let (samples, weight) =
            (parts().map(|part| part.samples).sum(), parts().map(|part| part.weight).sum());
        ComparedSide { name: &names[side], samples, weight }
    };
    let sides = ComparedNames { base: side(0), new: side(1), rows_left_out: shown.rest().0 };
    Ok(serde_json::to_value(shown.document(ComparedSides::Names(sides)))?)
}

pub(super) fn facts(shown: &Shown<'_, '_>) -> Facts {
    let [base, new] = names(shown);
    let profiles = || shown.sides.iter().flat_map(|side| side.iter()).map(|one| &one.profile);
    let samples =
        shown.views.iter().flat_map(|side| side.iter()).map(|view| view.samples().len() as u64).sum();
    Facts {
        title: format!("{base} → {new}"),
        samples,
        recorded: profiles().map(|profile| profile.samples.len() as u64).sum(),
        lost: profiles().map(|profile| profile.meta.lost_samples).sum(),
        unit: shown.unit.clone(),
        event: Some(shown.event.clone()),
        recorder: profiles().next().map(|profile| profile.meta.recorder.clone()),
        ..Facts::default()
    }
}

/// The name of each side: its first file, and the number of further ones.
pub(super) fn names(shown: &Shown<'_, '_>) -> [String; 2] {
    shown.sides.map(|side| {
        let first = side.first().map(|one| one.path.display().to_string()).unwrap_or_default();
        if side.len() > 1 { format!("{first} and {} more", side.len() - 1) } else { first }
    })
}
