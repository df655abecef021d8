//! Reads `config.toml`.

use super::{
    Config, ConfigError, ProviderEntry,
    providers::resolve_program,
    reader::{Document, read_toml},
    values::{Money, check_variable_name, model},
};
use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    path::Path,
};
use turnery_models::{ModelName, ModelOverride};

/// Longest configuration file; longer ones are refused. Unit: bytes.
const LONGEST: u64 = 1 << 20;

impl Config {
    /// Returns all models that the file names.
    pub(crate) fn named_models(&self) -> Vec<ModelName> {
        let of_provider = |(provider, entry): (&String, &ProviderEntry)| -> Vec<ModelName> {
            let names = entry.models.iter();
            let full = names.map(|model| format!("{provider}/{model}"));
            full.filter_map(|name| name.parse().ok()).collect()
        };
        let described = self.model_overrides().map(|(name, _)| name);
        let chosen = self.model.iter().cloned();
        let offered = self.providers.iter().flat_map(of_provider);
        let fallback = self.fallback.iter().cloned();
        let named = chosen.chain(fallback).chain(described);
        named.chain(offered).collect()
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
        read_toml(path, content, |config: &mut Self, document| {
            config.check(path, document);
        })
    }

    /// Returns the facts about models, by model name.
    pub(crate) fn model_overrides(&self) -> impl Iterator<Item = (ModelName, ModelOverride)> {
        let entries = self.models.iter();
        entries.filter_map(|(name, entry)| Some((model(name).ok()?, entry.to_override())))
    }

