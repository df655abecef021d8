//! Which git commands show what files hold, and which files those may be.

use super::{
    Command, carriers, config,
    git_dir::{EntryKind, git_takes_it, is_head, kind, may_be_bare, read_pointer},
    index,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Whether the command may show the content of files that its words do not name.
pub(crate) fn shows_content(command: &Command) -> bool {
    match carriers::base_name(&command.name) {
        "git" => {}
        name => return name.starts_with("git-"),
    }
    let mut args = command.args.iter().map(|arg| arg.literal());
    let mut has = |may_show: fn(&str) -> bool| args.any(|arg| arg.is_none_or(may_show));
    match command.args.first().and_then(|arg| arg.literal()) {
        Some("log" | "reflog" | "shortlog") => has(|arg| arg.starts_with('-') && !is_of_log(arg)),
        // It hands its options on to `git log`.
        Some("stash")
            if command
                .args
                .get(1)
                .is_some_and(|arg| arg.literal() == Some("list")) =>
        {
            has(|arg| arg.starts_with('-') && !is_of_log(arg))
        }
        Some("add" | "checkout" | "commit" | "reset" | "restore" | "stash") => has(|arg| {
            is_short_with(arg, &['e', 'i', 'p', 'v'])
                || arg == "show"
                || ["--d", "--e", "--i", "--p", "--v"]
                    .iter()
                    .any(|option| arg.starts_with(option))
        }),
        Some("status") => has(|arg| is_short_with(arg, &['v']) || arg.starts_with("--v")),
        // With `--exec` it runs other lines.
        Some("rebase") => has(|arg| {
            is_short_with(arg, &['i', 'x']) || arg.starts_with("--e") || arg.starts_with("--sh")
        }),
        // A tag may be one of a file.
        Some("branch" | "for-each-ref" | "tag") => {
            has(|arg| matches!(arg, "-v" | "-vv") || arg.contains("%(") && arg.contains("raw"))
        }
        Some(
            "--version" | "check-ignore" | "cherry-pick" | "clean" | "clone" | "count-objects"
            | "describe" | "fetch" | "gc" | "help" | "init" | "ls-files" | "ls-remote" | "ls-tree"
            | "merge" | "merge-base" | "mv" | "name-rev" | "prune" | "pull" | "push" | "remote"
            | "revert" | "rev-list" | "rev-parse" | "rm" | "switch" | "symbolic-ref" | "worktree",
        ) => has(|arg| matches!(arg, "-v" | "-vv" | "--patch")),
        _ => true,
    }
}

/// Recognises commands that may show files that the repository does not track itself: those of a submodule, or others.
pub(crate) fn looks_further(command: &Command) -> bool {
    let program = carriers::base_name(&command.name).strip_prefix("git-");
    let words = command.args.iter().map(|arg| arg.literal());
    program.map(Some).into_iter().chain(words).any(|word| {
        word.is_none_or(|word| {
            let starts = ["--no-i", "--recurse", "--subm", "--unt", "submodule"];
            matches!(word, "--u" | "--un" | "for-each-repo")
                || starts.iter().any(|start| word.starts_with(start))
        })
    })
}

/// Recognises commands after which git may track more files.
pub(crate) fn tracks_more(command: &Command) -> bool {
    let mut words = command.args.iter().map(|arg| arg.literal());
    let adds = |word: Option<&str>| {
        word.is_none_or(|word| matches!(word, "add" | "commit" | "stash" | "update-index"))
    };
    super::is_git(command) && words.any(adds)
}

/// Whether these are short options, one of them or a value among `letters`.
fn is_short_with(arg: &str, letters: &[char]) -> bool {
    arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letters)
}

/// Options of `git log` that show no patch.
fn is_of_log(arg: &str) -> bool {
    let name = arg.split_once('=').map_or(arg, |(name, _)| name);
    let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let counts = |short: &str| arg.strip_prefix(short).is_some_and(is_number);
    counts("-")
        || counts("-n")
        || matches!(
            name,
            "--" | "-i"
                | "--abbrev-commit"
                | "--after"
                | "--all"
                | "--author"
                | "--before"
                | "--branches"
                | "--committer"
                | "--date"
                | "--decorate"
                | "--first-parent"
                | "--follow"
                | "--format"
                | "--graph"
                | "--grep"
                | "--max-count"
                | "--merges"
                | "--name-only"
                | "--name-status"
                | "--no-color"
                | "--no-decorate"
                | "--no-merges"
                | "--no-patch"
                | "--numstat"
                | "--oneline"
                | "--pretty"
                | "--reverse"
                | "--shortstat"
                | "--since"
                | "--stat"
                | "--summary"
                | "--tags"
                | "--until"
        )
}

