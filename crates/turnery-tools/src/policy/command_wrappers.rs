//! Recognises programs that run code from their arguments, input or environment, and variables that change
//! what a program does.
//!
//! Rules for single commands do not cover such programs.

use super::shell_word::Word;

/// Programs that run another program or shell text, and builtins that change the meaning of later words.
const COMMAND_WRAPPERS: &[&str] = &[
    ".",
    "alias",
    "at",
    "awk",
    "batch",
    "builtin",
    "busybox",
    "bwrap",
    "capsh",
    "catchsegv",
    "cgexec",
    "choom",
    "chpst",
    "chronic",
    "chroot",
    "chrt",
    "command",
    "compgen",
    "complete",
    "coproc",
    "cpulimit",
    "crontab",
    "dbus-launch",
    "dbus-run-session",
    "declare",
    "doas",
    "dpkg-architecture",
    "dtach",
    "dumb-init",
    "eatmydata",
    "ed",
    "emacs",
    "enable",
    "entr",
    "env",
    "envdir",
    "eval",
    "ex",
    "exec",
    "expect",
    "export",
    "fakeroot",
    "faketime",
    "fc",
    "firejail",
    "flock",
    "gawk",
    "gdb",
    "getopts",
    "gosu",
    "gpg-agent",
    "gtimeout",
    "hash",
    "hyperfine",
    "i386",
    "ifne",
    "ionice",
    "jobs",
    "ld.so",
    "let",
    "linux32",
    "linux64",
    "lldb",
    "local",
    "ltrace",
    "mapfile",
    "mawk",
    "nawk",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "nvim",
    "parallel",
    "perf",
    "pkexec",
    "popd",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "rlwrap",
    "run-one",
    "run-this-one",
    "runcon",
    "runuser",
    "screen",
    "script",
    "select",
    "sem",
    "set",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "shopt",
    "socat",
    "softlimit",
    "source",
    "ssh",
    "ssh-agent",
    "sshpass",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-cat",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "tclsh",
    "time",
    "timeout",
    "tini",
    "tmux",
    "torsocks",
    "toybox",
    "trap",
    "tsocks",
    "typeset",
    "unalias",
    "unbuffer",
    "unset",
    "unshare",
    "valgrind",
    "vi",
    "view",
    "vim",
    "watch",
    "watchexec",
    "x86_64",
    "xargs",
    "xvfb-run",
];

/// Interpreters; understood only if the script is a file named first.
const INTERPRETERS: &[&str] = &[
    "ash",
    "bash",
    "bun",
    "csh",
    "dash",
    "deno",
    "fish",
    "ipython",
    "ksh",
    "lua",
    "luajit",
    "mksh",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "pwsh",
    "pypy",
    "pypy3",
    "python",
    "python2",
    "python3",
    "R",
    "rbash",
    "Rscript",
    "ruby",
    "sh",
    "tcsh",
    "ts-node",
    "tsx",
    "zsh",
];

/// Shell keywords. One in the place of a command means that the parser misread the line.
const SHELL_KEYWORDS: &[&str] = &[
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "then",
    "until", "while",
];

