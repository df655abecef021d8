//! Renders the mutation table as Markdown and JSON.

use super::{MutationRow, MutationTable};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

fn join_rules<'a>(rules: impl IntoIterator<Item = &'a String>) -> String {
    let rules: Vec<_> = rules.into_iter().map(String::as_str).collect();
    rules.join(", ")
}

impl MutationRow {
    /// Describes the unexpected results of the fault; empty if there are none.
    #[must_use]
    pub fn complaint(&self) -> String {
        let mut parts = Vec::new();
        if self.breaks.is_empty() {
            parts.push("faults.toml does not say what it breaks".to_owned());
        }
        if self.case_count == 0 {
            parts.push("no case gives it anything to change".to_owned());
        }
        if self.missed_rules().next().is_some() {
            parts.push(format!("not caught: {}", join_rules(self.missed_rules())));
        }
        if self.false_alarms().next().is_some() {
            let each = self.false_alarms();
            let each: Vec<_> = each.map(|(rule, why)| format!("{rule} ({why})")).collect();
            parts.push(format!("too many: {}", each.join(", ")));
        }
        parts.join("; ")
    }
}

impl MutationTable {
    /// Renders the table as Markdown: problems first, then by fault, then by rule.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = String::from("# Mutation table\n\n");
        let right = self.rows.iter().filter(|row| row.is_right()).count();
        let rules: BTreeSet<_> = self.rows.iter().flat_map(|row| &row.breaks).collect();
        let _ = writeln!(
            text,
            "{right} of {} faults make just those rules fail that they break; together they break {} rules. \
             It took {} s.\n",
            self.rows.len(),
            rules.len(),
            self.took.as_secs()
        );
        if !self.is_right() {
            text.push_str("## What is wrong\n\n");
            for wrong in &self.baseline_failures {
                let _ = writeln!(text, "- without any fault, {wrong}");
            }
            for row in self.rows.iter().filter(|row| !row.is_right()) {
                let _ = writeln!(text, "- `{}`: {}", row.fault, row.complaint());
            }
            for rule in &self.uncovered_rules {
                let _ = writeln!(text, "- {rule}: no fault breaks it, and no reason is given");
            }
            text.push('\n');
        }
        text.push_str("## Fault by fault\n\n| fault | what it does | what fails | cases |\n|---|---|---|---|\n");
        for row in &self.rows {
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} |",
                row.fault,
                row.description,
                join_rules(row.failed.keys()),
                row.case_count
            );
        }
        text.push_str("\n## Rule by rule\n\n| rule | faults that make it fail |\n|---|---|\n");
        for (rule, faults) in self.faults_by_rule() {
            let _ = writeln!(text, "| {rule} | {} |", faults.join(", "));
        }
        text
    }

    fn faults_by_rule(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut rules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in &self.rows {
            for rule in row
                .breaks
                .iter()
                .filter(|rule| row.failed.contains_key(*rule))
            {
                rules.entry(rule).or_default().push(&row.fault);
            }
        }
        rules
    }

    /// Renders the table as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "fault": row.fault,
                "does": row.description,
                "breaks": row.breaks,
                "failed": row.failed,
                "missed": row.missed_rules().collect::<Vec<_>>(),
                "falseAlarms": row.false_alarms().map(|(rule, _)| rule).collect::<Vec<_>>(),
                "cases": row.case_count,
            })
        });
        json!({
            "isRight": self.is_right(),
            "wrongWithoutFault": self.baseline_failures,
            "faults": rows.collect::<Vec<_>>(),
            "unbroken": self.uncovered_rules,
            "seconds": self.took.as_secs_f64(),
        })
    }
}
