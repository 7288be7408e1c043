//! Formats copied memory as text.

use std::fmt::Write as _;

use super::{NameOf, address, quote, socket_address, trim_octal};
use crate::kinds::{Form, Memory};
use crate::layouts::{Field, FieldKind, Layout};
use crate::sets::Set;
use crate::{Piece, SystemCall};

/// Most elements that are formatted.
const ELEMENTS: usize = 16;
/// Bits of a signal set, and so the largest signal number.
const SIGNALS: u32 = 64;

/// Appends the formatted memory.
pub(super) fn write(
    memory: Memory,
    piece: &Piece<'_>,
    call: &SystemCall<'_>,
    name_of: &mut NameOf<'_>,
    out: &mut String,
) {
    let bytes = piece.bytes;
    match memory.form {
        Form::String | Form::Path | Form::Bytes => quote(bytes, piece.is_cut, out),
        Form::List => list(bytes, piece.is_cut, out),
        Form::Bits => numbers((0..bytes.len() as u32 * 8).filter(|&bit| has_bit(bytes, bit)), out),
        Form::Option => match bytes.first_chunk::<4>() {
            Some(word) if bytes.len() == 4 => drop(write!(out, "[{}]", i32::from_ne_bytes(*word))),
            _ => quote(bytes, piece.is_cut, out),
        },
        Form::SockAddr => {
            let begin = out.len();
            if !socket_address(bytes, out) {
                out.truncate(begin);
                quote(bytes, piece.is_cut, out);
            }
        }
        Form::Message => message(piece, call, out),
        Form::Layout(layout) => {
            let one = memory.count.is_none();
            structures(layout, piece, one, name_of, out);
        }
    }
}

fn list(bytes: &[u8], is_cut: bool, out: &mut String) {
    out.push('[');
    for (index, text) in bytes.split_inclusive(|&byte| byte == 0).enumerate() {
        separate(index, out);
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        // A string that fills its slot may be truncated.
        quote(text, text.len() == 63, out);
    }
    if is_cut {
        out.push_str(", ...");
    }
    out.push(']');
}

fn structures(layout: &Layout, piece: &Piece<'_>, one: bool, name_of: &mut NameOf<'_>, out: &mut String) {
    let is_value = matches!(layout.fields, [Field { name: "value", .. }]);
    let elements = piece.bytes.chunks_exact(layout.size.max(1)).take(ELEMENTS);
    if one && !is_value {
        match elements.into_iter().next() {
            Some(bytes) => structure(layout, bytes, name_of, out),
            None => quote(piece.bytes, true, out),
        }
        return;
    }
    // Signal sets have their own brackets.
    let bracket = !matches!(layout.fields, [Field { kind: FieldKind::Signals, .. }]);
    if bracket {
        out.push('[');
    }
    for (index, bytes) in elements.enumerate() {
        separate(index, out);
        structure(layout, bytes, name_of, out);
    }
    if piece.is_cut {
        out.push_str(", ...");
    }
    if bracket {
        out.push(']');
    }
}

fn structure(layout: &Layout, bytes: &[u8], name_of: &mut NameOf<'_>, out: &mut String) {
    if let [value @ Field { name: "value", .. }] = layout.fields {
        field(value, bytes, name_of, out);
        return;
    }
    out.push('{');
    for (index, one) in layout.fields.iter().enumerate() {
        separate(index, out);
        out.push_str(one.name);
        out.push_str(": ");
        field(one, bytes, name_of, out);
    }
    out.push('}');
}

fn field(field: &Field, bytes: &[u8], name_of: &mut NameOf<'_>, out: &mut String) {
    let Some(bytes) = bytes.get(field.at..).and_then(|rest| rest.get(..field.size)) else {
        out.push('?');
        return;
    };
    let mut word = [0; 8];
    let short = bytes.len().min(8);
    // The supported machines are little-endian.
    word[..short].copy_from_slice(&bytes[..short]);
    let value = u64::from_le_bytes(word);
    let bits = 8 * short as u32;
    let signed = if bits < 64 { (value << (64 - bits)) as i64 >> (64 - bits) } else { value as i64 };
    let _ = match field.kind {
        FieldKind::Signed => write!(out, "{signed}"),
        FieldKind::Unsigned => write!(out, "{value}"),
        FieldKind::Hex => address(value, out),
        FieldKind::Octal => write!(out, "{value:#03o}").map(|()| trim_octal(out)),
        FieldKind::FileMode => file_mode(value, out),
        FieldKind::Set(name) => {
            Set::find(name).into_iter().for_each(|set| set.write(value, bits, out));
            Ok(())
        }
        FieldKind::Text => {
            quote(bytes.split(|&byte| byte == 0).next().unwrap_or_default(), false, out);
            Ok(())
        }
        FieldKind::Fd => {
            let fd = signed as i32;
            let _ = write!(out, "{fd}");
            if fd >= 0 {
                name_of(fd, out);
            }
            Ok(())
        }
        FieldKind::Signals => {
            signals(value, out);
            Ok(())
        }
        FieldKind::WaitStatus => wait_status(value as i32, out),
        FieldKind::Timeval => pair(bytes, "tv_usec", out),
        FieldKind::Timespec => pair(bytes, "tv_nsec", out),
    };
}

