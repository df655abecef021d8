//! Reads `[mcp.NAME]`: how to start or reach an MCP server.

use super::{environment::EnvLookup, providers::resolve_program, reader::Document};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{collections::BTreeMap, fmt, num::NonZeroU64, path::Path, time::Duration};
use turnery_tools::mcp::{McpServer, McpTransport};

/// How a value is written.
const VALUE_FORM: &str = "a text in quotes, or { env = \"VARIABLE\" }";

/// An MCP server: a program, or a place on the network.
// Has either `command` or `url` once the file is read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpEntry {
    /// Program to start. It runs in the session's folder and ends with the session.
    #[schemars(length(min = 1))]
    command: Option<String>,
    /// Arguments of the program.
    #[serde(default)]
    args: Vec<String>,
    /// Variables that the program gets in addition to those of turnery's environment; of these, none whose name looks
    /// like a key.
    #[serde(default)]
    env: BTreeMap<String, ValueSource>,
    /// Address of the server, for streamable HTTP.
    #[schemars(with = "Option<String>", regex(pattern = "^https?://"))]
    url: Option<SecretText>,
    /// Headers sent with every request.
    #[serde(default)]
    headers: BTreeMap<String, ValueSource>,
    /// Maximum duration of a call of one of the server's tools, in seconds; default: 120.
    timeout: Option<NonZeroU64>,
}

/// Value of a variable or header.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
enum ValueSource {
    /// The value itself.
    Plain(#[schemars(with = "String")] SecretText),
    /// A variable of the environment, so that no secret is in the file.
    Variable(Variable),
}

/// A variable of the environment.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Variable {
    /// Name of the variable.
    env: Option<String>,
    /// Text before the value, for example `Bearer `.
    #[serde(default)]
    prefix: String,
}

/// Text that may be a secret; redacted in `Debug` output.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(transparent)]
struct SecretText(String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl<'de> Deserialize<'de> for ValueSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueSourceVisitor)
    }
}

struct ValueSourceVisitor;

