//! The page of `plumb open` as one file that needs no server: the answers on one selection are inside.
//!
//! Invariant: nothing that comes from a profile can end the element that it is in. The data is base64, the title is
//! escaped; the page's own policy forbids any script but its own.

use std::io::Write;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use plumb_formats::escape::printable;
use plumb_report::answers::{LoadedRecording, Parameters};
use plumb_report::packet::Packet;

use super::page::escape;

/// Built by `npm run build` in web/, and committed: a machine that builds plumb may have no node.
const PAGE: &str = include_str!("../../../../web/dist/offline.html");

/// Bins of the timeline, as the page asks a server for them: narrower ones would hold a handful of samples.
const MOST_BINS: usize = 600;
const SAMPLES_PER_BIN: usize = 8;

/// A packet for a page about these recordings, which opens on `view`.
pub fn packet(recordings: &[LoadedRecording], view: &str) -> Packet {
    let entries: Vec<_> = recordings.iter().enumerate().map(|(id, recording)| recording.entry(id)).collect();
    let mut packet = Packet::default();
    packet.lead("plumb", env!("CARGO_PKG_VERSION"));
    packet.lead("recordings", entries);
    packet.lead("view", view);
    packet
}

/// Puts in what all views show of a recording but the flame graph and code.
pub fn ask_views(packet: &mut Packet, recordings: &[LoadedRecording], id: usize, parameters: &Parameters) {
    let samples = recordings.get(id).map_or(0, |recording| recording.profile.samples.len());
    let bins = (samples / SAMPLES_PER_BIN).clamp(60, MOST_BINS).to_string();
    packet.ask((recordings, id), "/timeline", &parameters.clone().with("bins", &bins), &[]);
    for path in ["", "/functions", "/heatmap", "/processes", "/kernel", "/calls", "/explain"] {
        packet.ask((recordings, id), path, parameters, &[]);
    }
    for direction in ["top-down", "bottom-up"] {
        packet.ask((recordings, id), "/tree", parameters, &[("direction", direction)]);
    }
}

/// The whole page.
pub fn page(packet: Packet, title: &str) -> Result<Vec<u8>> {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(&packet.encode()?)?;
    let data = STANDARD.encode(deflate.finish()?);
    let (head, rest) = PAGE.split_once("{{title}}").context("the built page has no place for a title")?;
    let (middle, tail) = rest.split_once("{{data}}").context("the built page has no place for data")?;
    Ok([head, &escape(&printable(title)), middle, &data, tail].concat().into_bytes())
}
