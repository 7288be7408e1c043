//! Stable names of enum variants whose model type has none of its own.

use plumb_profile::{AddressSpace, DsoKind, Found, FrameKind, Truncation};

pub(super) fn of_dso_kind(kind: DsoKind) -> &'static str {
    match kind {
        // Another column distinguishes them.
        DsoKind::File | DsoKind::Script => "file",
        DsoKind::Vdso => "vdso",
        DsoKind::Kernel => "kernel",
        DsoKind::KernelModule => "kernel-module",
        DsoKind::Anonymous { .. } => "anonymous",
    }
}

/// Returns the kind called `name`; `pid` is the value of the table's column of that name.
pub(super) fn dso_kind(name: &str, pid: Option<u32>) -> Option<DsoKind> {
    Some(match name {
        "file" => DsoKind::File,
        "vdso" => DsoKind::Vdso,
        "kernel" => DsoKind::Kernel,
        "kernel-module" => DsoKind::KernelModule,
        "anonymous" => DsoKind::Anonymous { pid: pid? },
        _ => return None,
    })
}

pub(super) fn of_address_space(space: AddressSpace) -> &'static str {
    match space {
        AddressSpace::Svma => "svma",
        // Addresses of script functions.
        AddressSpace::FileOffset | AddressSpace::Line => "file-offset",
        AddressSpace::Avma => "avma",
    }
}

pub(super) fn address_space(name: &str) -> Option<AddressSpace> {
    Some(match name {
        "svma" => AddressSpace::Svma,
        "file-offset" => AddressSpace::FileOffset,
        "avma" => AddressSpace::Avma,
        _ => return None,
    })
}

pub(super) fn of_frame_kind(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::User => "user",
        FrameKind::Kernel => "kernel",
        FrameKind::Truncation(_) => "cut",
    }
}

/// Returns the kind called `name`; `cut` is the value of the table's column of that name.
pub(super) fn frame_kind(name: &str, cut: Option<&str>) -> Option<FrameKind> {
    Some(match name {
        "user" => FrameKind::User,
        "kernel" => FrameKind::Kernel,
        "cut" => FrameKind::Truncation(Truncation::from_name(cut?)?),
        _ => return None,
    })
}

pub(super) fn of_found(found: Found) -> &'static str {
    match found {
        Found::Sampled => "sampled",
        Found::Cfi => "cfi",
        Found::Signal => "signal",
        Found::FramePointer => "frame-pointer",
        Found::Stitched => "stitched",
        Found::Scan => "scan",
    }
}

pub(super) fn found(name: &str) -> Option<Found> {
    Some(match name {
        "sampled" => Found::Sampled,
        "cfi" => Found::Cfi,
        "signal" => Found::Signal,
        "frame-pointer" => Found::FramePointer,
        "stitched" => Found::Stitched,
        "scan" => Found::Scan,
        _ => return None,
    })
}
