//! Checks git commands that show files hidden by a rule, in the repository and elsewhere.

use super::super::{Judgement, Mode, Policy};
use super::{GitSettings, attack_vector_tests::GitFixture, environment::apply_git_settings};
use crate::{Access, Workspace};
use std::{fs, os::unix::fs::symlink};

/// A repository in which a file with `SECRET` is tracked, changed and staged, stashed, and in two commits.
fn fixture_with_secret() -> GitFixture {
    let bench = GitFixture::new();
    let write = |text: &str| fs::write(bench.work_tree.join(".env"), text).unwrap();
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
fn git_shows_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
    let bench = fixture_with_secret();
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
        let shown = bench.output_of(line);
        let is_known = line.contains("whatchanged");
        assert!(shown.contains("SECRET") || is_known, "{line}: {shown}");
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert_ne!(judged, Judgement::Allow, "{line}");
    }
}

/// The file is untracked, tracked only by this line, or tracked by a submodule.
#[test]
fn git_showing_untracked_files_is_asked_about() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
    let bench = GitFixture::new();
    fs::write(bench.work_tree.join(".env"), "SECRET=1\n").unwrap();
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
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert_ne!(judged, Judgement::Allow, "{line}");
    }
    for line in [
        "git grep x",
        "git diff",
        "git add -A && git status",
        "git show",
    ] {
        bench.assert_allowed(&policy, line);
    }
    // Git skips a folder that is not a repository.
    bench.git("add -f .env");
    for line in [
        "git config --blob 1234 -l",
        "git config -l",
        "git stash show list",
        "git commit --dry-run",
    ] {
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert_ne!(judged, Judgement::Allow, "{line}");
    }
    // Git also skips this folder and shows the files tracked by the repository above.
    let passed_over = bench.work_tree.join("passed/over");
    fs::create_dir_all(passed_over.join(".git")).unwrap();
    fs::write(passed_over.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::copy(
        GitFixture::new().work_tree.join(".git/index"),
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
    let inner = bench.work_tree.join("inner");
    fs::create_dir_all(inner.join(".git")).unwrap();
    assert_ne!(bench.judge(&policy, &inner, "git show"), Judgement::Allow);
}

#[test]
fn indirectly_started_git_shows_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
    let bench = fixture_with_secret();
    for line in [
        "/usr/bin/git show HEAD",
        "/usr/bin/git diff",
        "/usr/lib/git-core/git-show HEAD",
        "git stash -q && git rebase -x 'git show HEAD' HEAD~1",
        "git rebase --exec='git show HEAD' HEAD~1",
        "git rebase --exe 'git show HEAD' HEAD~1",
    ] {
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert_ne!(judged, Judgement::Allow, "{line}");
    }
    // Another repository tracks the file, which does not exist at present.
    let confined = policy.clone().with_confined(true);
    let other = GitFixture::new();
    let nested = other.work_tree.join("nested");
    other.git_in(
        &bench.work_tree,
        &format!("clone -q . {}", nested.display()),
    );
    fs::remove_file(nested.join(".env")).unwrap();
    for line in ["git -C nested show HEAD", "git -C nested diff"] {
        let shown = other.output_of(line);
        assert!(shown.contains("SECRET"), "{line}: {shown}");
        let judged = other.judge(&confined, &other.work_tree, line);
        assert_ne!(judged, Judgement::Allow, "{line}");
    }
    // A repository whose files lie elsewhere.
    let deny = vec!["read(./priv)".parse().unwrap()];
    let folder_rule = Policy::new(Mode::Auto, vec![], deny);
    let moved = GitFixture::new();
    let shows = |line| moved.judge(&folder_rule, &moved.work_tree, line);
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
    // A bare repository.
    let bare = other.work_tree.join("b.git");
    other.git_in(
        &bench.work_tree,
        &format!("clone -q --bare . {}", bare.display()),
    );
    for line in ["cd b.git && git show HEAD", "cd b.git/refs; git log -p"] {
        assert!(other.output_of(line).contains("SECRET"));
        let judged = other.judge(&confined, &other.work_tree, line);
        assert_ne!(judged, Judgement::Allow, "{line}");
    }
    // A linked work tree without an index.
    bench.git("worktree add -q --no-checkout linked");
    let line = "git -C linked show HEAD";
    assert!(bench.output_of(line).contains("SECRET"));
    assert_ne!(
        bench.judge(&confined, &bench.work_tree, line),
        Judgement::Allow
    );
    let line = "git -C src show HEAD";
    assert_eq!(
        other.judge(&confined, &other.work_tree, line),
        Judgement::Allow
    );
    let line = "/usr/bin/git log --oneline";
    assert_eq!(
        bench.judge(&policy, &bench.work_tree, line),
        Judgement::Allow
    );
}

