//! Reads what turnery handles of the formats that models are called in, and renders it as the table in `docs/models.md`.
//!
//! Each behaviour is a requirement of each format: `CHAT-37` is number 37 in Chat Completions. Tests name them like any
//! other requirement, and a behaviour that cannot occur in a format is waived there with the reason.

use super::table::{Requirement, RequirementId, Table};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt::Write as _};

/// Line of the page after which everything is rendered.
const RENDERED_BELOW: &str =
    "<!-- `cargo xtask models` writes what is below, from model-behaviours.toml and the tests. -->";

/// Formats: the group of their ids, and their `api` in the configuration.
const FORMATS: [(&str, &str); 4] = [
    ("ANTHROPIC", "anthropic"),
    ("CHAT", "openai"),
    ("RESPONSES", "openai_responses"),
    ("GEMINI", "gemini"),
];

/// A row of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BehaviourRow {
    says: String,
    /// Heading of this and the following rows.
    heading: Option<String>,
    /// Reason why the behaviour cannot occur in Anthropic Messages.
    anthropic: Option<String>,
    /// Reason why it cannot occur in Chat Completions.
    chat: Option<String>,
    /// Reason why it cannot occur in Responses.
    responses: Option<String>,
    /// Reason why it cannot occur in Gemini.
    gemini: Option<String>,
}

/// A behaviour with its requirement in each of [`FORMATS`].
pub(super) struct Behaviour {
    number: u32,
    says: String,
    heading: Option<String>,
    ids: [RequirementId; 4],
}

/// Parses the file. Adds the requirements of its rows to `table`.
pub(super) fn parse(text: &str, table: &mut Table) -> Result<Vec<Behaviour>> {
    let rows: BTreeMap<String, BehaviourRow> = toml::from_str(text)?;
    let mut behaviours = Vec::with_capacity(rows.len());
    for (key, row) in rows {
        let number: u32 = key
            .parse()
            .with_context(|| format!("{key:?} is no number of a behaviour"))?;
        let mut ids = Vec::with_capacity(FORMATS.len());
        let reasons = [row.anthropic, row.chat, row.responses, row.gemini];
        for ((group, _), waived) in FORMATS.iter().zip(reasons) {
            let id = RequirementId::parse(&format!("{group}-{key}"))
                .with_context(|| format!("{key:?} is no number of a behaviour"))?;
            let requirement = Requirement {
                says: row.says.clone(),
                level: None,
                waived,
                differs: None,
                later: None,
            };
            table.insert(id, requirement);
            ids.push(id);
        }
        let ids = <[RequirementId; 4]>::try_from(ids).ok();
        behaviours.push(Behaviour {
            number,
            says: row.says,
            heading: row.heading,
            ids: ids.context("there are four formats")?,
        });
    }
    behaviours.sort_by_key(|behaviour| behaviour.number);
    let has_heading = behaviours.first().is_none_or(|it| it.heading.is_some());
    ensure!(has_heading, "the first behaviour has no heading");
    Ok(behaviours)
}

/// Renders the page: `page` up to the rendered part, and the table. `cell` returns the text for a requirement.
pub(super) fn render_page(
    page: &str,
    behaviours: &[Behaviour],
    cell: impl Fn(&RequirementId) -> String,
) -> Result<String> {
    let (start, _) = page
        .split_once(RENDERED_BELOW)
        .with_context(|| format!("the page lacks the line {RENDERED_BELOW}"))?;
    let mut text = format!("{start}{RENDERED_BELOW}\n");
    for behaviour in behaviours {
        if let Some(heading) = &behaviour.heading {
            let apis = FORMATS.map(|(_, api)| format!("`{api}`")).join(" | ");
            let _ = write!(
                text,
                "\n### {heading}\n\n| | behaviour | {apis} |\n|---|---|---|---|---|---|\n"
            );
        }
        let cells = behaviour.ids.each_ref().map(|id| escape_cell(&cell(id)));
        let cells = cells.join(" | ");
        let says = escape_cell(&behaviour.says);
        let _ = writeln!(text, "| {} | {says} | {cells} |", behaviour.number);
    }
    Ok(text)
}

/// Returns text for a cell of a Markdown table, where a `|` ends the cell even within backquotes.
fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|")
}
