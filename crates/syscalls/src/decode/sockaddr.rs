//! Formats socket addresses.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::quote;

/// Appends an address in its usual short form: `127.0.0.1:80`, `[::1]:80`, `"/run/x.sock"`, `@"abstract"`. Returns whether the family is known and
/// the address complete.
pub fn socket_address(bytes: &[u8], out: &mut String) -> bool {
    let Some((family, rest)) = bytes.split_first_chunk::<2>() else { return false };
    let port = rest.first_chunk::<2>().map(|port| u16::from_be_bytes(*port));
    match (i32::from(u16::from_ne_bytes(*family)), port) {
        (libc::AF_INET, Some(port)) => {
            let Some(address) = rest.get(2..).and_then(<[u8]>::first_chunk::<4>) else { return false };
            let _ = write!(out, "{}:{port}", Ipv4Addr::from(*address));
        }
        (libc::AF_INET6, Some(port)) => {
            let Some(address) = rest.get(6..).and_then(<[u8]>::first_chunk::<16>) else { return false };
            let _ = write!(out, "[{}]:{port}", Ipv6Addr::from(*address));
        }
        (libc::AF_UNIX, _) => unix(rest, out),
        (libc::AF_NETLINK, Some(_)) => {
            let Some(id) = rest.get(2..).and_then(<[u8]>::first_chunk::<4>) else { return false };
            let _ = write!(out, "netlink:{}", u32::from_ne_bytes(*id));
        }
        _ => return false,
    }
    true
}

fn unix(path: &[u8], out: &mut String) {
    match path {
        [] => out.push_str("unnamed"),
        // An abstract name, which is in no file system and may contain NULs.
        [0, name @ ..] => {
            out.push('@');
            quote(name, false, out);
        }
        path => quote(path.split(|&byte| byte == 0).next().unwrap_or_default(), false, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(family: i32, rest: &[u8]) -> Option<String> {
        let bytes = [&(family as u16).to_ne_bytes(), rest].concat();
        let mut out = String::new();
        socket_address(&bytes, &mut out).then_some(out)
    }

    #[test]
    fn addresses_are_said_as_people_write_them() {
        assert_eq!(said(libc::AF_INET, &[0, 80, 127, 0, 0, 1, 0, 0]), Some("127.0.0.1:80".into()));
        let mut six = [0; 26];
        (six[1], six[21]) = (53, 1);
        assert_eq!(said(libc::AF_INET6, &six), Some("[::1]:53".into()));
        assert_eq!(said(libc::AF_UNIX, b"/run/x\0junk"), Some("\"/run/x\"".into()));
        assert_eq!(said(libc::AF_UNIX, b"\0name"), Some("@\"name\"".into()));
        assert_eq!(said(libc::AF_UNIX, b""), Some("unnamed".into()));
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_none() {
        for length in 0..6 {
            assert_eq!(said(libc::AF_INET, &[0; 6][..length]), None);
        }
        assert_eq!(said(libc::AF_INET6, &[0; 21]), None);
        assert_eq!(said(12345, &[0; 32]), None);
        assert!(!socket_address(&[1], &mut String::new()));
    }
}
