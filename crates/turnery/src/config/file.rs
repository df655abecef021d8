//! Parses `config.toml`.

use super::{
    Choice, ConfigError, hooks,
    layer::{mode, model, parse_variable_name, sandbox, thinking},
    mcp, models,
    reader::{Section, boolean, money, number, percent, read_toml, text, whole},
    rules::parse_rule,
};
use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    num::NonZeroUsize,
    path::Path,
};
use toml::de::DeValue;
use turnery_engine::CompactionSettings;
use turnery_models::{Api, ModelName, ModelOverride};

/// Longest configuration file; longer ones are refused. Unit: bytes.
const LONGEST: u64 = 1 << 20;

/// Contents of one `config.toml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ConfigFile {
    /// Settings that the environment and flags can contain as well.
    pub(crate) choice: Choice,
    /// Providers of models, by name.
    pub(crate) providers: Vec<ProviderEntry>,
    /// Facts about models, by model name.
    pub(crate) models: Vec<(ModelName, ModelOverride)>,
}

/// A `[providers.NAME]` table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderEntry {
    /// Name of the provider: the part of a model's name before the slash.
    pub(crate) name: String,
    /// Line of the table in its file, from 1.
    pub(crate) line: usize,
    /// API that the provider speaks.
    pub(crate) api: Option<Api>,
    /// Base URL without a trailing slash.
    pub(crate) base_url: Option<String>,
    /// Name of the environment variable that holds the key.
    pub(crate) key_env: Option<String>,
    /// Path of the file that holds the key.
    pub(crate) key_file: Option<String>,
    /// Models to offer.
    pub(crate) models: Vec<String>,
}

impl ConfigFile {
    /// Returns all models that the file names.
    pub(crate) fn named_models(&self) -> Vec<ModelName> {
        let of_provider = |entry: &ProviderEntry| -> Vec<ModelName> {
            let names = entry.models.iter();
            let full = names.map(|model| format!("{}/{model}", entry.name));
            full.filter_map(|name| name.parse().ok()).collect()
        };
        let described = self.models.iter().map(|(name, _)| name.clone());
        let chosen = self.choice.model.iter().cloned();
        let offered = self.providers.iter().flat_map(of_provider);
        chosen.chain(described).chain(offered).collect()
    }

    /// Reads a file; returns `None` if it does not exist.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let broken = |text: String| ConfigError::of_file(path, text);
        // Opening a pipe could block forever.
        if path.metadata().is_ok_and(|at| !at.is_file()) {
            return Err(broken("is no file".to_owned()));
        }
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(broken(format!("cannot be read: {error}"))),
        };
        let mut content = String::new();
        file.take(LONGEST + 1)
            .read_to_string(&mut content)
            .map_err(|error| broken(format!("cannot be read: {error}")))?;
        if content.len() as u64 > LONGEST {
            return Err(broken("is longer than 1 MiB".to_owned()));
        }
        Self::parse(path, &content).map(Some)
    }

    /// Parses the text of a file.
    pub(crate) fn parse(path: &Path, content: &str) -> Result<Self, ConfigError> {
        read_toml(path, content, |top| {
            let mut choice = Choice {
                model: top.get("model", |value| model(&text(value)?)),
                mode: top.get("mode", |value| mode(&text(value)?)),
                thinking: top.get("thinking", |value| thinking(&text(value)?)),
                sandbox: top.get("sandbox", |value| sandbox(&text(value)?)),
                sandbox_network: top.get("sandbox_network", boolean),
                pass_env: top.list("pass_env", |value| parse_variable_name(&text(value)?)),
                allow: top.list("allow", |value| parse_rule(&text(value)?)),
                deny: top.list("deny", |value| parse_rule(&text(value)?)),
                compact_at: top.get("compact_at", percent),
                forced_reply: top.get("forced_reply", boolean),
                parallel_tools: top.get("parallel_tools", |value| {
                    let calls = number(value)?;
                    let calls = usize::try_from(calls).ok().and_then(NonZeroUsize::new);
                    calls.ok_or_else(|| "is too many".to_owned())
                }),
                ..Choice::default()
            };
            top.table("limits", |limits| {
                choice.turns = limits.get("turns", |value| {
                    let turns = number(value)?;
                    u32::try_from(turns).map_err(|_| format!("{turns} is too many"))
                });
                choice.tokens = limits.get("tokens", number);
                choice.seconds = limits.get("seconds", number);
                choice.answer_bytes = limits.get("answer_bytes", number);
                choice.answer_calls = limits.get("answer_calls", number);
                choice.idle_seconds = limits.get("idle_seconds", number);
                choice.content_seconds = limits.get("content_seconds", number);
                choice.cost = limits.get("cost", |value| match money(value)? {
                    0 => Err("must be above 0".to_owned()),
                    cost => Ok(cost),
                });
            });
            top.table("compaction", |section| {
                choice.compaction = Some(compaction(section));
            });
            choice.hooks = top.tables("hooks", |section| hooks::read_entry(section, path));
            top.table("mcp", |all| {
                let servers = choice.mcp.insert(Vec::new());
                all.each(|name, section| servers.extend(mcp::entry(name, section, path)));
            });
            let mut providers = Vec::new();
            top.table("providers", |all| {
                all.each(|name, section| providers.push(provider(name, section)));
            });
            let mut models = Vec::new();
            top.table("models", |all| {
                all.each(|name, section| models.extend(models::read_entry(name, section)));
            });
            Self {
                choice,
                providers,
                models,
            }
        })
    }
}

