//! Providers: the well-known ones, and what the user's configuration changes or adds.

use super::{ConfigError, ProviderEntry, environment::Lookup, reader::Problem};
use secrecy::SecretString;
use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};
use turnery_models::{ModelName, ProviderConfig};

/// A key longer than this is none. Unit: bytes.
const LONGEST_KEY: u64 = 16 << 10;

/// All providers: `known` ones as `entries` of `file` change them, and those that `entries` add.
pub(crate) fn all(
    mut known: Vec<ProviderConfig>,
    entries: &[ProviderEntry],
    file: &Path,
    lookup: Lookup<'_>,
) -> Result<Vec<ProviderConfig>, ConfigError> {
    let mut problems = Vec::new();
    for entry in entries {
        let at = known
            .iter()
            .position(|provider| provider.name == entry.name);
        let base = at.map(|at| known[at].clone());
        match provider(base, entry, file, lookup) {
            Ok(provider) => match at {
                Some(at) => known[at] = provider,
                None => known.push(provider),
            },
            Err(text) => problems.push(Problem {
                file: file.to_owned(),
                line: Some(entry.line),
                text: format!("providers.{}: {text}", entry.name),
            }),
        }
    }
    match problems.is_empty() {
        true => Ok(known),
        false => Err(ConfigError { problems }),
    }
}

fn provider(
    known: Option<ProviderConfig>,
    entry: &ProviderEntry,
    file: &Path,
    lookup: Lookup<'_>,
) -> Result<ProviderConfig, String> {
    let mut provider = match known {
        Some(known) => known,
        None => ProviderConfig {
            name: entry.name.clone(),
            api: entry.api.ok_or(
                "api is missing; write api = \"openai\" for servers that copy OpenAI, or \"anthropic\"",
            )?,
            base_url: entry
                .base_url
                .clone()
                .ok_or("base_url is missing; write where the server is")?,
            key: None,
            key_hint: String::new(),
            models: Vec::new(),
        },
    };
    if let Some(api) = entry.api {
        provider.api = api;
    }
    if let Some(base_url) = &entry.base_url {
        provider.base_url.clone_from(base_url);
        // A server of one's own may well need no key; key_env and key_file say when it does.
        if provider.key.is_none() {
            provider.key_hint.clear();
        }
    }
    if let Some(name) = &entry.key_env {
        provider.key = lookup(name).map(SecretString::from);
        provider.key_hint.clone_from(name);
    }
    if let Some(path) = &entry.key_file {
        let path = beside(path, file);
        provider.key = Some(key_in(&path)?);
        provider.key_hint = path.display().to_string();
    }
    if !entry.models.is_empty() {
        provider.models.clone_from(&entry.models);
    }
    Ok(provider)
}

/// The files out of which `entries` of `config` read their keys.
pub(crate) fn key_files(entries: &[ProviderEntry], config: &Path) -> Vec<PathBuf> {
    let paths = entries.iter().filter_map(|entry| entry.key_file.as_ref());
    paths.map(|path| beside(path, config)).collect()
}

/// A program to run: one that is named by a relative path lies beside the configuration, never in a session's folder,
/// where a project would bring it.
pub(super) fn program(name: String, config: &Path) -> String {
    if !name.contains('/') {
        return name;
    }
    let path = beside(&name, config);
    let path = std::path::absolute(&path).unwrap_or(path);
    path.to_string_lossy().into_owned()
}

/// Relative to the folder of the configuration; `~/` is the user's home.
fn beside(path: &str, config: &Path) -> PathBuf {
    if let (Some(rest), Some(home)) = (path.strip_prefix("~/"), dirs::home_dir()) {
        return home.join(rest);
    }
    config.parent().unwrap_or(Path::new("")).join(path)
}

/// The key in a file that nobody else may read.
fn key_in(path: &Path) -> Result<SecretString, String> {
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
    file.take(LONGEST_KEY)
        .read_to_string(&mut key)
        .map_err(broken)?;
    match key.trim() {
        "" => Err(format!("key_file {} is empty", path.display())),
        key => Ok(SecretString::from(key)),
    }
}

/// The model to use when nobody chose one: of the first well-known provider with a key.
pub(crate) fn usual_model(providers: &[ProviderConfig]) -> Option<ModelName> {
    providers
        .iter()
        .filter(|provider| ["anthropic", "openai"].contains(&provider.name.as_str()))
        .filter(|provider| provider.key.is_some())
        .find_map(first_model)
}

/// The first model that a provider offers.
pub(crate) fn first_model(provider: &ProviderConfig) -> Option<ModelName> {
    Some(ModelName {
        provider: provider.name.clone(),
        model: provider.models.first()?.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigFile;
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
        let entries = ConfigFile::parse(file, content).unwrap().providers;
        all(
            ProviderConfig::well_known(&environment),
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
    fn a_provider_is_changed_or_added() {
        let all = configured(
            Path::new("config.toml"),
            "[providers.openai]\nbase_url = \"https://proxy.example/v1/\"\nmodels = [\"m\"]\n\
             [providers.desk]\napi = \"openai\"\nbase_url = \"http://desk/v1\"\nkey_env = \"DESK_KEY\"\n\
             [providers.open]\napi = \"anthropic\"\nbase_url = \"http://open\"\n",
        )
        .unwrap();
        let openai = find(&all, "openai");
        assert_eq!(openai.base_url, "https://proxy.example/v1");
        assert_eq!(openai.models, ["m"]);
        assert_eq!(key(openai), Some("sk-environment"));
        let desk = find(&all, "desk");
        assert_eq!((desk.api, key(desk)), (Api::OpenAi, Some("desk-key")));
        let open = find(&all, "open");
        assert_eq!((open.api, key(open)), (Api::Anthropic, None));
        assert!(open.ready().is_ok(), "no key was asked for");
        assert!(find(&all, "anthropic").ready().is_err());
        assert_eq!(usual_model(&all).unwrap().to_string(), "openai/m");
    }

    #[test]
    fn without_any_key_no_provider_answers() {
        let all = ProviderConfig::well_known(&|_| None);
        assert_eq!(usual_model(&all), None);
    }

    #[test]
    fn a_new_provider_needs_its_api_and_its_address() {
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
    fn a_key_file_that_others_can_read_is_refused() {
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
