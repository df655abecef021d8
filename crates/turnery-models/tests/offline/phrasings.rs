//! Tests everyday phrasings of the commands: verbs and word orders that users would try after the examples of
//! the help. A response starts with the interpretation.

use crate::driver::play;

/// A prompt, and the start of its response.
const PHRASINGS: [(&str, &str); 70] = [
    ("where is Loop defined?", "Definitions of `Loop`"),
    ("where is parse defined?", "Definitions of `parse`"),
    ("where is parse used?", "Definitions of `parse`"),
    ("where is parse called", "Definitions of `parse`"),
    ("where are uses of parse", "Definitions of `parse`"),
    ("where's Loop declared", "Definitions of `Loop`"),
    ("tell me where Loop is defined", "Definitions of `Loop`"),
    (
        "can you tell me where parse is used?",
        "Definitions of `parse`",
    ),
    ("where do we use Loop?", "Definitions of `Loop`"),
    ("where do I call parse?", "Definitions of `parse`"),
    ("find the definition of Loop", "Definitions of `Loop`"),
    ("find the definition of parse", "Definitions of `parse`"),
    ("show me the definition of parse", "Definitions of `parse`"),
    ("go to the definition of Loop", "Definitions of `Loop`"),
    ("definition of parse", "Definitions of `parse`"),
    ("declaration of parse", "Definitions of `parse`"),
    ("find Loop", "Definitions of `Loop`"),
    ("find parse_line", "Definitions of `parse_line`"),
    ("uses of Loop", "Definitions of `Loop`"),
    ("uses of parse", "Definitions of `parse`"),
    ("usages of parse", "Definitions of `parse`"),
    ("references to parse", "Definitions of `parse`"),
    ("find all references to parse", "Definitions of `parse`"),
    ("list all callers of parse", "Definitions of `parse`"),
    ("calls to parse", "Definitions of `parse`"),
    ("how many uses of parse?", "Definitions of `parse`"),
    (
        "how many references to Loop are there?",
        "Definitions of `Loop`",
    ),
    ("how often is parse used?", "Definitions of `parse`"),
    ("how many times is parse called?", "Definitions of `parse`"),
    ("is parse used anywhere?", "Definitions of `parse`"),
    ("who calls parse?", "Definitions of `parse`"),
    ("what calls parse", "Definitions of `parse`"),
    ("who is calling parse?", "Definitions of `parse`"),
    ("who uses Loop?", "Definitions of `Loop`"),
    ("who else uses Loop?", "Definitions of `Loop`"),
    ("which file defines parse?", "Definitions of `parse`"),
    ("in which file is Loop?", "Definitions of `Loop`"),
    ("what file is Loop in?", "Definitions of `Loop`"),
    ("search for needle", "`needle` is on 1 line"),
    ("grep needle", "`needle` is on 1 line"),
    ("grep src for \"needle\"", "`needle` is on 1 line"),
    ("which files contain \"needle\"?", "`needle` is on 1 line"),
    ("which file mentions 'needle'", "`needle` is on 1 line"),
    (
        "find all occurrences of \"needle\"",
        "`needle` is on 1 line",
    ),
    ("how often does \"needle\" occur?", "`needle` is on 1 line"),
    ("list TODOs", "TODO, FIXME, XXX or HACK begins"),
    (
        "show me the todos in src",
        "TODO, FIXME, XXX or HACK begins",
    ),
    (
        "are there any TODOs left?",
        "TODO, FIXME, XXX or HACK begins",
    ),
    ("show f.txt:1-2", "f.txt, lines 1 to 2:"),
    ("show f.txt lines 1-2", "f.txt, lines 1 to 2:"),
    ("show f.txt, lines 1 to 2", "f.txt, lines 1 to 2:"),
    ("show me lines 1-2 of f.txt", "f.txt, lines 1 to 2:"),
    ("show f.txt 1-2", "f.txt, lines 1 to 2:"),
    ("print f.txt from line 1 to 2", "f.txt, lines 1 to 2:"),
    ("open f.txt at line 1", "f.txt, line 1:"),
    ("show the first 2 lines of f.txt", "f.txt, lines 1 to 2:"),
    ("what's in f.txt?", "f.txt, lines 1 to 2:"),
    ("show the contents of f.txt", "f.txt, lines 1 to 2:"),
    ("cat f.txt", "f.txt, lines 1 to 2:"),
    ("replace aa with bb in f.txt", "Replaced `aa` with `bb` in"),
    (
        "replace `aa` with `bb` in f.txt",
        "Replaced `aa` with `bb` in",
    ),
    (
        "change \"aa\" to \"bb\" in f.txt",
        "Replaced `aa` with `bb` in",
    ),
    (
        "list the definitions in f.txt",
        "f.txt: I recognise definitions",
    ),
    ("which files are in src?", "`*`: 1 file"),
    ("what files did I change?", "Uncommitted"),
    ("list the modified files", "Uncommitted"),
    ("is anything uncommitted?", "Uncommitted"),
    ("are the tests passing?", "`cargo test"),
    ("run cargo check", "`cargo check`"),
    ("run all tests", "`cargo test"),
];

