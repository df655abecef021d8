//! End-to-end tests of the `turnery` binary, as users, scripts and editors start it.
#![cfg(unix)]

mod acp;
mod audio;
mod backpressure;
mod client_terminal;
mod code_embedding;
mod code_mode;
#[cfg(feature = "otel")]
mod collector;
mod command_policy;
mod costs;
mod editor;
mod editor_examples;
mod exit_codes;
mod fake_http;
mod fallback;
mod hanging_disk;
mod home;
mod hooks;
mod hostile_repository;
mod inspection;
mod key_page;
mod killed_agent;
mod lifeline;
mod limits;
mod local_models;
mod login;
mod login_acp;
mod loop_commands;
#[cfg(feature = "otel")]
mod lost_telemetry;
mod mcp;
mod missing_landlock;
#[cfg(not(feature = "otel"))]
mod missing_telemetry;
mod notify;
mod orphans;
mod output_schema;
mod permission;
mod queued_prompt;
mod random_kills;
mod responses_api;
mod run;
mod sandbox;
mod session_addresses;
mod session_follow;
mod session_search;
mod session_show;
mod session_upkeep;
mod settings;
mod shell_examples;
mod shutdown;
mod slash_commands;
mod startup;
mod store_setting;
mod subcommands;
#[cfg(feature = "otel")]
mod telemetry;
mod terminal;
mod try_models;
