//! Tests of the file tools, each on a real folder.

mod cancellation;
mod confinement;
mod edit_file;
mod fixture;
mod hidden;
mod ignore_files;
mod read_file;
mod schemas;
mod search;
mod toolbox;
mod update_plan;
mod walks;
mod write_file;
