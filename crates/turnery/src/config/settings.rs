//! Settings of one source (a file, the environment or flags), and how sources are merged.
//!
//! This struct and those in its fields are `config.toml`: serde reads them, and `turnery schema` prints their JSON
//! Schema, with the comments of the fields as descriptions for editors.

use super::{
    HookEntry, McpEntry, ProviderEntry,
    environment::EnvLookup,
    models::ModelEntry,
    store_location::{STORE_VARIABLE, StoreSetting, store},
    values::{
        Money, deserialize_text, deserialize_texts, mode, model, parse_positive, percent, protocol,
        thinking,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroU64, NonZeroUsize},
    time::Duration,
};
use turnery_agent::Protocol;
use turnery_engine::{CompactionSettings, Limits, ResponseLimits};
use turnery_models::{CallLimits, ModelName, Thinking};
use turnery_store::Durability;
use turnery_tools::{Mode, Rule, SandboxMode};

/// Configuration of turnery: config.toml in turnery's folder, and .turnery/config.toml in a project. A project may
/// only narrow: its allow rules, providers, hooks, `notify`, models and compaction and freer modes are ignored.
// `None` and empty lists leave a setting to the other sources.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "turnery config.toml")]
pub(crate) struct Config {
    /// Model of new sessions, for example `anthropic/claude-sonnet-4-5` or `offline`.
    #[serde(default, deserialize_with = "deserialize_text")]
    #[schemars(with = "Option<String>")]
    pub(crate) model: Option<ModelName>,
    /// Where sessions are stored: a path, `sqlite:PATH`, `memory:`, or `postgres://USER@HOST:PORT/DATABASE?schema=NAME`;
    /// default: `sessions.db` in turnery's folder. Not in a project.
    #[serde(default, deserialize_with = "deserialize_text")]
    #[schemars(with = "Option<String>")]
    pub(crate) store: Option<StoreSetting>,
    /// Models that take over for the rest of a prompt, in this order, when the chosen one is overloaded, out of credit,
    /// unreachable, unknown or refuses the key. Those without a key are passed over, and with a limit on cost those
    /// without a known price. Not in a project.
    #[serde(default, deserialize_with = "deserialize_texts")]
    #[schemars(with = "Vec<String>")]
    pub(crate) fallback: Vec<ModelName>,
    /// Mode of new sessions: how freely the agent acts.
    #[serde(default, deserialize_with = "deserialize_text")]
    pub(crate) mode: Option<Mode>,
    /// How much the model thinks before it responds.
    #[serde(default, deserialize_with = "deserialize_text")]
    pub(crate) thinking: Option<Thinking>,
    /// How the model acts: by `tools`, or by `code`, one block of Python a turn; default: `tools`.
    #[serde(default, deserialize_with = "deserialize_text")]
    pub(crate) protocol: Option<Protocol>,
    /// How far the operating system confines commands; default: `workspace`, where that is possible. If set, it also
    /// applies where an editor lends terminals. A project may only narrow it.
    #[serde(default, deserialize_with = "deserialize_text")]
    pub(crate) sandbox: Option<SandboxMode>,
    /// Whether confined commands may use the network; default: false. Not in a project.
    pub(crate) sandbox_network: Option<bool>,
    /// Environment variables that commands see although their names look like those of keys. Not in a project.
    #[serde(default)]
    pub(crate) pass_env: Vec<String>,
    /// What stored prompts, approvals and responses survive once they are shown: the end of the `process`, or a cut of
    /// `power` too, which costs a flush of the disk for each of them; default: `process`. Not in a project.
    #[serde(default, deserialize_with = "deserialize_text")]
    #[schemars(with = "Option<DurabilityName>")]
    pub(crate) durability: Option<Durability>,
    /// What is allowed without asking, for example `shell(cargo test:*)` or `edit(src/**)`.
    #[serde(default, deserialize_with = "deserialize_texts")]
    #[schemars(with = "Vec<String>")]
    pub(crate) allow: Vec<Rule>,
    /// What is never allowed. Takes precedence over `allow`.
    #[serde(default, deserialize_with = "deserialize_texts")]
    #[schemars(with = "Vec<String>")]
    pub(crate) deny: Vec<Rule>,
    /// Summarise older messages once the model's context is this full, in percent; default: 85, 0 never does.
    /// Not in a project.
    #[serde(default, deserialize_with = "percent")]
    #[schemars(range(min = 0, max = 100))]
    pub(crate) compact_at: Option<u8>,
    /// At the limit of turns, take one more for an answer in prose; default: true. The limit is reported in any case.
    pub(crate) forced_reply: Option<bool>,
    /// Maximum number of tool calls that run in parallel; default: 4.
    pub(crate) parallel_tools: Option<NonZeroUsize>,
    /// When a prompt stops by itself.
    #[serde(default)]
    pub(crate) limits: LimitConfig,
    /// What a summary of older messages keeps, and how long it may be. Not in a project.
    pub(crate) compaction: Option<CompactionConfig>,
    /// Commands that observe a prompt and may stop it. Not in a project.
    // An empty list is a choice too: no hooks.
    pub(crate) hooks: Option<Vec<HookEntry>>,
    /// A program and its arguments, by which the model sends the user a short message: the message is added as the last
    /// argument, and stdin is a JSON object with it. Without it, the model cannot. Not in a project.
    #[schemars(length(min = 1))]
    pub(crate) notify: Option<Vec<String>>,
    /// MCP servers, whose tools are offered to the model, by name. Not in a project.
    pub(crate) mcp: Option<BTreeMap<String, McpEntry>>,
    /// Providers of models, by name: changes to the built-in ones, and further ones. Not in a project.
    #[serde(default)]
    pub(crate) providers: BTreeMap<String, ProviderEntry>,
    /// Facts about models that their names do not tell, by `provider/model`. Not in a project.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, ModelEntry>,
}

