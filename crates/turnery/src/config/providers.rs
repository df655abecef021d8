//! Merges the well-known providers with those of the user's configuration.

use super::{
    ConfigError, ProviderEntry, environment::EnvLookup, problem::Problem,
    value_source::resolve_values,
};
use secrecy::SecretString;
use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};
use turnery_models::{Api, ProviderConfig};

/// Longest key that is read; the rest of a longer file is ignored. Unit: bytes.
const MAX_KEY_BYTES: u64 = 16 << 10;

/// Returns the `known` providers, changed and complemented by `entries` of `file`.
pub(crate) fn configure_providers(
    mut known: Vec<ProviderConfig>,
    entries: &BTreeMap<String, ProviderEntry>,
    file: &Path,
    lookup: EnvLookup<'_>,
) -> Result<Vec<ProviderConfig>, ConfigError> {
    let mut problems = Vec::new();
    for (name, entry) in entries {
        let at = known.iter().position(|provider| provider.name == *name);
        let base = at.map(|at| known[at].clone());
        match configure_provider(base, name, entry, file, lookup) {
            Ok(provider) => match at {
                Some(at) => known[at] = provider,
                None => known.push(provider),
            },
            Err(text) => problems.push(Problem {
                file: file.to_owned(),
                line: Some(entry.line),
                text: format!("providers.{name}: {text}"),
            }),
        }
    }
    match problems.is_empty() {
        true => Ok(known),
        false => Err(ConfigError { problems }),
    }
}

fn configure_provider(
    known: Option<ProviderConfig>,
    name: &str,
    entry: &ProviderEntry,
    file: &Path,
    lookup: EnvLookup<'_>,
) -> Result<ProviderConfig, String> {
    let mut provider = match known {
        Some(known) => known,
        None => ProviderConfig::new(
            name,
            entry.api.map(Api::from).ok_or(
                "api is missing; write api = \"openai\" for servers that copy OpenAI, or \"anthropic\"",
            )?,
            entry
                .base_url
                .clone()
                .ok_or("base_url is missing; write where the server is")?,
        ),
    };
    if let Some(base_url) = &entry.base_url {
        provider.move_to(base_url);
        // A server that the user added needs a key only if key_env or key_file is set.
        if provider.key.is_none() {
            provider.key_hint.clear();
        }
    }
    if let Some(api) = entry.api {
        provider.api = api.into();
    }
    if let Some(name) = &entry.key_env {
        provider.key = lookup(name).map(SecretString::from);
        provider.key_hint.clone_from(name);
    }
    if let Some(path) = &entry.key_file {
        let path = resolve_path(path, file);
        provider.key = Some(read_key_file(&path)?);
        provider.key_hint = path.display().to_string();
    }
    match resolve_values(&entry.headers, lookup) {
        Ok(headers) if headers.is_empty() => {}
        Ok(headers) => {
            let headers = headers.into_iter();
            provider.headers = headers.map(|(name, value)| (name, value.into())).collect();
            provider.check_headers()?;
        }
        Err(unset) => {
            tracing::warn!(
                "{}:{}: providers.{name} cannot be used: its header {unset}",
                file.display(),
                entry.line
            );
            provider.unset_variable = Some(unset.variable);
        }
    }
    if let Some(path) = &entry.ca_file {
        provider.ca_file = Some(resolve_path(path, file));
    }
    if !entry.models.is_empty() {
        provider.models.clone_from(&entry.models);
    }
    Ok(provider)
}

/// Returns the paths of the key files that `entries` of `config` name.
pub(crate) fn key_files(entries: &BTreeMap<String, ProviderEntry>, config: &Path) -> Vec<PathBuf> {
    let paths = entries.values().filter_map(|entry| entry.key_file.as_ref());
    paths.map(|path| resolve_path(path, config)).collect()
}