/// Whether a repository that git finds, started in one of `bases`, tracks a file that fulfils `is_met` now. Also true
/// when that is uncertain. What only earlier commits hold is not looked at.
pub(crate) fn may_track(
    command: &Command,
    bases: &[PathBuf],
    is_met: &dyn Fn(&Path) -> bool,
) -> bool {
    super::folders(command, bases).is_none_or(|folders| {
        folders.iter().any(|folder| {
            let folder = folder.canonicalize();
            folder.map_or(true, |folder| tracks(&folder, is_met))
        })
    })
}

/// Reading of a `.git` as git may take it: for a repository, or else going on to the folder above.
enum Taken {
    Yes,
    No,
    Perhaps,
}

fn taken(dot_git: &Path) -> Taken {
    match kind(dot_git) {
        EntryKind::Absent => Taken::No,
        EntryKind::Folder => {
            let parts = ["HEAD", "objects", "refs"];
            let has = |part: &&str| kind(&dot_git.join(part)) != EntryKind::Absent;
            match parts.iter().any(has) {
                false => Taken::No,
                true if is_head(&dot_git.join("HEAD")) && git_takes_it(dot_git, dot_git) => {
                    Taken::Yes
                }
                true => Taken::Perhaps,
            }
        }
        EntryKind::File | EntryKind::Other => Taken::Yes,
    }
}

fn tracks(folder: &Path, is_met: &dyn Fn(&Path) -> bool) -> bool {
    for above in folder.ancestors() {
        match taken(&above.join(".git")) {
            Taken::Yes => {
                return tracked(above)
                    .is_none_or(|paths| paths.iter().any(|path| is_met(&above.join(path))));
            }
            Taken::Perhaps => return true,
            // Git's own folder, or a repository without a work tree.
            Taken::No if may_be_bare(above) => return true,
            Taken::No => {}
        }
    }
    false
}

