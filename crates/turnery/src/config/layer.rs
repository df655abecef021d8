//! Settings of one source (a file, the environment or flags), and how sources are merged.

use super::{HookEntry, McpEntry};
use std::{num::NonZeroUsize, path::PathBuf, str::FromStr, time::Duration};
use turnery_engine::{CompactionSettings, Limits, ResponseLimits};
use turnery_models::{CallLimits, ModelName, Thinking};
use turnery_tools::{Mode, Rule, SandboxMode};

/// Settings of one source. `None` and empty lists leave a setting to the other sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// Model of new sessions.
    pub(crate) model: Option<ModelName>,
    /// Mode of new sessions.
    pub(crate) mode: Option<Mode>,
    /// Thinking level.
    pub(crate) thinking: Option<Thinking>,
    /// Sandbox mode of commands.
    pub(crate) sandbox: Option<SandboxMode>,
    /// True if sandboxed commands may use the network. Not in a project.
    pub(crate) sandbox_network: Option<bool>,
    /// Environment variables passed to commands although their names look like those of keys. Not in a project.
    pub(crate) pass_env: Vec<String>,
    /// Allow rules.
    pub(crate) allow: Vec<Rule>,
    /// Deny rules; they take precedence over allow rules.
    pub(crate) deny: Vec<Rule>,
    /// Maximum turns of a prompt.
    pub(crate) turns: Option<u32>,
    /// Maximum tokens of a prompt.
    pub(crate) tokens: Option<u64>,
    /// Maximum duration of a prompt. Unit: seconds.
    pub(crate) seconds: Option<u64>,
    /// Maximum cost of a prompt. Unit: millionths.
    pub(crate) cost: Option<u64>,
    /// Maximum size of one response. Unit: bytes.
    pub(crate) answer_bytes: Option<u64>,
    /// Maximum number of tool calls in one response.
    pub(crate) answer_calls: Option<u64>,
    /// Maximum time without a byte from the model. Unit: seconds. Not in a project.
    pub(crate) idle_seconds: Option<u64>,
    /// Maximum time without content from the model. Unit: seconds. Not in a project.
    pub(crate) content_seconds: Option<u64>,
    /// Context usage at which older messages are summarised; 0 disables it. Unit: percent.
    pub(crate) compact_at: Option<u8>,
    /// Settings of summaries. Not in a project.
    pub(crate) compaction: Option<CompactionSettings>,
    /// True if a prompt at its turn limit gets one more turn for an answer in prose.
    pub(crate) forced_reply: Option<bool>,
    /// Maximum number of tool calls that run in parallel.
    pub(crate) parallel_tools: Option<NonZeroUsize>,
    /// Hook commands. An empty list is a choice too: no hooks.
    pub(crate) hooks: Option<Vec<HookEntry>>,
    /// MCP servers. An empty list is a choice too: no servers.
    pub(crate) mcp: Option<Vec<McpEntry>>,
}

impl Choice {
    /// Returns the files that hooks and servers run: absolute paths in their command lines, including those
    /// inside a shell line or after the `=` of an option, without folders.
    pub(crate) fn program_paths(&self) -> Vec<PathBuf> {
        let hooks = self.hooks.iter().flatten().flat_map(|hook| &hook.command);
        let servers = self.mcp.iter().flatten().flat_map(McpEntry::command_words);
        let ends_path = |c: char| c.is_whitespace() || "'\"`$;&|()<>=:,".contains(c);
        let parts = |word: &str| -> Vec<PathBuf> {
            let quoted = word.split(['\'', '"']);
            let parts = word.split(ends_path).chain(quoted).chain([word]);
            parts.map(PathBuf::from).collect()
        };
        let words = hooks.chain(servers);
        words
            .flat_map(|word| parts(word))
            .filter(|path| path.is_absolute() && !path.is_dir())
            .collect()
    }

    /// Merges two sources: this one takes precedence over `below`, and the rules of both apply.
    #[must_use]
    pub(crate) fn over(self, below: &Self) -> Self {
        Self {
            model: self.model.or_else(|| below.model.clone()),
            mode: self.mode.or(below.mode),
            thinking: self.thinking.or(below.thinking),
            sandbox: self.sandbox.or(below.sandbox),
            sandbox_network: self.sandbox_network.or(below.sandbox_network),
            pass_env: join_unique(below.pass_env.clone(), self.pass_env),
            allow: join_unique(below.allow.clone(), self.allow),
            deny: join_unique(below.deny.clone(), self.deny),
            turns: self.turns.or(below.turns),
            tokens: self.tokens.or(below.tokens),
            seconds: self.seconds.or(below.seconds),
            cost: self.cost.or(below.cost),
            answer_bytes: self.answer_bytes.or(below.answer_bytes),
            answer_calls: self.answer_calls.or(below.answer_calls),
            idle_seconds: self.idle_seconds.or(below.idle_seconds),
            content_seconds: self.content_seconds.or(below.content_seconds),
            compact_at: self.compact_at.or(below.compact_at),
            compaction: self.compaction.or(below.compaction),
            forced_reply: self.forced_reply.or(below.forced_reply),
            parallel_tools: self.parallel_tools.or(below.parallel_tools),
            hooks: self.hooks.or_else(|| below.hooks.clone()),
            mcp: self.mcp.or_else(|| below.mcp.clone()),
        }
    }

