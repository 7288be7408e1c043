//! The tests of `plumb-formats` as one program, of which a module is a suite. A suite that measures what others would disturb is a program of its own.

mod folded;
mod foreign;
mod foreign_hostile;
mod foreign_refused;
mod foreign_timelines;
mod foreign_weights;
mod jfr;
mod journal;
mod native;
mod native_tables;
mod otlp;
mod perf_data;
mod perf_data_made;
mod support;
