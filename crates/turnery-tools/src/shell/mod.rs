//! Shell: the tool that runs command lines, here or in a terminal that the client lends.

mod confined;
mod ending;
mod environment;
mod kept;
mod lent;
mod local;
mod plain;
mod stream;
mod title;
mod tool;

#[cfg(test)]
mod confined_tests;
#[cfg(test)]
mod lent_tests;
#[cfg(test)]
mod local_tests;
#[cfg(test)]
mod stop_tests;
#[cfg(test)]
mod trial;

pub use environment::{HIDDEN_ENV, leave_out_written};
pub(crate) use environment::{inherited, leave_out_relative};
pub(crate) use plain::Plain;
pub use tool::Shell;