/// Returns true if the words of the command do not determine what it does.
pub(crate) fn is_opaque(name: &str, args: &[Word]) -> bool {
    let program = base_name(name);
    if program.is_empty() || SHELL_KEYWORDS.contains(&program) {
        return true;
    }
    // The dynamic loader runs the program named by its argument.
    if program.starts_with("ld-linux") || program.starts_with("ld-musl") {
        return true;
    }
    if COMMAND_WRAPPERS.contains(&program) {
        let first = args.first().and_then(Word::literal);
        return !(program == "command" && matches!(first, Some("-v" | "-V")));
    }
    let unversioned = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if INTERPRETERS.contains(&program) || INTERPRETERS.contains(&unversioned) {
        let words: Vec<Option<&str>> = args.iter().map(Word::literal).collect();
        return match words.as_slice() {
            [Some("--version" | "-V" | "-v")] => false,
            [Some("-m"), Some(module), ..] if program.starts_with('p') => module.starts_with('-'),
            [Some("run" | "test" | "install"), ..] if matches!(program, "bun" | "deno") => false,
            [Some(script), ..] => script.starts_with('-') || script.is_empty(),
            _ => true,
        };
    }
    match program {
        // The shell evaluates the subscript after the name of a variable.
        "[" | "printf" | "test" | "wait" => {
            let mut words = args.iter().map(|arg| arg.literal());
            let is_index = |word: Option<&str>| word.is_none_or(|word| word.contains('['));
            let named = words.by_ref().find(|word| {
                word.is_none_or(|word| matches!(word.get(..2), Some("-R" | "-p" | "-v")))
            });
            named.is_some_and(|option| is_index(option) || words.next().is_some_and(is_index))
        }
        "find" => args.iter().any(|arg| match arg.literal() {
            Some(word) => {
                word.starts_with("-exec")
                    || word.starts_with("-ok")
                    || word.starts_with("-fprint")
                    || matches!(word, "-delete" | "-fls")
            }
            None => true,
        }),
        // Options before git's subcommand can run programs: `git -c core.pager=...`, `git --exec-path=...`.
        "git" => args
            .first()
            .and_then(Word::literal)
            .is_none_or(|first| first.starts_with('-') && first != "--version"),
        "fd" | "fdfind" => args.iter().any(|arg| {
            arg.literal().is_some_and(|word| {
                word.starts_with("--exec")
                    || (word.starts_with('-')
                        && !word.starts_with("--")
                        && word.contains(['x', 'X']))
            })
        }),
        "rg" => args
            .iter()
            .any(|arg| arg.literal().is_some_and(|word| word.starts_with("--pre"))),
        _ => false,
    }
}

/// Returns the program's name without its folder: `/bin/rm` becomes `rm`.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns true if setting the variable makes no program that only reads do more.
pub(crate) fn is_safe_variable(name: &str) -> bool {
    is_output_variable(name) || matches!(name, "CI" | "LANG" | "LC_ALL" | "RUST_LOG" | "TZ")
}

/// Returns true if setting the variable changes only how a program prints, whatever the program.
pub(crate) fn is_output_variable(name: &str) -> bool {
    matches!(
        name,
        "CARGO_TERM_COLOR"
            | "CLICOLOR"
            | "CLICOLOR_FORCE"
            | "COLUMNS"
            | "FORCE_COLOR"
            | "NO_COLOR"
            | "RUST_BACKTRACE"
            | "TERM"
    )
}

/// Checks that the value of a variable is harmless: it is known, so no later command shows a secret by this
/// name; it names no file, as values of `TZ`, `LANG` and `LC_ALL` may; and nothing evaluates it: make
/// evaluates `$(shell x)` in the environment.
pub(crate) fn is_safe_value(name: &str, value: &Word) -> bool {
    #[cfg(test)]
    if super::command_line::IGNORES_ARITHMETIC.get() {
        return value.literal().is_some();
    }
    let is_plain = |text: &str, also: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || also.contains(c))
    };
    match (name, value.literal()) {
        ("TZ", Some(zone)) => is_plain(zone, "/_+-") && !zone.starts_with('/'),
        ("LANG" | "LC_ALL", Some(locale)) => {
            let language = locale
                .strip_suffix(".UTF-8")
                .or(locale.strip_suffix(".utf8"));
            matches!(locale, "" | "C" | "POSIX") || language.is_some_and(|name| is_plain(name, "_"))
        }
        (_, Some(text)) => is_plain(text, "_=,:.+-"),
        (_, None) => false,
    }
}

/// Returns true if a loop may set the variable: short lowercase names. `PATH` and `IFS` are excluded, and so
/// are `path` and `cdpath`, which some shells tie to the uppercase variables.
pub(crate) fn is_safe_loop_variable(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        && !name.ends_with("path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_sets() {
        let folded = |list: &[&str]| -> Vec<String> {
            list.iter().map(|word| word.to_lowercase()).collect()
        };
        for list in [COMMAND_WRAPPERS, INTERPRETERS, SHELL_KEYWORDS] {
            let words = folded(list);
            assert!(words.windows(2).all(|pair| pair[0] < pair[1]), "{words:?}");
        }
    }
}
