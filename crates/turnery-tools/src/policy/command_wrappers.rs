//! Recognises programs that run code from their arguments, input or environment, and variables that change
//! what a program does.
//!
//! Rules for single commands do not cover such programs.

use super::{
    program_name::{ProgramName, base_name},
    shell_word::ShellWord,
};

/// Programs that run another program or shell text, and builtins that change the meaning of later words.
const COMMAND_WRAPPERS: &[&str] = &[
    ".",
    "aa-exec",
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
    "coreutils",
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
    "fakeroot-sysv",
    "fakeroot-tcp",
    "faketime",
    "fc",
    "firejail",
    "flock",
    "fstab-decode",
    "gawk",
    "gdb",
    "getopts",
    "gosu",
    "gpg-agent",
    "gtimeout",
    "gvim",
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
    "luit",
    "mapfile",
    "mawk",
    "memusage",
    "mispipe",
    "nawk",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "nvim",
    "original-awk",
    "parallel",
    "pee",
    "perf",
    "pg_virtualenv",
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
    "run0",
    "runcon",
    "runuser",
    "rview",
    "rvim",
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
    "sudo-rs",
    "systemd-cat",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "tclsh",
    "time",
    "timeout",
    "tini",
    "tmux",
    "torify",
    "torsocks",
    "toybox",
    "trap",
    "tsocks",
    "typeset",
    "uclampset",
    "unalias",
    "uname26",
    "unbuffer",
    "unset",
    "unshare",
    "valgrind",
    "vi",
    "view",
    "vim",
    "vimdiff",
    "watch",
    "watchexec",
    "x86_64",
    "xargs",
    "xvfb-run",
];

/// Interpreters. A call is opaque unless its first argument is a script file, the option that prints the version
/// alone, or `-m MODULE` of Python.
const INTERPRETERS: &[&str] = &[
    "ash",
    "bash",
    "bun",
    "csh",
    "dash",
    "deno",
    "fish",
    "git-shell",
    "ipython",
    "ksh",
    "lua",
    "luajit",
    "mksh",
    "node",
    "nodejs",
    "nu",
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
    "xonsh",
    "yash",
    "zsh",
];

/// Interpreters that print their version for `-v`. Others read commands from their input.
const VERSION_BY_V: &[&str] = &[
    "bun", "fish", "lua", "luajit", "node", "nodejs", "perl", "php", "ruby", "ts-node",
];

/// Shell keywords. One in the place of a command means that the parser misread the line.
const SHELL_KEYWORDS: &[&str] = &[
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "then",
    "until", "while",
];

/// Builtins that evaluate the subscript in the name of a variable after one of these options.
const SUBSCRIPT_OPTIONS: &[(&str, &[&str])] = &[
    ("[", &["-R", "-v"]),
    ("printf", &["-v"]),
    ("test", &["-R", "-v"]),
    ("wait", &["-p"]),
];

/// Returns true if rules for single commands do not cover the command: it may run other code, `find` may
/// write or delete files, or the parser misread the line.
pub(crate) fn is_opaque(name: &str, args: &[ShellWord]) -> bool {
    let program = ProgramName::new(name);
    if program.is_empty() || SHELL_KEYWORDS.contains(&base_name(name)) {
        return true;
    }
    // The dynamic loader runs the program named by its argument, and `/proc/self/exe` is the shell itself.
    if program.starts_with("ld-linux") || program.starts_with("ld-musl") || name.ends_with("/exe") {
        return true;
    }
    let first = args.first().and_then(ShellWord::known_text);
    if program.is_in(COMMAND_WRAPPERS) {
        return !(program.is("command") && matches!(first, Some("-v" | "-V")));
    }
    if is_interpreter(&program) {
        let words: Vec<Option<&str>> = args.iter().map(ShellWord::known_text).collect();
        let may_run_text =
            |word: &&str| matches!(*word, "-" | "--eval" | "-e" | "eval" | "exec" | "repl");
        return match words.as_slice() {
            // This one reads its input.
            [Some("--version")] => program.is("csh"),
            [Some("-V")] => !(program.starts_with("py") || program.is("deno")),
            [Some("-v")] => !program.is_in(VERSION_BY_V),
            [Some("-m"), Some(module), ..] if program.starts_with("py") => module.starts_with('-'),
            words
                if program.is_in(&["bun", "deno"]) && words.iter().flatten().any(may_run_text) =>
            {
                true
            }
            [Some(script), ..] => !may_be_script(script),
            _ => true,
        };
    }
    let has = |is_wanted: &dyn Fn(&str) -> bool| {
        let mut words = args.iter().filter_map(ShellWord::known_text);
        words.any(is_wanted)
    };
    if program.is("find") {
        let runs_or_writes = |word: &str| {
            word.starts_with("-exec")
                || word.starts_with("-ok")
                || word.starts_with("-fprint")
                || matches!(word, "-delete" | "-fls")
        };
        return has(&runs_or_writes) || args.iter().any(|arg| arg.known_text().is_none());
    }
    if program.is("git") {
        // Options before git's subcommand can run programs: `git -c core.pager=...`, `git --exec-path=...`.
        return first.is_none_or(|first| first.starts_with('-') && first != "--version");
    }
    if program.is_in(&["fd", "fdfind"]) {
        return has(&|word| {
            word.starts_with("--exec")
                || (word.starts_with('-') && !word.starts_with("--") && word.contains(['x', 'X']))
        });
    }
    program.is("rg") && has(&|word| word.starts_with("--pre") || word.starts_with("--hostname"))
        || evaluates_subscript(&program, args)
}

