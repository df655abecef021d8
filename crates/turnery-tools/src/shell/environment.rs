//! Environment: what a command finds in it: nothing that waits for a person, and no keys.

use crate::{SandboxSettings, Surroundings, Workspace, workspace::may_lead};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Variables that commands never get to see: what names of keys and tokens look like.
/// A `*` at either end stands for anything.
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

/// Variables that match [`HIDDEN_ENV`] and hold no secret: the names and dates of git's authors, and where
/// the agent of ssh and the cookies of X are found, which is no secret by itself.
const SHOWN: &[&str] = &["GIT_AUTHOR_*", "SSH_AUTH_SOCK", "XAUTHORITY"];

/// Set for every command: no pager, no colour, no question.
pub(super) const SET: &[(&str, &str)] = &[
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// Removed for every command: with these, bash and other programs would read a line otherwise than the policy does.
/// They say where `cd` leads, which files a pattern stands for in which order, and what an option is.
const REMOVED: &[&str] = &[
    "BASHOPTS",
    "BASH_COMPAT",
    "CDPATH",
    "GLOBIGNORE",
    "GLOBSORT",
    "OLDPWD",
    "POSIXLY_CORRECT",
    "SHELLOPTS",
];

/// The variable for the folder that a command starts in, as it was judged. Bash takes another name of the same
/// folder out of it, from which `..` leads elsewhere.
pub(super) const FOLDER: &str = "PWD";

/// Variables whose entries are folders that programs and their code are looked for in, relative ones too.
const SEARCHED: &[&str] = &[
    "LD_LIBRARY_PATH",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PYTHONPATH",
    "RUBYLIB",
];

/// With this, Python takes no module out of the folder that it runs in.
const SAFE_PATH: &str = "PYTHONSAFEPATH";

/// Variables with files and folders of settings that name programs. A relative one lies in the project.
const SETTINGS: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
];

/// Variables that may well name a folder of the session.
const OF_SESSION: &[&str] = &["HOME", "TMPDIR", FOLDER];

/// Variables that make bash and other programs load code or settings that nobody judged.
const LOADING: &[&str] = &[
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

/// Takes out what would make programs that only read load code out of the session's folders, also by relative folders,
/// which may lie there. A script that is found outside of them (a shim of pyenv) finds none of its helpers there either.
/// Python looks in none for what it is told to run.
pub(super) fn keep_to_system(environment: &mut Environment, workspace: &Workspace) {
    environment.retain(|name, value| {
        let is_settings = SETTINGS.iter().any(|it| name == *it);
        let name = name.to_string_lossy();
        let loads = LOADING.iter().any(|pattern| matches(pattern, &name));
        !loads && (!is_settings || std::env::split_paths(value).all(|path| path.is_absolute()))
    });
    leave_out(environment, &|path, is_searched| {
        (is_searched || path.is_absolute()) && workspace.may_be_of_project(path)
    });
    environment.insert(SAFE_PATH.into(), "1".into());
}

/// Takes out the folders that programs and their code are looked for in, as far as commands of a session in `roots` write
/// there, and relative ones: what runs outside the sandbox finds nothing that a command left. Python looks for no module
/// in the folder that it runs in.
pub fn leave_out_written(
    environment: &mut Environment,
    roots: &[PathBuf],
    sandbox: &SandboxSettings,
) {
    let confinement = sandbox.confinement(roots, &Surroundings::default(), false);
    let written = confinement.map_or_else(|| roots.to_vec(), |it| it.writable_anywhere());
    leave_out(environment, &|path, is_searched| {
        let lies_in = |path: &Path| written.iter().any(|folder| path.starts_with(folder));
        is_searched && (path.is_relative() || lies_in(path) || may_lead(path, &lies_in))
    });
    environment.insert(SAFE_PATH.into(), "1".into());
}

/// Takes out relative folders that programs and their code are looked for in: they may be the session's.
pub(crate) fn leave_out_relative(environment: &mut Environment) {
    leave_out(environment, &|path, is_searched| {
        is_searched && path.is_relative()
    });
}

/// Takes out entries of variables. `is_out` is given a folder, and whether code is looked for in it.
fn leave_out(environment: &mut Environment, is_out: &dyn Fn(&Path, bool) -> bool) {
    for (name, value) in std::mem::take(environment) {
        let is_searched = SEARCHED.iter().any(|it| name == *it);
        let is_of_session = OF_SESSION.iter().any(|it| name == *it);
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
type Environment = BTreeMap<OsString, OsString>;

/// Environment of this process without hidden variables.
pub(crate) fn inherited(hidden: &[String]) -> Environment {
    inherited_with(hidden, &[])
}

/// The same, with the variables of these names whatever is hidden.
pub(super) fn inherited_with(hidden: &[String], passed: &[String]) -> Environment {
    std::env::vars_os()
        .filter(|(name, _)| !is_removed(name, hidden, passed))
        .collect()
}

fn is_removed(name: &OsStr, hidden: &[String], passed: &[String]) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    if REMOVED.contains(&name.as_str()) {
        return true;
    }
    // What was named by its whole name is hidden even if a table shows it.
    let is_hidden = |it: &String| matches(it, &name) && (*it == name || !is_shown(&name));
    hidden.iter().any(is_hidden) && !passed.contains(&name)
}

fn is_shown(name: &str) -> bool {
    SHOWN.iter().any(|pattern| matches(pattern, name))
}

/// Whether a name is what a pattern with a `*` at either end stands for.
fn matches(pattern: &str, name: &str) -> bool {
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
    fn keys_are_hidden_and_the_rest_is_not() {
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
    fn passed_variable_is_seen_whatever_its_name() {
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
    fn readers_load_nothing_that_may_be_of_the_project() {
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
        keep_to_system(&mut environment, &workspace);
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
    fn servers_find_no_code_by_relative_folders() {
        let before = [
            ("PATH", ":/usr/bin:bin"),
            ("PYTHONPATH", ":"),
            ("OTHER", "a:b"),
        ];
        let mut environment: Environment = before
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        leave_out_relative(&mut environment);
        let after = [("PATH", "/usr/bin"), ("OTHER", "a:b")];
        let expected = after.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(environment, BTreeMap::from(expected));
    }

    #[test]
    fn hooks_find_no_code_where_commands_write() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let roots = folders
            .each_ref()
            .map(|folder| folder.path().canonicalize().unwrap());
        let elsewhere = tempfile::tempdir().unwrap();
        let linked = elsewhere.path().join("linked");
        std::os::unix::fs::symlink(crate::workspace::beyond_lookup(&roots[0]), &linked).unwrap();
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
            let mut environment = Environment::from([("PATH".into(), path.clone().into())]);
            leave_out_written(&mut environment, &roots, &sandbox);
            let left = environment.get(OsStr::new("PATH"));
            assert_eq!(left, Some(&OsString::from(expected)), "{mode:?}");
        }
    }
}
