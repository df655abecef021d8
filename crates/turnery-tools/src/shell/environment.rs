//! Builds the environment of commands: no prompts for input and no keys.

use crate::{
    SandboxBaseline, SandboxSettings, Workspace,
    workspace::{find_project_folders, may_lead_into},
};
use rustix::fs::{Access, access};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Patterns of variables hidden from commands: names that look like keys or tokens. A `*` at either end
/// stands for any text.
pub const HIDDEN_ENV: &[&str] = &[
    "*APIKEY",
    "*API_KEYS",
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
    "BEARER",
    "CREDENTIALS",
    "DATABASE_URL",
    "MONGODB_URI",
    "MONGO_URL",
    "PASSPHRASE",
    "REDIS_URL",
    "SSHPASS",
    "TOKEN",
];

/// Returns the patterns of all variables to hide: those of [`HIDDEN_ENV`] and `more`, in capitals.
pub(crate) fn hidden_variables<'a>(more: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let names = HIDDEN_ENV.iter().copied().chain(more);
    names.map(str::to_uppercase).collect()
}

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

/// Ends of the names of variables whose values are paths, even if nothing exists there yet.
const PATH_VARIABLE_ENDS: &[&str] = &[
    "BASE", "DIR", "DIRS", "GLOBAL", "HOME", "PATH", "PREFIX", "ROOT", "SYSTEM",
];

/// Variables whose values are no paths relative to the working directory, and git's settings of the user.
const TEXT_VARIABLES: &[&str] = &[
    "GIT_AUTHOR_*",
    "GIT_COMMITTER_*",
    "GIT_CONFIG_KEY_*",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_VALUE_*",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LS_COLORS",
    "TZ",
];

/// Variables that name files and folders which bash itself reads.
const SHELL_FILE_VARIABLES: &[&str] = &["BASH_ENV", "ENV", "LOCPATH"];

/// Folders in which the shell is looked up if `PATH` names none outside the project.
const SYSTEM_FOLDERS: &[&str] = &["/usr/bin", "/bin", "/usr/local/bin"];

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

/// Removes everything that makes programs started in `cwd` load code from the project, including relative
/// paths, which may be inside it. A script outside the project (a pyenv shim) does not find its helpers there
/// either, and Python searches none of its folders.
pub(crate) fn strip_project_code(environment: &mut EnvVars, cwd: &Path, workspace: &Workspace) {
    let project = workspace.project_folders().iter().map(PathBuf::as_path);
    let folders: Vec<&Path> = std::iter::once(cwd).chain(project).collect();
    environment.retain(|name, value| {
        let name = name.to_string_lossy();
        !matches_any(CODE_LOADING_VARIABLES, &name) && !names_project_file(&name, value, &folders)
    });
    strip_entries(environment, &|path, is_searched| {
        (is_searched || path.is_absolute()) && workspace.may_be_in_project(path)
    });
    environment.insert(PYTHON_SAFE_PATH.into(), "1".into());
}

/// Returns true if a word of a variable's value is or may be a relative path in one of the folders. Lists of
/// folders to search are left to [`strip_entries`].
fn names_project_file(name: &str, value: &OsStr, folders: &[&Path]) -> bool {
    let is_other = [SEARCH_PATH_VARIABLES, SESSION_FOLDER_VARIABLES]
        .concat()
        .contains(&name);
    let whole = Path::new(value);
    let value = value.to_string_lossy();
    // A path may contain blanks.
    let is_absolute = whole.is_absolute() && whole.symlink_metadata().is_ok();
    if is_other || is_absolute || value.contains("://") || matches_any(TEXT_VARIABLES, name) {
        return false;
    }
    let is_path = PATH_VARIABLE_ENDS.iter().any(|end| name.ends_with(end));
    let mut words = value
        .split([' ', '\t', '\n', ':', '=', ',', ';'])
        .filter(|word| !word.is_empty())
        .enumerate();
    words.any(|(at, word)| {
        // A shell replaces the tilde in a command line.
        let is_relative = !word.starts_with('/') && (at == 0 || !word.starts_with("~/"));
        let exists = |folder: &&Path| folder.join(word).symlink_metadata().is_ok();
        is_relative && (is_path || word.contains('/') || folders.iter().any(exists))
    })
}