/// A common user setting names a file in the work tree, which the repository supplies.
#[test]
fn blame_shows_no_file_outside() {
    let policy = Policy::new(Mode::Ask, vec![], vec![]);
    let bench = GitFixture::new();
    let own = "[blame]\n\tignoreRevsFile = .git-blame-ignore-revs\n";
    fs::write(bench.root.join(".gitconfig"), own).unwrap();
    let list = bench.work_tree.join(".git-blame-ignore-revs");
    fs::write(bench.work_tree.join("list"), "").unwrap();
    fs::write(bench.root.join("secret"), "hidden words\n").unwrap();
    let line = "git blame src/a.txt";
    let judge = || bench.judge(&policy, &bench.work_tree, line);
    let rules = ["shell(git annotate:*)", "shell(git pickaxe:*)"].map(|it| it.parse().unwrap());
    let by_rule = Policy::new(Mode::Ask, rules.into(), vec![]);
    let other_names = ["git annotate src/a.txt", "git pickaxe -- src/a.txt"];
    let judge_other = |line: &str| bench.judge(&by_rule, &bench.work_tree, line);
    symlink("list", &list).unwrap();
    symlink("..", bench.work_tree.join("src/linked")).unwrap();
    assert_eq!(judge(), Judgement::Allow);
    for line in other_names {
        assert_eq!(judge_other(line), Judgement::Allow, "{line}");
    }
    fs::remove_file(&list).unwrap();
    symlink("../secret", &list).unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
    for line in other_names {
        assert!(matches!(judge_other(line), Judgement::Ask { .. }), "{line}");
    }
    // Without protection, the attack works.
    for line in other_names.into_iter().chain([line]) {
        let output = bench.run(&bench.work_tree, line, &bench.environment());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("hidden words"), "{line}: {text}");
    }
}

/// Inside the roots, such a link may lead to a file that a rule protects.
#[test]
fn blame_shows_no_denied_file() {
    let bench = GitFixture::new();
    let rule = "read(keys/**)".parse().unwrap();
    let policy = Policy::new(Mode::Ask, vec![], vec![rule]);
    fs::create_dir(bench.work_tree.join("keys")).unwrap();
    fs::write(bench.work_tree.join("keys/a"), "hidden words\n").unwrap();
    fs::write(bench.work_tree.join("list"), "").unwrap();
    let link = bench.work_tree.join(".git-blame-ignore-revs");
    let judge = |line: &str| bench.judge(&policy, &bench.work_tree, line);
    let lines = ["git blame src/a.txt", "git blame HEAD -- src/a.txt"];
    symlink("list", &link).unwrap();
    for line in lines {
        assert_eq!(judge(line), Judgement::Allow, "{line}");
    }
    fs::remove_file(&link).unwrap();
    symlink("keys/a", &link).unwrap();
    for line in lines {
        assert!(matches!(judge(line), Judgement::Ask { .. }), "{line}");
    }
    assert_eq!(judge("git log --oneline"), Judgement::Allow);
    let auto = Policy::new(Mode::Auto, vec![], policy.deny_rules().to_vec());
    for line in [
        "nice git blame src/a.txt",
        "time git blame src/a.txt",
        "git-blame src/a.txt",
    ] {
        bench.assert_asked(&auto, line);
    }
}

