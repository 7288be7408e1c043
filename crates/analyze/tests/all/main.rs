//! The tests of `plumb-analyze` as one program, of which a module is a suite. A suite that measures what others would disturb is a program of its own.

mod aarch64;
mod annotate;
mod deep;
mod diff;
mod explain;
mod flame;
mod procs;
mod report;
mod rules;
mod tree;
mod waits;