/// Reads `[compaction]`; missing keys keep their defaults.
fn compaction(section: &mut Section<'_, '_>) -> CompactionSettings {
    let turns = |value: &DeValue<'_>| {
        let turns = whole(value)?;
        usize::try_from(turns).map_err(|_| format!("{turns} is too many"))
    };
    let lines = |value: &DeValue<'_>| {
        let lines = number(value)?;
        usize::try_from(lines).map_err(|_| format!("{lines} is too many"))
    };
    let usual = CompactionSettings::default();
    CompactionSettings {
        first_turns: section
            .get("first_turns", turns)
            .unwrap_or(usual.first_turns),
        recent_turns: section
            .get("recent_turns", turns)
            .unwrap_or(usual.recent_turns),
        max_summary_tokens: section
            .get("summary_tokens", number)
            .unwrap_or(usual.max_summary_tokens),
        max_output_lines: section
            .get("output_lines", lines)
            .unwrap_or(usual.max_output_lines),
        target_tokens: section.get("room", number).unwrap_or(usual.target_tokens),
    }
}

fn provider(name: &str, section: &mut Section<'_, '_>) -> ProviderEntry {
    if name.is_empty() || name.contains(['/', ':']) || ["offline", "scripted"].contains(&name) {
        section.wrong("this name cannot be used for a provider; choose another");
    }
    let entry = ProviderEntry {
        name: name.to_owned(),
        line: section.line(),
        api: section.get("api", |value| api(&text(value)?)),
        base_url: section.get("base_url", |value| base_url(&text(value)?)),
        key_env: section.get("key_env", text),
        key_file: section.get("key_file", text),
        models: section.list("models", text),
    };
    if entry.key_env.is_some() && entry.key_file.is_some() {
        section.wrong("key_env and key_file are both set; keep one of them");
    }
    entry
}

fn api(word: &str) -> Result<Api, String> {
    match word {
        "anthropic" => Ok(Api::Anthropic),
        "openai" => Ok(Api::OpenAi),
        _ => Err(format!(
            "{word:?} is no API; write {}",
            super::reader::alternatives(word, &["anthropic", "openai"])
        )),
    }
}

