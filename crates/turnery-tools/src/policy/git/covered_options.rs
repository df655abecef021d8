//! Decides which options a git command may have that a rule allows: those known to start no program that the line or
//! the work tree names, and to write no file that the line names.

use crate::policy::command_line::SimpleCommand;

/// Long options that are harmless in every subcommand that has them, without `no-`. Abbreviations are not known.
const HARMLESS_OPTIONS: &[&str] = &[
    "3way",
    "abbrev",
    "abbrev-commit",
    "abort",
    "add",
    "after",
    "ahead-behind",
    "all",
    "all-match",
    "allow-empty",
    "allow-empty-message",
    "allow-unrelated-histories",
    "always",
    "amend",
    "ancestry-path",
    "annotate",
    "append",
    "apply",
    "atomic",
    "author",
    "author-date-order",
    "auto",
    "auto-gc",
    "auto-maintenance",
    "autosquash",
    "autostash",
    "bare",
    "before",
    "binary",
    "branch",
    "branches",
    "cached",
    "check",
    "checkout",
    "cherry",
    "cherry-mark",
    "cherry-pick",
    "chmod",
    "cleanup",
    "color",
    "color-moved",
    "color-words",
    "column",
    "commit",
    "committer",
    "committer-date-is-author-date",
    "compact-summary",
    "conflict",
    "contains",
    "continue",
    "copy",
    "count",
    "cover-from-description",
    "create",
    "create-reflog",
    "date",
    "date-order",
    "deepen",
    "delete",
    "depth",
    "deref",
    "detach",
    "diff-algorithm",
    "diff-filter",
    "diff-merges",
    "dirstat",
    "dirty",
    "discard-changes",
    "dry-run",
    "edit",
    "empty",
    "end-of-options",
    "exact-match",
    "exclude",
    "exit-code",
    "expire",
    "extended-regexp",
    "ff",
    "ff-only",
    "filter",
    "find-copies",
    "find-object",
    "find-renames",
    "first-parent",
    "fixed-strings",
    "follow",
    "follow-tags",
    "force",
    "force-create",
    "force-if-includes",
    "force-rebase",
    "force-with-lease",
    "fork-point",
    "format",
    "full-index",
    "full-name",
    "function-context",
    "get",
    "get-all",
    "get-regexp",
    "gpg-sign",
    "graph",
    "grep",
    "group",
    "guess",
    "hard",
    "histogram",
    "ignore-all-space",
    "ignore-blank-lines",
    "ignore-case",
    "ignore-date",
    "ignore-errors",
    "ignore-missing",
    "ignore-removal",
    "ignore-space-at-eol",
    "ignore-space-change",
    "ignore-submodules",
    "ignore-unmatch",
    "ignore-whitespace",
    "ignored",
    "include",
    "include-untracked",
    "index",
    "indent-heuristic",
    "initial-branch",
    "intent-to-add",
    "interactive",
    "into-name",
    "invert-match",
    "ipv4",
    "ipv6",
    "is-ancestor",
    "jobs",
    "keep",
    "keep-base",
    "keep-cr",
    "keep-empty",
    "keep-index",
    "keep-redundant-commits",
    "left-only",
    "left-right",
    "line-number",
    "list",
    "local",
    "lock",
    "log",
    "long",
    "mainline",
    "match",
    "max-count",
    "max-parents",
    "merge",
    "merge-base",
    "merged",
    "merges",
    "message",
    "message-id",
    "min-parents",
    "minimal",
    "mirror",
    "mixed",
    "modified",
    "move",
    "multiple",
    "name",
    "name-only",
    "name-status",
    "not",
    "notes",
    "null",
    "numbered",
    "numstat",
    "oneline",
    "only",
    "onto",
    "origin",
    "orphan",
    "others",
    "ours",
    "overlay",
    "overwrite-ignore",
    "parents",
    "patch",
    "patch-with-stat",
    "pathspec-file-nul",
    "patience",
    "perl-regexp",
    "pickaxe-all",
    "pickaxe-regex",
    "points-at",
    "porcelain",
    "post-rewrite",
    "pretty",
    "progress",
    "prune",
    "prune-tags",
    "push-option",
    "quiet",
    "quit",
    "raw",
    "reapply-cherry-picks",
    "rebase",
    "rebase-merges",
    "recurse-submodules",
    "recursive",
    "refetch",
    "reflog",
    "refresh",
    "refs",
    "reject-shallow",
    "relative",
    "relative-date",
    "remotes",
    "remove-section",
    "rename-section",
    "rename-empty",
    "renames",
    "renormalize",
    "rerere-autoupdate",
    "reset-author",
    "reset-author-date",
    "resolved",
    "retry",
    "reverse",
    "right-only",
    "root",
    "scissors",
    "server-option",
    "set-upstream",
    "set-upstream-to",
    "shallow-exclude",
    "shallow-since",
    "short",
    "shortstat",
    "show-current",
    "show-current-patch",
    "show-forced-updates",
    "show-function",
    "show-origin",
    "show-pulls",
    "show-scope",
    "show-stash",
    "show-toplevel",
    "sign",
    "signoff",
    "simplify-by-decoration",
    "simplify-merges",
    "since",
    "single-branch",
    "skip",
    "soft",
    "sort",
    "source",
    "sparse",
    "squash",
    "staged",
    "stat",
    "summary",
    "symref",
    "tags",
    "text",
    "textconv",
    "theirs",
    "thin",
    "topo-order",
    "track",
    "tracked",
    "trailer",
    "type",
    "unidiff-zero",
    "unified",
    "unmerged",
    "unset",
    "unset-all",
    "unset-upstream",
    "unshallow",
    "until",
    "untracked-files",
    "update",
    "update-refs",
    "verbose",
    "verify",
    "walk-reflogs",
    "whitespace",
    "with",
    "without",
    "word-diff",
    "word-diff-regex",
    "word-regexp",
    "worktree",
    "write-fetch-head",
];