/// Removes the variables that make bash read a file of the project before it runs the command line. Values
/// with `$` or a backquote are removed too, since bash expands that of `BASH_ENV`.
pub(super) fn strip_shell_files(environment: &mut EnvVars, workspace: &Workspace) {
    environment.retain(|name, value| {
        let is_certain = !value.to_string_lossy().contains(['$', '`']);
        let mut paths = std::env::split_paths(value);
        !SHELL_FILE_VARIABLES.iter().any(|it| name == *it)
            || is_certain && !paths.any(|path| workspace.may_be_in_project(&path))
    });
}

/// Returns the name and the path of bash, or else of sh, for lines that run with this `PATH`: never a program
/// of the project, unless the project holds the system's own folders.
pub(super) fn find_shell(path: &OsStr, workspace: &Workspace) -> Option<(&'static str, PathBuf)> {
    let runs = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    ["bash", "sh"].into_iter().find_map(|name| {
        let named = std::env::split_paths(path).map(|folder| folder.join(name));
        let foreign = named.filter(|file| !workspace.may_be_in_project(file));
        let usual = SYSTEM_FOLDERS
            .iter()
            .map(|folder| Path::new(folder).join(name));
        Some((name, foreign.chain(usual).find(runs)?))
    })
}

/// Removes the search folders that commands of a session in `roots` can write to, those of the project, and
/// relative ones, so that a program outside the sandbox runs nothing that a command left behind. Python does
/// not load modules from its working directory.
pub fn strip_writable_paths(
    environment: &mut EnvVars,
    roots: &[PathBuf],
    sandbox: &SandboxSettings,
) {
    let confinement = sandbox.confinement(roots, &SandboxBaseline::default(), false);
    let mut written = find_project_folders(roots, std::env::home_dir().as_deref());
    written.extend(confinement.map_or_else(Vec::new, |it| it.writable_through_links()));
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

/// Removes the entries of the variables for which `should_remove` returns true. It receives a folder and
/// whether programs or code are searched in it.
fn strip_entries(environment: &mut EnvVars, should_remove: &dyn Fn(&Path, bool) -> bool) {
    for (name, value) in std::mem::take(environment) {
        let is_searched = SEARCH_PATH_VARIABLES.iter().any(|it| name == *it);
        let is_of_session = SESSION_FOLDER_VARIABLES.iter().any(|it| name == *it);
        let is_out = |path: &PathBuf| !is_of_session && should_remove(path, is_searched);
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
    let is_hidden = |it: &String| {
        matches_pattern(it, &name) && (*it == name || !matches_any(NOT_SECRET, &name))
    };
    hidden.iter().any(is_hidden) && !passed.contains(&name)
}

fn matches_any(patterns: &[&str], name: &str) -> bool {
    patterns
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
            "OPENAI_API_KEYS",
            "BEARER",
            "CREDENTIALS",
            "PASSPHRASE",
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
        let (removed, kept) = names.split_at(28);
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
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("root");
        for inner in ["root/named", ".git"] {
            std::fs::create_dir_all(top.join(inner)).unwrap();
        }
        std::fs::write(top.join("1"), "").unwrap();
        let workspace = Workspace::local(root.clone()).unwrap();
        let (root, outer) = (root.display(), top.join("tools").display().to_string());
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
            ("GOENV_ROOT", outer.as_str()),
            ("RUSTUP_HOME", "rh"),
            ("GIT_EXEC_PATH", "ge"),
            ("PYTHONUSERBASE", "pu"),
            ("PYTHONPYCACHEPREFIX", "pc"),
            ("GIT_EDITOR", "python3 tools/edit.py"),
            ("JAVA_TOOL_OPTIONS", "-javaagent:named"),
            ("CI", "1"),
            ("COLORTERM", "truecolor"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus"),
            ("DISPLAY", ":0"),
            ("GIT_AUTHOR_NAME", "named"),
            ("GIT_SSH_COMMAND", "ssh -i ~/.ssh/work"),
            ("HTTPS_PROXY", "http://proxy:1"),
            ("LC_CTYPE", "named"),
            ("TZ", "Europe/Berlin"),
            ("TMPDIR", inner.as_str()),
            ("HOME", "/home/ann"),
            ("LANG", ""),
        ];
        let mut environment: BTreeMap<OsString, OsString> = before
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        strip_project_code(&mut environment, workspace.cwd(), &workspace);
        let after = [
            ("PATH", "/usr/bin:/bin"),
            ("LD_LIBRARY_PATH", "/opt/x/lib"),
            ("COLORTERM", "truecolor"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus"),
            ("DISPLAY", ":0"),
            ("GIT_AUTHOR_NAME", "named"),
            ("GIT_SSH_COMMAND", "ssh -i ~/.ssh/work"),
            ("HTTPS_PROXY", "http://proxy:1"),
            ("LC_CTYPE", "named"),
            ("TZ", "Europe/Berlin"),
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
    fn shell_reads_no_file_of_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = Workspace::local(root.clone()).unwrap();
        let inside = root.join("env.sh").display().to_string();
        for (variable, value, is_kept) in [
            ("BASH_ENV", inside.as_str(), false),
            ("BASH_ENV", "env.sh", false),
            ("BASH_ENV", "", false),
            ("BASH_ENV", "$PWD/env.sh", false),
            ("BASH_ENV", "/etc/`pwd`", false),
            ("ENV", "env.sh", false),
            ("LOCPATH", "/usr/lib/locale:locale", false),
            ("BASH_ENV", "/etc/env.sh", true),
            ("LOCPATH", "/usr/lib/locale", true),
            ("OTHER", "env.sh", true),
        ] {
            let mut environment = EnvVars::from([(variable.into(), value.into())]);
            strip_shell_files(&mut environment, &workspace);
            assert_eq!(environment.len() == 1, is_kept, "{variable}={value}");
        }
    }

    #[test]
    fn shell_is_no_program_of_project() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = Workspace::local(root.clone()).unwrap();
        let [inside, linked, plain, own] = [
            root.clone(),
            elsewhere.path().join("linked"),
            elsewhere.path().join("plain"),
            elsewhere.path().join("own"),
        ];
        for folder in [&linked, &plain, &own] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::copy("/bin/sh", inside.join("bash")).unwrap();
        std::fs::copy("/bin/sh", own.join("bash")).unwrap();
        std::fs::write(plain.join("bash"), "not executable").unwrap();
        std::os::unix::fs::symlink(inside.join("bash"), linked.join("bash")).unwrap();
        let others = [&inside, Path::new("bin"), Path::new(""), &linked, &plain];
        let path = std::env::join_paths(others.into_iter().chain([own.as_path()])).unwrap();
        let found = find_shell(&path, &workspace);
        assert_eq!(found, Some(("bash", own.join("bash"))));
        let path = std::env::join_paths(others).unwrap();
        let (_, system) = find_shell(&path, &workspace).unwrap();
        assert!(
            system
                .parent()
                .is_some_and(|it| SYSTEM_FOLDERS.iter().any(|folder| it == *folder)),
            "{system:?}"
        );
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
        let [root, outer] = folders
            .each_ref()
            .map(|folder| folder.path().canonicalize().unwrap());
        for inner in [".git", "sub"] {
            std::fs::create_dir(outer.join(inner)).unwrap();
        }
        let roots = [root, outer.join("sub")];
        let elsewhere = tempfile::tempdir().unwrap();
        let linked = elsewhere.path().join("linked");
        std::os::unix::fs::symlink(
            crate::workspace::make_path_too_long_to_look_up(&roots[0]),
            &linked,
        )
        .unwrap();
        let path = format!(
            "{}:{}/bin:{}/bin:{}:/var/tmp/x:bin:/usr/bin",
            roots[0].display(),
            roots[1].display(),
            outer.display(),
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
