//! Builds the report of a run, for people and for programs.

mod contents;
mod exit_summary;
mod html;
mod junit;
mod markdown;
mod pretty;
mod rule_groups;
mod sanitize;
mod unexpected_exits;

pub use contents::{
    FlakyRule, JudgedRule, PlayedCase, Report, RuleCount, TestedAgent, TranscriptLine,
};
pub use exit_summary::REPORTED_SLOWDOWN;
pub use html::render_html;
pub use junit::render_junit;
pub use markdown::render_markdown;
pub use pretty::{Colours, render_pretty};
pub use sanitize::{sanitize_line, sanitize_lines, truncate_chars};

/// Renders the report as JSON; the schema is `schemas/conformance-report.json`.
#[must_use]
pub fn render_json(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
