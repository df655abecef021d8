//! `turnery mcp`: lists the configured MCP servers and checks that they work.

use crate::{
    app::{App, resolve_cwd},
    args::{GlobalOptions, McpCommand},
    config::Config,
    runtime::current_thread_runtime,
};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};
use turnery_tools::{
    McpServers, escape_invisible, escape_invisible_line,
    mcp::{McpLaunchOptions, McpServerStatus},
};

/// Runs `turnery mcp`. Fails if one of the servers does not work.
pub(crate) fn run(global: &GlobalOptions, what: &McpCommand) -> anyhow::Result<ExitCode> {
    let McpCommand::List { json } = what;
    let app = App::load(global, Config::default());
    let roots = vec![resolve_cwd(None)?];
    let servers = app.settings(&roots)?.mcp_servers;
    let launch = McpLaunchOptions {
        roots,
        hidden_env: app.hidden_env(),
    };
    let runtime = current_thread_runtime()?;
    let all = runtime.block_on(async {
        let servers = McpServers::new(&servers, &launch).without_logging();
        servers.start();
        servers.wait_until_settled().await;
        let all = servers.status();
        servers.close().await;
        all
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let mut out = io::stdout().lock();
    match json {
        true => writeln!(
            out,
            "{:#}",
            Value::from(all.iter().map(status_json).collect::<Vec<_>>())
        )?,
        false => write_status(&all, &mut out)?,
    }
    let works = all.iter().all(|server| server.error.is_none());
    Ok(if works {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn status_json(server: &McpServerStatus) -> Value {
    json!({
        "name": server.name,
        "connected": server.error.is_none(),
        "tools": server.tools,
        "left_out": server.omitted_tools,
        "trouble": server.error,
    })
}

fn write_status(all: &[McpServerStatus], out: &mut impl Write) -> io::Result<()> {
    if all.is_empty() {
        return writeln!(
            out,
            "No MCP servers. Name some in config.toml, under [mcp.NAME]."
        );
    }
    for server in all {
        let name = escape_invisible_line(&server.name);
        match &server.error {
            Some(why) => writeln!(out, "{name}: does not work: {}", escape_invisible(why))?,
            None => writeln!(out, "{name}: connected")?,
        }
        for tool in &server.tools {
            writeln!(out, "  {}", escape_invisible_line(tool))?;
        }
        if server.omitted_tools > 0 {
            writeln!(
                out,
                "  and {} more that models cannot take",
                server.omitted_tools
            )?;
        }
    }
    Ok(())
}
