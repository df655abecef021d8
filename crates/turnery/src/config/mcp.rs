//! Reads `[mcp.NAME]`: how to start or reach an MCP server.

use super::{
    environment::EnvLookup,
    providers::resolve_program,
    reader::Document,
    value_source::{SecretText, ValueSource, check_values, resolve_values},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{collections::BTreeMap, num::NonZeroU64, path::Path, time::Duration};
use turnery_tools::mcp::{McpServer, McpTransport};

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
                .any(|it| url.reveal().starts_with(it))
        };
        if self.url.as_ref().is_some_and(|url| !is_http(url)) {
            let text = "must begin with https:// or http://";
            document.report(&["mcp", name, "url"], text);
        }
        check_values(&["mcp", name, "env"], &self.env, document);
        check_values(&["mcp", name, "headers"], &self.headers, document);
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
                let env = resolve_values(&self.env, lookup);
                env.map_err(|it| it.to_string())
                    .map(|env| McpTransport::Stdio {
                        command: command.into(),
                        args: self.args.clone(),
                        env,
                    })
            }
            (None, Some(url)) => {
                let headers = resolve_values(&self.headers, lookup);
                headers
                    .map_err(|it| it.to_string())
                    .map(|headers| McpTransport::Http {
                        url: url.reveal().to_owned(),
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
                        "a needs the environment variable NOT_SET, which is not set".to_owned()
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
