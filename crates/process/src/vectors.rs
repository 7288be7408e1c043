//! Scalable vectors (Documentation/arch/arm64/sve.rst of the kernel).

use std::fs;

/// Length in bytes of SVE's vectors in new processes, or `None` if this machine has none. A thread may have others after `prctl(PR_SVE_SET_VL)`.
pub fn vector_bytes() -> Option<u64> {
    fs::read_to_string("/proc/sys/abi/sve_default_vector_length").ok()?.trim().parse().ok()
}
