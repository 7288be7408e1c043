//! The tests of `plumb-store` as one program, of which a module is a suite. A suite that measures what others would disturb is a program of its own.

mod damage;
mod golden;
mod many_stacks;
mod model;
mod older_blocks;
mod symbols;
