//! The wire: a real connection over pipes, from outside.

mod commands;
mod ending;
mod every_end;
mod folders;
mod forks;
mod harness;
mod kit;
mod login;
mod one_prompt;
mod prompts;
mod real_tools;
mod refusal;
mod replayed;
mod required;
mod reruns;
mod roots;
mod rpc;
mod servers;
mod sessions;
mod steering;
mod tools;
mod transcripts;
mod tries;
mod unstable;
mod v2;
mod values;