/// Returns true if the program is an interpreter: it runs the file that its first operand names.
pub(crate) fn is_interpreter(program: &ProgramName) -> bool {
    program.is_in(INTERPRETERS)
}

/// Returns true if the first argument of an interpreter is a script file, neither an option (of a shell also with `+`)
/// nor a name of its input.
pub(crate) fn may_be_script(word: &str) -> bool {
    let is_input = base_name(word) == "stdin" || word.rsplit('/').nth(1) == Some("fd");
    !word.is_empty() && !word.starts_with(['-', '+']) && !is_input
}

/// Returns true if the builtin sets a variable that its words name, such as `PATH`.
pub(crate) fn sets_variable(name: &str, args: &[ShellWord]) -> bool {
    let has = |option: &str| {
        let mut words = args.iter().map(ShellWord::known_text);
        !begins_with_operand(args)
            && words.any(|word| word.is_none_or(|word| may_be_option(word, option)))
    };
    match name {
        "getopts" | "let" | "mapfile" | "read" | "readarray" => true,
        "printf" => has("-v"),
        "wait" => has("-p"),
        _ => false,
    }
}

/// Returns true if the first argument is certainly no option.
fn begins_with_operand(args: &[ShellWord]) -> bool {
    let first = args.first().and_then(ShellWord::known_text);
    first.is_some_and(|word| !word.starts_with('-'))
}

/// Returns true if the builtin may evaluate the subscript in the name of a variable: `test -v 'a[$(rm x)]'`.
fn evaluates_subscript(program: &ProgramName, args: &[ShellWord]) -> bool {
    let Some((_, options)) = SUBSCRIPT_OPTIONS.iter().find(|(name, _)| program.is(name)) else {
        return false;
    };
    if program.is_in(&["printf", "wait"]) && begins_with_operand(args) {
        return false;
    }
    let has_subscript = |word: Option<&str>| word.is_none_or(|word| word.contains('['));
    let words: Vec<Option<&str>> = args.iter().map(ShellWord::known_text).collect();
    words.iter().enumerate().any(|(at, word)| {
        let names_variable =
            word.is_none_or(|word| options.iter().any(|option| may_be_option(word, option)));
        let next = words.get(at + 1).copied();
        names_variable && (has_subscript(*word) || next.is_some_and(has_subscript))
    })
}

/// Returns true if the word may be the option: long options may be abbreviated and have a value attached, short
/// ones may be in a group. Other words are compared exactly.
pub(crate) fn may_be_option(word: &str, option: &str) -> bool {
    match (option.strip_prefix("--"), option.strip_prefix('-')) {
        (Some(long), _) => word.strip_prefix("--").is_some_and(|word| {
            let name = word.split_once('=').map_or(word, |(name, _)| name);
            !name.is_empty() && long.starts_with(name)
        }),
        (None, Some(letter)) => word
            .strip_prefix('-')
            .is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter)),
        (None, None) => word == option,
    }
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
pub(crate) fn is_safe_value(name: &str, value: &ShellWord) -> bool {
    #[cfg(test)]
    if super::command_line::IGNORES_ARITHMETIC.get() {
        return value.known_text().is_some();
    }
    let is_plain = |text: &str, also: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || also.contains(c))
    };
    match (name, value.known_text()) {
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
        for list in [COMMAND_WRAPPERS, INTERPRETERS, SHELL_KEYWORDS, VERSION_BY_V] {
            let words = folded(list);
            assert!(words.windows(2).all(|pair| pair[0] < pair[1]), "{words:?}");
        }
    }

    #[test]
    fn options_are_found_in_groups_and_abbreviations() {
        for (word, option) in [
            ("-x", "-x"),
            ("-ix", "-x"),
            ("-xrm", "-x"),
            ("--ex", "--exec"),
            ("--exec=rm", "--exec"),
            ("run", "run"),
        ] {
            assert!(may_be_option(word, option), "{word}");
        }
        for (word, option) in [
            ("--exclude", "--exec"),
            ("--", "--exec"),
            ("-i", "-x"),
            ("--fix", "-x"),
            ("running", "run"),
        ] {
            assert!(!may_be_option(word, option), "{word}");
        }
    }
}
