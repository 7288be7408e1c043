//! Formats arguments and results as text.
//!
//! Copied memory is untrusted: if it cannot be decoded as the expected type, its address is written instead. Elsewhere:
//! types of arguments (`kinds.txt`), names of descriptors (`Descriptors`).

mod memory;
mod sockaddr;
mod text;

use std::fmt::Write as _;

use crate::kinds::{Form, Kind};
use crate::signature::Choice;
use crate::{Abi, CallEnd, Outcome, Signature, SystemCall, errno_name};

pub use sockaddr::socket_address;
pub use text::quote;

/// Appends the name of a descriptor of the calling process, with its delimiters.
pub type NameOf<'a> = dyn FnMut(i32, &mut String) + 'a;

impl Signature {
    /// Formats each argument and passes its name and value to `each`.
    pub fn arguments(
        &self,
        call: &SystemCall<'_>,
        name_of: &mut NameOf<'_>,
        mut each: impl FnMut(&str, &str),
    ) {
        let mut out = String::new();
        for (place, param) in self.params.iter().enumerate() {
            let Some(&value) = call.args.get(place) else { break };
            let Some(choice) = choose(&param.choices, call) else { continue };
            if matches!(choice.kind, Kind::Hidden) {
                continue;
            }
            out.clear();
            // Structures of 32-bit programs have a different layout and were not copied.
            write(choice, value, param.bits, call, name_of, &mut out);
            each(&param.name, &out);
        }
    }

    /// Appends the result of a call.
    pub fn end(&self, call: &SystemCall<'_>, name_of: &mut NameOf<'_>, out: &mut String) {
        match call.end {
            CallEnd::Returned(Outcome::Value(value)) => match choose(&self.result, call) {
                Some(choice) => write(choice, value as u64, 64, call, name_of, out),
                None => {
                    let _ = write!(out, "{value}");
                }
            },
            CallEnd::Returned(Outcome::Error(number)) => match errno_name(number) {
                Some(name) => out.push_str(name),
                None => {
                    let _ = write!(out, "-{number}");
                }
            },
            CallEnd::Unfinished | CallEnd::ThreadEnded => out.push('?'),
        }
    }
}

/// The first choice whose condition holds.
fn choose<'a>(choices: &'a [Choice], call: &SystemCall<'_>) -> Option<&'a Choice> {
    choices.iter().find(|choice| match choice.condition {
        None => true,
        Some((place, wanted, is_flag)) => {
            let value = call.args.get(place).copied().unwrap_or(0);
            // Most arguments are 32-bit words, whose upper half is undefined.
            let (value, wanted) = (value as u32, wanted as u32);
            if is_flag {
                value & wanted == wanted
            } else {
                value == wanted || value & !FUTEX_FLAGS == wanted && is_futex(call)
            }
        }
    })
}

/// Flags of a futex operation that do not select the operation.
const FUTEX_FLAGS: u32 = (libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u32;

fn is_futex(call: &SystemCall<'_>) -> bool {
    crate::name(call.abi, call.number) == Some("futex")
}

/// Whether the call fills nothing because no child has changed state (`WNOHANG`).
fn has_found_no_child(call: &SystemCall<'_>) -> bool {
    call.value() == Some(0) && crate::name(call.abi, call.number) == Some("wait4")
}

fn write(
    choice: &Choice,
    value: u64,
    bits: u32,
    call: &SystemCall<'_>,
    name_of: &mut NameOf<'_>,
    out: &mut String,
) {
    let narrow = value as u32;
    let _ = match choice.kind {
        Kind::Hidden => Ok(()),
        Kind::Signed if bits == 32 => write!(out, "{}", narrow as i32),
        Kind::Signed => write!(out, "{}", value as i64),
        Kind::Unsigned if bits == 32 => write!(out, "{narrow}"),
        Kind::Unsigned => write!(out, "{value}"),
        Kind::Octal => write!(out, "{:#03o}", value & 0xffff).map(|()| trim_octal(out)),
        Kind::Hex => address(if bits == 32 { u64::from(narrow) } else { value }, out),
        Kind::Set(set) => {
            set.write(value, bits, out);
            Ok(())
        }
        Kind::Fd | Kind::DirFd if narrow as i32 == libc::AT_FDCWD && matches!(choice.kind, Kind::DirFd) => {
            out.push_str("AT_FDCWD");
            Ok(())
        }
        Kind::Fd | Kind::DirFd => {
            let fd = narrow as i32;
            let _ = write!(out, "{fd}");
            if fd >= 0 {
                name_of(fd, out);
            }
            Ok(())
        }
        Kind::Memory(memory) => {
            let copied = || choice.takes.iter().rev().flatten().find_map(|&take| call.piece(take));
            let native = call.abi == Abi::NATIVE;
            match copied().filter(|_| native && !(memory.is_out && has_found_no_child(call))) {
                Some(piece) => memory::write(memory, piece, call, name_of, out),
                // The call returned no bytes, so none were copied.
                None if matches!(memory.form, Form::Bytes) && call.value() == Some(0) && value != 0 => {
                    out.push_str("\"\"")
                }
                None => drop(address(value, out)),
            }
            Ok(())
        }
    };
}

/// Appends an address.
fn address(value: u64, out: &mut String) -> std::fmt::Result {
    if value == 0 {
        out.push_str("NULL");
        return Ok(());
    }
    write!(out, "{value:#x}")
}

/// Turns Rust's 0o755 into C's 0755.
fn trim_octal(out: &mut String) {
    if let Some(at) = out.rfind("0o") {
        out.remove(at + 1);
    }
}
