//! Checks the judgement of many ordinary and malicious command lines in every mode.

use super::{Judgement, Mode, Policy, Rule};
use crate::{Access, Workspace};
use proptest::prelude::*;

/// A folder with a few files, and a policy that allows `cargo test`, `cargo fmt` and `npm run build`.
struct CommandLineFixture {
    _folder: tempfile::TempDir,
    workspace: Workspace,
}

impl CommandLineFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::write(root.join("src/lib.rs"), "//! x\n").unwrap();
        std::os::unix::fs::symlink("/etc", root.join("outside")).unwrap();
        std::os::unix::fs::symlink("src/deep", root.join("inside")).unwrap();
        let workspace = Workspace::local(root).unwrap();
        Self {
            _folder: folder,
            workspace,
        }
    }

    fn judge(&self, policy: &Policy, command: &str) -> Judgement {
        let access = Access::Run {
            command: command.to_owned(),
            cwd: self.workspace.cwd().to_owned(),
        };
        policy.judge("shell", &access, &self.workspace)
    }
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn policy(mode: Mode) -> Policy {
    let allow = rules(&[
        "shell(cargo test:*)",
        "shell(cargo fmt)",
        "shell(npm run build:*)",
        "shell(sudo:*)",
        "shell(bash:*)",
        "shell(env:*)",
        "shell(find:*)",
        "shell(./tool.sh)",
        "shell(./tool.sh:*)",
    ]);
    Policy::new(mode, allow, rules(&["shell(curl:*)", "shell(git push:*)"]))
}

/// Returns the judgements as letters for the modes ask, edit, plan, auto, in this order: `a` allow, `?` ask,
/// `d` deny.
fn judgement_letters(bench: &CommandLineFixture, command: &str) -> String {
    Mode::ALL
        .iter()
        .map(|mode| match bench.judge(&policy(*mode), command) {
            Judgement::Allow => 'a',
            Judgement::Ask { .. } => '?',
            Judgement::Deny(_) => 'd',
        })
        .collect()
}

