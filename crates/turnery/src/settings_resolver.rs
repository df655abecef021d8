//! Resolves the settings of a folder whenever a session is created or opened.

use crate::{
    config::{Config, LiveProviders, environment, mcp, project},
    hooks, instructions,
    notify::NotifyCommand,
    slash_commands,
    user_command::CommandPlace,
};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use turnery_agent::{Settings, SettingsError, SettingsResolver, notification_policy};
use turnery_models::ModelName;
use turnery_tools::{GuardedPaths, SandboxMode, SandboxSettings, policy::program_files};

/// Resolver of a folder's settings. Holds the sources that do not depend on the folder, and reads the project
/// files of a folder whenever it is asked for settings.
pub(crate) struct SettingsSources {
    /// Settings of the user's file, or its errors.
    pub(crate) user: Result<Config, String>,
    /// Settings of the environment, or its errors.
    pub(crate) environment: Result<Config, String>,
    /// Settings of the command line.
    pub(crate) flags: Config,
    /// Providers, for the default model.
    pub(crate) live_providers: Arc<LiveProviders>,
    /// Folder of the user's slash commands.
    commands_folder: Option<PathBuf>,
    /// Files and folders of this installation; sessions change them only after asking, sandboxed commands
    /// cannot see them.
    private_paths: Vec<PathBuf>,
    /// Files that hold provider keys; protected like `private_paths`.
    key_files: Vec<PathBuf>,
    /// `private_paths` and `key_files`, for each session's policy.
    guarded: OnceLock<GuardedPaths>,
    /// True if sessions run prompts that other processes have queued in them.
    pub(crate) runs_queued_prompts: bool,
    warned: Mutex<HashSet<String>>,
}

impl SettingsSources {
    /// Creates a resolver for these sources.
    pub(crate) fn new(
        user: Result<Config, String>,
        environment: Result<Config, String>,
        flags: Config,
        live_providers: Arc<LiveProviders>,
    ) -> Self {
        Self {
            user,
            environment,
            flags,
            live_providers,
            commands_folder: None,
            private_paths: Vec::new(),
            key_files: Vec::new(),
            guarded: OnceLock::new(),
            runs_queued_prompts: false,
            warned: Mutex::default(),
        }
    }

    /// Sets the folder of the user's slash commands.
    pub(crate) fn with_commands_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.commands_folder = folder;
        self
    }

    /// Sets the paths of configuration, keys and sessions, and those of further key files.
    pub(crate) fn with_guarded_paths(
        mut self,
        private_paths: Vec<PathBuf>,
        key_files: Vec<PathBuf>,
    ) -> Self {
        self.private_paths = private_paths;
        self.key_files = key_files;
        self
    }

    /// Returns `private_paths` and `key_files`, with links resolved when the first session opens, and the files in
    /// `roots` that the user's hooks and `notify` run.
    fn guarded_paths(&self, roots: &[PathBuf]) -> GuardedPaths {
        let user = self.user.as_ref().ok();
        let words = user.into_iter().flat_map(Config::command_words);
        let resolved = roots.iter().filter_map(|root| root.canonicalize().ok());
        let programs = program_files(words, &resolved.collect::<Vec<_>>());
        let own = self
            .guarded
            .get_or_init(|| GuardedPaths::new([&*self.private_paths, &*self.key_files].concat()));
        own.clone().with_paths(&programs)
    }

    /// Returns the sandbox settings. Warns once if a requested sandbox is not available.
    fn sandbox_settings(&self, choice: &Config) -> SandboxSettings {
        let settings = SandboxSettings {
            mode: choice.sandbox.unwrap_or(SandboxMode::Workspace),
            network: choice.sandbox_network.unwrap_or(false),
            replaces_terminals: choice.sandbox.is_some(),
            private: self.private_paths.clone(),
            is_git_folder_read_only: false,
            key_files: self.key_files.clone(),
        };
        if settings.mode != SandboxMode::Off && !settings.is_active() {
            self.warn_once(vec![settings.describe(false)]);
        }
        settings
    }

    /// Returns the merged settings for `roots`.
    fn merge_layers(&self, roots: &[PathBuf]) -> Result<Config, String> {
        let mut choice = self.user.clone()?;
        let named_models = choice.named_models();
        // In reverse, so that the working directory's model takes precedence.
        for root in roots.iter().rev() {
            let path = root.join(".turnery").join("config.toml");
            let file = Config::read(&path).map_err(|error| error.to_string())?;
            if let Some(file) = file {
                let (narrowed, refused) = project::narrow(choice, &named_models, &path, file);
                choice = narrowed;
                self.warn_once(refused);
            }
        }
        let environment = self.environment.clone()?;
        Ok(self.flags.clone().over(&environment.over(&choice)))
    }

    /// Returns true if the user's file or the environment has errors, so that there are no settings for any folder.
    pub(crate) fn is_broken(&self) -> bool {
        self.user.is_err() || self.environment.is_err()
    }

    /// Returns true if the user has a command for notifications.
    pub(crate) fn has_notify(&self) -> bool {
        self.user.as_ref().is_ok_and(|user| user.notify.is_some())
    }

    /// Returns true if some source chooses the model for this folder.
    pub(crate) fn is_model_chosen(&self, cwd: &Path) -> bool {
        let choice = self.merge_layers(&[cwd.to_owned()]);
        choice.is_ok_and(|choice| choice.model.is_some())
    }

    /// Logs each warning once per process.
    fn warn_once(&self, sentences: Vec<String>) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        for sentence in sentences {
            if warned.len() < 1000 && warned.insert(sentence.clone()) {
                tracing::warn!("{sentence}");
            }
        }
    }
}

