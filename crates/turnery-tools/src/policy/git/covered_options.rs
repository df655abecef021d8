//! Decides which options a git command may have that a rule allows: those known to start no program that the line or
//! the work tree names, and to write no file that the line names.

use crate::policy::command_line::SimpleCommand;

/// Long options that are harmless in every subcommand that has them, without `no-`. Abbreviations are not known, except
/// where one of these is an abbreviation of another option of some subcommand; that is harmless too.
const HARMLESS_OPTIONS: &str = "
    3way abbrev abbrev-commit abort add after ahead-behind all all-match allow-empty
    allow-empty-message allow-unrelated-histories always amend ancestry-path annotate append apply
    atomic author author-date-order auto auto-gc auto-maintenance autosquash autostash bare before
    binary branch branches cached check checkout cherry cherry-mark cherry-pick chmod cleanup color
    color-moved color-words column commit committer committer-date-is-author-date compact-summary
    cone conflict contains continue copy count cover-from-description create create-reflog date
    date-order deepen delete depth deref detach diff-algorithm diff-filter diff-merges dirstat dirty
    discard-changes dry-run edit edit-description empty end-of-options exact-match exclude exit-code
    expire extended-regexp ff ff-only filter find-copies find-object find-renames first-parent
    fixed-strings follow follow-tags force force-create force-if-includes force-rebase
    force-with-lease fork-point format full-index full-name function-context get get-all get-regexp
    gpg-sign graph grep group guess hard histogram ignore-all-space ignore-blank-lines ignore-case
    ignore-date ignore-errors ignore-missing ignore-other-worktrees ignore-removal
    ignore-space-at-eol ignore-space-change ignore-submodules ignore-unmatch ignore-whitespace
    ignored include include-untracked indent-heuristic index initial-branch intent-to-add
    interactive into-name invert-match ipv4 ipv6 is-ancestor jobs keep keep-base keep-cr keep-empty
    keep-index keep-redundant-commits left-only left-right line-number list local lock log long
    mainline match max-count max-parents merge merge-base merged merges message message-id
    min-parents minimal mirror mixed modified move multiple name name-only name-status not notes
    null numbered numstat oneline only onto origin orphan others ours overlay overwrite-ignore
    parents patch patch-with-stat pathspec-file-nul patience perl-regexp pickaxe-all pickaxe-regex
    points-at porcelain post-rewrite pretty progress prune prune-tags push-option quiet quit raw
    reapply-cherry-picks rebase rebase-merges recount recurse-submodules recursive ref refetch
    reflog refresh refs reject-shallow relative relative-date remotes remove-section rename-empty
    rename-section renames renormalize rerere-autoupdate reset-author reset-author-date resolved
    retry reverse right-only root scissors server-option set-upstream set-upstream-to
    shallow-exclude shallow-since short shortstat show-current show-current-patch
    show-forced-updates show-function show-origin show-pulls show-scope show-stash show-toplevel
    sign signoff simplify-by-decoration simplify-merges since single-branch skip soft sort source
    sparse squash staged stat summary symref tags term-bad term-good term-new term-old text textconv
    theirs thin topo-order track tracked type unidiff-zero unified unmerged unset unset-all
    unset-upstream unshallow until untracked-files update update-refs verbose verify walk-reflogs
    whitespace with without word-diff word-diff-regex word-regexp worktree write-fetch-head
";

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

/// Short options of a subcommand that are harmless.
struct ShortOptions {
    subcommands: &'static [&'static str],
    flags: &'static str,
    /// Options whose value may be the rest of the word.
    valued: &'static str,
}

