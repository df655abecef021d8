//! The binary from outside: what it prints, where, and with which exit code.
#![cfg(unix)]

mod acp;
mod again;
mod audio;
mod client_terminal;
mod commands;
mod costs;
mod editor;
mod ending;
mod examples;
mod hanging_disk;
mod home;
mod hooks;
mod key_page;
mod killing;
mod lifeline;
mod limits;
mod local_models;
mod login;
mod login_acp;
mod mcp;
mod orphans;
mod outcomes;
mod permission;
mod pipes;
mod pressure;
mod run;
mod sandbox;
mod settings;
mod slashes;
mod starting;
mod terminal;
mod tries;
