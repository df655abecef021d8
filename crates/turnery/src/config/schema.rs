//! Generates the JSON Schema of `config.toml` for editors. [`super::file`] parses the files; a test checks that the
//! two agree.

use super::HookPoint;
use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use std::{collections::BTreeMap, io::Write as _, process::ExitCode};
use turnery_models::{Api, Thinking};
use turnery_tools::Mode;

/// The configuration of turnery: config.toml in turnery's folder, and .turnery/config.toml in a
/// project. A project may only narrow: its allow rules, providers, hooks, models and compaction and freer modes do not count.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "turnery config.toml")]
#[expect(
    dead_code,
    reason = "described, not made: files are read with line numbers"
)]
struct Config {
    /// The model to begin with, for example `anthropic/claude-sonnet-4-5` or `offline`.
    model: String,
    /// How freely the agent acts at first.
    mode: Mode,
    /// How much the model is to think.
    thinking: Thinking,
    /// How far commands are confined by the operating system; `workspace` unless set, where that is possible.
    /// Set, it also holds where an editor lends terminals. A project may only narrow it.
    sandbox: Sandbox,
    /// Whether confined commands may use the network; false unless set. Not in a project.
    sandbox_network: bool,
    /// Environment variables that commands see though their names look like those of keys. Not in a project.
    pass_env: Vec<String>,
    /// What may be done without asking, for example `shell(cargo test:*)` or `edit(src/**)`.
    allow: Vec<String>,
    /// What may never be done. Wins over `allow`.
    deny: Vec<String>,
    /// Summarise older messages once the model's context is this full, in percent; 85 unless set, 0 never does.
    #[schemars(range(min = 0, max = 100))]
    compact_at: u8,
    /// At the limit of turns, one more for an answer in prose; true unless set. The limit is reported all the
    /// same.
    forced_reply: bool,
    /// How many calls of tools may run beside each other; 4 unless set.
    #[schemars(range(min = 1))]
    parallel_tools: usize,
    /// When a prompt stops by itself.
    limits: Limits,
    /// What a summary of older messages leaves as it is, and how long it may be. Not in a project.
    compaction: Compaction,
    /// Commands that look into a prompt and may say no. Not in a project.
    hooks: Vec<Hook>,
    /// MCP servers, whose tools are offered to the model, by name. Not in a project.
    mcp: BTreeMap<String, Mcp>,
    /// Providers of models: changes to the known ones, and further ones, by name. Not in a project.
    providers: BTreeMap<String, Provider>,
    /// What is to be known of models whose names do not say enough, by `provider/model`. Not in a project.
    models: BTreeMap<String, ModelEntry>,
}

/// How far commands are confined.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "described, not made")]
enum Sandbox {
    /// Not at all.
    Off,
    /// They write to the session's folders, temporary folders and caches only, and read no keys.
    Workspace,
    /// They write nothing.
    ReadOnly,
}

/// A command that looks into a prompt. It is told of the moment in one JSON object on stdin and may
/// answer with one on stdout: see hooks.json.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "described, not made")]
struct Hook {
    /// When it is run.
    on: HookPoint,
    /// A program and its arguments, or a command line for sh. It runs in the session's folder.
    command: Command,
    /// Only for calls of these tools; of all tools unless set.
    tools: Vec<String>,
    /// Seconds that it may take; 60 unless set.
    #[schemars(range(min = 1))]
    timeout: u64,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "described, not made")]