/// Command lines with their expected judgements.
const EXPECTED_JUDGEMENTS: &[(&str, &str)] = &[
    // Only read.
    ("ls", "aaaa"),
    ("ls -la src", "aaaa"),
    ("pwd", "aaaa"),
    ("cat src/lib.rs", "aaaa"),
    ("head -n 20 src/lib.rs", "aaaa"),
    ("head -20 src/lib.rs", "aaaa"),
    ("tail -n5 src/lib.rs | wc -l", "aaaa"),
    ("sed -n '1,20p' src/lib.rs", "aaaa"),
    ("grep -rn 'fn main' src", "aaaa"),
    ("rg --hidden -n todo", "aaaa"),
    ("find . -name '*.rs' -type f", "aaaa"),
    ("git status", "aaaa"),
    ("git status --short && git diff --stat HEAD~1", "aaaa"),
    ("git log --oneline -5", "aaaa"),
    ("git show HEAD:src/lib.rs", "aaaa"),
    ("git branch --list", "aaaa"),
    ("cd src && ls -l", "aaaa"),
    ("echo done; echo \"exit: $?\"", "aaaa"),
    ("echo '--- src ---' && printf '%s\\n' a b", "aaaa"),
    ("cargo --version", "aaaa"),
    ("command -v cargo", "aaaa"),
    ("ls 2>/dev/null", "aaaa"),
    ("ls 2>&1 | head", "aaaa"),
    ("cat < src/lib.rs", "aaaa"),
    ("(cd src && ls); pwd", "aaaa"),
    ("for f in a b; do echo x; done", "aaaa"),
    ("if true; then ls; else pwd; fi", "aaaa"),
    ("cat $(git ls-files)", "??da"),
    // Allowed by a rule.
    ("cargo test", "aada"),
    ("cargo test -- --nocapture", "aada"),
    ("cargo test 2>&1 | tail -n 20", "aada"),
    ("cd src && cargo test --lib", "aada"),
    ("cargo fmt", "aada"),
    ("cargo fmt --all", "??da"),
    // The input may determine what the command does.
    ("echo x | cargo fmt", "??da"),
    ("echo x | (cargo fmt; ls)", "??da"),
    ("echo x | if true; then cargo fmt; fi", "??da"),
    ("cargo fmt < src/lib.rs", "??da"),
    ("< src/lib.rs cargo fmt", "??da"),
    ("(cargo fmt) < src/lib.rs", "??da"),
    ("while true; do cargo fmt; done < src/lib.rs", "??da"),
    ("ls() { cargo fmt; }; echo x | ls", "??da"),
    ("ls() { cargo fmt; } < src/lib.rs; ls", "??da"),
    ("cargo fmt | head", "aada"),
    ("echo x | head; cargo fmt", "aada"),
    // The same name may mean another program in another folder.
    ("cd src && cargo fmt", "??da"),
    ("./tool.sh", "aada"),
    ("./tool.sh x", "aada"),
    ("cd src && ./tool.sh", "??da"),
    ("cd src; ./tool.sh x", "??da"),
    // Interpreters and command wrappers under other names.
    ("node18 -e x", "??d?"),
    ("perl5.36 -e x", "??d?"),
    ("ruby3.1 -e x", "??d?"),
    ("rbash -c x", "??d?"),
    ("ipython3 -c x", "??d?"),
    ("gtimeout 5 ls", "??da"),
    ("cargo test {PATH}<src/lib.rs; ls", "??d?"),
    ("cargo test {PATH}>/dev/null; ls", "??d?"),
    ("jobs -x rm x", "??d?"),
    ("ld.so /bin/rm x", "??d?"),
    ("x86_64 rm x", "??d?"),
    ("compgen -W '$(rm x)'", "??d?"),
    ("complete -C 'rm x' ls", "??d?"),
    ("test -v 'a[$(rm x)]'", "??d?"),
    ("[ a = b -o -R 'a[$(rm x)]' ]", "??d?"),
    ("printf -v 'a[$(rm x)]' y", "??d?"),
    ("printf -v'a[$(rm x)]' y", "??d?"),
    ("wait -n -p 'a[$(rm x)]'", "??d?"),
    ("/lib64/ld-linux-x86-64.so.2 ./x", "??d?"),
    ("npm run build && cargo test", "aada"),
    ("cargo test 'a b' \"c d\"", "aada"),
    ("cargo test $(git branch --show-current)", "aada"),
    ("cargo test &", "aada"),
    ("RUST_BACKTRACE=1 cargo test", "aada"),
    ("RUST_LOG=a::b=debug,c CI=true cargo test", "??da"),
    ("NO_COLOR=1 cargo test", "aada"),
    ("CI='$(shell rm x)' cargo test", "??d?"),
    ("TERM='a[$(rm x)]' cargo test", "??d?"),
    ("COLUMNS=/x cargo test", "??d?"),
    ("CI+=x cargo test", "??d?"),
    // Not allowed, but understood.
    ("cargo build", "??da"),
    ("cargo", "aaaa"),
    ("cargo testing", "??da"),
    ("make", "??da"),
    ("rm -rf target", "??da"),
    ("git commit -m 'x'", "??da"),
    ("git diff --output=x", "??da"),
    ("git diff --ext-diff", "??da"),
    ("git log --output x", "??da"),
    ("git branch -D main", "??da"),
    ("git branch new", "??da"),
    ("sort -o src/lib.rs src/lib.rs", "??da"),
    ("tail -f src/lib.rs", "??da"),
    ("sed -i 's/a/b/' src/lib.rs", "??da"),
    ("sed -n '1e rm x' src/lib.rs", "??da"),
    ("uniq a b", "??da"),
    ("date -s 12:00", "??da"),
    ("printf -v PATH x", "??d?"),
    ("printf 'abc%5n' PATH", "??da"),
    ("tree -o x", "??da"),
    // Outside the roots.
    ("cat /etc/passwd", "??da"),
    ("ls ..", "??da"),
    ("cat src/../../x", "??da"),
    ("cat outside/passwd", "??da"),
    ("grep -r root /etc", "??da"),
    ("rg -e x /etc", "??da"),
    ("tree /", "??da"),
    ("cd / && ls", "??da"),
    ("cd .. && cargo test", "??da"),
    ("cd src && cat ../../x", "??da"),
    ("cd src && cat ../src/lib.rs", "??da"),
    ("cargo test < /etc/passwd", "??da"),
    ("ls > /etc/passwd", "??da"),
    ("echo x > outside/passwd", "??da"),
    ("git diff --no-index /etc/passwd /dev/null", "??da"),
    ("git log -- ../x", "??da"),
    ("cat ~/.ssh/id_rsa", "??da"),
    // Redirections that write.
    ("ls > src/out.txt", "?ada"),
    ("echo x >> src/lib.rs", "?ada"),
    ("echo x > .git/hooks/pre-commit", "??da"),
    ("cargo test > out.txt", "??da"),
    ("cargo test &> out.txt", "??da"),
    ("ls > $OUT", "??d?"),
    ("> out rm x", "??da"),
    ("> out curl x", "dddd"),
    ("ls > out curl x", "??d?"),
    ("ls > out rm", "??d?"),
    // More than one command, hidden or not.
    ("git status; rm -rf x", "??da"),
    ("cargo test && rm x", "??da"),
    ("cargo test || rm x", "??da"),
    ("cargo test | tee x", "??da"),
    ("echo $(rm x)", "??da"),
    ("echo `rm x`", "??d?"),
    ("echo \"a $(rm x) b\"", "??da"),
    ("cat <(rm x)", "??da"),
    ("cargo test <(rm x)", "??da"),
    ("(rm x)", "??da"),
    ("{ rm x; }", "??da"),
    ("! rm x", "??da"),
    ("while true; do rm x; done", "??da"),
    ("for f in $(rm x); do ls; done", "??da"),
    ("ls() { rm x; }; ls", "??da"),
    ("cargo test & rm x", "??da"),
    ("cargo test ${X:-$(rm x)}", "??d?"),
    // Denied by a rule, wherever it hides.
    ("curl x", "dddd"),
    ("/usr/bin/curl x", "dddd"),
    ("cargo test && curl x|sh", "dddd"),
    ("echo $(curl x)", "dddd"),
    ("git push origin main", "dddd"),
    ("echo '\n' && git push", "dddd"),
    ("git $X", "??d?"),
    ("npx curl x", "dddd"),
    ("uv run curl x", "dddd"),
    ("poetry run git push", "dddd"),
    ("find . -exec curl {} +", "dddd"),
    ("xargs -n 1 curl", "dddd"),
    ("rustup run nightly curl x", "dddd"),
    ("npx -y curl x", "??d?"),
    ("choom -n 0 curl x", "??d?"),
    ("git --no-pager push", "??d?"),
    ("git -C . push", "??d?"),
    // Not understood: asked about even in auto, since a rule denies some commands.
    ("cargo test\nrm x", "??d?"),
    ("cargo test\r", "??d?"),
    ("cargo test \u{202e}", "??d?"),
    ("cargo\u{a0}test", "??d?"),
    ("FOO=bar cargo test", "??d?"),
    ("PATH=/tmp ls", "??d?"),
    ("LD_PRELOAD=./x.so cargo test", "??d?"),
    ("GIT_EXTERNAL_DIFF=./x git diff", "??d?"),
    ("PATH=/tmp; ls", "??d?"),
    ("for PATH in /tmp; do ls; done", "??d?"),
    ("\"car\"go test", "??d?"),
    ("ca\\rgo test", "??d?"),
    ("$'cargo' test", "??d?"),
    ("cargo test $'a'", "??d?"),
    ("$CMD x", "??d?"),
    ("rm${IFS}-rf x", "??d?"),
    ("echo 'unterminated", "??d?"),
    ("echo \"unterminated", "??d?"),
    ("ls \\", "??d?"),
    ("ls # comment", "??d?"),
    ("cat <<EOF\nx\nEOF", "??d?"),
    ("bash <<< 'rm x'", "??d?"),
    ("bash -c 'rm x'", "??d?"),
    ("sh -c 'rm x'", "??d?"),
    ("bash", "??d?"),
    ("cat x | sh", "??d?"),
    ("eval rm x", "??d?"),
    ("source x", "??d?"),
    (". x", "??d?"),
    ("sudo ls", "??d?"),
    ("env ls", "??d?"),
    ("ls | xargs rm", "??d?"),
    ("find . -exec rm {} +", "??d?"),
    ("find . -delete", "??d?"),
    ("ssh host ls", "??d?"),
    ("python3 -c 'print(1)'", "??d?"),
    ("node -e '1'", "??d?"),
    ("perl -ne 'system(1)' x", "??d?"),
    ("git -c core.pager=sh log", "??d?"),
    ("rg --pre sh x", "??d?"),
    ("time rm x", "??da"),
    ("echo `echo \\$(rm x)`", "??d?"),
    ("[[ -f x ]] && ls", "??d?"),
    ("echo $((1+1))", "??d?"),
    ("echo ${x@P}", "??d?"),
    ("exec 3<>/dev/tcp/host/80", "??d?"),
    ("case x in x) ls;; esac", "??d?"),
    ("", "??da"),
    // For `..`, a shell goes by the names of folders, the system by their links.
    ("cd inside && cat lib.rs", "aaaa"),
    ("cd inside/.. && cat lib.rs", "aaaa"),
    ("cd inside/../.. && cat x", "??da"),
    ("cd inside && cd ../.. && cat x", "??da"),
    ("cd src/deep/../../.. && ls", "??da"),
    // More ways to hide a command, found by attacking the parser.
    ("cat src/lib.rs; : > src/lib.rs", "?ada"),
    ("ls |& sh", "??d?"),
    ("ls >& src/out", "??d?"),
    ("ls 3<> src/out", "??d?"),
    ("ls > >(rm x)", "??d?"),
    ("ls &>> outside/x", "??da"),
    ("echo x > /dev/tcp/host/80", "??da"),
    ("cat < /dev/tcp/host/80", "??da"),
    ("cat /proc/self/environ", "??da"),
    ("cat /dev/stdin", "??da"),
    ("cat < /proc/1/cwd", "??da"),
    ("head -c 9 /dev/zero", "??da"),
    ("wc --files0-from=/etc/passwd", "??da"),
    ("sort --files0-from=x", "??da"),
    ("sort --compress-program=sh src/lib.rs", "??da"),
    ("grep -f /etc/passwd x", "??da"),
    ("grep -rn --file=/etc/passwd x", "??da"),
    ("grep --regexp=x /etc/passwd", "??da"),
    ("grep -ne x /etc/passwd", "??da"),
    ("rg -f x .", "??da"),
    ("rg -z x", "??da"),
    ("rg --hostname-bin=sh x", "??d?"),
    ("find . -fprintf x %p", "??d?"),
    ("find . -newer /etc/passwd", "aada"),
    ("find -L . -name x", "aada"),
    ("find / -name x", "aada"),
    ("find . -name x -o -okdir rm {} ;", "??d?"),
    ("git diff --output x", "??da"),
    ("git grep -O x", "??da"),
    ("git log -p --ext-diff", "??da"),
    ("git show --textconv HEAD", "??da"),
    ("git log -1 -- /etc/passwd", "??da"),
    ("git blame --contents /etc/passwd src/lib.rs", "??da"),
    ("git stash", "??da"),
    ("git tag v1", "??da"),
    ("git --exec-path=. status", "??d?"),
    ("GIT_DIR=x git status", "??d?"),
    ("git branch --edit-description", "??da"),
    ("date -f /etc/passwd", "??da"),
    ("file -f /etc/passwd", "??da"),
    ("file -m x src/lib.rs", "??da"),
    ("tree --fromfile /etc/passwd", "??da"),
    ("du --files0-from=/etc/passwd", "??da"),
    ("diff src/lib.rs /etc/passwd", "??da"),
    ("diff --to-file=/etc/passwd src/lib.rs", "??da"),
    ("sed -n '1w x' src/lib.rs", "??da"),
    ("sed -n -f x src/lib.rs", "??da"),
    ("sed -n -e 1p -e '1e rm x' src/lib.rs", "??da"),
    ("command -p rm x", "??d?"),
    ("command -vp rm", "??d?"),
    ("builtin cd /", "??d?"),
    ("type -P rm", "aaaa"),
    ("cd() { rm x; }; cd src", "??da"),
    ("cd; ls", "??d?"),
    ("cd - && ls", "??d?"),
    ("cd src & cat ../x", "??da"),
    ("for f in /etc/passwd; do cat $f; done", "??da"),
    ("for LD_PRELOAD in x; do ls; done", "??d?"),
    ("read x < /etc/passwd", "??d?"),
    ("X=1", "??d?"),
    ("LANG=$(rm x) ls", "??d?"),
    ("LC_ALL=C ls", "aaaa"),
    ("LANG=en_US.UTF-8 TZ=Europe/Berlin ls", "aaaa"),
    ("head -n -5 src/lib.rs", "aaaa"),
    ("git log -n 3 -U5 --format='%h %an'", "aaaa"),
    ("tree -L 2 -P x", "aaaa"),
    ("ls $(</etc/passwd)", "??da"),
    ("ls \"$(< /etc/passwd)\"", "??da"),
    ("ls ${HOME}", "??da"),
    ("ls ~", "??da"),
    ("echo ${x:=rm}", "??d?"),
    ("echo $[1+1]", "??d?"),
    ("if cd /; then ls; fi", "??d?"),
    ("ls\u{85}rm x", "??d?"),
    ("ls\u{200b}", "??d?"),
    ("ls;\trm x", "??da"),
    ("./ls", "??da"),
    ("/bin/ls", "??da"),
    ("../ls", "??da"),
    ("coproc rm x", "??d?"),
    ("(((rm x)))", "??d?"),
    // Arithmetic runs commands in the values of variables.
    ("(('$(rm x)')); ls", "??d?"),
    ("for x in 'a[$(rm x)]'; do ((x)); ls; done", "??d?"),
    ("CI='a[$(rm x)]'; ((CI)); ls", "??d?"),
    ("for x in 'a[$(rm x)]'; do !((echo x)); done", "??d?"),
    ("{ ls; } > /etc/x", "??da"),
    ("ls; } ; rm x", "??d?"),
    ("fakeroot rm x", "??d?"),
    ("prlimit rm x", "??d?"),
];

