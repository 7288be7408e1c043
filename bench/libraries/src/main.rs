//! Runs a hand-written part of plumb, or the library that does the same, once: `run.py` counts what that takes.
//!
//! Invariant: each run does one thing, so that its instructions and its memory are those of that thing.

mod dwarf;
mod pages;
mod types;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["dwarf", "plumb", file, addresses] => dwarf::plumb(file, addresses),
        ["dwarf", "addr2line", file, addresses] => dwarf::addr2line(file, addresses),
        ["types", "whole", object] => types::whole(object),
        ["types", "trimmed", object] => types::trimmed(object),
        ["types", "read"] => types::read(),
        ["pages", claim] => pages::read(claim),
        _ => Err("dwarf plumb|addr2line FILE ADDRESSES, types whole|trimmed OBJECT, types read, pages CLAIM"
            .into()),
    }
}
