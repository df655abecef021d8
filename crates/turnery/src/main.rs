//! The `turnery` binary: reads the command line, and hands over to the command.

mod acp;
mod args;
mod commands;
mod completions;
mod config;
mod hooks;
mod instructions;
mod login;
mod logs;
mod mcp;
mod models;
mod parts;
mod projects;
mod run;
mod runtime;
mod sessions;
mod show;
mod tool;
mod watchdog;

#[cfg(not(unix))]
compile_error!("turnery needs a Unix: on Windows, build it in WSL");

use args::{AcpArgs, Args, Command, Instead, Sessions};
use clap::CommandFactory as _;
use std::{
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
};

fn main() -> ExitCode {
    // First of all: a process that supervises a command does nothing else.
    turnery_tools::processes::init();
    // Keys stand in its environment and its memory.
    turnery_tools::processes::forbid_inspection();
    logs::report_panics();
    let args = Args::read();
    let _last_words = logs::start(args.verbose);
    let global = args.global();
    let flags = args.choice;
    let done = match args.command {
        Some(
            Command::Acp(AcpArgs {
                instead: Some(Instead::Login(login)),
                ..
            })
            | Command::Login(login),
        ) => login::login(&global, login),
        Some(Command::Logout(logout)) => login::logout(&global, &logout),
        Some(Command::Acp(mut acp)) => {
            acp.choice = acp.choice.or(flags);
            acp::serve(&global, acp)
        }
        Some(Command::Run(mut run)) => {
            run.how.choice = run.how.choice.or(flags);
            return run::run(&global, *run);
        }
        Some(Command::Sessions(sessions)) => match sessions.what {
            Sessions::Kept(kept) => sessions::run(&global, kept),
            Sessions::Again(again) => return run::again(&global, again, flags),
        },
        Some(Command::Models(models)) => models::run(&global, &models),
        Some(Command::Mcp(mcp)) => mcp::run(&global, &mcp.what),
        Some(Command::Tool(tool)) => tool::run(tool.what),
        Some(Command::Completions(completions)) => completions::write(completions.shell),
        Some(Command::Schema) => config::schema::write(),
        None if args.acp || !std::io::stdin().is_terminal() => {
            acp::serve(&global, AcpArgs::with(flags))
        }
        None => welcome(),
    };
    done.unwrap_or_else(|error| {
        // Who stops reading, as `head` does, has what they want.
        if is_broken_pipe(&error) {
            return ExitCode::from(run::exit::BROKEN_PIPE);
        }
        logs::complain(&error);
        ExitCode::from(run::exit::ERROR)
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// What somebody sees who just types `turnery`.
fn welcome() -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", args::welcome())?;
    writeln!(out, "{}", Args::command().render_usage())?;
    Ok(ExitCode::SUCCESS)
}
