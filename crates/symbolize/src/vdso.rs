//! The image of the vdso, from this process' own: the kernel maps the same image into every process of one word size.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use plumb_profile::Meta;

use crate::elf::Image;
use crate::job::{Answer, Job};
use crate::kernel;
use crate::options::Options;
use crate::summary::Missing;

/// Largest vdso; real ones have two pages.
const MAX_SIZE: u64 = 1 << 20;

/// The vdso that was recorded, if this kernel's is the same.
pub(crate) fn open(job: &Job, options: &Options, meta: &Meta, answer: &mut Answer) -> Option<Rc<Image>> {
    let image = own_image().map_err(|missing| answer.miss(missing)).ok()?;
    let is_same = match &job.build_id {
        Some(build_id) => image.build_id.as_ref() == Some(build_id),
        None => kernel::is_running(meta, options).is_ok(),
    };
    if !is_same {
        answer.miss(Missing::Replaced { path: image.path });
        return None;
    }
    answer.summary.sources.push(image.path.clone());
    Some(Rc::new(image))
}

/// The vdso of this process.
fn own_image() -> Result<Image, Missing> {
    let path = Path::new("[vdso]");
    let unreadable =
        |error: std::io::Error| Missing::Unreadable { path: path.into(), error: error.to_string() };
    let maps = fs::read_to_string("/proc/self/maps").map_err(unreadable)?;
    let range = maps.lines().find(|line| line.ends_with("[vdso]")).and_then(|line| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
    });
    let (start, end) = range.ok_or_else(|| unreadable(std::io::ErrorKind::NotFound.into()))?;
    let mut bytes = vec![0; end.saturating_sub(start).min(MAX_SIZE) as usize];
    File::open("/proc/self/mem")
        .and_then(|memory| memory.read_exact_at(&mut bytes, start))
        .map_err(unreadable)?;
    Image::from_memory(path, bytes)
}