    /// Returns the limits of a prompt, with the engine's defaults for unset values.
    #[must_use]
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            turns: self.turns.unwrap_or(usual.turns),
            tokens: self.tokens.unwrap_or(usual.tokens),
            duration: self.seconds.map_or(usual.duration, Duration::from_secs),
            cost: self.cost.or(usual.cost),
            response: ResponseLimits {
                bytes: self.answer_bytes.unwrap_or(usual.response.bytes),
                calls: self.answer_calls.unwrap_or(usual.response.calls),
            },
        }
    }

    /// Returns the timeouts for silent models, with defaults for unset values.
    #[must_use]
    pub(crate) fn call_limits(&self) -> CallLimits {
        let usual = CallLimits::default();
        let idle = self.idle_seconds.map(Duration::from_secs);
        CallLimits {
            idle: idle.unwrap_or(usual.idle),
            idle_local: idle.unwrap_or(usual.idle_local),
            content: self
                .content_seconds
                .map_or(usual.content, Duration::from_secs),
            ..usual
        }
    }
}

/// Concatenates two lists without duplicates.
fn join_unique<T: PartialEq>(mut first: Vec<T>, then: Vec<T>) -> Vec<T> {
    for item in then {
        if !first.contains(&item) {
            first.push(item);
        }
    }
    first
}

/// Parses a sandbox mode; the error lists the valid names.
pub(crate) fn sandbox(text: &str) -> Result<SandboxMode, String> {
    parse_named(
        text,
        "sandbox mode",
        SandboxMode::ALL.map(|mode| (mode.as_str(), mode)),
    )
}

/// Checks the name of an environment variable.
pub(crate) fn parse_variable_name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(['=', '*', '\0']) {
        true => Err(format!(
            "{text:?} is no name of a variable: write it whole, without * or ="
        )),
        false => Ok(text.to_owned()),
    }
}

/// Parses a mode; the error lists the valid names.
pub(crate) fn mode(text: &str) -> Result<Mode, String> {
    parse_named(text, "mode", Mode::ALL.map(|mode| (mode.as_str(), mode)))
}

/// Parses a thinking level; the error lists the valid names.
pub(crate) fn thinking(text: &str) -> Result<Thinking, String> {
    const ALL: [Thinking; 5] = [
        Thinking::Default,
        Thinking::Off,
        Thinking::Low,
        Thinking::Medium,
        Thinking::High,
    ];
    parse_named(
        text,
        "thinking level",
        ALL.map(|level| (level.as_str(), level)),
    )
}

fn parse_named<T: Copy, const N: usize>(
    text: &str,
    what: &str,
    all: [(&'static str, T); N],
) -> Result<T, String> {
    if let Some((_, found)) = all.iter().find(|(name, _)| *name == text) {
        return Ok(*found);
    }
    let names = all.map(|(name, _)| name);
    Err(format!(
        "{text:?} is no {what}; write {}",
        super::reader::alternatives(text, &names)
    ))
}

/// Parses the name of a model.
pub(crate) fn model(text: &str) -> Result<ModelName, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// Parses a number of at least one.
pub(crate) fn count<N: FromStr + PartialOrd + Default>(text: &str) -> Result<N, String> {
    text.parse::<N>()
        .ok()
        .filter(|count| *count > N::default())
        .ok_or_else(|| format!("{text:?} is no whole number from 1 on"))
}

/// Parses a positive amount of money. Unit: millionths.
pub(crate) fn cost(text: &str) -> Result<u64, String> {
    match super::models::parse_millionths(text) {
        Some(0) | None => Err(format!("{text:?} is no amount of money above 0")),
        Some(cost) => Ok(cost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_upper_choice_wins_and_rules_add_up() {
        let below = Choice {
            model: Some(model("offline").unwrap()),
            mode: Some(Mode::Plan),
            allow: parse_rules(&["read", "edit(src/**)"]),
            deny: parse_rules(&["shell"]),
            turns: Some(10),
            seconds: Some(60),
            ..Choice::default()
        };
        let above = Choice {
            mode: Some(Mode::Edit),
            allow: parse_rules(&["edit(src/**)", "shell(cargo test:*)"]),
            turns: Some(3),
            ..Choice::default()
        };
        let both = above.over(&below);
        assert_eq!(both.model, Some(model("offline").unwrap()));
        assert_eq!(both.mode, Some(Mode::Edit));
        assert_eq!(
            both.allow,
            parse_rules(&["read", "edit(src/**)", "shell(cargo test:*)"])
        );
        assert_eq!(both.deny, parse_rules(&["shell"]));
        assert_eq!(both.limits().turns, 3);
        assert_eq!(both.limits().duration, Duration::from_secs(60));
        assert_eq!(both.limits().tokens, 1_000_000);
    }

    #[test]
    fn misspelt_sandbox_mode_is_answered_with_the_choices() {
        assert_eq!(sandbox("read-only"), Ok(SandboxMode::ReadOnly));
        assert_eq!(
            sandbox("readonly"),
            Err(
                "\"readonly\" is no sandbox mode; write \"read-only\" (or off, workspace)"
                    .to_owned()
            )
        );
        assert!(sandbox("none").is_err());
    }

    #[test]
    fn unknown_mode_or_level_suggests_nearest() {
        assert_eq!(
            mode("atuo"),
            Err("\"atuo\" is no mode; write \"auto\" (or ask, edit, plan)".to_owned())
        );
        assert_eq!(
            thinking("extreme"),
            Err(
                "\"extreme\" is no thinking level; write default, off, low, medium or high"
                    .to_owned()
            )
        );
    }
}
