//! Builds the environment of commands: no prompts for input and no keys.

use crate::{SandboxBaseline, SandboxSettings, Workspace, workspace::may_lead_into};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Patterns of variables hidden from commands: names that look like keys or tokens. A `*` at either end
/// stands for any text.
pub const HIDDEN_ENV: &[&str] = &[
    "*APIKEY",
    "*AUTH*",
    "*CONNECTION_STRING*",
    "*COOKIE*",
    "*PASSWD",
    "*PASSWORD*",
    "*SECRET*",
    "*WEBHOOK*",
    "*_CREDENTIALS",
    "*_DATABASE_URL",
    "*_DSN",
    "*_KEY",
    "*_KEY_ID",
    "*_PASS*",
    "*_PAT",
    "*_PWD",
    "*_TOKEN",
    "AMQP_URL",
    "APITOKEN",
    "DATABASE_URL",
    "MONGODB_URI",
    "MONGO_URL",
    "REDIS_URL",
    "SSHPASS",
    "TOKEN",
];

/// Variables that match [`HIDDEN_ENV`] but hold no secret: names and dates of git authors, and the locations
/// of the ssh agent and of the X cookies.
const NOT_SECRET: &[&str] = &["GIT_AUTHOR_*", "SSH_AUTH_SOCK", "XAUTHORITY"];

/// Variables set for every command: no pager, no colour, no prompts.
pub(super) const DEFAULT_VARIABLES: &[(&str, &str)] = &[
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// Variables removed for every command, because bash and other programs would read a line differently from
/// the policy with them: they affect where `cd` leads, what patterns expand to and in which order, and what
/// counts as an option.
const REMOVED_VARIABLES: &[&str] = &[
    "BASHOPTS",
    "BASH_COMPAT",
    "CDPATH",
    "GLOBIGNORE",
    "GLOBSORT",
    "OLDPWD",
    "POSIXLY_CORRECT",
    "SHELLOPTS",
];

/// Variable with the working directory of a command, as the policy saw it. Bash would otherwise use another
/// name of the folder from it, from which `..` leads elsewhere.
pub(super) const PWD: &str = "PWD";

/// Variables that list folders in which programs or their code are searched, including relative folders.
const SEARCH_PATH_VARIABLES: &[&str] = &[
    "LD_LIBRARY_PATH",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PYTHONPATH",
    "RUBYLIB",
];

/// Keeps Python from loading modules from its working directory.
const PYTHON_SAFE_PATH: &str = "PYTHONSAFEPATH";

/// Variables that name files and folders of settings which may name programs. A relative path is in the
/// project.
const CONFIG_PATH_VARIABLES: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
];

/// Variables that may legitimately name a folder of the session.
const SESSION_FOLDER_VARIABLES: &[&str] = &["HOME", "TMPDIR", PWD];

/// Variables that make bash and other programs load code or settings unseen by the policy.
const CODE_LOADING_VARIABLES: &[&str] = &[
    "BASH_ENV",
    "BASH_FUNC_*",
    "CARGO_BUILD_*",
    "ENV",
    "GCONV_PATH",
    "LD_AUDIT",
    "LD_PRELOAD",
    "LESSOPEN",
    "MAGIC",
    "NODE_OPTIONS",
    "NPM_CONFIG_*",
    "OPENSSL_CONF",
    "PERL5OPT",
    "PIP_CONFIG_FILE",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONWARNINGS",
    "RIPGREP_CONFIG_PATH",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "TAR_OPTIONS",
    "UNZIP",
    "UNZIPOPT",
    "npm_config_*",
];

/// Removes everything that makes read-only programs load code from the session's folders, including relative
/// folders, which may be inside them. A script outside the folders (a pyenv shim) does not find its helpers
/// there either, and Python searches none of them.
pub(super) fn strip_project_code(environment: &mut EnvVars, workspace: &Workspace) {
    environment.retain(|name, value| {
        let is_settings = CONFIG_PATH_VARIABLES.iter().any(|it| name == *it);
        let name = name.to_string_lossy();
        let loads = CODE_LOADING_VARIABLES
            .iter()
            .any(|pattern| matches_pattern(pattern, &name));
        !loads && (!is_settings || std::env::split_paths(value).all(|path| path.is_absolute()))
    });
    strip_entries(environment, &|path, is_searched| {
        (is_searched || path.is_absolute()) && workspace.may_be_in_project(path)
    });
    environment.insert(PYTHON_SAFE_PATH.into(), "1".into());
}

