//! The cache key of a kernel symbol table, which is valid until the machine boots, and only with the same modules at the same
//! addresses.

use std::fs;

use twox_hash::XxHash3_64;

use crate::options::Options;

/// Returns the key for the current state; `None` if it cannot be determined.
pub(crate) fn of(options: &Options) -> Option<Vec<u8>> {
    let boot = fs::read_to_string(options.proc.join("sys/kernel/random/boot_id")).ok()?;
    let mut key: Vec<u8> = boot.trim_end().bytes().filter(u8::is_ascii_hexdigit).collect();
    if key.len() != 32 {
        return None;
    }
    // A kernel without module support has no such file.
    let modules = fs::read_to_string(options.proc.join("modules")).unwrap_or_default();
    let mut places = String::new();
    for line in modules.lines() {
        // Name, size, use count, users, state, address: the use count and users change all the time.
        let mut fields = line.split(' ');
        for field in [fields.next(), fields.next(), fields.nth(2), fields.next()] {
            places += field?;
            places.push(' ');
        }
    }
    key.extend(XxHash3_64::oneshot(places.as_bytes()).to_le_bytes());
    // Distinguishes other tables than this machine's own, for tests.
    key.extend(XxHash3_64::oneshot(options.kallsyms.as_os_str().as_encoded_bytes()).to_le_bytes());
    Some(key)
}