#[test]
fn everyday_phrasings_are_understood() {
    let mut wrong = Vec::new();
    for (prompt, expected) in PHRASINGS {
        let played = play(prompt, |tool, args| {
            let last = args["end_line"].as_u64().map_or(2, |last| last.min(2));
            Ok(match tool {
                "search" => "f.txt:1: aa // TODO: needle".to_owned(),
                "read_file" if last == 1 => "1\taa\n".to_owned(),
                "read_file" => "1\taa\n2\tbb\n".to_owned(),
                "find_files" => "f.txt".to_owned(),
                "list_dir" => "Cargo.toml  1 B\n".to_owned(),
                "edit_file" => "Edited f.txt:\n@@ -1 +1 @@\n-aa\n+bb\n".to_owned(),
                _ => "## main\n M f.txt\nexit code: 0".to_owned(),
            })
        });
        if !played.text.starts_with(expected) {
            wrong.push((prompt, played.text));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Words whose meaning depends on what the user has in mind.
#[test]
fn ambiguous_prompts_get_the_help() {
    for prompt in [
        "find bugs",
        "find the problem",
        "define success",
        "who uses the cache?",
        "who uses caching?",
        "where is caching implemented?",
        "where is it used?",
        "where is main.rs used?",
        "replace tabs with spaces in f.txt",
        "replace aa with bb",
        "replace it with something in f.txt",
        "replace foo with bar in the parser",
        "replace aa with bb in parser",
        "change the name to Engine",
        "list the functions in f.txt",
        "what's in the box?",
        "make it faster",
        "make tests",
        "explain this repository",
        "is it used anywhere?",
        "how many uses of this are there?",
    ] {
        let played = play(prompt, |tool, _| panic!("{prompt}: {tool}"));
        let sentence = "I work offline, without a model";
        assert!(played.text.starts_with(sentence), "{}", played.text);
    }
}

/// A range is shown as requested, and truncation is reported.
#[test]
fn shown_lines_are_named() {
    let mut asked = Vec::new();
    for (prompt, says) in [
        (
            "show f.txt:1-2",
            "f.txt, lines 1 to 2:\n```\n1  x\n2  x\n```",
        ),
        ("show f.txt:3", "f.txt, line 3:\n```\n3  x\n```"),
        ("show f.txt:2-9", "f.txt, lines 2 to 4:\n"),
        ("show f.txt", "f.txt, lines 1 to 4:\n"),
        (
            "show long.txt",
            "long.txt, lines 1 to 200 (I show at most 200 lines at once):\n",
        ),
        (
            "show long.txt:9-900",
            "long.txt, lines 9 to 208 (I show at most 200 lines at once):\n",
        ),
        ("show long.txt:1-200", "long.txt, lines 1 to 200:\n"),
    ] {
        let played = play(prompt, |_, args| {
            let line = |key: &str| args[key].as_u64().expect("a line");
            asked.push((line("start_line"), line("end_line")));
            let all = if prompt.contains("long") { 1000 } else { 4 };
            let lines = line("start_line")..=line("end_line").min(all);
            Ok(lines.map(|line| format!("{line}\tx\n")).collect())
        });
        assert!(played.text.starts_with(says), "{prompt}: {}", played.text);
    }
    assert_eq!(asked[0], (1, 2));
}