impl<'de> Visitor<'de> for ValueSourceVisitor {
    type Value = ValueSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(VALUE_FORM)
    }

    fn visit_str<E>(self, text: &str) -> Result<ValueSource, E> {
        Ok(ValueSource::Plain(SecretText(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<ValueSource, A::Error> {
        Variable::deserialize(MapAccessDeserializer::new(table)).map(ValueSource::Variable)
    }
}

impl McpEntry {
    /// Completes the entry `name` of the file `config`, and reports what is wrong with it. A relative program path is
    /// resolved against the folder of `config`.
    pub(super) fn check(&mut self, name: &str, config: &Path, document: &mut Document<'_>) {
        let path = ["mcp", name];
        if name.is_empty() {
            document.report(&path, "a server needs a name: write [mcp.NAME]");
        }
        match &mut self.command {
            Some(command) if command.is_empty() => {
                document.report(&["mcp", name, "command"], "there is no command in it");
            }
            Some(command) => *command = resolve_program(std::mem::take(command), config),
            None => {}
        }
        let is_http = |url: &SecretText| {
            ["https://", "http://"]
                .iter()
                .any(|it| url.0.starts_with(it))
        };
        if self.url.as_ref().is_some_and(|url| !is_http(url)) {
            let text = "must begin with https:// or http://";
            document.report(&["mcp", name, "url"], text);
        }
        for (key, values) in [("env", &self.env), ("headers", &self.headers)] {
            for (variable, given) in values {
                if matches!(given, ValueSource::Variable(Variable { env: None, .. }))
                    && !document.is_written(&["mcp", name, key, variable, "env"])
                {
                    let text = format!("env is missing: write {VALUE_FORM}");
                    document.report(&["mcp", name, key, variable], &text);
                }
            }
        }
        let has = |key| document.is_written(&["mcp", name, key]);
        let problem = match (has("command"), has("url")) {
            (false, false) => "command is missing, or url for a server on the network",
            (true, true) => "command and url are both set; keep one of them",
            (true, false) if has("headers") => "headers are for url only",
            (false, true) if has("args") || has("env") => "args and env are for command only",
            (true, false) | (false, true) => return,
        };
        document.report(&path, problem);
    }

    /// Returns the server's settings. A missing environment variable is reported when a session is opened.
    fn to_server(&self, name: &str, lookup: EnvLookup<'_>) -> McpServer {
        let way = match (&self.command, &self.url) {
            (Some(command), _) => {
                resolve_values(&self.env, lookup).map(|env| McpTransport::Stdio {
                    command: command.into(),
                    args: self.args.clone(),
                    env,
                })
            }
            (None, Some(SecretText(url))) => {
                resolve_values(&self.headers, lookup).map(|headers| McpTransport::Http {
                    url: url.clone(),
                    headers,
                })
            }
            (None, None) => Err("neither command nor url is set".to_owned()),
        };
        McpServer {
            name: name.to_owned(),
            transport: way.unwrap_or_else(McpTransport::Unusable),
            timeout: self
                .timeout
                .map(|timeout| Duration::from_secs(timeout.get())),
        }
    }
}

fn resolve_values(
    values: &BTreeMap<String, ValueSource>,
    lookup: EnvLookup<'_>,
) -> Result<Vec<(String, String)>, String> {
    let value = |given: &ValueSource| match given {
        ValueSource::Plain(SecretText(value)) => Ok(value.clone()),
        ValueSource::Variable(Variable { env, prefix }) => {
            let name = env.as_deref().unwrap_or_default();
            match lookup(name) {
                Some(value) => Ok(format!("{prefix}{value}")),
                None => Err(format!("the environment variable {name} is not set")),
            }
        }
    };
    let pairs = values.iter();
    pairs
        .map(|(name, given)| Ok((name.clone(), value(given)?)))
        .collect()
}

/// Returns the settings of the servers of all entries.
pub(crate) fn resolve_servers(
    entries: &BTreeMap<String, McpEntry>,
    lookup: EnvLookup<'_>,
) -> Vec<McpServer> {
    let servers = entries.iter();
    servers
        .map(|(name, entry)| entry.to_server(name, lookup))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parse_entries(text: &str) -> Result<BTreeMap<String, McpEntry>, String> {
        let file = Config::parse(Path::new("c"), text);
        file.map(|file| file.mcp.unwrap_or_default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn relative_program_resolves_beside_config_file() {
        let path = Path::new("/etc/turnery/config.toml");
        for (command, expected) in [
            ("./server", "/etc/turnery/server"),
            ("bin/server", "/etc/turnery/bin/server"),
            ("/opt/server", "/opt/server"),
            ("npx", "npx"),
        ] {
            let text = format!("[mcp.x]\ncommand = \"{command}\"\n");
            let file = Config::parse(path, &text).unwrap();
            let servers = resolve_servers(&file.mcp.unwrap(), &|_| None);
            let McpTransport::Stdio { command, .. } = &servers[0].transport else {
                panic!("{servers:?}");
            };
            assert_eq!(command, Path::new(expected));
        }
    }

    #[test]
    fn values_come_from_file_or_environment() {
        let entries = parse_entries(
            "[mcp.files]\ncommand = \"npx\"\nargs = [\"-y\", \"\", \"é\"]\n\
             env = { A = \"1\", KEY = { env = \"FILES_KEY\" } }\ntimeout = 5\n\
             [mcp.web]\nurl = \"https://web.example/mcp\"\n\
             headers = { Authorization = { env = \"WEB_TOKEN\", prefix = \"Bearer \" } }\n\
             [mcp.gone]\nurl = \"http://x/\"\nheaders = { a = { env = \"NOT_SET\" } }\n",
        )
        .unwrap();
        let lookup = |name: &str| match name {
            "FILES_KEY" => Some("k1".to_owned()),
            "WEB_TOKEN" => Some("t1".to_owned()),
            _ => None,
        };
        let servers = resolve_servers(&entries, &lookup);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            servers,
            [
                McpServer {
                    name: "files".to_owned(),
                    transport: McpTransport::Stdio {
                        command: "npx".into(),
                        args: ["-y", "", "é"].map(str::to_owned).into(),
                        env: vec![pair("A", "1"), pair("KEY", "k1")],
                    },
                    timeout: Some(Duration::from_secs(5)),
                },
                McpServer {
                    name: "gone".to_owned(),
                    transport: McpTransport::Unusable(
                        "the environment variable NOT_SET is not set".to_owned()
                    ),
                    timeout: None,
                },
                McpServer {
                    name: "web".to_owned(),
                    transport: McpTransport::Http {
                        url: "https://web.example/mcp".to_owned(),
                        headers: vec![pair("Authorization", "Bearer t1")],
                    },
                    timeout: None,
                },
            ]
        );
        let shown = format!("{entries:?} {servers:?}");
        for secret in ["\"1\"", "web.example", "k1", "t1"] {
            assert!(!shown.contains(secret), "{secret} is in {shown}");
        }
    }

    #[test]
    fn invalid_server_tables_are_reported() {
        for (text, expected) in [
            (
                "[mcp.a]\n",
                "c:1: mcp.a: command is missing, or url for a server on the network",
            ),
            (
                "[mcp.a]\ncommand = \"x\"\nurl = \"http://y\"\n",
                "c:1: mcp.a: command and url are both set; keep one of them",
            ),
            (
                "[mcp.a]\ncommand = \"x\"\nheaders = {}\n",
                "c:1: mcp.a: headers are for url only",
            ),
            (
                "[mcp.a]\nurl = \"ftp://y\"\n",
                "c:2: mcp.a.url: must begin with https:// or http://",
            ),
            (
                "[mcp.a]\ncommand = \"x\"\nenv = { K = 5 }\n",
                "c:3: mcp.a.env.K: expected a text in quotes, or { env = \"VARIABLE\" }, found integer",
            ),
            (
                "[mcp.a]\ncommand = \"x\"\nenv = { K = { evn = \"X\" } }\n",
                "c:3: mcp.a.env.K: env is missing: write a text in quotes, or { env = \"VARIABLE\" }\nc:3: unknown key `mcp.a.env.K.evn`; write \"env\" (or prefix)",
            ),
        ] {
            assert_eq!(parse_entries(text).unwrap_err(), expected);
        }
    }
}