impl SettingsResolver for SettingsSources {
    fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError> {
        let choice = self.merge_layers(roots).map_err(SettingsError)?;
        if let Some(problem) = self.live_providers.read_error() {
            return Err(SettingsError(problem));
        }
        let limits = choice.limits.of_prompt();
        let sandbox = self.sandbox_settings(&choice);
        let model = choice
            .model
            .unwrap_or_else(|| self.live_providers.default_model());
        let usual = Settings::new(model, instructions::system_prompt(roots));
        let entries = choice.hooks.unwrap_or_default();
        let place = CommandPlace::new(roots, &sandbox);
        Ok(Settings {
            limits,
            mode: choice.mode.unwrap_or_default(),
            allow: choice.allow,
            deny: choice.deny,
            guarded: self.guarded_paths(roots),
            thinking: choice.thinking.unwrap_or_default(),
            protocol: choice.protocol.unwrap_or_default(),
            forced_reply: choice.forced_reply.unwrap_or(usual.forced_reply),
            compact_at: choice.compact_at.unwrap_or(usual.compact_at),
            compaction: choice
                .compaction
                .map_or(usual.compaction, |compaction| compaction.settings()),
            parallel_tools: choice.parallel_tools.unwrap_or(usual.parallel_tools),
            mcp_servers: mcp::resolve_servers(
                &choice.mcp.unwrap_or_default(),
                &environment::process_variable,
            ),
            hooks: hooks::hook_commands(&entries, &place),
            effect_handler: choice
                .notify
                .map(|command| NotifyCommand::handler(command, place)),
            effect_policy: notification_policy(),
            runs_queued_prompts: self.runs_queued_prompts,
            hook_timeout: hooks::slowest_timeout(&entries),
            sandbox,
            custom_commands: slash_commands::load_commands(self.commands_folder.as_deref(), roots)
                .into(),
            ..usual
        })
    }

