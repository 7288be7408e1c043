//! Keeps the shared library in memory once it is loaded: a signal may still be pending for its handler.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