#[test]
fn mailmap_outside_roots_is_not_shown() {
    let policy = Policy::new(Mode::Ask, vec![], vec![]);
    let bench = GitFixture::new();
    let own = "[mailmap]\n\tfile = .names\n";
    fs::write(bench.root.join(".gitconfig"), own).unwrap();
    fs::write(bench.root.join("names"), "hidden words <a@example.org>\n").unwrap();
    symlink("../names", bench.work_tree.join(".names")).unwrap();
    let line = "git log --format=%aN";
    bench.assert_allowed(&policy, line);
    // Without protection, the attack works.
    for (settings, is_shown) in [
        (GitSettings::Unrestricted, true),
        (GitSettings::Hardened, false),
    ] {
        let mut environment = bench.environment();
        apply_git_settings(settings, &mut environment);
        let output = bench.run(&bench.work_tree, line, &environment);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.contains("hidden words"), is_shown, "{text}");
    }
}

/// Git follows these links, the first only outside a repository, and shows parts of what it reads.
#[test]
fn linked_settings_of_git_are_asked_about_unconfined() {
    let policy = Policy::new(Mode::Ask, vec![], vec![]);
    let bench = GitFixture::new();
    let outside = bench.root.join("outside");
    fs::write(&outside, "hidden words <a@example.org>\n").unwrap();
    let folder = bench.root.join("plain");
    fs::create_dir(&folder).unwrap();
    let workspace = Workspace::local(folder.clone()).unwrap();
    let judge = || {
        let access = Access::Run {
            command: "cat log.txt | git shortlog -s".to_owned(),
            cwd: folder.clone(),
        };
        fs::write(folder.join("log.txt"), "Author: A <a@example.org>\n").unwrap();
        policy.judge("shell", &access, &workspace)
    };
    assert_eq!(judge(), Judgement::Allow);
    symlink(&outside, folder.join(".mailmap")).unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));

    let judge = || bench.judge(&policy, &bench.work_tree, "git status");
    assert_eq!(judge(), Judgement::Allow);
    symlink(&outside, bench.work_tree.join(".gitmodules")).unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
}

#[test]
fn git_without_file_content_is_allowed() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
    let bench = fixture_with_secret();
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
        let shown = bench.output_of(line);
        assert!(!shown.contains("SECRET"), "{line}: {shown}");
        bench.assert_allowed(&policy, line);
    }
    // A repository that tracks no such file is allowed.
    let other = GitFixture::new();
    for line in ["git diff", "git show", "git log -p", "git grep one"] {
        other.assert_allowed(&policy, line);
    }
    fs::write(other.work_tree.join(".git/index"), "DIRC").unwrap();
    assert_ne!(
        other.judge(&policy, &other.work_tree, "git diff"),
        Judgement::Allow
    );
}