fn pair(bytes: &[u8], second: &str, out: &mut String) -> std::fmt::Result {
    let word =
        |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| i64::from_ne_bytes(*word));
    write!(out, "{{tv_sec: {}, {second}: {}}}", word(0), word(8))
}

fn file_mode(value: u64, out: &mut String) -> std::fmt::Result {
    let kind = value & u64::from(libc::S_IFMT);
    if let Some(set) = Set::find("file_type").filter(|_| kind != 0) {
        set.write(kind, 32, out);
        out.push('|');
    }
    write!(out, "{:#03o}", value & !u64::from(libc::S_IFMT)).map(|()| trim_octal(out))
}

fn wait_status(status: i32, out: &mut String) -> std::fmt::Result {
    let signal = |number: i32, out: &mut String| {
        Set::find("signal").into_iter().for_each(|set| set.write(number as u64, 32, out));
    };
    if libc::WIFEXITED(status) {
        return write!(out, "exited with {}", libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        out.push_str("killed by ");
        signal(libc::WTERMSIG(status), out);
    } else if libc::WIFSTOPPED(status) {
        out.push_str("stopped by ");
        signal(libc::WSTOPSIG(status), out);
    } else {
        write!(out, "{status:#x}")?;
    }
    Ok(())
}

/// Appends the signals in a set, or, if most signals are in it, those that are missing.
fn signals(set: u64, out: &mut String) {
    let is_most = set.count_ones() > SIGNALS / 2;
    let said = if is_most { !set } else { set };
    if is_most {
        out.push('~');
    }
    out.push('[');
    let mut any = false;
    for number in 0..SIGNALS {
        if said >> number & 1 == 0 {
            continue;
        }
        if any {
            out.push(' ');
        }
        any = true;
        let begin = out.len();
        Set::find("signal").into_iter().for_each(|set| set.write(u64::from(number) + 1, 32, out));
        if out.get(begin..begin + 3) == Some("SIG") {
            out.replace_range(begin..begin + 3, "");
        }
    }
    out.push(']');
}

/// Appends a message: its address and the lengths of its parts.
fn message(piece: &Piece<'_>, call: &SystemCall<'_>, out: &mut String) {
    let Some(layout) = Layout::find("message").filter(|layout| piece.bytes.len() >= layout.size) else {
        quote(piece.bytes, true, out);
        return;
    };
    out.push('{');
    if let Some(name) = call.piece(piece.take + 1) {
        out.push_str("msg_name: ");
        if !socket_address(name.bytes, out) {
            quote(name.bytes, name.is_cut, out);
        }
        out.push_str(", ");
    }
    if let Some(parts) = call.piece(piece.take + 2) {
        out.push_str("msg_iov: ");
        let lengths = parts.bytes.chunks_exact(16).filter_map(|part| part.last_chunk::<8>());
        numbers(lengths.map(|length| u64::from_ne_bytes(*length)), out);
        if parts.is_cut {
            out.push_str("...");
        }
        out.push_str(" bytes, ");
    }
    let mut nobody = |_: i32, _: &mut String| {};
    for (index, name) in ["msg_controllen", "msg_flags"].iter().enumerate() {
        separate(index, out);
        out.push_str(name);
        out.push_str(": ");
        layout
            .fields
            .iter()
            .filter(|field| field.name == *name)
            .for_each(|one| field(one, piece.bytes, &mut nobody, out));
    }
    out.push('}');
}

fn numbers<T: std::fmt::Display>(values: impl Iterator<Item = T>, out: &mut String) {
    out.push('[');
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(' ');
        }
        let _ = write!(out, "{value}");
    }
    out.push(']');
}

fn has_bit(bytes: &[u8], bit: u32) -> bool {
    bytes.get(bit as usize / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
}

fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push_str(", ");
    }
}
