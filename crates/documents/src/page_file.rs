//! The page of `plumb open` as one file that needs no server: it contains the answers for one selection.
//!
//! Invariant: data from a profile cannot end the HTML element that contains it. The data is base64, the title is
//! escaped; the page's own policy forbids any script but its own.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use plumb_analyze::Flame;
use plumb_formats::escape::printable;

use crate::answers::{AnswerError, LoadedRecording, NamedFiles, Parameters, RecordingEntry};
use crate::flame::{Facts, payload};
use crate::packet::{Packet, PacketLead};

/// Built by `npm run build` in web/, and committed: a machine that builds plumb may not have node.
const PAGE: &str = include_str!("../../../web/dist/offline.html");

/// Number of timeline bins, as the page requests them from a server: narrower ones would hold a handful of samples.
const MOST_BINS: usize = 600;
const SAMPLES_PER_BIN: usize = 8;

/// Returns a packet for a page about these recordings, which opens on `view`. `files`: whether files that the recordings name may be read.
pub fn packet(recordings: &[LoadedRecording], view: &str, files: NamedFiles) -> Packet {
    let lead = PacketLead {
        plumb: env!("CARGO_PKG_VERSION"),
        recordings: RecordingEntry::of_all(recordings),
        view: view.to_owned(),
        title: None,
    };
    Packet::new(lead, files)
}

/// Adds the data of all views of a recording except the flame graph and code.
pub fn ask_views(packet: &mut Packet, recordings: &[LoadedRecording], id: usize, parameters: &Parameters) {
    let samples = recordings.get(id).map_or(0, |recording| recording.profile.samples.len());
    let bins = (samples / SAMPLES_PER_BIN).clamp(60, MOST_BINS).to_string();
    packet.ask((recordings, id), "/timeline", &parameters.clone().with("bins", &bins), &[]);
    for path in ["", "/functions", "/heatmap", "/processes", "/kernel", "/waits", "/calls", "/explain"] {
        packet.ask((recordings, id), path, parameters, &[]);
    }
    for direction in ["top-down", "bottom-up"] {
        packet.ask((recordings, id), "/tree", parameters, &[("direction", direction)]);
    }
}

/// Creates a page that opens on a flame graph. `selection` is the part of the recording shown.
///
/// # Errors
/// An answer can't be written, a fault of plumb.
pub fn of_flame(
    recording: &LoadedRecording,
    (flame, facts): (&Flame<'_>, &Facts),
    selection: &Parameters,
    files: NamedFiles,
) -> Result<Vec<u8>, AnswerError> {
    let recordings = std::slice::from_ref(recording);
    let mut packet = packet(recordings, "flame", files);
    packet.lead.title = Some(facts.title.clone());
    packet.put(0, "/flame", payload::encode(flame, facts)?);
    ask_views(&mut packet, recordings, 0, selection);
    page(packet, &format!("{} · plumb flame", facts.title))
}

/// Creates the whole page.
///
/// # Errors
/// An answer can't be written, a fault of plumb.
pub fn page(packet: Packet, title: &str) -> Result<Vec<u8>, AnswerError> {
    let failed = |why: &dyn std::fmt::Display| AnswerError::Internal(format!("cannot write the page: {why}"));
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(&packet.encode()?).map_err(|error| failed(&error))?;
    let data = STANDARD.encode(deflate.finish().map_err(|error| failed(&error))?);
    let (head, rest) =
        PAGE.split_once("{{title}}").ok_or_else(|| failed(&"the built page has no place for a title"))?;
    let (middle, tail) =
        rest.split_once("{{data}}").ok_or_else(|| failed(&"the built page has no place for data"))?;
    let title = printable(title).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    Ok([head, &title, middle, &data, tail].concat().into_bytes())
}
