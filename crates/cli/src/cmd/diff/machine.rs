//! The table as JSON. Names of fields are stable.

use std::io::Write;

use anyhow::Result;
use plumb_documents::change::{ComparedFile, ComparedFiles, ComparedSides, RestOfRows, SpeedRatio};

use super::Shown;
use crate::terminal::Output;

/// Writes JSON.
pub(super) fn json(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let diff = shown.diff;
    let (rows, share) = shown.rest();
    let exceeded = shown.args.fail_on.iter().filter(|limit| limit.is_exceeded(diff)).map(ToString::to_string);
    let sides = ComparedFiles {
        base: files(shown, 0),
        new: files(shown, 1),
        per: diff.options.per.into(),
        speed: SpeedRatio::new(diff.speed()),
        rest: RestOfRows { rows, share },
        exceeded: exceeded.collect(),
    };
    plumb_documents::json::write_pretty(&shown.document(ComparedSides::Files(sides)), &mut *out)?;
    Ok(out.flush()?)
}

fn files<'s>(shown: &Shown<'s, '_>, side: usize) -> Vec<ComparedFile<'s>> {
    let pairs = shown.sides[side].iter().zip(shown.views[side]);
    let file = pairs.map(|(one, view)| ComparedFile {
        file: one.path.display().to_string(),
        command: &one.profile.meta.command,
        samples: view.part().samples,
        weight: view.part().weight,
        lost: one.profile.meta.lost_samples,
    });
    file.collect()
}
