//! show: the mutation table for people, and for programs.

use super::{Row, Table};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

fn list<'a>(rules: impl IntoIterator<Item = &'a String>) -> String {
    let rules: Vec<_> = rules.into_iter().map(String::as_str).collect();
    rules.join(", ")
}

impl Row {
    /// What is wrong with it, in words; empty if nothing is.
    #[must_use]
    pub fn complaint(&self) -> String {
        let mut parts = Vec::new();
        if self.breaks.is_empty() {
            parts.push("faults.toml does not say what it breaks".to_owned());
        }
        if self.cases == 0 {
            parts.push("no case gives it anything to change".to_owned());
        }
        if self.missed().next().is_some() {
            parts.push(format!("not caught: {}", list(self.missed())));
        }
        if self.false_alarms().next().is_some() {
            let each = self.false_alarms();
            let each: Vec<_> = each.map(|(rule, why)| format!("{rule} ({why})")).collect();
            parts.push(format!("too many: {}", each.join(", ")));
        }
        parts.join("; ")
    }
}

impl Table {
    /// As Markdown: what is wrong first, then fault by fault, then rule by rule.
    #[must_use]
    pub fn markdown(&self) -> String {
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
            for wrong in &self.wrong_without_fault {
                let _ = writeln!(text, "- without any fault, {wrong}");
            }
            for row in self.rows.iter().filter(|row| !row.is_right()) {
                let _ = writeln!(text, "- `{}`: {}", row.fault, row.complaint());
            }
            for rule in &self.unbroken {
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
                row.does,
                list(row.failed.keys()),
                row.cases
            );
        }
        text.push_str("\n## Rule by rule\n\n| rule | faults that make it fail |\n|---|---|\n");
        for (rule, faults) in self.by_rule() {
            let _ = writeln!(text, "| {rule} | {} |", faults.join(", "));
        }
        text
    }

    fn by_rule(&self) -> BTreeMap<&str, Vec<&str>> {
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

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "fault": row.fault,
                "does": row.does,
                "breaks": row.breaks,
                "failed": row.failed,
                "missed": row.missed().collect::<Vec<_>>(),
                "falseAlarms": row.false_alarms().map(|(rule, _)| rule).collect::<Vec<_>>(),
                "cases": row.cases,
            })
        });
        json!({
            "isRight": self.is_right(),
            "wrongWithoutFault": self.wrong_without_fault,
            "faults": rows.collect::<Vec<_>>(),
            "unbroken": self.unbroken,
            "seconds": self.took.as_secs_f64(),
        })
    }
}