/// Strategies that are part of git and have no options of their own that start something.
const BUILT_IN_STRATEGIES: &[&str] = &["ort", "ours", "recursive", "subtree"];

/// Strategies that are shell scripts of git, which run what some options contain.
const SCRIPT_STRATEGIES: &[&str] = &["octopus", "resolve"];

/// Options of a strategy that are no options of the programs that the scripts run.
const STRATEGY_OPTIONS: &[&str] = &[
    "find-renames",
    "histogram",
    "ignore-all-space",
    "ignore-cr-at-eol",
    "ignore-space-at-eol",
    "ignore-space-change",
    "no-renames",
    "no-renormalize",
    "ours",
    "patience",
    "renormalize",
    "theirs",
];

/// Returns true if all options of the command are harmless. The words must be known.
pub(super) fn has_harmless_options(command: &SimpleCommand) -> bool {
    let mut words = command.args.iter().filter_map(|arg| arg.known_text());
    let subcommand = words.next().unwrap_or_default();
    // The options of a commit are known one by one, with their values.
    if subcommand == "commit" {
        return true;
    }
    let has_strategy = matches!(subcommand, "merge" | "pull" | "rebase");
    let merges = has_strategy || matches!(subcommand, "cherry-pick" | "revert");
    let (mut strategies, mut strategy_options) = (Vec::new(), Vec::new());
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix('-').filter(|_| word != "-") else {
            // What follows is a command.
            if subcommand == "bisect" && word == "run" {
                return false;
            }
            continue;
        };
        let Some(long) = option.strip_prefix('-') else {
            let valued = option.char_indices().find(|(_, letter)| match letter {
                'X' => merges,
                's' => has_strategy,
                _ => false,
            });
            if let Some((at, letter)) = valued {
                let attached = &option[at + 1..];
                let value = match attached.is_empty() {
                    true => words.next().unwrap_or_default(),
                    false => attached,
                };
                match letter {
                    'X' => strategy_options.push(value),
                    _ => strategies.push(value),
                }
            } else if may_start_or_write(subcommand, option) {
                return false;
            }
            continue;
        };
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        match name {
            // Operands follow.
            "" => break,
            "strategy" if merges => {
                strategies.push(value.or_else(|| words.next()).unwrap_or_default());
            }
            "strategy-option" if merges => {
                strategy_options.push(value.or_else(|| words.next()).unwrap_or_default());
            }
            // Submodules in a diff are judged elsewhere.
            "submodule" => {}
            _ => {
                let positive = name.strip_prefix("no-").unwrap_or(name);
                if !HARMLESS_OPTIONS.contains(&positive) {
                    return false;
                }
            }
        }
    }
    let is_harmless = |value: &&str| {
        let name = value.split('=').next().unwrap_or_default();
        STRATEGY_OPTIONS.contains(&name)
    };
    let are_scripts_bare = strategy_options.is_empty();
    strategy_options.iter().all(is_harmless)
        && strategies.iter().all(|strategy| {
            BUILT_IN_STRATEGIES.contains(strategy)
                || are_scripts_bare && SCRIPT_STRATEGIES.contains(strategy)
        })
}

