//! Gives every parser of foreign text traps of a megabyte. None may recurse without limit or take more than about
//! linear time: a parser that does never ends here, or overflows the stack.

use super::{
    Mode, Policy, Rule,
    command_line::{CommandLine, SimpleCommand},
    glob::expand_pattern,
    inner_commands::find_inner_commands,
    read_only_scripts::{awk_input_files, jq_only_filters, sed_input_files},
    shell_word::{ShellWord, quote_words},
};
use crate::{Access, Workspace};

/// Size of a trap, and one below the limit of a command line. Unit: bytes.
const SIZES: [usize; 2] = [1 << 20, 8000];

/// Beginning, a part that is repeated, and its counterpart, which is repeated after it.
pub(super) const TRAPS: &[(&str, &str, &str)] = &[
    ("", "(", ""),
    ("", "(", ")"),
    ("", "{", ""),
    ("", "{", "}"),
    ("", "{a,", "}"),
    ("", "{a,b}", ""),
    ("", "{ ", "; }"),
    ("", "[", ""),
    ("", "[", "]"),
    ("", "[a]", ""),
    ("", "*", ""),
    ("", "**/", ""),
    ("", "**a", ""),
    ("", "?*", ""),
    ("", "$(", ")"),
    ("", "${a:-", "}"),
    ("", "`", ""),
    ("", "\"", ""),
    ("", "'", ""),
    ("", "\\", ""),
    ("", "a/", ""),
    ("", "a;", ""),
    ("", "a|", ""),
    ("", "<<a\n", ""),
    ("", "if ", ""),
    ("", "1,/a/", ""),
    ("", "s/a/b/;", ""),
    ("s/", "[^a]", "/"),
    ("/", "\\/", "/"),
    ("{(", ">", ""),
    ("{print (", "a>", ")"),
    ("", ".a|", ""),
    ("[", "[a]\n", ""),
    ("[a", "\\\n", ""),
    ("[a]\nb = ", "\"\"", ""),
];

/// Writes a trap of at most `size` bytes.
pub(super) fn build_trap((start, open, close): &(&str, &str, &str), size: usize) -> String {
    let count = size / (open.len() + close.len());
    [start, open.repeat(count).as_str(), &close.repeat(count)].concat()
}

/// Calls `parse` with each trap.
pub(super) fn spring_traps(parse: impl Fn(&str)) {
    for trap in TRAPS {
        for size in SIZES {
            parse(&build_trap(trap, size));
        }
    }
}

fn command(name: &str, script: &str) -> SimpleCommand {
    SimpleCommand {
        name: name.to_owned(),
        args: vec![ShellWord::Literal(script.to_owned())],
        is_opaque: false,
        is_stdin_redirected: false,
        upstream: Vec::new(),
    }
}

#[test]
fn every_parser_ends_on_hostile_input() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("a".repeat(200)), "").unwrap();
    let workspace = Workspace::local(root.clone()).unwrap();
    let judge = |line: &str| {
        let access = Access::Run {
            command: line.to_owned(),
            cwd: root.clone(),
        };
        let deny = vec!["read(**/.env)".parse().unwrap()];
        Policy::new(Mode::Ask, vec![], deny).judge("shell", &access, &workspace)
    };
    let match_rule = |text: String| {
        if let Ok(rule) = text.parse::<Rule>() {
            rule.denies_file(&root.join("a".repeat(200)), std::slice::from_ref(&root));
        }
    };
    spring_traps(|text| {
        CommandLine::parse(text);
        CommandLine::parse_confined(text, &root, &workspace);
        judge(text);
        for program in ["awk", "xargs", "bash -c"] {
            judge(&format!("{program} {}", quote_words(&[text])));
        }
        sed_input_files(&command("sed", text));
        awk_input_files(&command("awk", text));
        jq_only_filters(&ShellWord::Literal(text.to_owned()));
        find_inner_commands(&command("xargs", text));
        let _ = expand_pattern(text, &root, &workspace, &mut 1000);
        for tool in ["shell", "edit"] {
            match_rule(format!("{tool}({text})"));
        }
        match_rule(text.to_owned());
    });
}