enum Command {
    /// For sh.
    Line(#[schemars(length(min = 1))] String),
    /// A program and its arguments.
    Words(#[schemars(length(min = 1))] Vec<String>),
}

/// An MCP server: a program, or a place on the network.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "described, not made")]
struct Mcp {
    /// The program to start. It runs in the session's folder and ends with the session.
    #[schemars(length(min = 1))]
    command: String,
    /// Its arguments.
    args: Vec<String>,
    /// Variables that it gets besides those of turnery's environment; of these, none whose name looks
    /// like a key.
    env: BTreeMap<String, Given>,
    /// Where the server is, for streamable HTTP.
    #[schemars(regex(pattern = "^https?://"))]
    url: String,
    /// Headers sent with every request.
    headers: BTreeMap<String, Given>,
    /// Seconds that a call of one of its tools may take; 120 unless set.
    #[schemars(range(min = 1))]
    timeout: u64,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "described, not made")]
enum Given {
    /// As it stands here.
    Plain(String),
    /// Out of a variable of the environment, so that no secret stands in the file.
    Variable(Variable),
}

/// A variable of the environment.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "described, not made")]
struct Variable {
    /// Its name.
    env: String,
    /// What comes before its value, for example `Bearer `.
    prefix: String,
}

/// One model.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "described, not made")]
struct ModelEntry {
    /// How many tokens it takes in. Older messages are summarised only where this is known.
    #[schemars(range(min = 1))]
    context_window: u32,
    /// How many tokens it may answer.
    #[schemars(range(min = 1))]
    max_output: u32,
    /// Whether it takes pictures.
    images: bool,
    /// Whether it takes recordings. For OpenAI-compatible servers only: the other API takes none.
    audio: bool,
    /// Whether it can be told how much to think.
    reasoning: bool,
    /// What a million tokens cost, in the money of `limits.cost`.
    price: Price,
}

/// What a million tokens cost. Needs at least input and output.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "described, not made")]
struct Price {
    /// Input that is in no cache.
    #[schemars(range(min = 0))]
    input: f64,
    /// Output, reasoning included.
    #[schemars(range(min = 0))]
    output: f64,
    /// Input read from a cache; as `input` unless set.
    #[schemars(range(min = 0))]
    cache_read: f64,
    /// Input written to a cache; as `input` unless set.
    #[schemars(range(min = 0))]
    cache_write: f64,
}

/// When a prompt stops by itself.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "described, not made")]
struct Limits {
    /// Turns with the model, those of sub-agents, tried models and their judge among them; 50 unless set.
    #[schemars(range(min = 1))]
    turns: u32,
    /// Tokens in and out; 1000000 unless set.
    #[schemars(range(min = 1))]
    tokens: u64,
    /// Seconds; 600 unless set.
    #[schemars(range(min = 1))]
    seconds: u64,
    /// Bytes of one answer: text, reasoning and arguments of calls; 16777216 unless set.
    #[schemars(range(min = 1))]
    answer_bytes: u64,
    /// Calls in one answer; 1000 unless set.
    #[schemars(range(min = 1))]
    answer_calls: u64,
    /// Seconds without a byte from the model, pings included; 300 unless set, 600 for a server that
    /// needs no key. Not in a project.
    #[schemars(range(min = 1))]
    idle_seconds: u64,
    /// Seconds without content from the model, however many pings it sends; 480 unless set, and never
    /// less than the seconds without a byte. Not in a project.
    #[schemars(range(min = 1))]
    content_seconds: u64,
    /// Money, over all models that work for the prompt; those whose price is not in `models` are refused. No
    /// limit unless set.
    #[schemars(range(min = 0))]
    cost: f64,
}

/// What a summary of older messages leaves as it is, and how long it may be. `compact_at` says when.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "described, not made")]
struct Compaction {
    /// Turns from the beginning that stay as they are; 2 unless set.
    #[schemars(range(min = 0))]
    first_turns: u64,
    /// Latest turns that stay, with long output of tools shortened; 10 unless set. The last one always does.
    #[schemars(range(min = 0))]
    recent_turns: u64,
    /// How long the summary may be, in tokens; 2000 unless set.
    #[schemars(range(min = 1))]
    summary_tokens: u64,
    /// How many lines of a tool's output stay in the latest turns; 50 unless set.
    #[schemars(range(min = 1))]
    output_lines: u64,
    /// What all messages should take afterwards, in tokens: less stays as long as they take more. At most
    /// two thirds of before, whatever is set.
    #[schemars(range(min = 1))]
    room: u64,
}

/// One provider of models.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "described, not made")]
struct Provider {
    /// What it speaks.
    #[schemars(with = "ApiWord")]
    api: Api,
    /// Where it is, for example `http://localhost:11434/v1`. No credentials in it.
    base_url: String,
    /// The environment variable that holds its key.
    key_env: String,
    /// The file that holds its key. Only you may be able to read it (chmod 600).
    key_file: String,
    /// Models to offer in lists; any other name is tried as well.
    models: Vec<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "described, not made")]