/// Returns true if short options may name a program to start, or a file to read or write.
fn may_start_or_write(subcommand: &str, letters: &str) -> bool {
    let letters: Vec<char> = letters.chars().collect();
    let has = |letter: char| letters.contains(&letter);
    // A file with an order of paths, or the pager of `git grep`.
    has('O')
        || match subcommand {
            "archive" => has('o'),
            "clone" => has('c') || has('u'),
            "config" => has('f') || has('e'),
            "rebase" => has('x'),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::command_line::CommandLine;

    fn is_harmless(line: &str) -> bool {
        let line = CommandLine::parse(line);
        has_harmless_options(&line.commands[0])
    }

    #[test]
    fn options_that_start_or_write_something_are_not_harmless() {
        for line in [
            "git merge -s octopus -X '' t",
            "git merge -soctopus -Xours t",
            "git merge -qs octopus --strategy-option ours t",
            "git merge --strategy=resolve --strategy-option=index-output=.git/HEAD t",
            "git merge -X index-output=.git/HEAD t",
            "git merge -X '' t",
            "git merge -s mine t",
            "git rebase -Xsubtree=x t",
            "git cherry-pick --strategy one-file t",
            "git cherry-pick --output=.git/HEAD t",
            "git revert --output .git/HEAD t",
            "git cherry-pick --outp=x t",
            "git apply --unsafe-paths x.patch",
            "git apply --unsafe x.patch",
            "git apply --build-fake-ancestor=x x.patch",
            "git stash list --output=x",
            "git stash list -Ox",
            "git rebase -x ./x main",
            "git rebase -ix ./x main",
            "git rebase --exec=./x main",
            "git rebase --exe ./x main",
            "git bisect run ./x",
            "git grep -O./x y",
            "git grep -nO./x y",
            "git grep --open-files-in-pager=./x y",
            "git archive -o x HEAD",
            "git archive --output=x HEAD",
            "git clone -u ./x https://example.org/x.git",
            "git fetch --upload-pack=./x origin",
            "git push --receive-pack=./x origin",
            "git push --exec=./x origin",
            "git config -f x a.b c",
            "git config --global a.b c",
            "git diff --ext-diff",
        ] {
            assert!(!is_harmless(line), "{line}");
        }
        for line in [
            "git merge -s ours t",
            "git merge -sort -Xtheirs -X ignore-space-change t",
            "git merge -X find-renames=50 --no-ff -m 'a -- b' t",
            "git merge -s octopus a b",
            "git rebase -i --autosquash --onto main HEAD~3",
            "git cherry-pick -x -s HEAD~1",
            "git pull --rebase --autostash -q origin main",
            "git push -u origin HEAD --force-with-lease=main:abc",
            "git fetch --all --prune --tags -j4",
            "git checkout -b x --track origin/x",
            "git checkout -- --output=x",
            "git apply --3way --whitespace=fix x.patch",
            "git stash push -u -m x -- src",
            "git clean -fdx",
            "git bisect start HEAD v1 -- run",
            "git commit -m --output=x",
            "git reset --hard HEAD~1",
        ] {
            assert!(is_harmless(line), "{line}");
        }
    }
}
