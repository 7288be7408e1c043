//! When a table of the kernel's symbols holds: since the machine was started, and with the same modules at the same
//! places.

use std::fs;

use twox_hash::XxHash3_64;

use crate::options::Options;

/// A name for what holds now; `None` if that can't be told.
pub(crate) fn of(options: &Options) -> Option<Vec<u8>> {
    let boot = fs::read_to_string(options.proc.join("sys/kernel/random/boot_id")).ok()?;
    let mut key: Vec<u8> = boot.trim_end().bytes().filter(u8::is_ascii_hexdigit).collect();
    if key.len() != 32 {
        return None;
    }
    // Without support for modules there is no list.
    let modules = fs::read_to_string(options.proc.join("modules")).unwrap_or_default();
    let mut places = String::new();
    for line in modules.lines() {
        // Name, size, uses, users, state, address: what uses it changes all the time.
        let mut fields = line.split(' ');
        for field in [fields.next(), fields.next(), fields.nth(2), fields.next()] {
            places += field?;
            places.push(' ');
        }
    }
    key.extend(XxHash3_64::oneshot(places.as_bytes()).to_le_bytes());
    // Another table than this machine's own, for tests.
    key.extend(XxHash3_64::oneshot(options.kallsyms.as_os_str().as_encoded_bytes()).to_le_bytes());
    Some(key)
}
