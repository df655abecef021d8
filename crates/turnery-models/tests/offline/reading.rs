//! Skills that only read: look up, outline, show, list, explain, notes.

use crate::driver::{play, play_with};
use serde_json::{Value, json};

const MACHINE: &str = "use std::fmt;

/// One engine execution.
///
/// Feed it inputs.
#[derive(Debug)]
pub struct Loop {
    /// Its state.
    state: State,
}

impl Loop {
    /// Feed it.
    pub fn on(
        &mut self,
        input: Input,
    ) -> Vec<Effect> {
        Vec::new()
    }
}
";

fn lines(text: &str, args: &Value) -> String {
    let from = args["start_line"].as_u64().unwrap_or(1) as usize;
    let to = args["end_line"].as_u64().unwrap_or(10_000) as usize;
    let lines: Vec<&str> = text.lines().skip(from - 1).take(to + 1 - from).collect();
    lines.join("\n")
}

#[test]
fn a_definition_is_found_and_described() {
    let played = play("where is Loop defined?", |tool, args| {
        Ok(match tool {
            "search" if args["pattern"] == r"\bLoop\b" => "src/machine.rs:7: pub struct Loop {\nsrc/machine.rs:12: impl Loop {\nsrc/lib.rs:3: pub use machine::Loop;\nsrc/lib.rs:1: //! The Loop.\n".into(),
            "search" => "README.md:3: the struct Loop is\nsrc/x.rs:9:     say(\"struct Loop\");\nsrc/machine.rs:7: pub struct Loop {\n".into(),
            "read_file" => lines(MACHINE, args),
            other => panic!("{other}"),
        })
    });
    assert_eq!(played.names(), ["search", "search", "read_file"]);
    assert_eq!(
        played.text,
        "`Loop` is a struct, defined at src/machine.rs:7.

```rust
pub struct Loop {
    /// Its state.
    state: State,
}
```

Its comment says:

> One engine execution.
>
> Feed it inputs.

Used on 2 lines in 2 files:
- src/machine.rs:12  impl Loop {
- src/lib.rs:3  pub use machine::Loop;"
    );
}

#[test]
fn numbered_lines_are_read_as_well() {
    let played = play("explain `on`", |tool, args| {
        Ok(match tool {
            "search" => "src/machine.rs:14:     pub fn on(\n".into(),
            _ => {
                let from = args["start_line"].as_u64().unwrap_or(1) as usize;
                let numbered: Vec<String> = (from..)
                    .zip(lines(MACHINE, args).lines())
                    .map(|(number, line)| format!("{number:>6}\t{line}"))
                    .collect();
                numbered.join("\n")
            }
        })
    });
    played.says(&[
        "`on` is a function, defined at src/machine.rs:14.",
        "```rust\npub fn on(\n    &mut self,\n    input: Input,\n) -> Vec<Effect> {\n```",
        "> Feed it.",
        "I found no other use of it.",
    ]);
}

#[test]
fn a_python_docstring_is_its_comment() {
    let file =
        "@cached\ndef load(path):\n    \"\"\"Load it.\n\n    Twice.\n    \"\"\"\n    return 1\n";
    let played = play("what is load?", |tool, _| {
        Ok(match tool {
            "search" => "a.py:2: def load(path):\ntests/test_a.py:9: def load(x):\n".into(),
            _ => file.into(),
        })
    });
    played.says(&[
        "defined at a.py:2",
        "```python\ndef load(path):\n```",
        "> Load it.\n>\n> Twice.",
        "Also defined at:\n- tests/test_a.py:9  def load(x):",
    ]);
}

#[test]
fn a_name_without_definition_is_searched_as_text() {
    let played = play("find frobnicate", |_, _| Ok("no matches".into()));
    assert_eq!(played.names(), ["search", "search", "search"]);
    assert_eq!(played.calls[2].1["literal"], json!(true));
    played.says(&["I found no `frobnicate`"]);
}

#[test]
fn a_file_is_outlined() {
    let played = play("outline src/machine.rs", |_, args| {
        assert_eq!(args["path"], "src/machine.rs");
        Ok(MACHINE.into())
    });
    played.says(&[
        "src/machine.rs, 20 lines",
        "     7  pub struct Loop\n    12  impl Loop\n    14      pub fn on(\n",
    ]);
}

#[test]
fn a_file_that_is_only_named_is_found_first() {
    let played = play("what is in machine.rs?", |tool, args| {
        match (tool, args["path"].as_str()) {
            ("read_file", Some("machine.rs")) => Err("no such file: machine.rs".into()),
            ("find_files", _) => Ok("src/machine.rs\n".into()),
            (_, _) => Ok(MACHINE.into()),
        }
    });
    assert_eq!(played.names(), ["read_file", "find_files", "read_file"]);
    played.says(&["src/machine.rs, 20 lines"]);
}

#[test]
fn lines_are_shown() {
    let played = play("show src/machine.rs:12-13", |_, args| {
        assert_eq!(
            (&args["start_line"], &args["end_line"]),
            (&json!(12), &json!(13))
        );
        Ok(lines(MACHINE, args))
    });
    assert_eq!(
        played.text,
        "src/machine.rs, lines 12 to 13:\n\n```rust\n   12  impl Loop {\n   13      /// Feed it.\n```"
    );
}

#[test]
fn notes_are_grouped_by_file() {
    let found = "src/a.rs:3: // TODO: one\nsrc/a.rs:9:     // FIXME(me): two\nb.py:1: x = 1  # HACK three\n";
    let played = play("list the TODOs", |_, _| Ok(found.into()));
    assert_eq!(
        played.text,
        "3 notes in 2 files here: 1 TODO, 1 FIXME, 1 HACK.

src/a.rs
- 3: TODO: one
- 9: FIXME(me): two

b.py
- 1: HACK three"
    );
}

#[test]
fn a_repository_is_explained() {
    let played = play("explain this repository", |tool, args| {
        Ok(match (tool, args["path"].as_str()) {
            ("list_dir", _) if args["depth"] == 1 => "Cargo.toml  1 B\nREADME.md  2 B\nsrc/\n".into(),
            ("list_dir", _) => ".github/\n  ci.yml  9 B\nCargo.toml  1 B\nREADME.md  2 B\nsrc/\n  deep/\n    a b.rs  9 B\n  machine.rs  1.5 KiB\n  main.rs  900 B\n".into(),
            ("read_file", Some("README.md")) => "# thing\n\n[badge]\n\nDoes things\nwell.\n\n## More\n".into(),
            ("read_file", _) => "[package]\nname = \"thing\"\n".into(),
            other => panic!("{other:?}"),
        })
    });
    assert_eq!(
        played.text,
        "thing is a Rust project (Cargo).

> Does things well.

5 files (3 .rs, 1 .md, 1 .toml):
- src/: 3 files
- 2 files at the top

The biggest source files:
- src/machine.rs (2 KiB)
- src/main.rs (1 KiB)
- src/deep/a b.rs (1 KiB)

Where it begins:
- src/main.rs

Build it with `cargo build`, test it with `cargo test --no-fail-fast`.

Go on with: outline FILE, where is NAME defined, run the tests."
    );
    assert_eq!(played.plans, 3);
}

#[test]
fn without_its_tool_a_skill_says_so() {
    let played = play_with("list the TODOs", &["read_file"], |_, _| panic!("no call"));
    assert_eq!(
        played.text,
        "That needs the tool `search`, which is not on offer in this session."
    );
}

#[test]
fn what_only_names_the_marks_is_no_note() {
    let found = "a.rs:1: let form = \"(TODO|FIXME)\";\na.rs:2: say(\"no TODO here\");\na.md:3: - [ ] TODO buy\na.c:4: x(); /* XXX: why */\n";
    let played = play("list the TODOs", |_, _| Ok(found.into()));
    assert_eq!(
        played.text,
        "2 notes in 2 files here: 1 TODO, 1 XXX.\n\na.md\n- 3: TODO buy\n\na.c\n- 4: XXX: why"
    );
}

const C: &str = "#include <stdio.h>
#define LIMIT 10
/* How many. */
static int counter = 0;
typedef struct node { struct node *next; } node_t;
int add(int a, int b);
int add(int a, int b) { return a + b; }
int main(void)
{
    return add(1, 2);
}";

#[test]
fn definitions_in_c_are_found() {
    for (name, line, kind, text) in [
        ("main", 8, "function", "int main(void)"),
        (
            "add",
            7,
            "function",
            "int add(int a, int b) { return a + b; }",
        ),
        ("LIMIT", 2, "macro", "#define LIMIT 10"),
        (
            "node_t",
            5,
            "struct",
            "typedef struct node { struct node *next; } node_t;",
        ),
    ] {
        let played = play(&format!("where is `{name}` defined?"), |tool, args| {
            if tool == "read_file" {
                return Ok(lines(C, args));
            }
            let pattern = args["pattern"].as_str().expect("a pattern");
            let pattern = regex::Regex::new(pattern).expect("valid");
            let hits = C
                .lines()
                .zip(1..)
                .filter(|(line, _)| pattern.is_match(line));
            Ok(hits
                .map(|(line, at)| format!("a.c:{at}: {line}\n"))
                .collect())
        });
        played.says(&[
            &format!("`{name}` is a {kind}, defined at a.c:{line}."),
            &format!("```c\n{text}\n```"),
        ]);
    }
    let outline = play("outline a.c", |_, args| Ok(lines(C, args)));
    for line in [2, 4, 5, 7, 8] {
        outline.says(&[&format!("\n{line:>6}  ")]);
    }
}

#[test]
fn methods_in_javascript_are_outlined() {
    let text = "class Greeter {\n  constructor(name) { this.name = name; }\n  greet() {\n    if (this.name) { say(); }\n  }\n}";
    let played = play("outline a.js", |_, args| Ok(lines(text, args)));
    played.says(&["     1  class Greeter\n     2    constructor(name) { this.name = name; }\n     3    greet()\n```"]);
}

#[test]
fn taking_a_value_apart_is_no_definition() {
    let played = play("where is Loop?", |tool, _| {
        Ok(match tool {
            "search" => "a.rs:3: let Loop { a } = it;\na.rs:9: pub struct Loop {\n".into(),
            _ => "pub struct Loop {\n    a: u8,\n}\n".into(),
        })
    });
    played.says(&["`Loop` is a struct, defined at a.rs:9."]);
    assert!(!played.text.contains("Also defined"), "{}", played.text);
}

#[test]
fn an_empty_folder_is_said_to_be_empty() {
    let played = play("list the files", |_, _| Ok("[the folder is empty]".into()));
    assert_eq!(played.text, "This folder is empty.");
}

#[test]
fn a_file_named_without_its_ending_is_found_and_one_outside_is_not_looked_for() {
    let played = play("show the README", |tool, args| {
        match (tool, args["path"].as_str()) {
            ("read_file", Some("README")) => Err("README does not exist".into()),
            ("find_files", _) => {
                assert_eq!(args["pattern"], "**/README{,.*}");
                Ok("README.md\ndocs/README-old.md\ndocs/README.md\n".into())
            }
            (_, _) => Ok("# Thing\n".into()),
        }
    });
    played.says(&["README.md, lines 1 to 1:"]);
    let played = play("show /etc/passwd", |_, _| {
        Err("/etc/passwd is outside the folders of this session (/p)".into())
    });
    assert_eq!(
        played.text,
        "I could not read /etc/passwd: /etc/passwd is outside the folders of this session (/p)"
    );
}

#[test]
fn a_question_in_plain_words_is_answered_with_the_lines_that_speak_of_it() {
    let played = play("where is the outcome of a loop decided?", |tool, args| {
        assert_eq!(tool, "search");
        assert_eq!(args["ignore_case"], true);
        assert_eq!(
            args["pattern"],
            r"\boutcom.*\bdecid|\boutcom.*\bloop|\bdecid.*\boutcom|\bdecid.*\bloop|\bloop.*\boutcom|\bloop.*\bdecid"
        );
        Ok("tests/a.rs:3: let outcome = the_loop();\n\
            src/end.rs:40: /// Decides the outcome of a loop.\n\
            src/end.rs:41: fn outcome(of: &Loop) -> Outcome {\n\
            README.md:9: each loop has an outcome\n"
            .into())
    });
    assert_eq!(
        played.text,
        "Lines that speak of `outcom…`, `decid…`, `loop…`, the closest first:

src/end.rs
- 40: /// Decides the outcome of a loop.
- 41: fn outcome(of: &Loop) -> Outcome {

README.md
- 9: each loop has an outcome

tests/a.rs
- 3: let outcome = the_loop();

I searched for the words of your question; to understand what the lines say needs a model, and none is \
connected."
    );
}

#[test]
fn a_question_that_no_line_speaks_of_is_told_so() {
    let played = play("how are invoices paid?", |_, _| Ok(String::new()));
    assert_eq!(
        played.text,
        "I found no line that speaks of two of `invoic…`, `paid…`. Files that git ignores are not searched."
    );
}
