//! Finds the user at the other end of a local connection.
//!
//! The kernel lists all sockets with their owners in /proc/net/tcp and tcp6 (Documentation/networking/proc_net_tcp.rst): the other end's
//! socket has this end's addresses, swapped. Addresses are 32-bit words in the machine's byte order, as hexadecimal digits.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use tokio::net::TcpStream;

/// The user who owns the socket at the other end; `None` if it isn't on this machine.
pub(super) fn of(peer: SocketAddr, stream: &TcpStream) -> Option<u32> {
    let here = stream.local_addr().ok()?;
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        in_table(&text, peer, here)
    })
}

fn in_table(text: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let [local, remote] = [forms(local), forms(remote)];
    text.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (from, to) = (fields.next()?, fields.next()?);
        let is_it = local.iter().any(|one| one == from) && remote.iter().any(|one| one == to);
        // State, queues, timer and retransmissions precede the user.
        is_it.then(|| fields.nth(4)?.parse().ok()).flatten()
    })
}

/// An address in the tables' format: as IPv4, and as in an IPv6 socket.
fn forms(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let hex = |bytes: &[u8]| {
        let mut text = String::new();
        for word in bytes.chunks_exact(4) {
            let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
            _ = write!(text, "{word:08X}");
        }
        format!("{text}:{port:04X}")
    };
    let mapped = |one: Ipv6Addr| hex(&one.octets());
    match address.ip() {
        IpAddr::V4(four) => vec![hex(&four.octets()), mapped(four.to_ipv6_mapped())],
        IpAddr::V6(six) => vec![mapped(six)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of Linux on x86_64.
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:11EF 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31217 1 0000000000000000 100 0 0 10 0
   1: 0100007F:CB2C 0100007F:11EF 01 00000000:00000000 00:00000000 00000000  1000        0 30163 1 0000000000000000 20 4 30 10 -1
   2: 0000000000000000FFFF00000100007F:CB2E 0000000000000000FFFF00000100007F:11EF 01 00000000:00000000 00:00000000 00000000  1001        0 30164 1
";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_owner_of_the_other_end_is_found() {
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(in_table(TABLE, at(0xCB2C), at(0x11EF)), Some(1000));
        assert_eq!(in_table(TABLE, at(0xCB2E), at(0x11EF)), Some(1001));
        assert_eq!(in_table(TABLE, at(0xCB2D), at(0x11EF)), None);
    }
}
