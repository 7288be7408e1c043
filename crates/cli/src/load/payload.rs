//! The content that `plumb push` sends: a profile, or an OpenTelemetry request unchanged.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use anyhow::{Context, Result};
use plumb_formats::otlp::ExportRequest;
use plumb_profile::Profile;

use super::{load, read};
use crate::args::SymfsArgs;
use plumb_formats::kind::{FileKind, KIND_BYTES};

/// The content of a file to push.
pub enum Payload {
    /// A profile of one service.
    Profile(Box<Profile>),
    /// A request of an OpenTelemetry exporter, which may hold profiles of several services.
    Otlp(Box<ExportRequest>),
}

/// Reads a file to push, or standard input if the path is `-`. Anything but an OTLP request is read by [`load`].
pub fn payload(path: &Path, symfs: &SymfsArgs) -> Result<Payload> {
    let profile = |profile| Payload::Profile(Box::new(profile));
    let mut bytes = Vec::new();
    let name = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
        "standard input".to_owned()
    } else if may_be_foreign(path) {
        let name = path.display().to_string();
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).with_context(|| name.clone())?;
        name
    } else {
        return load(path, symfs).map(profile);
    };
    match ExportRequest::find(&bytes) {
        Some(request) => Ok(Payload::Otlp(Box::new(request))),
        None => read(Cursor::new(bytes), &name, symfs).map(profile),
    }
}

/// Whether the file may be another tool's. False for an unreadable file: [`load`] reports the error.
fn may_be_foreign(path: &Path) -> bool {
    let mut start = Vec::new();
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()));
    let read = file.is_some_and(|file| file.take(KIND_BYTES).read_to_end(&mut start).is_ok());
    read && matches!(FileKind::of(&start), FileKind::Foreign | FileKind::Packed)
}