#[test]
fn every_line_is_judged_as_expected() {
    let bench = CommandLineFixture::new();
    let wrong: Vec<String> = EXPECTED_JUDGEMENTS
        .iter()
        .filter(|(command, expected)| judgement_letters(&bench, command) != *expected)
        .map(|(command, expected)| {
            format!(
                "{command:?}: {} instead of {expected}",
                judgement_letters(&bench, command)
            )
        })
        .collect();
    assert!(EXPECTED_JUDGEMENTS.len() >= 80);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// proves: THEME-6
#[test]
fn suggested_rule_is_narrowest_useful_one() {
    let bench = CommandLineFixture::new();
    for (command, expected) in [
        ("cargo build --release", Some("shell(cargo build:+)")),
        (
            "cd src && cargo build | tail -n 3",
            Some("shell(cargo build:+)"),
        ),
        (
            "cargo build; cargo build --release",
            Some("shell(cargo build:+)"),
        ),
        ("npm run lint", Some("shell(npm run lint)")),
        ("python3 -m pytest -q", Some("shell(python3 -m pytest:+)")),
        ("rm -rf target", Some("shell(rm -rf target)")),
        ("./run.sh 'a b'", Some("shell(./run.sh 'a b')")),
        ("ls > out.txt", Some("edit")),
        ("cargo build && make", None),
        ("cargo build > out.txt", None),
        ("rm $X", None),
        ("cargo build\nrm x", None),
        ("git reset --hard", Some("shell(git reset --hard)")),
        ("uv run pytest -q", Some("shell(uv run pytest:+)")),
        // The command may run a denied program.
        ("uv run python -c x", None),
        ("sudo cargo build", None),
        ("cd .. && cargo build", None),
        (
            "/usr/bin/git reset --hard",
            Some("shell(/usr/bin/git reset --hard)"),
        ),
    ] {
        let always = match bench.judge(&policy(Mode::Ask), command) {
            Judgement::Ask { always } => always.map(|rule| rule.to_string()),
            other => panic!("{command:?}: {other:?}"),
        };
        assert_eq!(always.as_deref(), expected, "{command:?}");
    }
}

#[test]
fn suggested_rule_allows_same_line_next_time() {
    let bench = CommandLineFixture::new();
    let mut checked = 0;
    for (command, _) in EXPECTED_JUDGEMENTS {
        let mut policy = policy(Mode::Ask);
        if let Judgement::Ask { always: Some(rule) } = bench.judge(&policy, command) {
            policy.add_allow_rule(rule);
            assert_eq!(
                bench.judge(&policy, command),
                Judgement::Allow,
                "{command:?}"
            );
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked}");
}

fn line_pieces_strategy() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ls",
        "cargo test",
        "cargo",
        "rm",
        "git status",
        "curl",
        "echo",
        "cd",
        "src",
        "..",
        "/etc",
        " ",
        " ",
        " ",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "$(",
        "`",
        "<(",
        ">",
        ">>",
        "<",
        "<<EOF",
        "'",
        "\"",
        "$'",
        "\\",
        "\n",
        "$x",
        "${x}",
        "*",
        "#",
        "{",
        "}",
        "!",
        "for f in a; do ",
        "; done",
        "if ",
        "then ",
        "fi",
        "=",
        "PATH=",
        "é",
        "{\u{10ffff}",
        "{1..",
        "<<",
        "<<-'E'",
        "\nE\n",
        "\u{0}",
        "[[",
        "2>&1",
        "$?",
        "~",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

#[test]
fn brace_before_rare_character_does_not_break_parser() {
    let bench = CommandLineFixture::new();
    for command in ["echo {\u{10ffff}", "echo {1..\u{10ffff}}"] {
        for mode in Mode::ALL {
            let judged = bench.judge(&policy(mode), command);
            assert_eq!(
                judged == Judgement::Allow,
                mode == Mode::Auto,
                "{command:?} {mode:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_judged(text in any::<String>(), command in line_pieces_strategy()) {
        let bench = CommandLineFixture::new();
        for command in [text, command] {
            for mode in Mode::ALL {
                let judged = bench.judge(&policy(mode), &command);
                if mode == Mode::Plan {
                    let asked = matches!(judged, Judgement::Ask { .. });
                    prop_assert!(!asked);
                }
            }
        }
    }

    #[test]
    fn any_text_parses_as_rule_or_is_error(
        text in any::<String>(),
        inside in line_pieces_strategy(),
        tool in prop::sample::select(vec!["shell", "edit", "read", "write_file"]),
    ) {
        for text in [text, format!("{tool}({inside})")] {
            match text.parse::<Rule>() {
                Ok(rule) => prop_assert_eq!(rule.to_string(), text.trim()),
                Err(error) => prop_assert_eq!(error.rule, text.trim()),
            }
        }
    }

    #[test]
    fn removal_after_allowed_line_is_not_allowed(command in line_pieces_strategy()) {
        let bench = CommandLineFixture::new();
        for mode in [Mode::Ask, Mode::Edit, Mode::Plan] {
            let policy = policy(mode);
            if bench.judge(&policy, &command) == Judgement::Allow {
                for more in ["; rm -rf /", " && rm -rf /", "\nrm -rf /", " | rm -rf /", " $(rm -rf /)"] {
                    let judged = bench.judge(&policy, &format!("{command}{more}"));
                    prop_assert_ne!(judged, Judgement::Allow, "{:?}", command);
                }
            }
        }
    }
}
