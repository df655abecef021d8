//! Runs the fake model alone, to point an agent at it by hand.
//!
//! `cargo run --example fake_model -- SCRIPT [PROFILE]` prints the address and, when stdin ends, the requests
//! that were received.
#![expect(clippy::print_stdout, reason = "a command for a terminal")]

use acp_conformance::{
    model::{FakeModel, FakeModelConfig, parse_script},
    profile::Profile,
};
use anyhow::{Context, Result};
use std::{env, fs, io};

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let script = arguments.next().context("say which script")?;
    let script = fs::read_to_string(&script).with_context(|| script.clone())?;
    let rules = match arguments.next() {
        Some(name) => Profile::find(&name)?.fake_model_config(),
        None => FakeModelConfig::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let model = FakeModel::start(rules).await?;
        model.set_script(None, parse_script(&script)?);
        println!("{}", model.base_url());
        tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
        for exchange in model.exchanges() {
            let tools = exchange.request.iter().flat_map(|asked| &asked.tools);
            let tools: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
            let last = exchange.request.iter().find_map(|asked| asked.messages.last());
            let last: String = last.iter().flat_map(|said| said.text.chars().take(90)).collect();
            println!(
                "{} {}: {:?}, {:?}, {:?}, calls {:?}, missing {:?}, offered {tools:?}, last said {last:?}",
                exchange.method,
                exchange.path,
                exchange.role,
                exchange.status,
                exchange.state,
                exchange.called_tools,
                exchange.missing_tools,
            );
            if env::var_os("BODIES").is_some() {
                println!("{}", exchange.body);
            }
        }
        Ok(())
    })
}
