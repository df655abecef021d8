//! The file tools, each against a real folder.

mod bench;
mod confinement;
mod read_file;
mod update_plan;
mod write_file;
