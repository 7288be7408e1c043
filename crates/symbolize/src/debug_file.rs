//! Locates separate debug files: by build id, by `.gnu_debuglink` and from debuginfod.
//!
//! The search paths are gdb's ("Debugging Information in Separate Files" in its manual). A file found by name is used only
//! if its build id is the binary's or, without one, if the checksum in the link matches.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plumb_profile::BuildId;

use crate::elf::Image;
use crate::job::Answer;
use crate::options::Options;
use crate::summary::Missing;

/// Largest file whose checksum is computed, which takes about a second.
const MAX_CHECKED: u64 = 2 << 30;

/// Fetches the debug file with a build id from a server.
pub(crate) type Fetch<'f> = dyn Fn(&BuildId, &mut Answer) -> Option<PathBuf> + 'f;

/// Finds the debug file of `image`. Does not search if the image itself has everything.
pub(crate) fn find(
    image: &Image,
    options: &Options,
    fetch: &Fetch,
    answer: &mut Answer,
) -> Option<Rc<Image>> {
    if image.has_dwarf() {
        return None;
    }
    local_by_build_id(image.build_id.as_ref(), options, answer)
        .or_else(|| by_link(image, options, answer))
        .or_else(|| fetched(image.build_id.as_ref(), fetch, answer))
}

/// Finds the debug file with this build id, locally or with `fetch`.
pub(crate) fn by_build_id(
    build_id: Option<&BuildId>,
    options: &Options,
    fetch: &Fetch,
    answer: &mut Answer,
) -> Option<Rc<Image>> {
    local_by_build_id(build_id, options, answer).or_else(|| fetched(build_id, fetch, answer))
}

/// Opens the supplementary file that `image` shares with others (`.gnu_debugaltlink`, written by dwz).
pub(crate) fn shared(image: &Image, options: &Options, answer: &mut Answer) -> Option<Rc<Image>> {
    let bytes = image.read(image.section(".gnu_debugaltlink")?).ok()?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let name = Path::new(std::str::from_utf8(&bytes[..end]).ok()?);
    let build_id = BuildId::new(&bytes[end + 1..])?;
    let beside = image.path.parent().unwrap_or(Path::new("/")).join(name);
    let in_roots = options.debug_roots.iter().map(|root| debug_file_path(root, &build_id));
    for path in std::iter::once(beside).chain(in_roots) {
        if let Some(found) =
            try_open(&path, answer).filter(|found| found.build_id.as_ref() == Some(&build_id))
        {
            answer.summary.sources.push(path);
            return Some(found);
        }
    }
    answer.miss(Missing::Skipped { what: format!("its shared debug file {} is not there", name.display()) });
    None
}

fn local_by_build_id(
    build_id: Option<&BuildId>,
    options: &Options,
    answer: &mut Answer,
) -> Option<Rc<Image>> {
    let build_id = build_id?;
    for root in &options.debug_roots {
        let path = debug_file_path(root, build_id);
        if let Some(found) = verified(&path, build_id, answer) {
            return Some(found);
        }
    }
    None
}

/// The debug file of a build ID in a folder of debug files, such as `/usr/lib/debug`.
pub fn debug_file_path(root: &Path, build_id: &BuildId) -> PathBuf {
    let hex = build_id.to_string();
    let (folder, name) = hex.split_at(2);
    root.join(".build-id").join(folder).join(format!("{name}.debug"))
}

fn fetched(build_id: Option<&BuildId>, fetch: &Fetch, answer: &mut Answer) -> Option<Rc<Image>> {
    let build_id = build_id?;
    let path = fetch(build_id, answer)?;
    verified(&path, build_id, answer)
}

fn verified(path: &Path, build_id: &BuildId, answer: &mut Answer) -> Option<Rc<Image>> {
    let found = try_open(path, answer)?;
    if found.build_id.as_ref() != Some(build_id) {
        answer.miss(Missing::Replaced { path: path.into() });
        return None;
    }
    answer.summary.sources.push(path.into());
    Some(found)
}

/// Opens the file that `.gnu_debuglink` names, in the directories where gdb looks.
fn by_link(image: &Image, options: &Options, answer: &mut Answer) -> Option<Rc<Image>> {
    let (name, checksum) = link(image)?;
    let folder = image.path.parent().unwrap_or(Path::new("/"));
    let mut places = vec![folder.join(&name), folder.join(".debug").join(&name)];
    // For an open file descriptor or a file seen through another process, the recorded directory differs from this one.
    let recorded = Path::new(&answer.summary.path).parent().unwrap_or(folder).to_owned();
    for root in &options.debug_roots {
        for folder in [folder, &recorded] {
            let folder = root.join(folder.strip_prefix("/").unwrap_or(folder));
            for place in [folder.join(&name), folder.join(".debug").join(&name)] {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
    }
    for path in places.into_iter().filter(|path| *path != image.path) {
        let Some(found) = try_open(&path, answer) else { continue };
        let is_right = match (&found.build_id, &image.build_id) {
            (Some(found), Some(wanted)) => found == wanted,
            _ => crc32(&found) == Some(checksum),
        };
        if is_right {
            answer.summary.sources.push(path);
            return Some(found);
        }
        answer.miss(Missing::Replaced { path });
    }
    None
}

/// Returns the file name and the checksum in `.gnu_debuglink`.
fn link(image: &Image) -> Option<(String, u32)> {
    let bytes = image.read(image.section(".gnu_debuglink")?).ok()?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let name = std::str::from_utf8(&bytes[..end]).ok()?;
    // Only a bare name is accepted: a path could lead anywhere.
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let checksum = bytes.get((end + 1).next_multiple_of(4)..)?.first_chunk::<4>()?;
    Some((name.to_owned(), object::Endian::read_u32(image.form.endian, *checksum)))
}

/// Returns the file's CRC-32 as defined for `.gnu_debuglink`.
fn crc32(image: &Image) -> Option<u32> {
    if image.len() > MAX_CHECKED {
        return None;
    }
    let mut crc = crc32fast::Hasher::new();
    let mut offset = 0;
    while offset < image.len() {
        let bytes = image.read_up_to(offset, 1 << 20).ok().filter(|bytes| !bytes.is_empty())?;
        crc.update(&bytes);
        offset += bytes.len() as u64;
    }
    Some(crc.finalize())
}

/// Opens a file that may not exist.
fn try_open(path: &Path, answer: &mut Answer) -> Option<Rc<Image>> {
    if !path.exists() {
        return None;
    }
    Image::open(path).map(Rc::new).map_err(|missing| answer.miss(missing)).ok()
}
