//! The tests of `plumb-symbolize` as one program, of which a module is a suite. A suite that measures what others would disturb is a program of its own.

mod addr2line;
mod code;
mod compact;
mod files;
mod go;
mod go_lines;
mod hostile;
mod inflated;
mod names;
mod plt_aarch64;
mod readable;
mod session;
mod truth;
mod units;
