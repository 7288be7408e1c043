//! Formats a call as a line of text, or as a document.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plumb_documents::trace::TracedCall;
use plumb_formats::escape::is_unsafe;
use plumb_syscalls::{CallEnd, Descriptors, Signature, SystemCall, named};

/// Length of a usual line, in bytes.
const USUAL: usize = 160;

/// The line of a call; updates the descriptors with its effect.
pub(super) fn text(
    call: &SystemCall<'_>,
    signature: &Signature,
    descriptors: &mut Descriptors,
    begin_ns: u64,
) -> String {
    let mut out = String::with_capacity(USUAL);
    let ms = |ns: u64| ns as f64 / 1e6;
    let since = ms(call.begin_ns.saturating_sub(begin_ns));
    let _ = match call.latency_ns() {
        Some(latency) => write!(out, "{since:10.3} ({:9.4} ms): ", ms(latency)),
        None => write!(out, "{since:10.3} (        ? ms): "),
    };
    let _ = write!(out, "{}/{} {}(", Printed(call.comm), call.tid, named(call.abi, call.number));
    let begin = out.len();
    let mut name_of = |fd: i32, out: &mut String| descriptors.write(call.pid, fd, out);
    signature.arguments(call, &mut name_of, |name, value| {
        let comma = if out.len() > begin { ", " } else { "" };
        let _ = write!(out, "{comma}{name}: {value}");
    });
    if signature.is_unknown() {
        for (index, arg) in call.args.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let _ = write!(out, "{comma}a{index}: {arg:#x}");
        }
    }
    descriptors.apply(call, signature);
    match call.end {
        CallEnd::Unfinished => out.push_str(" <unfinished>"),
        _ => {
            out.push_str(") = ");
            signature.end(call, &mut |fd, out| descriptors.write(call.pid, fd, out), &mut out);
        }
    }
    out.push('\n');
    out
}

/// As [`text`], in JSON.
pub(super) fn json(
    call: &SystemCall<'_>,
    signature: &Signature,
    descriptors: &mut Descriptors,
    begin_ns: u64,
) -> TracedCall {
    let mut arguments = BTreeMap::new();
    let mut name_of = |fd: i32, out: &mut String| descriptors.write(call.pid, fd, out);
    signature.arguments(call, &mut name_of, |name, value| {
        arguments.insert(name.to_owned(), value.to_owned());
    });
    descriptors.apply(call, signature);
    let mut result = String::new();
    signature.end(call, &mut |fd, out| descriptors.write(call.pid, fd, out), &mut result);
    TracedCall::new(call, begin_ns, arguments, result)
}

/// A thread name, which the thread may set itself, without terminal control characters.
struct Printed<'a>(&'a [u8]);

impl std::fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for one in String::from_utf8_lossy(self.0).chars() {
            f.write_char(if is_unsafe(one) || one == ' ' { '_' } else { one })?;
        }
        Ok(())
    }
}
