//! Tests that the grammar in `schemas/conformance-case.lark` agrees with the parser of cases and with
//! `conformance/GRAMMAR.md`: it matches every line of every case, the parser accepts each of its steps, it does not
//! match lines that the parser rejects, and the document describes just its steps.

use acp_conformance::Case;
use regex::Regex;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

const LARK: &str = include_str!("../../../schemas/conformance-case.lark");
const DOCUMENT: &str = include_str!("../../../conformance/GRAMMAR.md");

/// One example of each word and of each recursive rule, as input for the parser.
const EXAMPLES: &[(&str, &str)] = &[
    ("json", r#"{"a": [1, "b"]}"#),
    ("object", r#"{"a": 1}"#),
    ("array", r#"[{"a": 1}, 2]"#),
    ("REST", r#"{"any": "thing"}"#),
    ("TEXT", r"some\ntext"),
    ("NAME", "name"),
    ("WORD", "word"),
    ("PATH", "loadSession"),
    ("VARIABLE", "$captured"),
    ("TOOL", "write"),
    ("CALLED", "mcp:echo"),
    ("RULE", "TR-1"),
    ("NUMBER", "404"),
    ("CODE", "3"),
    ("RANGE", "1..2"),
    ("SETTING", "KEY=value"),
    ("STRING", r#""quoted \"text\"""#),
    ("PROMPT", "prompt!+"),
    ("CALL", "call!"),
    ("TELL", "tell!"),
    ("VOICE", "thought"),
    ("PERMISSION", "by hand"),
    ("ELICITATION", "strange"),
];

/// Returns each rule with its alternatives, and each word with its regular expression.
fn grammar_rules() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut rules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut last = "";
    for line in LARK.lines().map(str::trim) {
        if line.is_empty() || line.starts_with("//") || line.starts_with('%') {
            continue;
        }
        if let Some(more) = line.strip_prefix("| ") {
            rules.entry(last).or_default().push(more);
        } else {
            let (name, rest) = line.split_once(": ").expect("NAME: …");
            last = name;
            let is_word = rest.starts_with('/');
            let rests = if is_word {
                vec![rest]
            } else {
                split_outside(rest, '|')
            };
            rules.entry(name).or_default().extend(rests);
        }
    }
    rules
}

/// Splits a text at the separators outside quotes and brackets. Empty parts are left out.
fn split_outside(text: &'static str, separator: char) -> Vec<&'static str> {
    let (mut depth, mut quoted) = (0, false);
    let is_outside = |letter: char| {
        match letter {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        letter == separator && !quoted && depth == 0
    };
    let parts = text.split(is_outside).map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

/// Splits an alternative into items: `"literal"`, `name`, `( … )`, each with its `?`, `*` or `+`.
fn split_items(text: &'static str) -> Vec<(&'static str, char)> {
    let items = split_outside(text, ' ').into_iter();
    let parts = items.map(|item| {
        let mark = item.chars().last().filter(|mark| "?*+".contains(*mark));
        let bare = mark.map_or(item, |_| &item[..item.len() - 1]);
        (bare, mark.unwrap_or(' '))
    });
    parts.collect()
}

/// Returns the regular expression of an alternative; each item includes the blanks after it.
fn alternative_regex(
    rules: &BTreeMap<&str, Vec<&'static str>>,
    alternative: &'static str,
) -> String {
    let item = |(item, mark): (&'static str, char)| {
        let inner = if let Some(group) = item.strip_prefix('(') {
            let group = group.strip_suffix(')').expect("a closed bracket");
            alternatives_regex(rules, &split_outside(group, '|'))
        } else if let Some(literal) = item.strip_prefix('"') {
            // Some literals in the grammar start with a blank.
            let literal = literal.strip_suffix('"').expect("a closed quote").trim();
            format!("{}(?: +|$)", regex::escape(literal))
        } else if item == "json" {
            r#"(?:[\[{"tfn0-9-].*?)(?: +|$)"#.to_owned()
        } else if item == "array" {
            r"(?:\[.*?\])(?: +|$)".to_owned()
        } else if item == "object" {
            r"(?:\{.*?\})(?: +|$)".to_owned()
        } else {
            let known = rules.get(item).unwrap_or_else(|| panic!("what is {item}?"));
            match known[0].strip_prefix('/') {
                Some(word) => format!("(?:{})(?: +|$)", word.strip_suffix('/').expect("/…/")),
                None => alternatives_regex(rules, known),
            }
        };
        format!("(?:{inner}){mark}").trim_end().to_owned()
    };
    split_items(alternative).into_iter().map(item).collect()
}

fn alternatives_regex(
    rules: &BTreeMap<&str, Vec<&'static str>>,
    alternatives: &[&'static str],
) -> String {
    let each = alternatives.iter().map(|one| alternative_regex(rules, one));
    each.collect::<Vec<_>>().join("|")
}

fn rule_regex(rule: &str) -> Regex {
    let rules = grammar_rules();
    Regex::new(&format!(
        "^(?:{})$",
        alternatives_regex(&rules, &rules[rule])
    ))
    .expect("an expression")
}

/// Returns the step lines of a case, and the lines of its model blocks.
fn step_and_model_lines(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut steps, mut said) = (Vec::new(), Vec::new());
    let mut is_model = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if is_model && line == "end" {
            is_model = false;
        } else if is_model {
            said.push(line);
        } else if line == "model" || line.starts_with("model for ") {
            is_model = true;
        } else {
            steps.push(line);
        }
    }
    (steps, said)
}

#[test]
fn grammar_matches_every_case_line() {
    let (guarded, need, said) = (
        rule_regex("guarded"),
        rule_regex("need"),
        rule_regex("said"),
    );
    let mut seen = 0;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/cases");
    for file in fs::read_dir(folder).expect("the cases") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
        let (steps, models) = step_and_model_lines(&text);
        for line in steps.into_iter().filter(|line| !line.starts_with('#')) {
            assert!(guarded.is_match(line) || need.is_match(line), "{line}");
            seen += 1;
        }
        for line in models.into_iter().filter(|line| *line != "---") {
            assert!(said.is_match(line), "{line}");
        }
    }
    assert!(seen > 1000, "{seen} lines");
}

/// Returns one line for each way through an alternative: without and with each of its optional parts.
fn example_lines(rules: &BTreeMap<&str, Vec<&'static str>>, rule: &str) -> Vec<String> {
    if let Some((_, example)) = EXAMPLES.iter().find(|(name, _)| *name == rule) {
        return vec![(*example).to_owned()];
    }
    let each = rules[rule].iter().flat_map(|alternative| {
        let mut lines = vec![String::new()];
        for (item, mark) in split_items(alternative) {
            let texts = match item.strip_prefix('"') {
                Some(literal) => vec![literal.trim_matches(['"', ' ']).to_owned()],
                None => example_lines(rules, item),
            };
            let with = |line: &String| {
                let more = texts.iter().map(move |text| format!("{line} {text}"));
                more.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
            };
            let longer: Vec<String> = lines.iter().flat_map(with).collect();
            match mark {
                '?' | '*' => lines.extend(longer),
                _ => lines = longer,
            }
        }
        lines
    });
    each.collect()
}

#[test]
fn parser_accepts_each_grammar_step() {
    let rules = grammar_rules();
    let set = ["session", "prompt", "name", "word", "a"].map(|name| format!("let {name} 1\n"));
    let set = set.concat();
    let steps = example_lines(&rules, "step");
    assert!(steps.len() > 100, "{} steps", steps.len());
    for step in steps {
        let case = Case::parse("x", &format!("# x\n{set}{step}"));
        assert!(case.is_ok(), "{step}: {case:?}");
    }
    for said in example_lines(&rules, "said")
        .iter()
        .filter(|said| !said.starts_with('#'))
    {
        let case = Case::parse("x", &format!("# x\nmodel\n{said}\nend"));
        assert!(case.is_ok(), "{said}: {case:?}");
    }
    for line in [
        "if loadSession mark",
        "unless $a mark",
        "within 5 mark",
        "if tool ask if v2 mark @ TR-1 V2-3",
    ] {
        assert!(rule_regex("guarded").is_match(line), "{line}");
        let case = Case::parse("x", &format!("# x\n{set}{line}"));
        assert!(case.is_ok(), "{line}");
    }
}

#[test]
fn grammar_rejects_what_the_parser_rejects() {
    let (guarded, need, said) = (
        rule_regex("guarded"),
        rule_regex("need"),
        rule_regex("said"),
    );
    for line in [
        "strat",
        "exit now",
        "exit",
        "file",
        "mark mark",
        "mark @ nothing",
        "split",
        "within soon mark",
        "go on",
        "go on sleeping",
        "stop",
        "hang",
        "orphans",
        "stderr is x",
        "permission maybe",
        "elicitation perhaps",
        "answer x by foot",
        "count many {}",
        "<",
        "said words",
        "call",
        "order {}",
        "start KEY",
        "needs tool hammer",
        "unless",
        "needs $x",
        "mark @ tr-1",
        "exit 0 @",
    ] {
        assert!(!guarded.is_match(line) && !need.is_match(line), "{line}");
        assert!(Case::parse("x", &format!("# x\n{line}")).is_err(), "{line}");
    }
    for line in [
        "tetx \"a\"",
        "text a",
        "text \"a\" often",
        "slow",
        "error",
        "usage 1",
        "call read [1]",
    ] {
        assert!(!said.is_match(line), "{line}");
        assert!(
            Case::parse("x", &format!("# x\nmodel\n{line}\nend")).is_err(),
            "{line}"
        );
    }
}

#[test]
fn documented_examples_are_cases() {
    let tutorial = include_str!("../../../conformance/README.md");
    for (document, rules) in [
        (
            DOCUMENT,
            vec!["UPD-1", "PROMPT-3", "PROMPT-5", "PROMPT-7", "TR-6"],
        ),
        (
            tutorial,
            vec!["PROMPT-3", "INIT-10", "PROMPT-1", "MSG-3", "TR-6"],
        ),
    ] {
        let (_, example) = document.split_once("```text\n").expect("an example");
        let (example, _) = example.split_once("```").expect("its end");
        let case = Case::parse("example", example).expect("a case");
        assert_eq!(case.cited_rules(), rules);
    }
}

/// Returns the first word of each alternative of a grammar rule.
fn first_words(rules: &BTreeMap<&str, Vec<&'static str>>, rule: &str) -> BTreeSet<String> {
    let lines = example_lines(rules, rule).into_iter();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| first_word(&line))
        .collect()
}

/// Returns the first word of a line, without the marks `!` of `call!` and `+` of `>raw+`.
fn first_word(line: &str) -> String {
    let word = line.split(' ').next().unwrap_or_default();
    let word = word.strip_suffix('+').unwrap_or(word);
    let is_name = word.starts_with(|letter: char| letter.is_ascii_alphabetic());
    word.trim_end_matches(|letter| is_name && letter == '!')
        .to_owned()
}

/// Returns the first word of each code span in the first column of the document's tables with this heading.
fn documented_words(heading: &str) -> BTreeSet<String> {
    let heading = format!("| {heading} |");
    let mut is_table = false;
    let mut words = BTreeSet::new();
    for line in DOCUMENT.lines() {
        is_table = line.starts_with(&heading) || is_table && line.starts_with('|');
        if is_table && line.starts_with("| `") {
            let cell = line.split('|').nth(1).unwrap_or_default();
            words.extend(cell.split('`').skip(1).step_by(2).map(first_word));
        }
    }
    words
}

#[test]
fn document_describes_just_the_grammar() {
    let rules = grammar_rules();
    let mut steps = first_words(&rules, "step");
    steps.extend(["needs", "model", "end"].map(str::to_owned));
    let documented = &documented_words("step") | &documented_words("check");
    assert_eq!(documented, steps);
    assert_eq!(documented_words("line"), first_words(&rules, "said"));
    for words in ["PERMISSION", "ELICITATION", "TOOL", "VOICE"] {
        for word in rules[words][0].trim_matches('/').split('|') {
            assert!(DOCUMENT.contains(word), "{word}");
        }
    }
}
