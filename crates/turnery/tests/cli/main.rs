//! End-to-end tests of the binary: output, streams and exit codes.
#![cfg(unix)]

mod acp;
mod audio;
mod backpressure;
mod client_terminal;
mod costs;
mod editor;
mod editor_examples;
mod exit_codes;
mod fake_http;
mod hanging_disk;
mod home;
mod hooks;
mod key_page;
mod killed_agent;
mod lifeline;
mod limits;
mod local_models;
mod login;
mod login_acp;
mod loop_commands;
mod mcp;
mod orphans;
mod permission;
mod run;
mod sandbox;
mod settings;
mod shell_examples;
mod shutdown;
mod slash_commands;
mod startup;
mod subcommands;
mod terminal;
mod try_models;
