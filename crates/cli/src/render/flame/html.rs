//! The page: the built one from web/ with the data put in.
//!
//! Invariant: nothing that comes from a profile can end the element that it is in. The data is base64, the title is
//! escaped; the page's own policy forbids any script but its own.

use std::io::Write;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use plumb_analyze::Flame;
use plumb_formats::escape::printable;
use plumb_report::flame::payload;

use super::Facts;
use crate::render::page::escape;

/// Built by `npm run build` in web/, and committed: a machine that builds plumb may have no node.
const PAGE: &str = include_str!("../../../../../web/dist/flame.html");

/// The whole page.
pub fn page(flame: &Flame<'_>, facts: &Facts) -> Result<String> {
    with_data(&payload::encode(flame, facts)?, &format!("{} · plumb flame", facts.title))
}

/// The page with these data in it.
pub fn with_data(data: &[u8], title: &str) -> Result<String> {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(data)?;
    let data = STANDARD.encode(deflate.finish()?);
    let (head, rest) = PAGE.split_once("{{title}}").context("the built page has no place for a title")?;
    let (middle, tail) = rest.split_once("{{data}}").context("the built page has no place for data")?;
    Ok([head, &escape(&printable(title)), middle, &data, tail].concat())
}
