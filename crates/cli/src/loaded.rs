//! Recordings as views of the page take them: read, with what they lack and what helps.
//!
//! Not here: the answers on them (`plumb_report`), serving (`showing`), pages in one file (`render::page_file`).

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use plumb_profile::Profile;
use plumb_report::answers::{Lack, LoadedRecording};

use crate::stack_quality::{Stacks, nameless};

/// Loads a file to be shown.
///
/// # Errors
/// It can't be read.
pub fn load(path: &Path) -> Result<LoadedRecording> {
    let profile = crate::load::load(path)?;
    Ok(recording(&path.display().to_string(), Arc::new(profile)))
}

/// A recording that was read already.
pub fn recording(name: &str, profile: Arc<Profile>) -> LoadedRecording {
    let lacks = lacks(&profile);
    LoadedRecording { name: name.to_owned(), profile, lacks }
}

/// Missing data of a recording, with remedies.
fn lacks(profile: &Profile) -> Vec<Lack> {
    let cut = Stacks::of(profile).causes;
    let cut = cut.iter().map(|cause| Lack {
        what: format!("truncated stacks: {}", cause.text()),
        samples: cause.samples,
        remedy: cause.remedy().to_owned(),
    });
    let nameless = nameless(profile).0.into_iter().map(|place| Lack {
        what: format!("no function names: {}", place.place),
        samples: place.samples,
        remedy: place.remedy.to_owned(),
    });
    cut.chain(nameless).collect()
}
