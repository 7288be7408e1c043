//! Has the shared library stay in memory once loaded: a signal may still be under way to its handler.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
