//! Server: what a policy says of a call of an MCP server's tool.
//!
//! Nobody here knows what such a call does. What the server itself says of it can only take freedom
//! away: a tool that says it only reads is not allowed for that, one that says it destroys is not
//! covered by a rule for the whole server, and nobody is offered to allow it always.

use super::{Judgement, Mode, Policy, Rule, hidden::denial};

impl Policy {
    /// Judge a call of `tool`, where `all` stands for every tool of its server.
    pub(super) fn judge_server(
        &self,
        tool: &str,
        all: &str,
        (reads_only, destroys): (bool, bool),
    ) -> Judgement {
        let about = |rule: &&Rule| rule.tool == tool || rule.tool == all;
        if let Some(rule) = self.denied().iter().find(about) {
            return Judgement::Deny(denial(rule));
        }
        let allows = |rule: &Rule| {
            let exactly = rule.tool == tool;
            rule.pattern.is_none() && (exactly || rule.tool == all && !destroys)
        };
        let allowed = self.allowed().iter().any(allows);
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

    /// What is said of a call: `a`llowed, `d`enied, or asked (`?`).
    fn said(mode: Mode, allow: &[&str], deny: &[&str], hints: (bool, bool)) -> char {
        let policy = Policy::new(mode, rules(allow), rules(deny));
        match policy.judge_server(TOOL, ALL, hints) {
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
    fn what_a_server_says_of_its_tools_never_allows_them() {
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
                .map(|mode| said(mode, allow, deny, *hints))
                .iter()
                .collect();
            assert_eq!(
                found, *expected,
                "allow {allow:?}, deny {deny:?}, {hints:?}"
            );
        }
    }
}
