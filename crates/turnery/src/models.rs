//! `turnery models`: lists the usable models with their context windows and prices, and what the others need.

use crate::{
    app::{App, resolve_cwd},
    args::{GlobalOptions, ModelsArgs},
    config::{Config, model_lists::QueriedProviders},
    runtime::current_thread_runtime,
};
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
};
use turnery_agent::millionths_to_units;
use turnery_models::{
    MissingKeyError, ModelName, ModelRegistry, PriceSource, ProviderConfig, ProviderSource as _,
};
use turnery_tools::escape_invisible_line;

/// One row of the list.
#[derive(Debug, Default, PartialEq, Serialize)]
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
    /// Size of the context window, if known. Unit: tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u32>,
    /// Largest response. Unit: tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output: Option<u32>,
    /// Price, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<PriceColumn>,
}

/// Price of a million tokens.
#[derive(Debug, PartialEq, Serialize)]
struct PriceColumn {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    /// Where the price comes from: `configuration`, `provider`, or the page of a built-in price.
    source: String,
    /// Date of a built-in price.
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<&'static str>,
}

/// Runs `turnery models`.
pub(crate) fn run(global: &GlobalOptions, args: &ModelsArgs) -> anyhow::Result<ExitCode> {
    let app = App::load(global, Config::default());
    let runtime = current_thread_runtime()?;
    runtime.block_on(app.live_providers.query_models(QueriedProviders::All));
    runtime.shutdown_background();
    let cwd = resolve_cwd(None)?;
    let settings = app.settings(std::slice::from_ref(&cwd))?;
    let default = match app.silent_server(&settings, &cwd) {
        Some(server) => row_name(&server, server.models.first()),
        None => settings.model.to_string(),
    };
    let lists = app.live_providers.model_lists();
    let mut all = app.live_providers.current().to_vec();
    for provider in &mut all {
        for name in lists.listed_models(provider) {
            if !provider.models.contains(&name) {
                provider.models.push(name);
            }
        }
    }
    let mut rows = model_rows(&all, default, |provider| lists.is_silent(provider));
    let models = app.model_registry();
    for row in &mut rows {
        add_facts(row, &models);
    }
    // The rows of keyless servers say it already.
    let failures = all.iter().filter(|it| it.key.is_some());
    let failures: Vec<String> = failures.filter_map(|it| lists.failure(it)).collect();
    let mut out = io::stdout().lock();
    match args.json {
        true => {
            serde_json::to_writer_pretty(&mut out, &rows)?;
            writeln!(out)?;
        }
        false => write_rows(&rows, &failures, &mut out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds what is known of the model of a row.
fn add_facts(row: &mut ModelRow, models: &ModelRegistry) {
    let Ok(name) = row.name.parse::<ModelName>() else {
        return;
    };
    if name.model.is_empty() || name.model == NO_MODEL || name.provider == "scripted" {
        return;
    }
    if let Ok(model) = models.model(&name) {
        let info = model.info();
        row.context_window = info.context_window;
        row.max_output = Some(info.max_output);
    }
    row.price = models.price_and_source(&name).map(|(price, source)| {
        let (source, date) = match source {
            PriceSource::Configuration => ("configuration".to_owned(), None),
            PriceSource::Catalogue { date, page } => (page.to_owned(), Some(date)),
            PriceSource::Provider => ("provider".to_owned(), None),
            PriceSource::BuiltIn => ("built-in".to_owned(), None),
        };
        PriceColumn {
            input: millionths_to_units(price.input),
            output: millionths_to_units(price.output),
            cache_read: millionths_to_units(price.cache_read),
            cache_write: millionths_to_units(price.cache_write),
            source,
            date,
        }
    });
}

/// Stands for the model of a provider that lists none.
const NO_MODEL: &str = "...";

/// Returns `provider/model`, or `provider/...` for a provider that lists no models.
fn row_name(provider: &ProviderConfig, model: Option<&String>) -> String {
    format!(
        "{}/{}",
        provider.name,
        model.map_or(NO_MODEL, String::as_str)
    )
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
        ..ModelRow::default()
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

fn write_rows(rows: &[ModelRow], failures: &[String], out: &mut impl Write) -> io::Result<()> {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let mark = if row.default { '*' } else { ' ' };
        let name = escape_invisible_line(&row.name);
        let facts = row
            .needs
            .as_ref()
            .map_or_else(|| describe_facts(row), |needs| format!("needs {needs}"));
        let line = format!("{mark} {name:width$}  {facts}");
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(
        out,
        "\n* is used unless you say --model. A provider takes any of its models: --model NAME/MODEL."
    )?;
    let prices = rows.iter().filter(|row| row.ready);
    if let Some(date) = prices.filter_map(|row| row.price.as_ref()?.date).max() {
        writeln!(
            out,
            "Prices are for a million tokens, in US dollars, as of {date} unless you have configured others."
        )?;
    }
    for failure in failures {
        writeln!(out, "{}", escape_invisible_line(failure))?;
    }
    Ok(())
}

/// Returns the columns for the context window and the price.
fn describe_facts(row: &ModelRow) -> String {
    let window = row.context_window.map_or_else(String::new, |tokens| {
        format!("{}k tokens", tokens.div_ceil(1000))
    });
    let priced = row
        .price
        .as_ref()
        .filter(|price| price.source != "built-in");
    let price = priced.map_or_else(String::new, |price| {
        format!("{} in, {} out", price.input, price.output)
    });
    format!("{window:>12}  {price}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_models::Api;

    fn provider(name: &str, key_hint: &str, models: &[&str]) -> ProviderConfig {
        ProviderConfig {
            key_hint: key_hint.to_owned(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            ..ProviderConfig::new(name, Api::OpenAi, "http://localhost:1")
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
        write_rows(&rows, &["openai did not answer.".to_owned()], &mut out).unwrap();
        assert!(
            String::from_utf8(out).unwrap().starts_with(
                "* ollama/qwen3\n  ollama/...\n  offline\n  openai/gpt-5  needs OPENAI_API_KEY, or turnery login openai\n"
            ),
            "{rows:?}"
        );
    }
}