/// Checks a base URL. It must contain no credentials, since it is stored with every prompt and shown.
fn base_url(url: &str) -> Result<String, String> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
        .ok_or("must begin with https:// or http://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err("names no host".to_owned());
    }
    if host.contains('@') {
        return Err("must hold no user or password; use key_env or key_file".to_owned());
    }
    if rest.contains(['?', '#']) {
        return Err("must end with the path: no ? and no #".to_owned());
    }
    Ok(url.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HookEntry, HookPoint};
    use std::time::Duration;
    use turnery_engine::Price;

    fn problems(content: &str) -> String {
        ConfigFile::parse(Path::new("config.toml"), content)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn non_regular_config_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        for path in [folder.path(), &device] {
            let error = ConfigFile::read(path).map(|_| ()).unwrap_err().to_string();
            assert!(error.ends_with("is no file"), "{error}");
        }
        let missing = ConfigFile::read(&folder.path().join("missing"));
        assert!(matches!(missing, Ok(None)));
    }

    #[test]
    fn every_key_is_read() {
        let file = ConfigFile::parse(
            Path::new("/etc/turnery/config.toml"),
            include_str!("../../../../examples/config/all-keys.toml"),
        )
        .unwrap();
        let rule = |text: &str| parse_rule(text).unwrap();
        let servers = file.choice.mcp.clone().unwrap();
        let names: Vec<&str> = servers.iter().map(|server| &*server.name).collect();
        assert_eq!(names, ["docs", "github"]);
        assert_eq!(
            file.choice,
            Choice {
                model: Some(model("anthropic/claude-sonnet-4-5").unwrap()),
                mode: Some(turnery_tools::Mode::Edit),
                thinking: Some(turnery_models::Thinking::Medium),
                sandbox: Some(turnery_tools::SandboxMode::Workspace),
                sandbox_network: Some(false),
                pass_env: vec!["TEST_DATABASE_URL".to_owned()],
                allow: vec![rule("shell(cargo test:*)"), rule("shell(git diff:*)")],
                deny: vec![rule("read(**/.env)"), rule("edit(secrets/**)")],
                turns: Some(80),
                tokens: Some(2_000_000),
                seconds: Some(1800),
                cost: Some(2_500_000),
                answer_bytes: Some(4_000_000),
                answer_calls: Some(200),
                idle_seconds: Some(240),
                content_seconds: Some(900),
                compact_at: Some(80),
                compaction: Some(CompactionSettings {
                    first_turns: 1,
                    recent_turns: 6,
                    max_summary_tokens: 1_500,
                    max_output_lines: 30,
                    target_tokens: 40_000,
                }),
                forced_reply: Some(false),
                parallel_tools: NonZeroUsize::new(2),
                hooks: Some(vec![
                    HookEntry {
                        on: HookPoint::BeforeTool,
                        command: vec!["/etc/turnery/guard.py".to_owned(), "--strict".to_owned()],
                        tools: vec!["edit_file".to_owned(), "write_file".to_owned()],
                        timeout: Duration::from_secs(5),
                    },
                    HookEntry {
                        on: HookPoint::AfterLoop,
                        command: ["sh", "-c", "notify-send turnery done"]
                            .map(str::to_owned)
                            .into(),
                        tools: Vec::new(),
                        timeout: Duration::from_secs(60),
                    },
                ]),
                // The test of mcp.rs covers the contents.
                mcp: Some(servers),
            }
        );
        let price = Price {
            input: 200_000,
            output: 800_000,
            cache_read: 50_000,
            cache_write: 200_000,
        };
        assert_eq!(
            file.models,
            [(
                model("desk/qwen3-coder").unwrap(),
                ModelOverride {
                    context_window: Some(65_536),
                    max_output: Some(8_192),
                    images: Some(false),
                    audio: Some(false),
                    reasoning: Some(false),
                    price: Some(price),
                }
            )]
        );
        assert_eq!(
            file.providers,
            [
                ProviderEntry {
                    name: "anthropic".to_owned(),
                    line: 75,
                    api: None,
                    base_url: None,
                    key_env: None,
                    key_file: Some("~/.secrets/anthropic".to_owned()),
                    models: Vec::new(),
                },
                ProviderEntry {
                    name: "desk".to_owned(),
                    line: 79,
                    api: Some(Api::OpenAi),
                    base_url: Some("http://localhost:8080/v1".to_owned()),
                    key_env: Some("DESK_KEY".to_owned()),
                    key_file: None,
                    models: vec!["qwen3-coder".to_owned(), "gpt-oss".to_owned()],
                },
            ]
        );
    }

    #[test]
    fn named_models_include_chosen_described_and_offered() {
        let text = "model = \"a/chosen\"\n[models.\"b/described\"]\nimages = true\n\
                    [providers.desk]\napi = \"openai\"\nbase_url = \"http://x\"\nmodels = [\"c\", \"d/e\"]\n";
        let file = ConfigFile::parse(Path::new("config.toml"), text).unwrap();
        let names: Vec<String> = file
            .named_models()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["a/chosen", "b/described", "desk/c", "desk/d/e"]);
    }

    #[test]
    fn a_rule_about_an_unknown_tool_is_an_error() {
        assert_eq!(
            problems("allow = [\"mcp__github\"]\ndeny = [\n  \"Bash(**)\",\n  \"edti(**)\",\n]\n"),
            "config.toml:3: deny: invalid rule \"Bash(**)\": the tool is named shell here; write shell\n\
             config.toml:4: deny: invalid rule \"edti(**)\": there is no tool \"edti\"; write \"edit\" (or shell, read, read_file, list_dir, find_files, search, edit_file, write_file, update_plan, task, ask_user, list_mcp_resources, read_mcp_resource), or mcp__SERVER for a server of tools"
        );
    }

    #[test]
    fn empty_file_sets_nothing() {
        assert_eq!(
            ConfigFile::parse(Path::new("config.toml"), "# nothing\n").unwrap(),
            ConfigFile::default()
        );
    }

    #[test]
    fn mistakes_are_reported_with_line_and_suggestion() {
        let content = "\
modle = \"offline\"
mode = \"atuo\"
allow = [
  \"shell(ls)\",
  7,
]

[limits]
turn = 3
tokens = -1
seconds = \"long\"

[providers.desk]
api = \"opnai\"
base_url = \"https://me:secret@desk.example\"
key_evn = \"X\"

[provider.other]
";
        assert_eq!(
            problems(content),
            "\
config.toml:1: unknown key `modle`; write \"model\" (or mode, thinking, sandbox, sandbox_network, pass_env, allow, deny, compact_at, forced_reply, parallel_tools, limits, compaction, hooks, mcp, providers, models)
config.toml:2: mode: \"atuo\" is no mode; write \"auto\" (or ask, edit, plan)
config.toml:5: allow: expected a text in quotes, found integer
config.toml:9: unknown key `limits.turn`; write \"turns\" (or tokens, seconds, answer_bytes, answer_calls, idle_seconds, content_seconds, cost)
config.toml:10: limits.tokens: -1 is no whole number from 1 on
config.toml:11: limits.seconds: expected a whole number, found string
config.toml:14: providers.desk.api: \"opnai\" is no API; write \"openai\" (or anthropic)
config.toml:15: providers.desk.base_url: must hold no user or password; use key_env or key_file
config.toml:16: unknown key `providers.desk.key_evn`; write \"key_env\" (or api, base_url, key_file, models)
config.toml:18: unknown key `provider`; write \"providers\" (or model, mode, thinking, sandbox, sandbox_network, pass_env, allow, deny, compact_at, forced_reply, parallel_tools, limits, compaction, hooks, mcp, models)"
        );
    }

    #[test]
    fn wrong_value_types_are_reported() {
        assert_eq!(
            problems("limits = 5\n[providers]\ndesk = \"http://desk\"\n"),
            "config.toml:1: limits: expected a table, found integer\n\
             config.toml:3: providers.desk: expected a table, found string"
        );
        assert_eq!(
            problems("\n[providers.offline]\n[providers.x]\nkey_env = \"A\"\nkey_file = \"b\"\n"),
            "config.toml:2: providers.offline: this name cannot be used for a provider; choose another\n\
             config.toml:3: providers.x: key_env and key_file are both set; keep one of them"
        );
    }

    #[test]
    fn invalid_hooks_and_prices_are_reported() {
        let content = "\
compact_at = 200
[[hooks]]
on = \"before_toll\"
[[hooks]]
on = \"input\"
command = []
tools = [\"eidt_file\"]
[models.\"desk/a\"]
contxt_window = 1
price = { input = 1, outptu = 2 }
";
        assert_eq!(
            problems(content),
            "\
config.toml:1: compact_at: 200 is no whole number from 0 to 100
config.toml:2: hooks: command is missing
config.toml:3: hooks.on: \"before_toll\" is no hook; write \"before_tool\" (or before_loop, input, before_turn, after_turn, after_tool, before_compaction, after_compaction, on_error, checkpoint, after_loop)
config.toml:4: hooks: tools is for before_tool and after_tool only
config.toml:6: hooks.command: there is no command in it
config.toml:7: hooks.tools: \"eidt_file\" is no tool; write \"edit_file\" (or read_file, list_dir, find_files, search, write_file, shell, update_plan, task)
config.toml:9: unknown key `models.desk/a.contxt_window`; write \"context_window\" (or max_output, images, audio, reasoning, price)
config.toml:10: models.desk/a.price: a price needs input and output, each for a million tokens
config.toml:10: unknown key `models.desk/a.price.outptu`; write \"output\" (or input, cache_read, cache_write)"
        );
    }

    #[test]
    fn invalid_compaction_is_reported() {
        let content = "\
[compaction]
first_turns = -1
recent_turns = \"all\"
summary_tokens = 0
output_lines = 2.5
rooom = 9
";
        assert_eq!(
            problems(content),
            "\
config.toml:2: compaction.first_turns: -1 is no whole number from 0 on
config.toml:3: compaction.recent_turns: expected a whole number, found string
config.toml:4: compaction.summary_tokens: 0 is no whole number from 1 on
config.toml:5: compaction.output_lines: expected a whole number, found float
config.toml:6: unknown key `compaction.rooom`; write \"room\" (or first_turns, recent_turns, summary_tokens, output_lines)"
        );
        let none = ConfigFile::parse(Path::new("f"), "[compaction]\nfirst_turns = 0\n").unwrap();
        let usual = CompactionSettings::default();
        let first_turns = 0;
        assert_eq!(
            none.choice.compaction,
            Some(CompactionSettings {
                first_turns,
                ..usual
            })
        );
    }

    #[test]
    fn invalid_toml_is_reported_with_line() {
        let told = problems("mode = \"ask\"\nmodel = offline\n");
        assert!(told.starts_with("config.toml:2: "), "{told}");
    }

    #[test]
    fn base_url_with_credentials_or_query_is_rejected() {
        assert_eq!(base_url("https://h/v1/"), Ok("https://h/v1".to_owned()));
        assert_eq!(
            base_url("h:80"),
            Err("must begin with https:// or http://".to_owned())
        );
        assert_eq!(base_url("http:///x"), Err("names no host".to_owned()));
        assert_eq!(
            base_url("http://h/?key=1"),
            Err("must end with the path: no ? and no #".to_owned())
        );
    }
}