/// Names of [`Durability`], for the schema.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum DurabilityName {
    Process,
    Power,
}

/// When a prompt stops by itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitConfig {
    /// Turns with the model, including those of sub-agents, tried models and their judge; default: 50.
    pub(crate) turns: Option<NonZeroU32>,
    /// Tokens, input and output; default: 1000000.
    pub(crate) tokens: Option<NonZeroU64>,
    /// Seconds; default: 600.
    pub(crate) seconds: Option<NonZeroU64>,
    /// Bytes of one response: text, reasoning and arguments of calls; default: 16777216.
    pub(crate) answer_bytes: Option<NonZeroU64>,
    /// Calls in one response; default: 1000.
    pub(crate) answer_calls: Option<NonZeroU64>,
    /// Seconds without a byte from the model, pings included; default: 300, or 600 for a server that needs no key.
    /// Not in a project.
    pub(crate) idle_seconds: Option<NonZeroU64>,
    /// Seconds without content from the model, however many pings it sends; default: 480, and never less than the
    /// seconds without a byte. Not in a project.
    pub(crate) content_seconds: Option<NonZeroU64>,
    /// Money, over all models that work for the prompt; those without a known price are refused. Default: no limit.
    pub(crate) cost: Option<Money>,
}

/// What a summary of older messages keeps, and how long it may be. `compact_at` says when.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompactionConfig {
    /// First turns that are kept unchanged; default: 2.
    first_turns: Option<u64>,
    /// Latest turns that are kept, with long output of tools shortened; default: 10. The last one always is.
    recent_turns: Option<u64>,
    /// Maximum length of the summary, in tokens; default: 2000.
    summary_tokens: Option<NonZeroU64>,
    /// Lines of a tool's output that are kept in the latest turns; default: 50.
    output_lines: Option<NonZeroU64>,
    /// Target size of all messages afterwards, in tokens: less is kept while they exceed it. At most two thirds of the
    /// size before, whatever is set.
    room: Option<NonZeroU64>,
}

impl CompactionConfig {
    /// Returns the settings of summaries, with the engine's defaults for unset values.
    pub(crate) fn settings(&self) -> CompactionSettings {
        let usual = CompactionSettings::default();
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let lines = self.output_lines.map(NonZeroU64::get);
        CompactionSettings {
            first_turns: self.first_turns.map_or(usual.first_turns, count),
            recent_turns: self.recent_turns.map_or(usual.recent_turns, count),
            max_summary_tokens: get(self.summary_tokens, usual.max_summary_tokens),
            max_output_lines: lines.map_or(usual.max_output_lines, count),
            target_tokens: get(self.room, usual.target_tokens),
        }
    }
}

/// Returns the limit, or `usual` if it is not set.
fn get(limit: Option<NonZeroU64>, usual: u64) -> u64 {
    limit.map_or(usual, NonZeroU64::get)
}

impl LimitConfig {
    fn over(self, below: &Self) -> Self {
        Self {
            turns: self.turns.or(below.turns),
            tokens: self.tokens.or(below.tokens),
            seconds: self.seconds.or(below.seconds),
            answer_bytes: self.answer_bytes.or(below.answer_bytes),
            answer_calls: self.answer_calls.or(below.answer_calls),
            idle_seconds: self.idle_seconds.or(below.idle_seconds),
            content_seconds: self.content_seconds.or(below.content_seconds),
            cost: self.cost.or(below.cost),
        }
    }

    /// Returns the limits of a prompt, with the engine's defaults for unset values.
    #[must_use]
    pub(crate) fn of_prompt(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            turns: self.turns.map_or(usual.turns, NonZeroU32::get),
            tokens: get(self.tokens, usual.tokens),
            duration: Duration::from_secs(get(self.seconds, usual.duration.as_secs())),
            cost: self.cost.map(|cost| cost.0).or(usual.cost),
            response: ResponseLimits {
                bytes: get(self.answer_bytes, usual.response.bytes),
                calls: get(self.answer_calls, usual.response.calls),
            },
        }
    }

    /// Returns the timeouts for silent models, with defaults for unset values.
    #[must_use]
    pub(crate) fn of_model_call(&self) -> CallLimits {
        let usual = CallLimits::default();
        let seconds = |limit: Option<NonZeroU64>| limit.map(|it| Duration::from_secs(it.get()));
        let idle = seconds(self.idle_seconds);
        CallLimits {
            idle: idle.unwrap_or(usual.idle),
            idle_local: idle.unwrap_or(usual.idle_local),
            content: seconds(self.content_seconds).unwrap_or(usual.content),
            ..usual
        }
    }
}