    fn default_model(&self) -> Option<ModelName> {
        let choice = self.merge_layers(&[]).ok()?;
        Some(
            choice
                .model
                .unwrap_or_else(|| self.live_providers.default_model()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{models::ModelEntry, rules::parse_rule, values::model};
    use std::fs;
    use turnery_tools::Mode;

    fn layer_with_model(name: &str) -> Config {
        Config {
            model: Some(model(name).unwrap()),
            ..Config::default()
        }
    }

    fn write_project(folder: &Path, config: &str) -> PathBuf {
        fs::create_dir_all(folder.join(".turnery")).unwrap();
        fs::write(folder.join(".turnery/config.toml"), config).unwrap();
        folder.to_owned()
    }

    fn no_providers() -> Arc<LiveProviders> {
        Arc::new(LiveProviders::new(Vec::new(), None))
    }

    fn resolver(user: Config, environment: Config, flags: Config) -> SettingsSources {
        let named_models = ["p/project", "p/first", "p/second"];
        let user = Config {
            models: named_models
                .map(|name| (name.to_owned(), ModelEntry::default()))
                .into(),
            ..user
        };
        SettingsSources::new(Ok(user), Ok(environment), flags, no_providers())
    }

    #[test]
    fn layers_override_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = write_project(folder.path(), "model = \"p/project\"");
        let bare = tempfile::tempdir().unwrap();
        let none = Config::default;
        #[rustfmt::skip]
        let table = [
            // user             project environment       flags             model
            (none(),            false,  none(),           none(),           "offline"),
            (layer_with_model("u/user"),  false,  none(),           none(),           "u/user"),
            (none(),            true,   none(),           none(),           "p/project"),
            (layer_with_model("u/user"),  true,   none(),           none(),           "p/project"),
            (layer_with_model("u/user"),  true,   layer_with_model("e/env"),  none(),           "e/env"),
            (layer_with_model("u/user"),  true,   none(),           layer_with_model("f/flag"), "f/flag"),
            (none(),            false,  layer_with_model("e/env"),  layer_with_model("f/flag"), "f/flag"),
            (layer_with_model("u/user"),  true,   layer_with_model("e/env"),  layer_with_model("f/flag"), "f/flag"),
        ];
        for (user, with_project, environment, flags, expected) in table {
            let roots = [match with_project {
                true => root.clone(),
                false => bare.path().to_owned(),
            }];
            let settings = resolver(user, environment, flags).settings(&roots).unwrap();
            assert_eq!(settings.model.to_string(), expected);
        }
    }

    #[test]
    fn rules_of_all_layers_apply_and_first_root_model_wins() {
        let folder = tempfile::tempdir().unwrap();
        let first = write_project(
            &folder.path().join("first"),
            "model = \"p/first\"\ndeny = [\"shell(rm:*)\"]",
        );
        let second = write_project(
            &folder.path().join("second"),
            "model = \"p/second\"\nmode = \"plan\"\nallow = [\"shell\"]",
        );
        let user = Config {
            allow: vec![parse_rule("read").unwrap()],
            ..Config::default()
        };
        let flags = Config {
            allow: vec![parse_rule("edit(src/**)").unwrap()],
            ..Config::default()
        };
        let configured = resolver(user, Config::default(), flags);
        let settings = configured.settings(&[first, second]).unwrap();
        assert_eq!(settings.model.to_string(), "p/first");
        assert_eq!(settings.mode, Mode::Plan);
        assert_eq!(
            settings.allow,
            [
                parse_rule("read").unwrap(),
                parse_rule("edit(src/**)").unwrap()
            ]
        );
        assert_eq!(settings.deny, [parse_rule("shell(rm:*)").unwrap()]);
    }

    #[test]
    fn broken_user_file_is_reported_before_project_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = write_project(folder.path(), "\nmodell = \"x\"");
        let error = resolver(Config::default(), Config::default(), Config::default())
            .settings(std::slice::from_ref(&root))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}:2: unknown key `modell`; write \"model\" (or store, fallback, mode, thinking, protocol, sandbox, sandbox_network, pass_env, durability, allow, deny, compact_at, forced_reply, parallel_tools, limits, compaction, hooks, notify, mcp, providers, models)",
                root.join(".turnery/config.toml").display()
            )
        );
        let user = Err("config.toml:1: wrong".to_owned());
        let configured = SettingsSources::new(
            user,
            Ok(Config::default()),
            Config::default(),
            no_providers(),
        );
        assert_eq!(
            configured.settings(&[root]).unwrap_err().to_string(),
            "config.toml:1: wrong"
        );
    }
}