/// A repository from elsewhere may lead to one that a rule hides, or to files that git does not track.
#[test]
fn repository_that_leads_to_hidden_files_is_asked_about() {
    type SetUp = fn(&GitFixture, &GitFixture);
    let lay: [(&str, SetUp); 5] = [
        ("git show HEAD", |b, other| {
            fs::rename(b.work_tree.join(".git"), b.root.join("own")).unwrap();
            let named = format!("gitdir: {}\n", other.work_tree.join(".git").display());
            fs::write(b.work_tree.join(".git"), named).unwrap();
        }),
        ("git show HEAD", |b, other| {
            let named = format!("{}\n", other.work_tree.join(".git").display());
            fs::write(b.work_tree.join(".git/commondir"), named).unwrap();
        }),
        ("git show HEAD", |b, other| {
            for part in ["objects", "refs"] {
                let place = b.work_tree.join(".git").join(part);
                fs::rename(&place, b.root.join(part)).unwrap();
                symlink(other.work_tree.join(".git").join(part), place).unwrap();
            }
        }),
        ("git show other", |b, other| {
            let objects = other.work_tree.join(".git/objects").display().to_string();
            fs::create_dir_all(b.work_tree.join(".git/objects/info")).unwrap();
            fs::write(
                b.work_tree.join(".git/objects/info/alternates"),
                objects + "\n",
            )
            .unwrap();
            let head = other.run(&other.work_tree, "git rev-parse HEAD", &other.environment());
            fs::write(b.work_tree.join(".git/refs/heads/other"), head.stdout).unwrap();
        }),
        ("git grep SECRET", |b, other| {
            b.touch_files(&b.work_tree);
            fs::rename(b.work_tree.join("src"), b.root.join("src")).unwrap();
            symlink(other.work_tree.join("src"), b.work_tree.join("src")).unwrap();
        }),
    ];
    for (at, (line, lay)) in lay.into_iter().enumerate() {
        let (bench, other) = (GitFixture::new(), GitFixture::new());
        fs::write(other.work_tree.join("src/a.txt"), "SECRET=1\n").unwrap();
        other.git("commit -qam secret");
        let rule = format!("read({}/**)", other.work_tree.display());
        let policy = Policy::new(Mode::Auto, vec![], vec![rule.parse().unwrap()]);
        let judged = bench.judge(&policy, &bench.work_tree, "git show HEAD");
        assert_eq!(judged, Judgement::Allow, "{at}");
        lay(&bench, &other);
        let shown = bench.output_of(line);
        assert!(shown.contains("SECRET=1"), "{at}: {shown}");
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert_ne!(judged, Judgement::Allow, "{at}");
    }
}

/// Further options of `git config --get` name other files and objects.
#[test]
fn git_config_shows_no_denied_file() {
    let bench = fixture_with_secret();
    let rules = vec!["shell(git config:*)".parse().unwrap()];
    let deny = vec!["read(**/.env)".parse().unwrap()];
    let policy = Policy::new(Mode::Ask, rules, deny);
    let judge = |line: &str| bench.judge(&policy, &bench.work_tree, line);
    for line in [
        "git config --get --blob HEAD:.env SECRET",
        "git config --get --includes -f cfg db.password",
        "git config --get-all --blob HEAD:.env SECRET",
    ] {
        assert!(
            matches!(judge(line), Judgement::Ask { .. } | Judgement::Deny(_)),
            "{line}"
        );
    }
    assert_eq!(judge("git config --get user.name"), Judgement::Allow);
}

/// Settings of a repository may name files that git quotes.
#[test]
fn settings_that_name_files_show_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(.env)".parse().unwrap()]);
    let bench = GitFixture::new();
    fs::write(bench.work_tree.join(".env"), "[a]\n\tb = hidden words\n").unwrap();
    let judge = |line: &str| bench.judge(&policy, &bench.work_tree, line);
    assert_eq!(judge("git config --get a.b"), Judgement::Allow);
    bench.git("config format.signatureFile .env");
    let line = "git format-patch -1 --stdout";
    assert!(bench.output_of(line).contains("hidden words"));
    let mut environment = bench.environment();
    apply_git_settings(GitSettings::Discreet, &mut environment);
    let output = bench.run(&bench.work_tree, line, &environment);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("hidden words"));
    bench.git("config blame.ignoreRevsFile .env");
    let line = "git blame src/a.txt";
    let output = bench.run(&bench.work_tree, line, &bench.environment());
    assert!(String::from_utf8_lossy(&output.stderr).contains("[a]"));
    assert!(matches!(judge(line), Judgement::Ask { .. }));
    bench.git("config include.path ../.env");
    assert!(
        bench
            .output_of("git config --get a.b")
            .contains("hidden words")
    );
    assert!(matches!(
        judge("git config --get a.b"),
        Judgement::Ask { .. }
    ));
}
