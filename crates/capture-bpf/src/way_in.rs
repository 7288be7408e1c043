//! The kernel functions through which a tracepoint calls a program: they are in the stacks that the program sees, but belong to
//! the sampling itself.

use std::ops::Range;

/// Addresses of a tracepoint's functions, from /proc/kallsyms; empty if that hides them.
pub(crate) fn of(tracepoint: &str) -> Vec<Range<u64>> {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    find(&symbols, tracepoint)
}

fn find(symbols: &str, tracepoint: &str) -> Vec<Range<u64>> {
    let is_way_in = |name: &str| {
        let of_it = |prefix| name.strip_prefix(prefix).is_some_and(|rest| rest == tracepoint);
        name.starts_with("bpf_trace_run") || of_it("__traceiter_") || of_it("__bpf_trace_")
    };
    let mut starts = Vec::new();
    let mut found = Vec::new();
    for line in symbols.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(start) = words.next().and_then(|hex| u64::from_str_radix(hex, 16).ok()) else { continue };
        let name = words.nth(1).unwrap_or_default();
        starts.push(start);
        if start != 0 && is_way_in(name) {
            found.push(start);
        }
    }
    starts.sort_unstable();
    let end = |start: u64| starts.get(starts.partition_point(|&other| other <= start)).copied();
    found.into_iter().filter_map(|start| Some(start..end(start)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_end_where_the_next_begins() {
        let symbols = "1000 T _text\n1050 t __traceiter_b\n1100 T bpf_trace_run1\n1100 T alias\n1180 T next\n\
                       1010 t __traceiter_a\n1040 t __bpf_trace_a\t[module]\n";
        assert_eq!(find(symbols, "a"), [0x1100..0x1180, 0x1010..0x1040, 0x1040..0x1050]);
        assert_eq!(find("0000 T bpf_trace_run1\n0000 T next\n", "a"), []);
    }
}
