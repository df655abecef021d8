//! Choice: the settings that every source may name, be it a file, the environment or a flag.

use super::{HookEntry, McpEntry};
use std::{num::NonZeroUsize, path::PathBuf, str::FromStr, time::Duration};
use turnery_engine::{AnswerLimits, CompactionSettings, Limits};
use turnery_models::{CallLimits, ModelName, Thinking};
use turnery_tools::{Mode, Rule, SandboxMode};

/// What one source asks for. `None` and empty lists leave it to the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// The model to begin with.
    pub(crate) model: Option<ModelName>,
    /// How freely the agent acts at first.
    pub(crate) mode: Option<Mode>,
    /// How much the model is to think.
    pub(crate) thinking: Option<Thinking>,
    /// How far commands are confined.
    pub(crate) sandbox: Option<SandboxMode>,
    /// Whether confined commands may use the network. Not in a project.
    pub(crate) sandbox_network: Option<bool>,
    /// Variables that commands see though their names look like those of keys. Not in a project.
    pub(crate) pass_env: Vec<String>,
    /// Rules that allow.
    pub(crate) allow: Vec<Rule>,
    /// Rules that deny; they win.
    pub(crate) deny: Vec<Rule>,
    /// At most so many turns for a prompt.
    pub(crate) turns: Option<u32>,
    /// At most so many tokens for a prompt.
    pub(crate) tokens: Option<u64>,
    /// At most so many seconds for a prompt.
    pub(crate) seconds: Option<u64>,
    /// At most so much money for a prompt. Unit: millionths.
    pub(crate) cost: Option<u64>,
    /// At most so many bytes of one answer.
    pub(crate) answer_bytes: Option<u64>,
    /// At most so many calls in one answer.
    pub(crate) answer_calls: Option<u64>,
    /// At most so many seconds without a byte from the model. Not in a project.
    pub(crate) idle_seconds: Option<u64>,
    /// At most so many seconds without content from the model. Not in a project.
    pub(crate) content_seconds: Option<u64>,
    /// Summarise older messages once the context is this full. Unit: percent; 0 never does.
    pub(crate) compact_at: Option<u8>,
    /// What a summary leaves as it is, and how long it may be. Not in a project.
    pub(crate) compaction: Option<CompactionSettings>,
    /// Whether a prompt at its limit of turns gets one more for an answer in prose.
    pub(crate) forced_reply: Option<bool>,
    /// How many calls may run beside each other.
    pub(crate) parallel_tools: Option<NonZeroUsize>,
    /// Commands that look into prompts. An empty list is a choice too: none.
    pub(crate) hooks: Option<Vec<HookEntry>>,
    /// Servers of tools. An empty list is a choice too: none.
    pub(crate) mcp: Option<Vec<McpEntry>>,
}

impl Choice {
    /// Files that hooks and servers run: whole paths in their command lines, those within a line for a shell or behind the
    /// `=` of an option included. Folders hold more than that.
    pub(crate) fn programs(&self) -> Vec<PathBuf> {
        let hooks = self.hooks.iter().flatten().flat_map(|hook| &hook.command);
        let servers = self.mcp.iter().flatten().flat_map(McpEntry::words);
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

    /// This choice, and `below` where it says nothing. Rules of both count.
    #[must_use]
    pub(crate) fn over(self, below: &Self) -> Self {
        Self {
            model: self.model.or_else(|| below.model.clone()),
            mode: self.mode.or(below.mode),
            thinking: self.thinking.or(below.thinking),
            sandbox: self.sandbox.or(below.sandbox),
            sandbox_network: self.sandbox_network.or(below.sandbox_network),
            pass_env: joined(below.pass_env.clone(), self.pass_env),
            allow: joined(below.allow.clone(), self.allow),
            deny: joined(below.deny.clone(), self.deny),
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

    /// The limits of a prompt, with the engine's own where nothing was chosen.
    #[must_use]
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            turns: self.turns.unwrap_or(usual.turns),
            tokens: self.tokens.unwrap_or(usual.tokens),
            duration: self.seconds.map_or(usual.duration, Duration::from_secs),
            cost: self.cost.or(usual.cost),
            answer: AnswerLimits {
                bytes: self.answer_bytes.unwrap_or(usual.answer.bytes),
                calls: self.answer_calls.unwrap_or(usual.answer.calls),
            },
        }
    }

    /// How long a silent model is waited for, with the usual times where nothing was chosen.
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

/// Both lists, each item once.
fn joined<T: PartialEq>(mut first: Vec<T>, then: Vec<T>) -> Vec<T> {
    for item in then {
        if !first.contains(&item) {
            first.push(item);
        }
    }
    first
}

/// The sandbox mode of that name, or a sentence that lists the modes there are.
pub(crate) fn sandbox(text: &str) -> Result<SandboxMode, String> {
    named(
        text,
        "sandbox mode",
        SandboxMode::ALL.map(|mode| (mode.as_str(), mode)),
    )
}

/// The name of an environment variable, or what is wrong with it.
pub(crate) fn variable(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(['=', '*', '\0']) {
        true => Err(format!(
            "{text:?} is no name of a variable: write it whole, without * or ="
        )),
        false => Ok(text.to_owned()),
    }
}

/// The mode of that name, or a sentence that lists the modes there are.
pub(crate) fn mode(text: &str) -> Result<Mode, String> {
    named(text, "mode", Mode::ALL.map(|mode| (mode.as_str(), mode)))
}

/// The thinking level of that name, or a sentence that lists the levels there are.
pub(crate) fn thinking(text: &str) -> Result<Thinking, String> {
    const ALL: [Thinking; 5] = [
        Thinking::Default,
        Thinking::Off,
        Thinking::Low,
        Thinking::Medium,
        Thinking::High,
    ];
    named(
        text,
        "thinking level",
        ALL.map(|level| (level.as_str(), level)),
    )
}

fn named<T: Copy, const N: usize>(
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

/// The name of a model, or what is wrong with it.
pub(crate) fn model(text: &str) -> Result<ModelName, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// A count of at least one.
pub(crate) fn count<N: FromStr + PartialOrd + Default>(text: &str) -> Result<N, String> {
    text.parse::<N>()
        .ok()
        .filter(|count| *count > N::default())
        .ok_or_else(|| format!("{text:?} is no whole number from 1 on"))
}

/// More money than none, in millionths.
pub(crate) fn cost(text: &str) -> Result<u64, String> {
    match super::models::millionths(text) {
        Some(0) | None => Err(format!("{text:?} is no amount of money above 0")),
        Some(cost) => Ok(cost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_upper_choice_wins_and_rules_add_up() {
        let below = Choice {
            model: Some(model("offline").unwrap()),
            mode: Some(Mode::Plan),
            allow: rules(&["read", "edit(src/**)"]),
            deny: rules(&["shell"]),
            turns: Some(10),
            seconds: Some(60),
            ..Choice::default()
        };
        let above = Choice {
            mode: Some(Mode::Edit),
            allow: rules(&["edit(src/**)", "shell(cargo test:*)"]),
            turns: Some(3),
            ..Choice::default()
        };
        let both = above.over(&below);
        assert_eq!(both.model, Some(model("offline").unwrap()));
        assert_eq!(both.mode, Some(Mode::Edit));
        assert_eq!(
            both.allow,
            rules(&["read", "edit(src/**)", "shell(cargo test:*)"])
        );
        assert_eq!(both.deny, rules(&["shell"]));
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
    fn a_word_that_is_none_gets_the_nearest() {
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
