//! Parses `[mcp.NAME]`: how to start or reach an MCP server.

use super::{
    environment::EnvLookup,
    providers::resolve_program,
    reader::{Section, expected, number, text},
};
use std::{fmt, path::Path, time::Duration};
use toml::de::DeValue;
use turnery_tools::mcp::{McpServer, Way};

/// A `[mcp.NAME]` table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct McpEntry {
    /// Name of the server.
    pub(crate) name: String,
    transport: Reached,
    timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
enum Reached {
    Command {
        command: String,
        args: Vec<String>,
        env: Vec<(String, Given)>,
    },
    Url {
        url: Hidden,
        headers: Vec<(String, Given)>,
    },
}

impl McpEntry {
    /// Returns the words of the command line, for servers that are started.
    pub(super) fn command_words(&self) -> impl Iterator<Item = &String> {
        let (command, args) = match &self.transport {
            Reached::Command { command, args, .. } => (Some(command), &args[..]),
            Reached::Url { .. } => (None, &[][..]),
        };
        command.into_iter().chain(args)
    }
}

/// A literal value, or the value of an environment variable with a prefix.
#[derive(Clone, Debug, PartialEq)]
enum Given {
    Plain(Hidden),
    Variable { name: String, prefix: String },
}

/// Text that may be a secret; redacted in `Debug` output.
#[derive(Clone, PartialEq)]
struct Hidden(String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Reads a `[mcp.NAME]` table of the file `config`; returns `None` if it names neither a command nor a URL. A
/// relative program path is resolved against the folder of `config`.
pub(super) fn entry(name: &str, section: &mut Section<'_, '_>, config: &Path) -> Option<McpEntry> {
    let command = section.get("command", |value| match text(value)? {
        command if command.is_empty() => Err("there is no command in it".to_owned()),
        command => Ok(resolve_program(command, config)),
    });
    let args = section.list("args", text);
    let env = section.get("env", values);
    let url = section.get("url", |value| url(text(value)?));
    let headers = section.get("headers", values);
    let timeout = section.get("timeout", number).map(Duration::from_secs);
    if name.is_empty() {
        section.wrong("a server needs a name: write [mcp.NAME]");
    }
    let (runs, calls) = (section.has("command"), section.has("url"));
    match (runs, calls) {
        (false, false) => section.wrong("command is missing, or url for a server on the network"),
        (true, true) => section.wrong("command and url are both set; keep one of them"),
        (true, false) if section.has("headers") => section.wrong("headers are for url only"),
        (false, true) if section.has("args") || section.has("env") => {
            section.wrong("args and env are for command only");
        }
        (true, false) | (false, true) => {}
    }
    let transport = match (command, url) {
        (Some(command), _) => Reached::Command {
            command,
            args,
            env: env.unwrap_or_default(),
        },
        (None, url) => Reached::Url {
            url: Hidden(url?),
            headers: headers.unwrap_or_default(),
        },
    };
    Some(McpEntry {
        name: name.to_owned(),
        transport,
        timeout,
    })
}

fn url(url: String) -> Result<String, String> {
    match url.starts_with("https://") || url.starts_with("http://") {
        true => Ok(url),
        false => Err("must begin with https:// or http://".to_owned()),
    }
}

fn values(value: &DeValue<'_>) -> Result<Vec<(String, Given)>, String> {
    let table = value.as_table().ok_or_else(|| expected("a table", value))?;
    let pair = |(name, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let name: &str = AsRef::<str>::as_ref(name.get_ref());
        let given = given(value.get_ref()).map_err(|error| format!("{name}: {error}"))?;
        Ok((name.to_owned(), given))
    };
    table.iter().map(pair).collect()
}

fn given(value: &DeValue<'_>) -> Result<Given, String> {
    let form = "a text in quotes, or { env = \"VARIABLE\" }";
    let Some(table) = value.as_table() else {
        let plain = text(value).map_err(|_| expected(form, value))?;
        return Ok(Given::Plain(Hidden(plain)));
    };
    let (mut variable, mut prefix) = (None, String::new());
    for (key, value) in table {
        match AsRef::<str>::as_ref(key.get_ref()) {
            "env" => variable = Some(text(value.get_ref())?),
            "prefix" => prefix = text(value.get_ref())?,
            other => {
                return Err(format!("unknown key `{other}`; write env or prefix"));
            }
        }
    }
    match variable {
        Some(name) => Ok(Given::Variable { name, prefix }),
        None => Err(format!("env is missing: write {form}")),
    }
}

impl McpEntry {
    /// Returns the server's settings. A missing environment variable is reported when a session is opened.
    fn to_server(&self, lookup: EnvLookup<'_>) -> McpServer {
        let way = match &self.transport {
            Reached::Command { command, args, env } => {
                resolve_values(env, lookup).map(|env| Way::Stdio {
                    command: command.into(),
                    args: args.clone(),
                    env,
                })
            }
            Reached::Url { url, headers } => {
                resolve_values(headers, lookup).map(|headers| Way::Http {
                    url: url.0.clone(),
                    headers,
                })
            }
        };
        McpServer {
            name: self.name.clone(),
            way: way.unwrap_or_else(Way::Not),
            timeout: self.timeout,
        }
    }
}

fn resolve_values(
    values: &[(String, Given)],
    lookup: EnvLookup<'_>,
) -> Result<Vec<(String, String)>, String> {
    let value = |given: &Given| match given {
        Given::Plain(Hidden(value)) => Ok(value.clone()),
        Given::Variable { name, prefix } => match lookup(name) {
            Some(value) => Ok(format!("{prefix}{value}")),
            None => Err(format!("the environment variable {name} is not set")),
        },
    };
    let pairs = values.iter();
    pairs
        .map(|(name, given)| Ok((name.clone(), value(given)?)))
        .collect()
}

/// Returns the settings of the servers of all entries.
pub(crate) fn servers(entries: &[McpEntry], lookup: EnvLookup<'_>) -> Vec<McpServer> {
    entries
        .iter()
        .map(|entry| entry.to_server(lookup))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigFile;

    fn parse_entries(text: &str) -> Result<Vec<McpEntry>, String> {
        let file = ConfigFile::parse(Path::new("c"), text);
        file.map(|file| file.choice.mcp.unwrap_or_default())
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
            let file = ConfigFile::parse(path, &text).unwrap();
            let servers = servers(&file.choice.mcp.unwrap(), &|_| None);
            let Way::Stdio { command, .. } = &servers[0].way else {
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
        let mut servers = servers(&entries, &lookup);
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            servers,
            [
                McpServer {
                    name: "files".to_owned(),
                    way: Way::Stdio {
                        command: "npx".into(),
                        args: ["-y", "", "é"].map(str::to_owned).into(),
                        env: vec![pair("A", "1"), pair("KEY", "k1")],
                    },
                    timeout: Some(Duration::from_secs(5)),
                },
                McpServer {
                    name: "gone".to_owned(),
                    way: Way::Not("the environment variable NOT_SET is not set".to_owned()),
                    timeout: None,
                },
                McpServer {
                    name: "web".to_owned(),
                    way: Way::Http {
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
                "c:3: mcp.a.env: K: expected a text in quotes, or { env = \"VARIABLE\" }, found integer",
            ),
            (
                "[mcp.a]\ncommand = \"x\"\nenv = { K = { evn = \"X\" } }\n",
                "c:3: mcp.a.env: K: unknown key `evn`; write env or prefix",
            ),
        ] {
            assert_eq!(parse_entries(text).unwrap_err(), expected);
        }
    }
}