enum ApiWord {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and all servers that copy it.
    OpenAi,
}

/// Returns the schema; every key is optional.
fn schema() -> Schema {
    let optional = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("required");
    });
    SchemaSettings::draft2020_12()
        .with_transform(optional)
        .into_generator()
        .into_root_schema_for::<Config>()
}

/// Returns the schema as formatted JSON.
fn text() -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&schema())? + "\n")
}

/// Prints the schema.
pub(crate) fn write() -> anyhow::Result<ExitCode> {
    std::io::stdout().lock().write_all(text()?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::PathBuf};

    fn root() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    #[test]
    fn the_schema_file_is_up_to_date() {
        let file = root().join("schemas/config.json");
        let text = text().unwrap();
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            text,
            "schemas/config.json is out of date: run the test again with UPDATE_SCHEMAS=1"
        );
    }

    fn valid(toml: &str) -> bool {
        let schema = serde_json::to_value(schema()).unwrap();
        let instance: serde_json::Value = toml::from_str(toml).unwrap();
        jsonschema::validator_for(&schema)
            .unwrap()
            .is_valid(&instance)
    }

    #[test]
    fn schema_and_reader_agree_on_examples() {
        for name in ["all-keys.toml", "project.toml", "local-only.toml"] {
            let path = root().join("examples/config").join(name);
            let text = fs::read_to_string(&path).unwrap();
            assert!(valid(&text), "{name}");
            crate::config::ConfigFile::parse(&path, &text).unwrap();
        }
    }

    #[test]
    fn the_schema_refuses_what_the_reader_refuses() {
        for text in [
            "modle = \"offline\"",
            "mode = \"atuo\"",
            "[limits]\nturns = 0",
            "[limits]\nturn = 3",
            "[limits]\nanswer_bytes = 0",
            "[limits]\nanswer_calls = 0",
            "[limits]\nidle_seconds = 0",
            "[limits]\ncontent_seconds = -1",
            "compact_at = 101",
            "parallel_tools = 0",
            "compaction = 5",
            "[compaction]\nfirst_turns = -1",
            "[compaction]\nsummary_tokens = 0",
            "[compaction]\noutput_lines = 0",
            "[compaction]\nroom = 0",
            "[compaction]\nrooom = 1",
            "[[hooks]]\non = \"before_toll\"\ncommand = \"true\"",
            "[[hooks]]\non = \"input\"\ncommand = []",
            "[[hooks]]\non = \"input\"\ncommand = 5",
            "[models.\"a/b\"]\ncontext_window = 0",
            "[models.\"a/b\"]\nprice = { input = -1, output = 1 }",
            "[providers.x]\napi = \"opnai\"",
            "[providers.x]\nkey = \"secret\"",
            "[mcp.x]\ncommand = \"\"",
            "[mcp.x]\nurl = \"ftp://x\"",
            "[mcp.x]\ncommand = \"x\"\nenv = { A = 1 }",
            "[mcp.x]\ncommand = \"x\"\nenv = { A = { evn = \"B\" } }",
            "[mcp.x]\ncommand = \"x\"\ntimeout = 0",
        ] {
            assert!(!valid(text), "{text}");
            crate::config::ConfigFile::parse(std::path::Path::new("f"), text).unwrap_err();
        }
    }
}