/// Short options of all subcommands but `commit`. One with options of several kinds (`git stash list`) has all of them.
const SHORT_OPTIONS: &[ShortOptions] = &[
    short_options(&["add", "stage"], "Aefinpuv", ""),
    short_options(&["am"], "3cikmqsu", "CSp"),
    short_options(&["annotate", "blame"], "bcefklnpstw", "CLM"),
    short_options(&["apply"], "3NRqvz", "Cp"),
    short_options(&["archive"], "lv", ""),
    short_options(&["branch"], "CDMacdfilmqrtv", "u"),
    short_options(&["cat-file"], "Zepst", ""),
    short_options(&["check-ignore"], "nqvz", ""),
    short_options(&["checkout"], "dflmpqt", "Bb"),
    short_options(&["cherry"], "v", ""),
    short_options(&["cherry-pick"], "enrsx", "Sm"),
    short_options(&["clean"], "Xdfinqx", "e"),
    short_options(&["clone"], "lnqsv", "bjo"),
    short_options(&["config"], "lz", ""),
    short_options(&["count-objects"], "Hv", ""),
    short_options(&["fetch"], "46afkmnpqtuv", "jo"),
    short_options(&["for-each-ref"], "pst", ""),
    short_options(&["fsck", "gc"], "qv", ""),
    short_options(&["grep"], "EFGHILPWachilnopqrvwz", "ABCem"),
    short_options(&["init"], "q", "b"),
    short_options(&["ls-files"], "cdfikmostuvz", "x"),
    short_options(&["ls-remote"], "qt", "o"),
    short_options(&["ls-tree"], "dlrtz", ""),
    short_options(&["merge"], "enqv", "FSm"),
    short_options(&["merge-base"], "a", ""),
    short_options(&["mv"], "fknv", ""),
    short_options(&["notes"], "fnqsv", "CFcm"),
    short_options(&["pull"], "46aefknpqrtv", "Sjo"),
    short_options(&["push"], "46dfnquv", "o"),
    short_options(&["rebase"], "fikmnqrv", "S"),
    short_options(&["remote"], "fv", "mt"),
    short_options(&["reset"], "Npq", ""),
    short_options(&["restore"], "SWmpq", "s"),
    short_options(&["rev-parse"], "q", ""),
    short_options(&["revert"], "ens", "Sm"),
    short_options(&["rm"], "fnqr", ""),
    short_options(&["shortlog"], "cens", "w"),
    short_options(&["show-ref"], "dqs", ""),
    short_options(&["status"], "bsvz", "u"),
    short_options(&["switch"], "dfmqt", "Cc"),
    short_options(&["symbolic-ref"], "dq", "m"),
    short_options(&["tag"], "adefls", "Fmnu"),
    short_options(&["update-index"], "gqvz", ""),
    short_options(&["update-ref"], "dz", "m"),
    short_options(&["worktree"], "nvz", ""),
    short_options(
        &[
            "diff",
            "diff-files",
            "diff-index",
            "diff-tree",
            "log",
            "range-diff",
            "reflog",
            "rev-list",
            "show",
            "stash",
            "whatchanged",
        ],
        "BCDEFMNPRWabcgikmpqrstuvwz",
        "GILSUln",
    ),
];

const fn short_options(
    subcommands: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
) -> ShortOptions {
    ShortOptions {
        subcommands,
        flags,
        valued,
    }
}