/// Paths that the repository of a work tree tracks now, from its top; `None` if that is uncertain.
fn tracked(work_tree: &Path) -> Option<Vec<PathBuf>> {
    let dot_git = work_tree.join(".git");
    let git_dir = match kind(&dot_git) {
        EntryKind::Folder => dot_git,
        EntryKind::File => work_tree.join(read_pointer(&dot_git)?.strip_prefix("gitdir: ")?),
        EntryKind::Absent | EntryKind::Other => return None,
    };
    let index = git_dir.join("index");
    // Without an index, in a linked work tree for example, any commit may be shown all the same.
    if may_lie_elsewhere(&git_dir, work_tree) || kind(&index) == EntryKind::Absent {
        return None;
    }
    // The length of a hash is in a configuration that need not be read for this: the other one does not fit.
    match (index::tracked(&index, false), index::tracked(&index, true)) {
        (Some(paths), None) | (None, Some(paths)) => Some(paths),
        (Some(one), Some(other)) if one.is_empty() && other.is_empty() => Some(one),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

/// Checks for settings by which the files of a repository may lie elsewhere than in `work_tree`.
fn may_lie_elsewhere(git_dir: &Path, work_tree: &Path) -> bool {
    let common_dir = read_pointer(&git_dir.join("commondir")).map(|named| git_dir.join(named));
    let folders = [Some(git_dir.to_owned()), common_dir];
    let files = folders.iter().flatten();
    let mut files = files.flat_map(|it| ["config", "config.worktree"].map(|name| it.join(name)));
    files.any(|file| match config::read_plain(&file) {
        Some(config) => config.worktree.is_some_and(|named| {
            let named = git_dir.join(named).canonicalize().ok();
            named.is_none() || named != work_tree.canonicalize().ok()
        }),
        // It names programs, which is allowed where this is asked.
        None => fs::read_to_string(&file).map_or(true, |text| {
            let text = text.to_lowercase();
            text.contains("worktree") || text.contains("include")
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::{Judgement, Mode, Policy};
    use super::super::{GitSettings, environment::set, matrix_tests::Bench};
    use std::fs;

    /// A repository in which a file with `SECRET` is tracked, changed and staged, stashed, and in two commits.
    fn with_a_secret() -> Bench {
        let bench = Bench::new();
        let write = |text: &str| fs::write(bench.work.join(".env"), text).unwrap();
        write("SECRET=1\n");
        bench.git("add .env");
        bench.git("commit -q -m third");
        bench.git("tag file HEAD:.env");
        write("SECRET=2\n");
        bench.git("stash -q");
        write("SECRET=3\n");
        bench.git("add .env");
        write("SECRET=4\n");
        bench
    }

    #[test]
    fn git_shows_no_file_that_may_not_be_read() {
        let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
        let bench = with_a_secret();
        for line in [
            "git grep SECRET",
            "git show HEAD",
            "git show",
            "git diff",
            "git diff --cached",
            "git diff HEAD~1",
            "git log -p",
            "git log -u -1",
            "git log -1 --patch-with-stat",
            "git log -U2",
            "git log -L1,1:.env",
            "git log -1 --cc -p",
            "git whatchanged -p --i-still-use-this",
            "git archive HEAD",
            "git cat-file -p HEAD:.env",
            "git blame .env",
            "git stash show -p",
            "git stash list -p",
            "git stash list -U3",
            "git stash list --binary",
            "git format-patch -1 --stdout",
            "git diff-tree -p HEAD",
            "git diff-index -p HEAD~1",
            "git diff-files -p",
            "git status -vv",
            "git status --verbose",
            "git status --verbos",
            "git status -bv",
            "git status -vuno",
            "git status --long -vb",
            "git tag -l '--format=%(raw)'",
            "git tag --format '%(if)x%(then)%(raw)%(end)'",
            "git for-each-ref '--format=%(raw)'",
            "git commit --dry-run -v",
            "git reflog -p",
            "git fast-export HEAD",
            "git rev-parse --show-toplevel && git show",
        ] {
            let shown = bench.run(&bench.work, line, &bench.environment());
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            let is_known = line.contains("whatchanged");
            assert!(shown.contains("SECRET") || is_known, "{line}: {shown}");
            let judged = bench.judge(&policy, &bench.work, line);
            assert_ne!(judged, Judgement::Allow, "{line}");
        }
    }

    /// Tracked by nobody, only in this line, or by a submodule.
    #[test]
    fn git_that_may_show_what_is_not_tracked_is_asked_about() {
        let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
        let bench = Bench::new();
        fs::write(bench.work.join(".env"), "SECRET=1\n").unwrap();
        for line in [
            "git grep --untracked SECRET",
            "git grep --no-index SECRET",
            "git grep --recurse-submodules SECRET",
            "git grep --recurse-s SECRET",
            "git grep --un SECRET",
            "git grep --u SECRET",
            "git diff HEAD:a ':(top).env'",
            "git diff HEAD:a -- ':(literal).env'",
            "git diff HEAD:a ':!.env'",
            "git submodule--helper foreach 'git show'",
            "/usr/lib/git-core/git-submodule--helper foreach 'git show'",
            "/usr/lib/git-core/git-for-each-repo --config=x.repo grep SECRET",
            "git add -A && git diff --cached",
            "git add -A && git commit -qm x && git show",
            "git stash -u -q && git show stash^3",
            "git show --submodule=diff",
            "git submodule foreach git show",
            "git for-each-repo --config=maintenance.repo show HEAD",
            "npx git submodule foreach git show",
            "npx sh -c 'git show'",
            "npx -y git show",
        ] {
            let judged = bench.judge(&policy, &bench.work, line);
            assert_ne!(judged, Judgement::Allow, "{line}");
        }
        for line in [
            "git grep x",
            "git diff",
            "git add -A && git status",
            "git show",
        ] {
            let judged = bench.judge(&policy, &bench.work, line);
            assert_eq!(judged, Judgement::Allow, "{line}");
        }
        // Git passes over a folder that is no repository.
        bench.git("add -f .env");
        for line in [
            "git config --blob 1234 -l",
            "git config -l",
            "git stash show list",
            "git commit --dry-run",
        ] {
            let judged = bench.judge(&policy, &bench.work, line);
            assert_ne!(judged, Judgement::Allow, "{line}");
        }
        // Git passes over this one too, and shows what the repository above it tracks.
        let passed_over = bench.work.join("passed/over");
        fs::create_dir_all(passed_over.join(".git")).unwrap();
        fs::write(passed_over.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::copy(
            Bench::new().work.join(".git/index"),
            passed_over.join(".git/index"),
        )
        .unwrap();
        let judged = bench.judge(&policy, &passed_over, "git show");
        assert_ne!(judged, Judgement::Allow);
        for folder in ["objects", "refs"] {
            fs::create_dir(passed_over.join(".git").join(folder)).unwrap();
        }
        let judged = bench.judge(&policy, &passed_over, "git show");
        assert_eq!(judged, Judgement::Allow);
        fs::write(
            passed_over.join(".git/HEAD"),
            "neither a branch nor a commit\n",
        )
        .unwrap();
        let judged = bench.judge(&policy, &passed_over, "git show");
        assert_ne!(judged, Judgement::Allow);
        let inner = bench.work.join("inner");
        fs::create_dir_all(inner.join(".git")).unwrap();
        assert_ne!(bench.judge(&policy, &inner, "git show"), Judgement::Allow);
    }

    #[test]
    fn git_that_is_started_in_other_ways_shows_no_file_that_may_not_be_read() {
        let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
        let bench = with_a_secret();
        for line in [
            "/usr/bin/git show HEAD",
            "/usr/bin/git diff",
            "/usr/lib/git-core/git-show HEAD",
            "git stash -q && git rebase -x 'git show HEAD' HEAD~1",
            "git rebase --exec='git show HEAD' HEAD~1",
            "git rebase --exe 'git show HEAD' HEAD~1",
        ] {
            let judged = bench.judge(&policy, &bench.work, line);
            assert_ne!(judged, Judgement::Allow, "{line}");
        }
        // Another repository tracks the file, which is not there now.
        let confined = policy.clone().confined(true);
        let other = Bench::new();
        let nested = other.work.join("nested");
        other.git_in(&bench.work, &format!("clone -q . {}", nested.display()));
        fs::remove_file(nested.join(".env")).unwrap();
        for line in ["git -C nested show HEAD", "git -C nested diff"] {
            let shown = other.run(&other.work, line, &other.environment());
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            assert!(shown.contains("SECRET"), "{line}: {shown}");
            let judged = other.judge(&confined, &other.work, line);
            assert_ne!(judged, Judgement::Allow, "{line}");
        }
        // One whose files lie elsewhere.
        let deny = vec!["read(./priv)".parse().unwrap()];
        let folder_rule = Policy::new(Mode::Auto, vec![], deny);
        let moved = Bench::new();
        let shows = |line| moved.judge(&folder_rule, &moved.work, line);
        assert_eq!(shows("git show HEAD"), Judgement::Allow);
        moved.git("config filter.x.clean cat");
        assert_eq!(shows("git show HEAD"), Judgement::Allow);
        for worktree in ["..", "/elsewhere"] {
            moved.git(&format!("config core.worktree {worktree}"));
            assert_ne!(shows("git show HEAD"), Judgement::Allow);
        }
        moved.git("config --unset core.worktree");
        moved.git("config include.path x");
        assert_ne!(shows("git show HEAD"), Judgement::Allow);
        // One without a work tree.
        let bare = other.work.join("b.git");
        other.git_in(
            &bench.work,
            &format!("clone -q --bare . {}", bare.display()),
        );
        for line in ["cd b.git && git show HEAD", "cd b.git/refs; git log -p"] {
            let shown = other.run(&other.work, line, &other.environment());
            assert!(String::from_utf8_lossy(&shown.stdout).contains("SECRET"));
            let judged = other.judge(&confined, &other.work, line);
            assert_ne!(judged, Judgement::Allow, "{line}");
        }
        // A linked work tree without an index.
        bench.git("worktree add -q --no-checkout linked");
        let line = "git -C linked show HEAD";
        let shown = bench.run(&bench.work, line, &bench.environment());
        assert!(String::from_utf8_lossy(&shown.stdout).contains("SECRET"));
        assert_ne!(bench.judge(&confined, &bench.work, line), Judgement::Allow);
        let line = "git -C src show HEAD";
        assert_eq!(other.judge(&confined, &other.work, line), Judgement::Allow);
        let line = "/usr/bin/git log --oneline";
        assert_eq!(bench.judge(&policy, &bench.work, line), Judgement::Allow);
    }

    /// A setting that many people have names a file in the work tree, which the repository brings.
    #[test]
    fn blame_shows_no_file_outside() {
        let policy = Policy::new(Mode::Ask, vec![], vec![]);
        let bench = Bench::new();
        let own = "[blame]\n\tignoreRevsFile = .git-blame-ignore-revs\n";
        fs::write(bench.root.join(".gitconfig"), own).unwrap();
        let list = bench.work.join(".git-blame-ignore-revs");
        fs::write(bench.work.join("list"), "").unwrap();
        fs::write(bench.root.join("secret"), "hidden words\n").unwrap();
        let line = "git blame src/a.txt";
        let judge = || bench.judge(&policy, &bench.work, line);
        std::os::unix::fs::symlink("list", &list).unwrap();
        std::os::unix::fs::symlink("..", bench.work.join("src/linked")).unwrap();
        assert_eq!(judge(), Judgement::Allow);
        fs::remove_file(&list).unwrap();
        std::os::unix::fs::symlink("../secret", &list).unwrap();
        assert!(matches!(judge(), Judgement::Ask { .. }));
        // It works where nobody defends.
        let output = bench.run(&bench.work, line, &bench.environment());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("hidden words"), "{text}");
    }

    #[test]
    fn names_of_people_come_from_no_file_outside() {
        let policy = Policy::new(Mode::Ask, vec![], vec![]);
        let bench = Bench::new();
        let own = "[mailmap]\n\tfile = .names\n";
        fs::write(bench.root.join(".gitconfig"), own).unwrap();
        fs::write(bench.root.join("names"), "hidden words <a@example.org>\n").unwrap();
        std::os::unix::fs::symlink("../names", bench.work.join(".names")).unwrap();
        let line = "git log --format=%aN";
        let judged = bench.judge(&policy, &bench.work, line);
        assert_eq!(judged, Judgement::Allow);
        // It works where nobody defends.
        for (settings, is_shown) in [(GitSettings::Own, true), (GitSettings::Hardened, false)] {
            let mut environment = bench.environment();
            set(settings, &mut environment);
            let output = bench.run(&bench.work, line, &environment);
            let text = String::from_utf8_lossy(&output.stdout);
            assert_eq!(text.contains("hidden words"), is_shown, "{text}");
        }
    }

    #[test]
    fn git_that_shows_no_content_goes_on() {
        let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
        let bench = with_a_secret();
        let lines = [
            "git status --short --branch",
            "git log --oneline -5",
            "git log --stat --since=yesterday",
            "git branch -a",
            "git branch --show-current",
            "git for-each-ref '--format=%(refname)'",
            "git rev-parse --verify HEAD",
            "git status -uno",
            "git ls-files",
            "git rev-parse HEAD",
            "git add src/a.txt",
            "git commit -q -m x src/a.txt",
            "git stash list",
            "git fetch origin",
            "git push origin main",
        ];
        for line in lines {
            let shown = bench.run(&bench.work, line, &bench.environment());
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            assert!(!shown.contains("SECRET"), "{line}: {shown}");
            let judged = bench.judge(&policy, &bench.work, line);
            assert_eq!(judged, Judgement::Allow, "{line}");
        }
        // A repository that tracks no such file is shown.
        let other = Bench::new();
        for line in ["git diff", "git show", "git log -p", "git grep one"] {
            let judged = other.judge(&policy, &other.work, line);
            assert_eq!(judged, Judgement::Allow, "{line}");
        }
        fs::write(other.work.join(".git/index"), "DIRC").unwrap();
        assert_ne!(
            other.judge(&policy, &other.work, "git diff"),
            Judgement::Allow
        );
    }
}