    /// Completes the values with what depends on the file `path`, and reports what is wrong with them.
    fn check(&mut self, path: &Path, document: &mut Document<'_>) {
        if self.limits.cost == Some(Money(0)) {
            document.report(&["limits", "cost"], "must be above 0");
        }
        document.check_items(&["pass_env"], &self.pass_env, check_variable_name);
        let indexes = document.valid_items(&["hooks"]);
        for (index, hook) in indexes.iter().zip(self.hooks.iter_mut().flatten()) {
            hook.check(index, path, document);
        }
        if let Some(words) = &mut self.notify
            && document.is_valid(&["notify"])
        {
            match words.first_mut().filter(|program| !program.is_empty()) {
                Some(program) => *program = resolve_program(std::mem::take(program), path),
                None => document.report(&["notify"], "there is no program in it"),
            }
        }
        for (name, server) in self.mcp.iter_mut().flatten() {
            server.check(name, path, document);
        }
        for (name, provider) in &mut self.providers {
            provider.check(name, document);
        }
        for (name, entry) in &self.models {
            if let Err(error) = model(name) {
                document.report(&["models", name], &error);
            }
            if entry.is_price_incomplete() {
                document.report(
                    &["models", name, "price"],
                    "a price needs input and output, each for a million tokens",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HookPoint, rules::parse_rule, store_location::store as parse_store};
    use std::{
        num::{NonZeroU64, NonZeroUsize},
        time::Duration,
    };
    use turnery_engine::{CompactionSettings, Limits, Price, ResponseLimits};
    use turnery_models::Api;

    fn problems(content: &str) -> String {
        Config::parse(Path::new("config.toml"), content)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn non_regular_config_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        for path in [folder.path(), &device] {
            let error = Config::read(path).map(|_| ()).unwrap_err().to_string();
            assert!(error.ends_with("is no file"), "{error}");
        }
        let missing = Config::read(&folder.path().join("missing"));
        assert!(matches!(missing, Ok(None)));
    }

    #[test]
    fn durability_is_power_or_process() {
        let parse = |value: &str| {
            let content = format!("durability = {value:?}");
            Config::parse(Path::new("config.toml"), &content).map(|config| config.durability)
        };
        assert_eq!(
            parse("power").unwrap(),
            Some(turnery_store::Durability::Power)
        );
        assert_eq!(
            problems("durability = \"powr\""),
            "config.toml:1: durability: \"powr\" is no durability; write \"power\" (or process)"
        );
    }

    #[test]
    fn every_key_is_read() {
        let file = Config::parse(
            Path::new("/etc/turnery/config.toml"),
            include_str!("../../../../examples/config/all-keys.toml"),
        )
        .unwrap();
        let rule = |text: &str| parse_rule(text).unwrap();
        // The test of mcp.rs covers the contents.
        let servers: Vec<&String> = file.mcp.iter().flatten().map(|(name, _)| name).collect();
        assert_eq!(servers, ["docs", "github"]);
        assert_eq!(
            file.model,
            Some(model("anthropic/claude-sonnet-4-5").unwrap())
        );
        assert_eq!(file.fallback, [model("openai/gpt-5.1").unwrap()]);
        assert_eq!(file.mode, Some(turnery_tools::Mode::Edit));
        assert_eq!(file.thinking, Some(turnery_models::Thinking::Medium));
        assert_eq!(file.protocol, Some(turnery_agent::Protocol::Tools));
        assert_eq!(file.sandbox, Some(turnery_tools::SandboxMode::Workspace));
        assert_eq!(file.sandbox_network, Some(false));
        let store = "postgres://ann@db.example.org/turnery?schema=ann";
        assert_eq!(file.store, Some(parse_store(store).unwrap()));
        assert_eq!(file.durability, Some(turnery_store::Durability::Process));
        assert_eq!(file.pass_env, ["TEST_DATABASE_URL"]);
        assert_eq!(
            file.allow,
            [rule("shell(cargo test:*)"), rule("shell(git diff:*)")]
        );
        assert_eq!(file.deny, [rule("read(**/.env)"), rule("edit(secrets/**)")]);
        assert_eq!(file.compact_at, Some(80));
        assert_eq!(file.forced_reply, Some(false));
        assert_eq!(file.parallel_tools, NonZeroUsize::new(2));
        assert_eq!(
            file.limits.of_prompt(),
            Limits {
                turns: 80,
                tokens: 2_000_000,
                duration: Duration::from_secs(1800),
                cost: Some(2_500_000),
                response: ResponseLimits {
                    bytes: 4_000_000,
                    calls: 200,
                },
            }
        );
        assert_eq!(file.limits.idle_seconds, NonZeroU64::new(240));
        assert_eq!(file.limits.content_seconds, NonZeroU64::new(900));
        let calls = file.limits.of_model_call();
        assert_eq!(calls.idle, Duration::from_secs(240));
        assert_eq!(calls.content, Duration::from_secs(900));
        assert_eq!(
            file.compaction.as_ref().unwrap().settings(),
            CompactionSettings {
                first_turns: 1,
                recent_turns: 6,
                max_summary_tokens: 1_500,
                max_output_lines: 30,
                target_tokens: 40_000,
            }
        );
        let hooks: Vec<_> = file.hooks.iter().flatten().collect();
        let [guard, report] = hooks.as_slice() else {
            panic!("{hooks:?}");
        };
        assert_eq!(guard.on, HookPoint::BeforeTool);
        assert_eq!(guard.command, ["/etc/turnery/guard.py", "--strict"]);
        assert_eq!(guard.tools, ["edit_file", "write_file"]);
        assert_eq!(guard.timeout(), Duration::from_secs(5));
        assert_eq!(report.on, HookPoint::AfterLoop);
        assert_eq!(report.command, ["sh", "-c", "notify-send turnery done"]);
        assert_eq!(report.tools, [""; 0]);
        assert_eq!(report.timeout(), Duration::from_secs(60));
        let notify = ["notify-send", "turnery"].map(str::to_owned);
        assert_eq!(file.notify, Some(notify.to_vec()));
        let models: Vec<_> = file.model_overrides().collect();
        let price = Price {
            input: 200_000,
            output: 800_000,
            cache_read: 50_000,
            cache_write: 250_000,
            ..Price::default()
        };
        assert_eq!(
            models,
            [(
                model("desk/qwen3-coder").unwrap(),
                ModelOverride {
                    context_window: Some(65_536),
                    max_output: Some(8_192),
                    images: Some(false),
                    audio: Some(false),
                    documents: Some(false),
                    reasoning: Some(false),
                    price: Some(price),
                }
            )]
        );
        let own = ProviderEntry {
            line: 91,
            key_file: Some("~/.secrets/anthropic".to_owned()),
            ..ProviderEntry::default()
        };
        assert_eq!(file.providers["anthropic"], own);
        let desk = &file.providers["desk"];
        assert_eq!(desk.line, 96);
        assert_eq!(desk.api.map(Api::from), Some(Api::OpenAi));
        assert_eq!(desk.base_url.as_deref(), Some("http://localhost:8080/v1"));
        assert_eq!(desk.key_env.as_deref(), Some("DESK_KEY"));
        assert_eq!(desk.key_file, None);
        assert_eq!(desk.models, ["qwen3-coder", "gpt-oss"]);
        assert_eq!(desk.ca_file.as_deref(), Some("~/.certs/desk.pem"));
        assert_eq!(desk.headers.len(), 2);
        assert_eq!(file.providers.len(), 2);
    }

    #[test]
    fn named_models_include_chosen_described_and_offered() {
        let text = "model = \"a/chosen\"\n[models.\"b/described\"]\nimages = true\n\
                    [providers.desk]\napi = \"openai\"\nbase_url = \"http://x\"\nmodels = [\"c\", \"d/e\"]\n";
        let file = Config::parse(Path::new("config.toml"), text).unwrap();
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
             config.toml:4: deny: invalid rule \"edti(**)\": there is no tool \"edti\"; write \"edit\" (or shell, read, read_file, list_dir, find_files, search, edit_file, write_file, update_plan, task, ask_user, notify, list_mcp_resources, read_mcp_resource), or mcp__SERVER for a server of tools"
        );
    }

    #[test]
    fn empty_file_sets_nothing() {
        assert_eq!(
            Config::parse(Path::new("config.toml"), "# nothing\n").unwrap(),
            Config::default()
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
config.toml:1: unknown key `modle`; write \"model\" (or store, fallback, mode, thinking, protocol, sandbox, sandbox_network, pass_env, durability, allow, deny, compact_at, forced_reply, parallel_tools, limits, compaction, hooks, notify, mcp, providers, models)
config.toml:2: mode: \"atuo\" is no mode; write \"auto\" (or ask, edit, plan)
config.toml:5: allow: expected a text in quotes, found integer
config.toml:9: unknown key `limits.turn`; write \"turns\" (or tokens, seconds, answer_bytes, answer_calls, idle_seconds, content_seconds, cost)
config.toml:10: limits.tokens: -1 is no whole number from 1 on
config.toml:11: limits.seconds: expected a whole number, found string
config.toml:14: providers.desk.api: \"opnai\" is no API; write \"openai\" (or anthropic, openai_responses, gemini)
config.toml:15: providers.desk.base_url: must hold no user or password; use key_env or key_file
config.toml:16: unknown key `providers.desk.key_evn`; write \"key_env\" (or api, base_url, key_file, headers, ca_file, models)
config.toml:18: unknown key `provider`; write \"providers\" (or model, store, fallback, mode, thinking, protocol, sandbox, sandbox_network, pass_env, durability, allow, deny, compact_at, forced_reply, parallel_tools, limits, compaction, hooks, notify, mcp, models)"
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
    fn wrong_types_at_any_depth_are_reported() {
        let content = "\
model = 2026-01-01
allow = \"shell\"
pass_env = [\"A=\", 1]
compact_at = -1
parallel_tools = 0
hooks = [5, { on = [], command = [\"a\", 1], timeout = 0 }]
mcp = { a = { command = 1, args = [{}], env = 5 } }
limits.tokens = 99999999999999999999
limits.turns = 5_000_000_000
limits.cost = \"1\"
providers = [1]
compaction = [1, 2]
models.a.price.input = -0.5
";
        assert_eq!(
            problems(content),
            "\
config.toml:1: model: expected a text in quotes, found datetime
config.toml:2: allow: expected a list, found string
config.toml:3: pass_env: expected a text in quotes, found integer
config.toml:3: pass_env: \"A=\" is no name of a variable: write it whole, without * or =
config.toml:4: compact_at: -1 is no whole number from 0 to 100
config.toml:5: parallel_tools: 0 is no whole number from 1 on
config.toml:6: hooks: expected a table, found integer
config.toml:6: hooks.command: expected a text in quotes, found integer
config.toml:6: hooks.on: expected a text in quotes, found array
config.toml:6: hooks.timeout: 0 is no whole number from 1 on
config.toml:7: mcp.a.args: expected a text in quotes, found table
config.toml:7: mcp.a.command: expected a text in quotes, found integer
config.toml:7: mcp.a.env: expected a table, found integer
config.toml:8: limits.tokens: 99999999999999999999 is too many
config.toml:9: limits.turns: 5000000000 is too many
config.toml:10: limits.cost: expected a number, found string
config.toml:11: providers: expected a table, found array
config.toml:12: compaction: expected a table, found array
config.toml:13: models.a.price.input: -0.5 is no amount of money
config.toml:13: models.a.price: a price needs input and output, each for a million tokens"
        );
    }

    #[test]
    fn notify_needs_a_program() {
        for content in ["notify = []", "notify = [\"\", \"x\"]"] {
            let problem = problems(content);
            assert_eq!(problem, "config.toml:1: notify: there is no program in it");
        }
        let path = Path::new("/etc/turnery/config.toml");
        let config = Config::parse(path, "notify = [\"./tell.sh\", \"./x\"]").unwrap();
        let words = ["/etc/turnery/tell.sh", "./x"].map(str::to_owned);
        assert_eq!(config.notify, Some(words.to_vec()));
    }

    #[test]
    fn errors_contain_no_secret() {
        for content in [
            "[mcp.a]\nurl = \"s3cret\"\n",
            "[mcp.a]\nurl = [\"s3cret\"]\n",
            "[mcp.a]\nurl = \"http://x\"\nheaders = \"s3cret\"\n",
            "[mcp.a]\nurl = \"http://x\"\nheaders = { A = [\"s3cret\"] }\n",
            "[mcp.a]\nurl = \"http://x\"\nheaders = { A = { prefix = \"s3cret\" } }\n",
            "[mcp.a]\nurl = \"http://x\"\nheaders = { A = { env = \"B\", value = \"s3cret\" } }\n",
            "[providers.a]\nbase_url = \"https://me:s3cret@x\"\n",
            "[providers.a]\nkey = \"s3cret\"\n",
            "[providers.a]\nmodels = \"s3cret\"\n",
            "[limits]\ncost = \"s3cret\"\n",
            "[[hooks]]\non = \"input\"\ncommand = [[\"s3cret\"]]\n",
        ] {
            let told = problems(content);
            assert!(!told.contains("s3cret"), "{told}");
        }
    }

    #[test]
    fn file_full_of_errors_is_read_in_time() {
        let content: String = (0..40_000).map(|i| format!("wrong{i} = {{}}\n")).collect();
        let lines = problems(&content).lines().count();
        assert_eq!(lines, 100);
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
config.toml:7: hooks.tools: \"eidt_file\" is no tool; write \"edit_file\" (or read_file, list_dir, find_files, search, write_file, shell, update_plan, task, notify)
config.toml:9: unknown key `models.desk/a.contxt_window`; write \"context_window\" (or max_output, images, audio, documents, reasoning, price)
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
        let none = Config::parse(Path::new("f"), "[compaction]\nfirst_turns = 0\n").unwrap();
        let usual = CompactionSettings::default();
        let first_turns = 0;
        assert_eq!(
            none.compaction.map(|compaction| compaction.settings()),
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
}
