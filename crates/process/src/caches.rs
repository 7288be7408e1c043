//! Sizes of the CPU's caches, from sysfs (Documentation/ABI/testing/sysfs-devices-system-cpu).

use std::fs::read_to_string;
use std::path::Path;

/// Returns the data cache size of each level of CPU 0 in bytes, from level 1 on, where known.
pub fn cache_sizes() -> [Option<u64>; 4] {
    sizes_in(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

fn sizes_in(folder: &Path) -> [Option<u64>; 4] {
    let mut sizes = [None; 4];
    for index in 0..16 {
        let read = |name: &str| read_to_string(folder.join(format!("index{index}/{name}"))).ok();
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size")) else {
            break;
        };
        let level = level.trim().parse::<usize>().ok().and_then(|level| level.checked_sub(1));
        if let Some(slot) =
            level.and_then(|level| sizes.get_mut(level)).filter(|_| kind.trim() != "Instruction")
        {
            *slot = bytes(size.trim());
        }
    }
    sizes
}

/// Parses a size in the kernel's format: `32768K`.
fn bytes(size: &str) -> Option<u64> {
    let (number, unit) = match size.split_at_checked(size.len().checked_sub(1)?)? {
        (number, "K") => (number, 1 << 10),
        (number, "M") => (number, 1 << 20),
        _ => (size, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_kibibytes_as_a_rule() {
        assert_eq!(bytes("32768K"), Some(32 << 20));
        assert_eq!(bytes("2M"), Some(2 << 20));
        assert_eq!(bytes("512"), Some(512));
        assert_eq!(bytes(""), None);
        assert_eq!(bytes("99999999999999999999K"), None);
        assert_eq!(sizes_in(Path::new("/nowhere")), [None; 4]);
    }
}