/// Returns true if all options of the command are harmless. The words must be known. A word that begins with `-` counts
/// as an option also after `--`, which may be the value of an option, and which some subcommands drop.
pub(super) fn has_harmless_options(command: &SimpleCommand) -> bool {
    let words: Vec<&str> = command.known_args().collect();
    let Some((&subcommand, words)) = words.split_first() else {
        return true;
    };
    match subcommand {
        // The options of a commit are known one by one, with their values.
        "commit" => return true,
        // What follows is a command.
        "bisect" if words.contains(&"run") => return false,
        _ => {}
    }
    let has_strategy = matches!(subcommand, "merge" | "pull" | "rebase");
    let merges = has_strategy || matches!(subcommand, "cherry-pick" | "revert");
    let (mut strategies, mut strategy_options) = (Vec::new(), Vec::new());
    for (index, word) in words.iter().enumerate() {
        let Some(option) = word.strip_prefix('-') else {
            continue;
        };
        let next = words.get(index + 1).copied().unwrap_or_default();
        let Some(long) = option.strip_prefix('-') else {
            match read_short_options(subcommand, option, (has_strategy, merges)) {
                None => return false,
                Some(ShortValue::None) => {}
                Some(ShortValue::Strategy(attached)) => {
                    strategies.push(attached.unwrap_or(next));
                }
                Some(ShortValue::StrategyOption(attached)) => {
                    strategy_options.push(attached.unwrap_or(next));
                }
            }
            continue;
        };
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, value),
            None => (long, next),
        };
        match name {
            "strategy" if merges => strategies.push(value),
            "strategy-option" if merges => strategy_options.push(value),
            // Submodules in a diff are judged elsewhere.
            "" | "submodule" => {}
            // Another backend, which applies patches.
            "apply" | "whitespace" if subcommand == "rebase" => return false,
            // Starts gpg.
            "verify" if subcommand == "tag" => return false,
            // Compares any two files.
            "no-index" => return false,
            _ => {
                let positive = name.strip_prefix("no-").unwrap_or(name);
                if !HARMLESS_OPTIONS.split_whitespace().any(|it| it == positive) {
                    return false;
                }
            }
        }
    }
    let is_harmless = |value: &&str| {
        let number = value.strip_prefix("find-renames=");
        STRATEGY_OPTIONS.contains(value)
            || number.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let are_scripts_bare = strategy_options.is_empty();
    strategy_options.iter().all(is_harmless)
        && strategies.iter().all(|strategy| {
            BUILT_IN_STRATEGIES.contains(strategy)
                || are_scripts_bare && SCRIPT_STRATEGIES.contains(strategy)
        })
}

/// Value at the end of a word of short options: the rest of the word, or `None` if it is the next word.
enum ShortValue<'a> {
    None,
    Strategy(Option<&'a str>),
    StrategyOption(Option<&'a str>),
}

/// Reads a word of short options without its `-`; `None` if one of them is not known to be harmless.
fn read_short_options<'a>(
    subcommand: &str,
    letters: &'a str,
    (has_strategy, merges): (bool, bool),
) -> Option<ShortValue<'a>> {
    // A number of commits, or a side of a conflict.
    if letters.chars().all(|letter| letter.is_ascii_digit()) {
        return Some(ShortValue::None);
    }
    let mut known = SHORT_OPTIONS.iter();
    let known = known.find(|it| it.subcommands.contains(&subcommand))?;
    for (at, letter) in letters.char_indices() {
        let rest = letters
            .get(at + letter.len_utf8()..)
            .filter(|it| !it.is_empty());
        match letter {
            'X' if merges => return Some(ShortValue::StrategyOption(rest)),
            's' if has_strategy => return Some(ShortValue::Strategy(rest)),
            _ if known.flags.contains(letter) => {}
            _ if known.valued.contains(letter) => break,
            _ => return None,
        }
    }
    Some(ShortValue::None)
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
            "git merge -X 'ours=,--' t u",
            "git merge -X find-renames=x t",
            "git tag -m x --trailer a:b v1",
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
            "git diff --no-index a b",
            "git rebase -x'./x #Xours' HEAD~1",
            "git rebase -x./sours HEAD~1",
            "git rebase --onto -- -x ./x HEAD~1",
            "git merge -m -- -s octopus -X '' -X h t",
            "git apply --exclude -- --unsafe-paths x.patch",
            "git stash list -- --output=x --format=%s",
            "git cherry-pick -- --output=x HEAD",
            "git bisect skip -- --output=../x",
            "git grep -e -- -O./x",
            "git config -- --file=x a.b c",
            "git checkout -- --output=x",
            "git clean -fdq --opt",
            "git tag -v v1",
            "git tag --verify v1",
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
            "git checkout -- x",
            "git apply --3way --whitespace=fix x.patch",
            "git stash push -u -m x -- src",
            "git clean -fdx",
            "git commit -m --output=x",
            "git reset --hard HEAD~1",
            "git merge -m'fix stuff X' t",
            "git push -uf origin main",
            "git log -p -n5 -Sx -U3",
            "git bisect start --term-old=good --term-new=bad",
        ] {
            assert!(is_harmless(line), "{line}");
        }
    }
}