/// Resolves a program path. A relative path is resolved against the folder of `config`, never against a session's
/// folder, whose files belong to the project.
pub(super) fn resolve_program(name: String, config: &Path) -> String {
    if !name.contains('/') {
        return name;
    }
    let path = resolve_path(&name, config);
    let path = std::path::absolute(&path).unwrap_or(path);
    path.to_string_lossy().into_owned()
}

/// Resolves a path relative to the folder of `config`; `~/` is the user's home folder.
fn resolve_path(path: &str, config: &Path) -> PathBuf {
    if let (Some(rest), Some(home)) = (path.strip_prefix("~/"), dirs::home_dir()) {
        return home.join(rest);
    }
    config.parent().unwrap_or(Path::new("")).join(path)
}

/// Reads a key from a file that only its owner may read.
fn read_key_file(path: &Path) -> Result<SecretString, String> {
    let broken = |error: std::io::Error| format!("key_file {}: {error}", path.display());
    let file = File::open(path).map_err(broken)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_err(broken)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!(
                "key_file {0} may be read by others (mode {mode:04o}); run: chmod 600 {0}",
                path.display()
            ));
        }
    }
    let mut key = String::new();
    file.take(MAX_KEY_BYTES)
        .read_to_string(&mut key)
        .map_err(broken)?;
    match key.trim() {
        "" => Err(format!("key_file {} is empty", path.display())),
        key => Ok(SecretString::from(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use secrecy::ExposeSecret as _;
    use std::fs;
    use turnery_models::Api;

    fn environment(name: &str) -> Option<String> {
        match name {
            "OPENAI_API_KEY" => Some("sk-environment".to_owned()),
            "DESK_KEY" => Some("desk-key".to_owned()),
            _ => None,
        }
    }

    fn configured(file: &Path, content: &str) -> Result<Vec<ProviderConfig>, ConfigError> {
        let entries = Config::parse(file, content).unwrap().providers;
        configure_providers(
            ProviderConfig::standard_from_env(&environment),
            &entries,
            file,
            &environment,
        )
    }

    fn find<'a>(all: &'a [ProviderConfig], name: &str) -> &'a ProviderConfig {
        all.iter().find(|provider| provider.name == name).unwrap()
    }

    fn key(provider: &ProviderConfig) -> Option<&str> {
        provider.key.as_ref().map(|key| key.expose_secret())
    }

    #[test]
    fn entry_changes_or_adds_provider() {
        let all = configured(
            Path::new("config.toml"),
            "[providers.openai]\nbase_url = \"https://proxy.example/v1/\"\nmodels = [\"m\"]\n\
             [providers.desk]\napi = \"openai\"\nbase_url = \"http://desk/v1\"\nkey_env = \"DESK_KEY\"\n\
             [providers.open]\napi = \"anthropic\"\nbase_url = \"http://open\"\n",
        )
        .unwrap();
        let openai = find(&all, "openai");
        assert_eq!(openai.base_url, "https://proxy.example/v1");
        // Servers that copy OpenAI copy Chat Completions.
        assert_eq!(openai.api, Api::OpenAi);
        assert_eq!(openai.models, ["m"]);
        assert_eq!(key(openai), Some("sk-environment"));
        let desk = find(&all, "desk");
        assert_eq!((desk.api, key(desk)), (Api::OpenAi, Some("desk-key")));
        let open = find(&all, "open");
        assert_eq!((open.api, key(open)), (Api::Anthropic, None));
        assert!(open.require_key().is_ok(), "no key was asked for");
        assert!(find(&all, "anthropic").require_key().is_err());
    }

    #[test]
    fn configured_api_replaces_the_default_of_the_address() {
        let api = |entry: &str| {
            let content = format!("[providers.openai]\n{entry}");
            find(
                &configured(Path::new("config.toml"), &content).unwrap(),
                "openai",
            )
            .api
        };
        assert_eq!(api(""), Api::OpenAiResponses);
        assert_eq!(api("api = \"openai\""), Api::OpenAi);
        let url = "base_url = \"http://desk/v1\"\n";
        assert_eq!(api(url), Api::OpenAi);
        assert_eq!(
            api(&format!("{url}api = \"openai_responses\"")),
            Api::OpenAiResponses
        );
    }

    #[test]
    fn headers_come_from_the_file_or_the_environment() {
        let content = "[providers.openai]\nca_file = \"ca.pem\"\n\
             headers = { X-Team = \"blue\", X-Token = { env = \"DESK_KEY\", prefix = \"T \" } }\n";
        let all = configured(Path::new("/etc/t/config.toml"), content).unwrap();
        let openai = find(&all, "openai");
        let headers: Vec<_> = openai
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose_secret()))
            .collect();
        assert_eq!(headers, [("X-Team", "blue"), ("X-Token", "T desk-key")]);
        assert_eq!(openai.ca_file.as_deref(), Some(Path::new("/etc/t/ca.pem")));
        assert_eq!(key(openai), Some("sk-environment"));
        let shown = format!("{openai:?}");
        assert!(
            !shown.contains("desk-key") && !shown.contains("blue"),
            "{shown}"
        );
    }

    #[test]
    fn header_that_cannot_be_sent_is_rejected() {
        for (header, problem) in [
            (
                "\"a b\" = \"s3cret\"",
                "the header \"a b\" has no valid name",
            ),
            (
                "A = \"s3cr\\net\"",
                "the value of the header A holds characters that no header has",
            ),
            (
                "Host = \"s3cret\"",
                "the header Host is set by turnery itself",
            ),
        ] {
            let content = format!("[providers.openai]\nheaders = {{ {header} }}\n");
            let error = configured(Path::new("c.toml"), &content).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("c.toml:1: providers.openai: {problem}")
            );
        }
    }

    /// Other providers are not affected, and a key from `turnery login` does not replace the header.
    #[test]
    fn unset_header_variable_disables_one_provider() {
        let content = "[providers.desk]\napi = \"openai\"\nbase_url = \"http://desk/v1\"\nmodels = [\"m\"]\n\
             headers = { A = \"1\", X-Token = { env = \"NOT_SET\" } }\n";
        let all = configured(Path::new("c.toml"), content).unwrap();
        let desk = find(&all, "desk");
        let missing = desk.require_key().unwrap_err();
        assert!(missing.hint.starts_with("NOT_SET ("), "{missing:?}");
        assert!(!desk.is_keyless(), "it would be asked for its models");
        assert_eq!(find(&all, "openai").require_key(), Ok(()));
        let keyed = format!("{content}key_env = \"DESK_KEY\"\n");
        let all = configured(Path::new("c.toml"), &keyed).unwrap();
        let desk = [find(&all, "desk").clone()];
        let chosen = crate::config::default_model::choose_default_model(&desk, &[], |_| true);
        assert_eq!(chosen.to_string(), "offline");
    }

    #[test]
    fn new_provider_without_api_or_base_url_is_rejected() {
        let error = configured(
            Path::new("config.toml"),
            "[providers.a]\nbase_url = \"http://a\"\n[providers.b]\napi = \"openai\"\n",
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "config.toml:1: providers.a: api is missing; write api = \"openai\" for servers that copy OpenAI, or \"anthropic\"\n\
             config.toml:3: providers.b: base_url is missing; write where the server is"
        );
    }

    #[cfg(unix)]
    #[test]
    fn key_file_readable_by_others_is_rejected() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("key");
        fs::write(&secret, "sk-file\n").unwrap();
        let config = folder.path().join("config.toml");
        let content = "[providers.anthropic]\nkey_file = \"key\"";

        fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).unwrap();
        let error = configured(&config, content).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "{}:1: providers.anthropic: key_file {1} may be read by others (mode 0640); run: chmod 600 {1}",
                config.display(),
                secret.display()
            )
        );
        assert!(!error.contains("sk-file"));

        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let all = configured(&config, content).unwrap();
        assert_eq!(key(find(&all, "anthropic")), Some("sk-file"));
        assert!(!format!("{all:?}").contains("sk-file"));
    }
}
