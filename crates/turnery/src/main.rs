//! Entry point of the `turnery` binary: parses the command line and runs the command.

mod acp;
mod app;
mod args;
mod completions;
mod config;
mod hooks;
mod instructions;
mod login;
mod logs;
mod mcp;
mod models;
mod notify;
mod run;
mod runtime;
mod session_address;
mod sessions;
mod settings_resolver;
mod slash_commands;
mod store_choice;
mod telemetry;
mod terminal_text;
mod tool;
mod toolbox;
mod user_command;
mod watchdog;

#[cfg(not(unix))]
compile_error!("turnery needs a Unix: on Windows, build it in WSL");

use args::{AcpArgs, AcpCommand, Args, CliCommand, Deferred, SessionsCommand};
use clap::CommandFactory as _;
use config::Config;
use std::{
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
};

fn main() -> ExitCode {
    // Must come first: in a supervisor or a worker for code, one of these calls never returns.
    turnery_tools::processes::init();
    turnery_code::init();
    // The environment and the memory of this process contain API keys.
    turnery_tools::processes::forbid_inspection();
    logs::install_panic_hook();
    let args = Args::read();
    let _last_words = logs::init(args.verbose);
    let global = args.global();
    let flags = Config::from(args.choice);
    let done = match args.command {
        Some(
            CliCommand::Acp(Deferred(AcpArgs {
                subcommand: Some(AcpCommand::Login(Deferred(login))),
                ..
            }))
            | CliCommand::Login(Deferred(login)),
        ) => login::login(&global, login),
        Some(CliCommand::Logout(Deferred(logout))) => login::logout(&global, &logout),
        Some(CliCommand::Acp(Deferred(acp))) => acp::serve(&global, acp, &flags),
        Some(CliCommand::Run(Deferred(run))) => return run::run(&global, *run, &flags),
        Some(CliCommand::Sessions(Deferred(sessions))) => match sessions.command {
            SessionsCommand::Store(command) => sessions::run(&global, command),
            SessionsCommand::RunAgain(again) => {
                return run::run_session_command(&global, again, &flags);
            }
        },
        Some(CliCommand::Store(Deferred(store))) => {
            sessions::run_store_command(&global, store.command)
        }
        Some(CliCommand::Models(Deferred(models))) => models::run(&global, &models),
        Some(CliCommand::Mcp(Deferred(mcp))) => mcp::run(&global, &mcp.command),
        Some(CliCommand::Tool(Deferred(tool))) => tool::run(&global, flags, tool.command),
        Some(CliCommand::Completions(Deferred(completions))) => {
            completions::print_script(completions.shell)
        }
        Some(CliCommand::Schema) => config::schema::write(),
        None if args.acp || !std::io::stdin().is_terminal() => {
            acp::serve(&global, AcpArgs::default(), &flags)
        }
        None => print_welcome(),
    };
    done.unwrap_or_else(|error| {
        // A reader that closes the pipe early, such as `head`, is not an error.
        if run::is_broken_pipe(&error) {
            return ExitCode::from(run::exit::BROKEN_PIPE);
        }
        logs::report_error(&error);
        ExitCode::from(run::exit::ERROR)
    })
}

/// Prints a short introduction for a bare `turnery` at a terminal.
fn print_welcome() -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", args::welcome_text())?;
    writeln!(out, "{}", Args::command().render_usage())?;
    Ok(ExitCode::SUCCESS)
}
