//! The image of the vdso, from this process' own: the kernel maps the same image into every process of one word size.

use std::path::Path;
use std::rc::Rc;

use plumb_profile::Meta;

use crate::elf::Image;
use crate::job::{Answer, Job};
use crate::kernel;
use crate::options::Options;
use crate::summary::Missing;

/// Opens the recorded vdso, if this kernel's is the same.
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

/// Opens the vdso of this process.
fn own_image() -> Result<Image, Missing> {
    let path = Path::new("[vdso]");
    let bytes = plumb_process::vdso().ok_or_else(|| Missing::Unreadable {
        path: path.into(),
        error: "this process has none that can be read".into(),
    })?;
    Image::from_memory(path, bytes)
}
