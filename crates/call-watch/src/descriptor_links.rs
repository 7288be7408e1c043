//! Looks up descriptors: links in /proc, and for sockets the tables in /proc/net (proc(5)).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use plumb_process::living_thread;
use plumb_syscalls::{Ask, Descriptors};

/// Time for which the socket table of a network namespace is reused before it is read again.
const GOOD: Duration = Duration::from_millis(50);

/// Most sockets that are cached; beyond that the cache is cleared.
const MOST: usize = 1 << 16;

/// Looks up descriptors in /proc, with a cache.
#[derive(Default)]
pub struct DescriptorLinks {
    /// Sockets by inode, of all network namespaces.
    sockets: HashMap<u64, String>,
    /// Time when the tables of each network namespace were read.
    read: HashMap<PathBuf, Instant>,
}

impl Ask for DescriptorLinks {
    fn descriptor(&mut self, pid: u32, fd: i32) -> Option<String> {
        self.link(living_thread(pid), fd)
    }

    fn folder(&mut self, pid: u32) -> Option<String> {
        Some(fs::read_link(format!("/proc/{}/cwd", living_thread(pid))).ok()?.to_string_lossy().into_owned())
    }
}

impl DescriptorLinks {
    /// The target of a descriptor of a process, which may be one of its threads.
    fn link(&mut self, pid: u32, fd: i32) -> Option<String> {
        let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?.to_string_lossy().into_owned();
        let inode = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')?.parse().ok());
        Some(inode.and_then(|inode| self.socket(pid, inode)).unwrap_or(link))
    }

    /// The description of a socket in the process' network namespace. Reads all sockets at once: a server has many.
    fn socket(&mut self, pid: u32, inode: u64) -> Option<String> {
        if let Some(known) = self.sockets.get(&inode) {
            return Some(known.clone());
        }
        let network = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        if self.read.get(&network).is_some_and(|read| read.elapsed() < GOOD) {
            return None;
        }
        if self.sockets.len() > MOST {
            self.sockets.clear();
        }
        let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
        for (file, name) in [("tcp", "TCP"), ("tcp6", "TCPv6"), ("udp", "UDP"), ("udp6", "UDPv6")] {
            self.sockets.extend(table(file).lines().filter_map(|line| internet(line, name)));
        }
        self.sockets.extend(table("unix").lines().filter_map(unix));
        self.read.insert(network, Instant::now());
        self.sockets.get(&inode).cloned()
    }
}

/// Reads the descriptors and the working directory of a process.
pub fn learn(descriptors: &mut Descriptors, asked: &mut DescriptorLinks, pid: u32) {
    if let Some(folder) = asked.folder(pid) {
        descriptors.learn_folder(pid, folder);
    }
    let living = living_thread(pid);
    let entries = fs::read_dir(format!("/proc/{living}/fd")).into_iter().flatten().flatten();
    for fd in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let Some(name) = asked.link(living, fd) else { continue };
        descriptors.learn(pid, fd, name, is_closed_by_exec(living, fd));
    }
}

fn is_closed_by_exec(pid: u32, fd: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok()).unwrap_or(0);
    /// O_CLOEXEC, which is the same on all traced architectures.
    const CLOEXEC: i32 = 0o2000000;
    flags & CLOEXEC != 0
}

/// Parses a line of the table of Unix sockets.
fn unix(line: &str) -> Option<(u64, String)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let name = fields.get(7).map_or_else(|| "UNIX".to_owned(), |path| format!("UNIX \"{path}\""));
    Some((fields.get(6)?.parse().ok()?, name))
}

/// Parses a line of a table of internet sockets: inode and addresses.
fn internet(line: &str, name: &str) -> Option<(u64, String)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let inode = fields.get(9)?.parse().ok()?;
    let (own, (other, port)) = (address(fields.get(1)?)?, address(fields.get(2)?)?);
    let mut text = format!("{name} {}:{}", own.0, own.1);
    if port != 0 {
        let _ = write!(text, " \u{2192} {other}:{port}");
    }
    Some((inode, text))
}

/// Parses an address in the kernel's format: hexadecimal words in memory order, and the port.
fn address(text: &str) -> Option<(String, u16)> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for at in (0..address.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    let said = match (<[u8; 4]>::try_from(&bytes[..]), <[u8; 16]>::try_from(&bytes[..])) {
        (Ok(four), _) => Ipv4Addr::from(four).to_string(),
        (_, Ok(sixteen)) => format!("[{}]", Ipv6Addr::from(sixteen)),
        _ => return None,
    };
    Some((said, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn descriptors_of_this_test_are_known() {
        let own = std::process::id();
        let file = fs::File::open("/proc/self/status").expect("it is there");
        let mut asked = DescriptorLinks::default();
        let name = asked.descriptor(own, file.as_raw_fd()).expect("it is open");
        assert!(name.starts_with("/proc/") && name.ends_with("/status"), "{name}");
        assert!(is_closed_by_exec(own, file.as_raw_fd()), "Rust opens files so");
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback");
        let name = asked.descriptor(own, listener.as_raw_fd()).expect("it is open");
        assert_eq!(name, format!("TCP {}", listener.local_addr().expect("it is bound")));
    }

    #[test]
    fn damaged_tables_are_none() {
        assert_eq!(address("0100007F:0050"), Some(("127.0.0.1".into(), 80)));
        for bad in ["", ":", "0100007:50", "zz00007F:0050", "0100007F:", "0100007F0100007F:1"] {
            assert_eq!(address(bad), None, "{bad}");
        }
        assert_eq!(internet("0: 0100007F:0050", "TCP"), None);
        assert_eq!(unix("0000: 00000002 00000000 00010000 0001 01"), None);
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 15 /run/x";
        assert_eq!(unix(line), Some((15, "UNIX \"/run/x\"".into())));
    }
}
