//! The vdso: the code that the kernel maps into every process.

use std::cell::OnceCell;
use std::io::Cursor;

use plumb_process::{Elf, vdso};
use plumb_profile::{AddressSpace, BuildId, Dso, DsoId, DsoKind, Profile};
use plumb_table_cache::module_of;
use plumb_unwind::{Architecture, Module, Native};

/// The recorded machine's vdso, if it is the same as this machine's.
#[derive(Debug, Default)]
pub(crate) struct Vdso {
    image: OnceCell<Option<VdsoImage>>,
    dso: Option<DsoId>,
    /// Build ID on the recorded machine, if it may differ from this machine's.
    pub(crate) build_id: Option<Box<[u8]>>,
    /// Whether the recorded machine is of another architecture than this one.
    pub(crate) is_elsewhere: bool,
}

/// Headers and unwind information of a vdso.
#[derive(Debug)]
pub(crate) struct VdsoImage {
    pub(crate) elf: Elf,
    pub(crate) module: Module<Vec<u8>>,
}

impl Vdso {
    /// This machine's vdso, unless the recorded machine had another one.
    pub(crate) fn image(&self) -> Option<&VdsoImage> {
        let load = || {
            let image = vdso().filter(|_| !self.is_elsewhere)?;
            let elf = Elf::read(Cursor::new(&image)).ok()?;
            if self.build_id.is_some() && self.build_id != elf.build_id {
                return None;
            }
            let module = module_of(elf.unwind_sections_in(&image), Native::ISA, None);
            Some(VdsoImage { elf, module })
        };
        self.image.get_or_init(load).as_ref()
    }

    /// Forgets its row.
    pub(crate) fn forget_row(&mut self) {
        self.dso = None;
    }

    /// The DSO of its frames.
    pub(crate) fn dso(&mut self, profile: &mut Profile) -> DsoId {
        if let Some(id) = self.dso {
            return id;
        }
        let ours = self.image().and_then(|vdso| vdso.elf.build_id.clone());
        let build_id = ours.or(self.build_id.clone()).and_then(|id| BuildId::new(&id));
        let path = profile.strings.add("[vdso]");
        let dso = Dso { path, build_id, kind: DsoKind::Vdso, addresses: AddressSpace::Svma };
        *self.dso.insert(profile.dsos.add(dso))
    }
}