impl Config {
    /// Returns the settings that the environment variables contain.
    pub(crate) fn from_environment(lookup: EnvLookup<'_>) -> Result<Self, String> {
        fn read<T>(
            lookup: EnvLookup<'_>,
            name: &str,
            parse: impl FnOnce(&str) -> Result<T, String>,
        ) -> Result<Option<T>, String> {
            lookup(name)
                .map(|value| parse(&value).map_err(|error| format!("{name}: {error}")))
                .transpose()
        }
        Ok(Self {
            model: read(lookup, "TURNERY_MODEL", model)?,
            mode: read(lookup, "TURNERY_MODE", mode)?,
            thinking: read(lookup, "TURNERY_THINKING", thinking)?,
            protocol: read(lookup, "TURNERY_PROTOCOL", protocol)?,
            store: read(lookup, STORE_VARIABLE, store)?,
            limits: LimitConfig {
                turns: read(lookup, "TURNERY_MAX_TURNS", parse_positive)?,
                ..LimitConfig::default()
            },
            ..Self::default()
        })
    }

    /// Returns the words of the command lines of hooks and `notify`.
    pub(crate) fn command_words(&self) -> impl Iterator<Item = &str> {
        let hooks = self.hooks.iter().flatten();
        let words = hooks.flat_map(|hook| &hook.command);
        words
            .chain(self.notify.iter().flatten())
            .map(String::as_str)
    }

    /// Merges two sources: this one takes precedence over `below`, and the rules of both apply. Providers, models and
    /// fallbacks are those of `below`, since only the user's file has any.
    #[must_use]
    pub(crate) fn over(self, below: &Self) -> Self {
        Self {
            model: self.model.or_else(|| below.model.clone()),
            store: self.store.or_else(|| below.store.clone()),
            fallback: below.fallback.clone(),
            mode: self.mode.or(below.mode),
            thinking: self.thinking.or(below.thinking),
            protocol: self.protocol.or(below.protocol),
            sandbox: self.sandbox.or(below.sandbox),
            sandbox_network: self.sandbox_network.or(below.sandbox_network),
            durability: self.durability.or(below.durability),
            pass_env: join_unique(below.pass_env.clone(), self.pass_env),
            allow: join_unique(below.allow.clone(), self.allow),
            deny: join_unique(below.deny.clone(), self.deny),
            compact_at: self.compact_at.or(below.compact_at),
            forced_reply: self.forced_reply.or(below.forced_reply),
            parallel_tools: self.parallel_tools.or(below.parallel_tools),
            limits: self.limits.over(&below.limits),
            compaction: self.compaction.or_else(|| below.compaction.clone()),
            hooks: self.hooks.or_else(|| below.hooks.clone()),
            notify: self.notify.or_else(|| below.notify.clone()),
            mcp: self.mcp.or_else(|| below.mcp.clone()),
            providers: below.providers.clone(),
            models: below.models.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_upper_choice_wins_and_rules_add_up() {
        let below = Config {
            model: Some(model("offline").unwrap()),
            mode: Some(Mode::Plan),
            allow: parse_rules(&["read", "edit(src/**)"]),
            deny: parse_rules(&["shell"]),
            limits: LimitConfig {
                turns: NonZeroU32::new(10),
                seconds: NonZeroU64::new(60),
                ..LimitConfig::default()
            },
            ..Config::default()
        };
        let above = Config {
            mode: Some(Mode::Edit),
            allow: parse_rules(&["edit(src/**)", "shell(cargo test:*)"]),
            limits: LimitConfig {
                turns: NonZeroU32::new(3),
                ..LimitConfig::default()
            },
            ..Config::default()
        };
        let both = above.over(&below);
        assert_eq!(both.model, Some(model("offline").unwrap()));
        assert_eq!(both.mode, Some(Mode::Edit));
        assert_eq!(
            both.allow,
            parse_rules(&["read", "edit(src/**)", "shell(cargo test:*)"])
        );
        assert_eq!(both.deny, parse_rules(&["shell"]));
        assert_eq!(both.limits.of_prompt().turns, 3);
        assert_eq!(both.limits.of_prompt().duration, Duration::from_secs(60));
        assert_eq!(both.limits.of_prompt().tokens, 1_000_000);
    }

    #[test]
    fn bad_value_error_names_variable() {
        let lookup = |name: &str| (name == "TURNERY_MODE").then(|| "free".to_owned());
        assert_eq!(
            Config::from_environment(&lookup),
            Err("TURNERY_MODE: \"free\" is no mode; write ask, edit, plan or auto".to_owned())
        );
        let lookup = |name: &str| (name == "TURNERY_MAX_TURNS").then(|| "0".to_owned());
        assert_eq!(
            Config::from_environment(&lookup),
            Err("TURNERY_MAX_TURNS: \"0\" is no whole number from 1 on".to_owned())
        );
    }
}
