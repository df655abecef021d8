//! `turnery models`: lists the usable models and what the others need.

use crate::{
    app::{App, resolve_cwd},
    args::{GlobalOptions, ModelsArgs},
    config::Config,
    runtime::current_thread_runtime,
};
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
};
use turnery_models::{MissingKeyError, ProviderConfig, ProviderSource as _};
use turnery_tools::escape_invisible_line;

/// One row of the list.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ModelRow {
    /// `provider/model`.
    name: String,
    /// True if the model can be used now.
    ready: bool,
    /// True for the default model.
    default: bool,
    /// What the user must do to use the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<String>,
}

/// Runs `turnery models`.
pub(crate) fn run(global: &GlobalOptions, args: &ModelsArgs) -> anyhow::Result<ExitCode> {
    let app = App::load(global, Config::default());
    let runtime = current_thread_runtime()?;
    runtime.block_on(app.live_providers.discover());
    runtime.shutdown_background();
    let cwd = resolve_cwd(None)?;
    let settings = app.settings(std::slice::from_ref(&cwd))?;
    let default = match app.silent_server(&settings, &cwd) {
        Some(server) => row_name(&server, server.models.first()),
        None => settings.model.to_string(),
    };
    let silent = |provider: &ProviderConfig| app.live_providers.local_servers().is_silent(provider);
    let rows = model_rows(&app.live_providers.current(), default, silent);
    let mut out = io::stdout().lock();
    match args.json {
        true => {
            serde_json::to_writer_pretty(&mut out, &rows)?;
            writeln!(out)?;
        }
        false => write_rows(&rows, &mut out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns `provider/model`, or `provider/...` for a provider that lists no models.
fn row_name(provider: &ProviderConfig, model: Option<&String>) -> String {
    format!("{}/{}", provider.name, model.map_or("...", String::as_str))
}

fn model_rows(
    all: &[ProviderConfig],
    default: String,
    is_silent: impl Fn(&ProviderConfig) -> bool,
) -> Vec<ModelRow> {
    let lacks = |provider: &ProviderConfig| match provider.require_key() {
        Err(missing) => Some(describe_missing_key(missing)),
        Ok(()) if is_silent(provider) => Some(format!(
            "a server with models at {}",
            provider.display_url()
        )),
        Ok(()) => None,
    };
    let row = |name: String, needs: Option<String>| ModelRow {
        ready: needs.is_none(),
        default: name == default,
        name,
        needs,
    };
    let mut rows = Vec::new();
    for provider in all {
        let needs = lacks(provider);
        match provider.models.is_empty() {
            true => rows.push(row(row_name(provider, None), needs)),
            false => rows.extend(
                provider
                    .models
                    .iter()
                    .map(|model| row(row_name(provider, Some(model)), needs.clone())),
            ),
        }
    }
    rows.push(row("offline".to_owned(), None));
    if !rows.iter().any(|row| row.default) {
        // The chosen model need not be in any list.
        let needs = all
            .iter()
            .find(|provider| default.starts_with(&format!("{}/", provider.name)))
            .and_then(lacks);
        rows.insert(0, row(default.clone(), needs));
    }
    rows.sort_by_key(|row| !row.ready);
    rows
}

/// Returns the text that says how to provide the missing key.
fn describe_missing_key(missing: MissingKeyError) -> String {
    let MissingKeyError { provider, hint } = missing;
    format!("{hint}, or turnery login {provider}")
}

fn write_rows(rows: &[ModelRow], out: &mut impl Write) -> io::Result<()> {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let mark = if row.default { '*' } else { ' ' };
        let name = escape_invisible_line(&row.name);
        match &row.needs {
            None => writeln!(out, "{mark} {name}")?,
            Some(needs) => writeln!(out, "{mark} {name:width$}  needs {needs}")?,
        }
    }
    writeln!(
        out,
        "\n* is used unless you say --model. A provider takes any of its models: --model NAME/MODEL."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_models::Api;

    fn provider(name: &str, key_hint: &str, models: &[&str]) -> ProviderConfig {
        ProviderConfig {
            name: name.to_owned(),
            api: Api::OpenAi,
            base_url: "http://localhost:1".to_owned(),
            key: None,
            key_hint: key_hint.to_owned(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
        }
    }

    #[test]
    fn usable_models_come_first_and_others_state_needs() {
        let all = [
            provider("openai", "OPENAI_API_KEY", &["gpt-5"]),
            provider("ollama", "", &[]),
        ];
        let rows = model_rows(&all, "ollama/qwen3".to_owned(), |_| false);
        let mut out = Vec::new();
        write_rows(&rows, &mut out).unwrap();
        assert!(
            String::from_utf8(out).unwrap().starts_with(
                "* ollama/qwen3\n  ollama/...\n  offline\n  openai/gpt-5  needs OPENAI_API_KEY, or turnery login openai\n"
            ),
            "{rows:?}"
        );
    }
}
