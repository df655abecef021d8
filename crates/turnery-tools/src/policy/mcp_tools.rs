//! Judges calls of MCP tools.
//!
//! The effects of such a call are unknown, so the server's own hints can only restrict it: a tool that claims
//! to only read is not allowed for that reason; a tool that claims to be destructive is not covered by a rule
//! for the whole server, and "always allow" is not offered for it.

use super::{Judgement, Mode, Policy, Rule, hidden_files::denial_message};

impl Policy {
    /// Judges a call of `tool`; `all` stands for every tool of the same server.
    pub(super) fn judge_mcp_tool(
        &self,
        tool: &str,
        all: &str,
        (reads_only, destroys): (bool, bool),
    ) -> Judgement {
        let about = |rule: &&Rule| rule.tool == tool || rule.tool == all;
        if let Some(rule) = self.deny_rules().iter().find(about) {
            return Judgement::Deny(denial_message(rule));
        }
        let allows = |rule: &Rule| {
            let exactly = rule.tool == tool;
            rule.pattern.is_none() && (exactly || rule.tool == all && !destroys)
        };
        let allowed = self.allow_rules().iter().any(allows);
        let ask = || Judgement::Ask {
            always: tool.parse().ok().filter(|_| !destroys),
        };
        match self.mode {
            Mode::Auto => Judgement::Allow,
            Mode::Plan if !reads_only => Judgement::Deny(
                "plan mode only reads, and this tool of an MCP server does not say that it does: \
                 describe what you would do with it instead, or ask for another mode"
                    .to_owned(),
            ),
            Mode::Plan | Mode::Ask | Mode::Edit if allowed => Judgement::Allow,
            Mode::Plan | Mode::Ask | Mode::Edit => ask(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = "mcp__db__query";
    const ALL: &str = "mcp__db";

    fn rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// Returns the judgement as a letter: `a`llowed, `d`enied, or asked (`?`).
    fn judgement_letter(mode: Mode, allow: &[&str], deny: &[&str], hints: (bool, bool)) -> char {
        let policy = Policy::new(mode, rules(allow), rules(deny));
        match policy.judge_mcp_tool(TOOL, ALL, hints) {
            Judgement::Allow => 'a',
            Judgement::Deny(_) => 'd',
            Judgement::Ask { always } => {
                let offered = always.map(|rule| rule.to_string());
                let (_, destroys) = hints;
                assert_eq!(offered.as_deref(), (!destroys).then_some(TOOL));
                '?'
            }
        }
    }

    #[test]
    fn server_hints_never_allow_tools() {
        let none = (false, false);
        let (reads, destroys) = ((true, false), (false, true));
        type Row = (
            &'static [&'static str],
            &'static [&'static str],
            (bool, bool),
            &'static str,
        );
        #[rustfmt::skip]
        let table: &[Row] = &[
            // allow       deny          hints     ask, edit, plan, auto
            (&[],          &[],          none,     "??da"),
            (&[],          &[],          reads,    "???a"),
            (&[],          &[],          destroys, "??da"),
            (&[TOOL],      &[],          none,     "aada"),
            (&[TOOL],      &[],          reads,    "aaaa"),
            (&[TOOL],      &[],          destroys, "aada"),
            (&[ALL],       &[],          none,     "aada"),
            (&[ALL],       &[],          destroys, "??da"),
            (&["mcp__d"],  &[],          none,     "??da"),
            (&["shell"],   &[],          none,     "??da"),
            (&[TOOL],      &[ALL],       reads,    "dddd"),
            (&[ALL],       &[TOOL],      reads,    "dddd"),
        ];
        for (allow, deny, hints, expected) in table {
            let found: String = Mode::ALL
                .map(|mode| judgement_letter(mode, allow, deny, *hints))
                .iter()
                .collect();
            assert_eq!(
                found, *expected,
                "allow {allow:?}, deny {deny:?}, {hints:?}"
            );
        }
    }
}
