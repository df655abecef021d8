//! The file tools, each against a real folder.

mod bench;
mod cancelling;
mod confinement;
mod edit_file;
mod hidden;
mod ignore_files;
mod read_file;
mod schemas;
mod search;
mod toolbox;
mod update_plan;
mod walks;
mod write_file;