/// Removes the search folders that commands of a session in `roots` can write to, and relative ones, so that
/// a program outside the sandbox runs nothing that a command left behind. Python does not load modules from
/// its working directory.
pub fn strip_writable_paths(
    environment: &mut EnvVars,
    roots: &[PathBuf],
    sandbox: &SandboxSettings,
) {
    let confinement = sandbox.confinement(roots, &SandboxBaseline::default(), false);
    let written = confinement.map_or_else(|| roots.to_vec(), |it| it.writable_through_links());
    strip_entries(environment, &|path, is_searched| {
        let lies_in = |path: &Path| written.iter().any(|folder| path.starts_with(folder));
        is_searched && (path.is_relative() || lies_in(path) || may_lead_into(path, &lies_in))
    });
    environment.insert(PYTHON_SAFE_PATH.into(), "1".into());
}

/// Removes relative search folders, which may be the session's.
pub(crate) fn strip_relative_paths(environment: &mut EnvVars) {
    strip_entries(environment, &|path, is_searched| {
        is_searched && path.is_relative()
    });
}

/// Removes entries of variables. `is_out` receives a folder and whether code is searched in it.
fn strip_entries(environment: &mut EnvVars, is_out: &dyn Fn(&Path, bool) -> bool) {
    for (name, value) in std::mem::take(environment) {
        let is_searched = SEARCH_PATH_VARIABLES.iter().any(|it| name == *it);
        let is_of_session = SESSION_FOLDER_VARIABLES.iter().any(|it| name == *it);
        let is_out = |path: &PathBuf| !is_of_session && is_out(path, is_searched);
        if !std::env::split_paths(&value).any(|it| is_out(&it)) {
            environment.insert(name, value);
            continue;
        }
        let others = std::env::split_paths(&value).filter(|it| !is_out(it));
        match std::env::join_paths(others) {
            Ok(left) if !left.is_empty() => drop(environment.insert(name, left)),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Variables and their values.
type EnvVars = BTreeMap<OsString, OsString>;

/// Returns the environment of this process without hidden variables.
pub(crate) fn inherited_env(hidden: &[String]) -> EnvVars {
    inherited_env_with(hidden, &[])
}

/// Returns the environment of this process without hidden variables, except those named in `passed`.
pub(super) fn inherited_env_with(hidden: &[String], passed: &[String]) -> EnvVars {
    std::env::vars_os()
        .filter(|(name, _)| !is_removed(name, hidden, passed))
        .collect()
}

fn is_removed(name: &OsStr, hidden: &[String], passed: &[String]) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    if REMOVED_VARIABLES.contains(&name.as_str()) {
        return true;
    }
    // A variable hidden by its full name stays hidden even if it is in `NOT_SECRET`.
    let is_hidden =
        |it: &String| matches_pattern(it, &name) && (*it == name || !is_not_secret(&name));
    hidden.iter().any(is_hidden) && !passed.contains(&name)
}

fn is_not_secret(name: &str) -> bool {
    NOT_SECRET
        .iter()
        .any(|pattern| matches_pattern(pattern, name))
}

/// Returns true if `name` matches a pattern that may have a `*` at either end.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(rest), Some(_)) => name.contains(rest.trim_end_matches('*')),
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SandboxMode;

    #[test]
    fn secrets_are_hidden_and_other_variables_kept() {
        let hidden: Vec<String> = HIDDEN_ENV.iter().map(|name| (*name).to_owned()).collect();
        let names = [
            "ANTHROPIC_API_KEY",
            "openai_api_key",
            "GH_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "TOKEN",
            "CDPATH",
            "OLDPWD",
            "POSIXLY_CORRECT",
            "DATABASE_URL",
            "GITHUB_PAT",
            "MYSQL_PWD",
            "DB_PASS",
            "DB_PASSWD",
            "SMTP_PASSPHRASE",
            "SSHPASS",
            "REDIS_URL",
            "AZURE_STORAGE_CONNECTION_STRING",
            "BASIC_AUTH",
            "npm_config__auth",
            "SESSION_COOKIE",
            "SLACK_WEBHOOK_URL",
            "SENTRY_DSN",
            "CLIENT_SECRET_ID",
            "PATH",
            "PWD",
            "XAUTHORITY",
            "GIT_AUTHOR_NAME",
            "HOME",
            "TOKEN_COUNT",
            "KEYBOARD",
            "XDG_SESSION_ID",
            "SSH_AUTH_SOCK",
        ];
        let (removed, kept) = names.split_at(24);
        assert!(
            removed
                .iter()
                .all(|name| is_removed(OsStr::new(name), &hidden, &[]))
        );
        assert!(
            !kept
                .iter()
                .any(|name| is_removed(OsStr::new(name), &hidden, &[]))
        );
    }

    #[test]
    fn passed_variable_overrides_hidden_patterns() {
        let hidden: Vec<String> = HIDDEN_ENV.iter().map(|name| (*name).to_owned()).collect();
        let passed = ["DATABASE_URL".to_owned()];
        assert!(!is_removed(OsStr::new("DATABASE_URL"), &hidden, &passed));
        assert!(is_removed(OsStr::new("GH_TOKEN"), &hidden, &passed));
        assert!(is_removed(
            OsStr::new("CDPATH"),
            &hidden,
            &["CDPATH".to_owned()]
        ));
    }

    #[test]
    fn readers_load_no_project_code() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = Workspace::local(root.clone()).unwrap();
        let root = root.display();
        let path = format!("{root}/bin:/usr/bin::bin:/bin");
        let inside = format!("{root}:.");
        let inner = format!("{root}/tools");
        let before = [
            ("PATH", path.as_str()),
            ("PYTHONPATH", inside.as_str()),
            ("LD_LIBRARY_PATH", "/opt/x/lib:"),
            ("NODE_OPTIONS", "--require ./x.js"),
            ("BASH_FUNC_ls%%", "() { touch M; }"),
            ("TAR_OPTIONS", "--to-command=./x"),
            ("NPM_CONFIG_PREFIX", "/usr"),
            ("CARGO_BUILD_RUSTC", "./x"),
            ("RUSTC_WORKSPACE_WRAPPER", "./x"),
            ("GIT_CONFIG_GLOBAL", "gc"),
            ("GIT_CONFIG_SYSTEM", "/etc/gitconfig"),
            ("XDG_CONFIG_HOME", "xdg"),
            ("PYENV_ROOT", inner.as_str()),
            ("TMPDIR", inner.as_str()),
            ("HOME", "/home/ann"),
            ("LANG", ""),
        ];
        let mut environment: BTreeMap<OsString, OsString> = before
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        strip_project_code(&mut environment, &workspace);
        let after = [
            ("PATH", "/usr/bin:/bin"),
            ("LD_LIBRARY_PATH", "/opt/x/lib"),
            ("GIT_CONFIG_SYSTEM", "/etc/gitconfig"),
            ("TMPDIR", inner.as_str()),
            ("HOME", "/home/ann"),
            ("LANG", ""),
            ("PYTHONSAFEPATH", "1"),
        ];
        let expected = after.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(environment, BTreeMap::from(expected));
    }

    #[test]
    fn relative_search_paths_are_stripped() {
        let before = [
            ("PATH", ":/usr/bin:bin"),
            ("PYTHONPATH", ":"),
            ("OTHER", "a:b"),
        ];
        let mut environment: EnvVars = before
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        strip_relative_paths(&mut environment);
        let after = [("PATH", "/usr/bin"), ("OTHER", "a:b")];
        let expected = after.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(environment, BTreeMap::from(expected));
    }

    #[test]
    fn writable_search_paths_are_stripped() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let roots = folders
            .each_ref()
            .map(|folder| folder.path().canonicalize().unwrap());
        let elsewhere = tempfile::tempdir().unwrap();
        let linked = elsewhere.path().join("linked");
        std::os::unix::fs::symlink(
            crate::workspace::make_path_too_long_to_look_up(&roots[0]),
            &linked,
        )
        .unwrap();
        let path = format!(
            "{}:{}/bin:{}:/var/tmp/x:bin:/usr/bin",
            roots[0].display(),
            roots[1].display(),
            linked.display()
        );
        for (mode, expected) in [
            (SandboxMode::Workspace, "/usr/bin"),
            (SandboxMode::Off, "/var/tmp/x:/usr/bin"),
        ] {
            let sandbox = SandboxSettings {
                mode,
                ..SandboxSettings::default()
            };
            if mode != SandboxMode::Off && !sandbox.is_active() {
                continue;
            }
            let mut environment = EnvVars::from([("PATH".into(), path.clone().into())]);
            strip_writable_paths(&mut environment, &roots, &sandbox);
            let left = environment.get(OsStr::new("PATH"));
            assert_eq!(left, Some(&OsString::from(expected)), "{mode:?}");
        }
    }
}
