//! Checks lines, words and file names whose meaning differs from their appearance.

use super::{
    Mode, Policy, Rule,
    everyday_line_tests::{everyday_fixture, is_allowed},
};

#[test]
fn file_named_dash_is_treated_as_file() {
    let bench = everyday_fixture();
    let root = bench.workspace.cwd();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), root.join("-")).unwrap();
    for confined in [true, false] {
        let policy = Policy::new(Mode::Edit, Vec::new(), Vec::new()).with_confined(confined);
        for line in [
            "cat < -",
            "column -",
            "echo x > -",
            "cat README.md >> -",
            "git -C - diff",
            "git --no-pager -C - diff",
        ] {
            assert!(!is_allowed(&bench, &policy, line), "{line}");
        }
    }
    std::fs::remove_file(root.join("-")).unwrap();
    let policy = Policy::default().with_confined(true);
    assert!(is_allowed(&bench, &policy, "cat README.md | cat -"));
}

#[test]
fn exit_code_in_file_name_is_asked_about() {
    let bench = everyday_fixture();
    for confined in [true, false] {
        let policy = Policy::new(Mode::Edit, Vec::new(), Vec::new()).with_confined(confined);
        for line in [
            "false; cat s$?",
            "false; cat \"s$?\"",
            "false; cat $?",
            "false; cat < s$?",
            "false; echo x > hook$?",
            "false; cd d$?",
            "for f in s; do false; cat $f$?; done",
            "false; find . -name $?",
            "[ -f s$? ]",
        ] {
            assert!(!is_allowed(&bench, &policy, line), "{confined} {line}");
        }
        for line in ["echo $?", "echo \"exit: $?\"", "ls; echo exit=$?"] {
            assert!(is_allowed(&bench, &policy, line), "{confined} {line}");
        }
    }
    let policy = Policy::default().with_confined(true);
    for line in [
        "ls; [ $? -eq 0 ] && echo yes",
        "ls; [[ $? -ne 0 ]] || echo yes",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
    let deny = vec!["read(src/main.rs)".parse().unwrap()];
    let policy = Policy::new(Mode::Auto, Vec::new(), deny);
    assert!(is_allowed(&bench, &policy, "touch a || exit $?"));
    assert!(!is_allowed(&bench, &policy, "false; cat src/main.rs$?"));
}

/// The order of the names depends on the locale.
#[test]
fn expanded_names_are_only_ever_files() {
    let bench = everyday_fixture();
    let root = bench.workspace.cwd();
    for name in ["0", "PATH", "cat", "sh"] {
        std::fs::write(root.join(name), "x\n").unwrap();
    }
    std::fs::write(root.join("src/sh"), "x\n").unwrap();
    let policy = Policy::default().with_confined(true);
    for line in [
        "awk [cs]*",
        "sed -n [0s]*",
        "jq [cs]*",
        "grep [CR]*.md",
        "grep -e [CR]*.md",
        "head -n [0P]*",
        "printf [0P]*",
        "find src -name [cs]*",
        "find src -name '*.rs' -exec [cs]* README.md {} +",
        "find src -name '*.rs' | xargs [cs]* README.md",
        "find src -name '*.rs' -print0 | xargs -0 [cs]* --",
        "git l[os]*",
        "cargo [mt]*",
        "[ -f [CR]*.md ]",
        // The shell expands the pattern in one of two folders.
        "cd src; cat s*",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in [
        "cat [CR]*.md",
        "grep -n fn src/*.rs",
        "grep -e fn src/*.rs",
        "head -n 3 src/*.rs",
        "sed -n 1,3p src/*.rs",
        "awk '{print $1}' [CR]*.md",
        "printf '%s\\n' src/*.rs",
        "for f in src/*.rs; do head -n 3 $f; done",
        "find s*c -name '*.rs'",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

#[test]
fn deny_rule_covers_programs_that_start_it() {
    let bench = everyday_fixture();
    for mode in Mode::ALL {
        for confined in [true, false] {
            let deny = vec!["shell(cat:*)".parse().unwrap()];
            let policy = Policy::new(mode, Vec::new(), deny).with_confined(confined);
            for line in [
                "find . -name '*.rs' -exec cat {} +",
                "find . -name '*.rs' | xargs cat",
                "find . -name '*.rs' -print0 | xargs -0 -n 1 cat --",
                "find s*c t*s -exec cat {} +",
                "find [CR]*.md -exec cat {} ';'",
            ] {
                assert!(!is_allowed(&bench, &policy, line), "{mode:?} {line}");
            }
            let other = "find . -name '*.rs' -print0 | xargs -0 wc -l --";
            assert!(!confined || is_allowed(&bench, &policy, other), "{mode:?}");
        }
    }
}

#[test]
fn deny_rule_covers_starters_with_options() {
    let bench = everyday_fixture();
    let deny = vec!["shell(touch:*)".parse().unwrap()];
    let policy = Policy::new(Mode::Auto, Vec::new(), deny).with_confined(true);
    for line in [
        "pyenv exec touch m",
        "pyenv --debug exec touch m",
        "npm --silent exec -c 'touch m'",
        "rustup -q run stable touch m",
        "rustup +x run stable touch m",
        "uv -q run touch m",
        "pnpm -C x exec touch m",
        "npm $WORD touch m",
        "/usr/bin/npx touch m",
        "/usr/bin/find . -exec touch m ';'",
        "/usr/bin/git rebase --exec 'touch m' HEAD~1",
        "git submodule foreach touch m",
        "git -c a.b=c submodule --quiet foreach 'touch m'",
        "git bisect run touch m",
        "git rebase --exec 'touch m' HEAD~1",
        "git rebase -x 'touch m' HEAD~1",
        "git filter-branch --tree-filter 'touch m'",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in [
        "npm --silent install",
        "npm -v",
        "pyenv --version",
        "uv -q sync",
        "npm exec ls",
        "git rebase main",
        "git submodule update",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

/// Such a word stands for the words in a file, which appear in error messages.
#[test]
fn words_read_from_file_are_asked_about() {
    let bench = everyday_fixture();
    let policy = Policy::default().with_confined(true);
    for line in [
        "strings -n @src/main.rs README.md",
        "strings -n@x README.md",
        "strings @x",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    assert!(is_allowed(&bench, &policy, "strings -n 8 README.md"));
    let deny = vec!["read(s@x/key)".parse().unwrap()];
    let policy = Policy::new(Mode::Auto, Vec::new(), deny);
    for line in [
        "x @s@x/key",
        "x --file=s@x/key",
        "x a:s@x/key",
        "x a=b@s@x/key",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    assert!(is_allowed(&bench, &policy, "x s@x/other"));
}

#[test]
fn file_attached_to_short_options_is_found() {
    let bench = everyday_fixture();
    let deny = vec!["read(.env)".parse().unwrap()];
    let policy = Policy::new(Mode::Auto, Vec::new(), deny).with_confined(true);
    for line in ["date -f.env", "date -uf.env", "tar -cT.env", "x -abc.env"] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    assert!(is_allowed(&bench, &policy, "x -abc.en"));
}

/// A quoted bracket does not close a set.
#[test]
fn quoted_brackets_within_a_set_are_asked_about() {
    let bench = everyday_fixture();
    let root = bench.workspace.cwd();
    std::fs::create_dir(root.join("w")).unwrap();
    std::fs::write(root.join("w/passwd"), "").unwrap();
    std::fs::write(root.join("w/key"), "").unwrap();
    std::os::unix::fs::symlink("/etc", root.join("[w]")).unwrap();
    let deny = vec!["read(w/key)".parse().unwrap()];
    let policy = Policy::new(Mode::Ask, Vec::new(), deny).with_confined(true);
    for line in [
        "cat [w\"]\"/passwd",
        "cat [w']'/passwd",
        "cat [w\\]/passwd",
        "cat '[w]/passwd'",
        "cat [a\"-\"z]/passwd",
        "cat [\"!\"w]/passwd",
        "for f in ']'; do cat [w$f/passwd; done",
        "for f in ']'; do cat [w\"$f\"/passwd; done",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    let policy = Policy::default().with_confined(true);
    assert!(is_allowed(&bench, &policy, "cat [w]/passwd"));
    assert!(is_allowed(&bench, &policy, "ls \"s\"*/main.rs"));
}

/// sed and other programs would read a name after option letters as a script.
#[test]
fn expanded_name_in_option_is_asked_about() {
    let bench = everyday_fixture();
    std::fs::write(bench.workspace.cwd().join("s1"), "e echo x\n").unwrap();
    let policy = Policy::default().with_confined(true);
    for line in [
        "for f in s?; do sed p -f$f README.md; done",
        "for f in s?; do sed -n p -f\"$f\"; done",
        "for f in s*1; do sed -n p README.md \"-f$f\"; done",
        "for f in R*.md; do sed -n p -i$f README.md; done",
        "for f in s?; do grep -f$f README.md; done",
        "for f in s?; do awk --file=$f README.md; done",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    let line = "for f in s?; do sed -n p $f; done";
    assert!(is_allowed(&bench, &policy, line));
}

#[test]
fn deny_rule_matches_with_options_between_words() {
    let bench = everyday_fixture();
    let deny = vec!["shell(git remote add:*)".parse().unwrap()];
    let policy = Policy::new(Mode::Auto, Vec::new(), deny).with_confined(true);
    for line in [
        "git remote add e /x",
        "git -P remote add e /x",
        "git remote -v add e /x",
        "git remote --verbose add e /x",
        "/usr/lib/git-core/git-remote add e /x",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in ["git remote -v", "git remote show origin", "git add -A"] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

/// The command writes the index unless the kernel denies it.
#[test]
fn git_describe_dirty_is_allowed_only_when_confined() {
    let bench = everyday_fixture();
    let line = "git describe --always --dirty";
    for confined in [true, false] {
        let policy = Policy::default().with_confined(confined);
        assert!(is_allowed(&bench, &policy, "git describe --always"));
        assert_eq!(is_allowed(&bench, &policy, line), confined);
    }
}

/// The order of the names depends on the locale, and a name may be that of another command.
#[test]
fn expanded_name_as_subcommand_is_asked_about() {
    let bench = everyday_fixture();
    for name in ["rev-list", "revert"] {
        std::fs::write(bench.workspace.cwd().join(name), "").unwrap();
    }
    let policy = Policy::default().with_confined(true);
    for line in ["git *", "git r*", "git --no-pager r*", "git [r]*"] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    assert!(is_allowed(&bench, &policy, "git diff -- r*"));
}

/// Plan mode never asks, so a rule that may match denies.
#[test]
fn possible_deny_match_denies_in_plan_mode() {
    let bench = everyday_fixture();
    let deny = ["shell(git log:*)", "read(src/main.rs)"].map(|rule| rule.parse().unwrap());
    let policy = Policy::new(Mode::Plan, Vec::new(), deny.to_vec()).with_confined(true);
    for line in [
        "git --no-pager log",
        "git -P log",
        "git -C . log",
        "cargo metadata --no-deps --offline",
        "npm ls",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in ["git branch --list", "ls src", "cat README.md"] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

#[test]
fn unzip_needs_existing_archive_file() {
    let bench = everyday_fixture();
    let policy = Policy::default().with_confined(true);
    for line in [
        "unzip -l a",
        "unzip -l 'a*'",
        "unzip -l '[a].zip'",
        "unzip -l b.zip",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    assert!(is_allowed(&bench, &policy, "unzip -l a.zip"));
}

/// A path through `/proc` differs between processes.
#[test]
fn paths_through_proc_are_asked_about() {
    let bench = everyday_fixture();
    let root = bench.workspace.cwd();
    std::os::unix::fs::symlink("/proc/self/cwd", root.join("here")).unwrap();
    std::os::unix::fs::symlink("../README.md", root.join("src/link")).unwrap();
    let lines = [
        "cd src && cat /proc/self/cwd/main.rs",
        "cat /proc/thread-self/cwd/src/main.rs",
        "cat < /proc/self/cwd/src/main.rs",
        "cat here/src/main.rs",
        "cd src; cat ../here/main.rs",
    ];
    let deny = vec!["read(src/main.rs)".parse().unwrap()];
    for policy in [
        Policy::default(),
        Policy::default().with_confined(true),
        Policy::new(Mode::Plan, Vec::new(), Vec::new()).with_confined(true),
        Policy::new(Mode::Auto, Vec::new(), deny),
    ] {
        for line in lines {
            assert!(
                !is_allowed(&bench, &policy, line),
                "{:?} {line}",
                policy.mode
            );
        }
        assert!(is_allowed(&bench, &policy, "cat src/link"));
    }
}

/// The rule covers the file by the name of a link and by its real name.
#[test]
fn deny_rule_covers_links_and_their_targets() {
    let bench = everyday_fixture();
    let root = bench.workspace.cwd();
    for (link, target) in [
        (".env", "README.md"),
        ("keys", "tests"),
        ("third", "second"),
        ("second", "./first"),
        ("first", "build.rs"),
    ] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    let outside = tempfile::tempdir().unwrap();
    let linked = outside.path().canonicalize().unwrap().join("linked");
    std::os::unix::fs::symlink(root, &linked).unwrap();
    let absolute = format!("read({}/src/**)", linked.display());
    let deny: Vec<Rule> = [
        "read(**/.env)",
        "read(keys/**)",
        "read(*econd)",
        absolute.as_str(),
    ]
    .map(|rule| rule.parse().unwrap())
    .to_vec();
    for mode in Mode::ALL {
        let policy = Policy::new(mode, Vec::new(), deny.clone()).with_confined(true);
        for line in [
            "cat .env",
            "sort < .env",
            "cat keys/it.rs",
            "cat third",
            "cat < third",
            "cat src/main.rs",
            "cat [s]rc/main.rs",
        ] {
            assert!(!is_allowed(&bench, &policy, line), "{mode:?} {line}");
        }
        assert!(is_allowed(&bench, &policy, "cat CHANGELOG.md first"));
    }
    let link = root.join(".envrc");
    std::os::unix::fs::symlink("README.md", link).unwrap();
    let edit = Policy::new(Mode::Edit, Vec::new(), Vec::new());
    assert!(!is_allowed(&bench, &edit, "echo x > .envrc"));
    assert!(is_allowed(&bench, &edit, "echo x > README.md"));
}

/// A rule allows git to replace files by links, which later commands would follow.
#[test]
fn read_after_git_changed_files_is_asked_about() {
    let bench = everyday_fixture();
    let allow = ["shell(git stash push:*)", "shell(git add:+)"].map(|rule| rule.parse().unwrap());
    let policy = Policy::new(Mode::Ask, allow.to_vec(), Vec::new()).with_confined(true);
    for line in [
        "git stash push -q && cat README.md",
        "git stash push; grep -r x src",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in [
        "git stash push -q && echo done",
        "git add README.md && cat README.md",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

/// The order of the names depends on the locale.
#[test]
fn deny_rule_matches_expanded_names_in_any_order() {
    let bench = everyday_fixture();
    for name in ["a", "B"] {
        std::fs::write(bench.workspace.cwd().join(name), "").unwrap();
    }
    let deny = vec!["shell(cat a B)".parse().unwrap()];
    let policy = Policy::new(Mode::Ask, Vec::new(), deny).with_confined(true);
    for line in ["cat ?", "cat a B", "cat [aB]"] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    assert!(is_allowed(&bench, &policy, "cat a"));
}

/// A rule with the folder of a program may mean a program that is called by another name.
#[test]
fn deny_rule_with_program_path_covers_bare_name() {
    let bench = everyday_fixture();
    for mode in Mode::ALL {
        let policy = Policy::new(mode, Vec::new(), vec!["shell(/bin/cat:*)".parse().unwrap()]);
        assert!(!is_allowed(&bench, &policy, "cat README.md"), "{mode:?}");
        assert!(is_allowed(&bench, &policy, "head README.md"), "{mode:?}");
    }
}

/// A public variable holds the value from turnery's environment or one set by the line.
#[test]
fn public_variable_set_to_unknown_is_asked_about() {
    let bench = everyday_fixture();
    let policy = Policy::default().with_confined(true);
    for line in [
        "TERM=$INTERNAL_URL; echo $TERM",
        "TERM=~root; echo \"$TERM\"",
        "for i in 1; do TERM=$INTERNAL_URL; done; printf '%s' \"$TERM\"",
        "LANG=$X ls",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in ["TERM=dumb ls", "echo $TERM"] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

#[test]
fn link_to_project_program_is_project_program() {
    let mut bench = everyday_fixture();
    let outside = tempfile::tempdir().unwrap();
    let root = bench.workspace.cwd().to_owned();
    std::os::unix::fs::symlink(root.join("build.rs"), outside.path().join("wc")).unwrap();
    let search = format!("{}:/usr/bin:/bin", outside.path().display());
    bench.workspace = bench.workspace.with_search_path(search.as_ref());
    for confined in [true, false] {
        let policy = Policy::default().with_confined(confined);
        assert!(!is_allowed(&bench, &policy, "wc README.md"));
        assert!(is_allowed(&bench, &policy, "cat README.md"));
    }
}

/// The session's folder may lie below the top of a repository.
#[test]
fn program_above_session_folder_is_project_program() {
    let mut bench = everyday_fixture();
    let root = bench.workspace.cwd().to_owned();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.join("bin")).unwrap();
    std::fs::write(root.join("bin/wc"), "x").unwrap();
    std::os::unix::fs::symlink(root.join("build.rs"), outside.path().join("head")).unwrap();
    let search = format!(
        "{0}/bin:{1}:/usr/bin",
        root.display(),
        outside.path().display()
    );
    for is_repository in [true, false] {
        let workspace = crate::Workspace::local(root.join("src")).unwrap();
        bench.workspace = workspace.with_search_path(search.as_ref());
        for confined in [true, false] {
            let policy = Policy::default().with_confined(confined);
            assert!(is_allowed(&bench, &policy, "cat lib.rs"));
            for line in ["wc lib.rs", "head lib.rs"] {
                assert_eq!(is_allowed(&bench, &policy, line), !is_repository, "{line}");
            }
        }
        if is_repository {
            std::fs::rename(root.join(".git"), root.join("other")).unwrap();
        }
    }
}

/// ripgrep prints lines of the ignore file that are not valid patterns.
#[test]
fn search_with_linked_ignore_file_is_asked_about() {
    let bench = everyday_fixture();
    let policy = Policy::default();
    assert!(is_allowed(&bench, &policy, "rg x"));
    std::os::unix::fs::symlink("/etc/hostname", bench.workspace.cwd().join(".ignore")).unwrap();
    assert!(!is_allowed(&bench, &policy, "rg x"));
    assert!(!is_allowed(&bench, &policy, "cd src && rg x"));
    assert!(!is_allowed(&bench, &policy, "rg x src"));
}

/// ripgrep enters `.git` if an option, a glob or another ignore file says so.
#[test]
fn search_of_hidden_folders_with_linked_ignore_file_is_asked_about() {
    let bench = everyday_fixture();
    let policy = Policy::default();
    let git = bench.workspace.cwd().join(".git");
    let lines = [
        "rg --hidden x",
        "rg -g .git x",
        "rg --glob=.git x",
        "rg --hidden --files",
    ];
    for line in lines {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
    std::os::unix::fs::symlink("/etc/hostname", git.join("objects/.ignore")).unwrap();
    for line in lines {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    assert!(!is_allowed(&bench, &policy, "rg x"));
}

#[test]
fn search_with_foreign_ignore_files_is_asked_about() {
    let policy = Policy::default();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("list"), "[\n").unwrap();
    for (name, is_link) in [
        ("src/.ignore", true),
        ("src/.gitignore", true),
        (".git/info/exclude", true),
        (".git/info", true),
        ("src/.git", false),
    ] {
        let bench = everyday_fixture();
        let path = bench.workspace.cwd().join(name);
        assert!(is_allowed(&bench, &policy, "rg x"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_dir_all(&path);
        match is_link {
            true => std::os::unix::fs::symlink(outside.path().join("list"), &path).unwrap(),
            false => std::fs::write(&path, "gitdir: /elsewhere\n").unwrap(),
        }
        for line in [
            "rg x",
            "rg --files",
            "rg x src .",
            "cd src && rg x ..",
            // The pattern looks like an option, or an option's value does.
            "rg -- -hello",
            "rg -- '-*e*'",
            "rg -- --files",
            "rg -tmake x",
            "rg -lTlicense x",
            "rg '-g*e' x",
        ] {
            assert!(!is_allowed(&bench, &policy, line), "{name} {line}");
        }
        assert!(is_allowed(&bench, &policy, "ls"), "{name}");
    }
}
