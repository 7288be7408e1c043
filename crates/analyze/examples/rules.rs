//! Prints `docs/rules.md`, the page of all rules: `cargo run -p xtask -- codegen` writes it.

fn main() {
    print!("{}", plumb_analyze::rules_page());
}
