//! What is wrong, by its weight, and each finding once.

use super::*;

const LEVELS: [(&str, &str); 7] = [
    ("W-1", "SHOULD"),
    ("U-1", "interop"),
    ("U-2", "MUST"),
    ("F-1", "fact"),
    ("F-2", "MUST"),
    ("F-3", "MUST"),
    ("X-1", "MUST"),
];

fn at(line: usize) -> Finding {
    Finding { line, ..finding() }
}

fn failed(line: usize) -> Ruling {
    Ruling::Failed(at(line))
}

fn unreached(line: usize) -> Ruling {
    let why = "a step before its check failed: /a is missing & \"gone\"".to_owned();
    Ruling::NotReached(Finding { why, ..at(line) })
}

fn report() -> Report {
    let checks = vec![
        ("W-1", failed(2)),
        ("U-1", unreached(4)),
        ("U-2", unreached(5)),
        ("F-1", failed(3)),
        ("F-2", failed(2)),
        ("F-2", failed(4)),
        ("F-3", failed(6)),
        ("X-1", failed(1)),
    ];
    report_on(&table(&LEVELS), case(checks), &["X-1"], false)
}

/// The lines that name rules, and those that name places.
fn shown(report: &Report) -> Vec<String> {
    let text = plain(report);
    let (wrong, _) = text.split_once("\n\n").expect("what is wrong");
    let lines = wrong.lines().filter(|line| !line.starts_with("      "));
    lines.map(str::to_owned).collect()
}

#[test]
fn what_weighs_most_comes_first_and_no_finding_twice() {
    let why = "/a is missing & \"gone\"";
    let wanted = [
        "fail  F-2 (MUST, docs): says F-2".to_owned(),
        format!("    some-case, line 2: {why} (breaks W-1 too)"),
        format!("    some-case, line 4: {why}"),
        "fail  F-3 (MUST, docs): says F-3".to_owned(),
        format!("    some-case, line 6: {why}"),
        "fail  F-1 (fact, docs): says F-1".to_owned(),
        format!("    some-case, line 3: {why}"),
        "not reached  U-2 (MUST, docs): says U-2".to_owned(),
        format!("    some-case, line 5: a step before its check failed: {why}"),
        "not reached  U-1 (interop, docs): says U-1".to_owned(),
        "    some-case, line 4: as under F-2".to_owned(),
        "warn  W-1 (SHOULD, docs): says W-1".to_owned(),
        "    some-case, line 2: as under F-2".to_owned(),
        "fail  X-1 (MUST, docs), as expected: says X-1".to_owned(),
        format!("    some-case, line 1: {why}"),
    ];
    assert_eq!(shown(&report()), wanted);
}

#[test]
fn rules_that_the_same_findings_break_stand_together() {
    let levels = [
        ("A-1", "MUST"),
        ("A-2", "MUST"),
        ("A-3", "MUST"),
        ("A-4", "MUST"),
    ];
    let checks = vec![
        ("A-1", failed(1)),
        ("A-2", failed(2)),
        ("A-3", failed(1)),
        // In the same place, but something else.
        (
            "A-4",
            Ruling::Failed(Finding {
                why: "odd".to_owned(),
                ..at(1)
            }),
        ),
    ];
    let report = report_on(&table(&levels), case(checks), &[], false);
    let wanted = [
        "fail  A-1 (MUST, docs): says A-1",
        "fail  A-3 (MUST, docs): says A-3",
        "    some-case, line 1: /a is missing & \"gone\"",
        "fail  A-2 (MUST, docs): says A-2",
        "    some-case, line 2: /a is missing & \"gone\"",
        "fail  A-4 (MUST, docs): says A-4",
        "    some-case, line 1: odd",
    ];
    assert_eq!(shown(&report), wanted);
    let text = markdown(&report);
    let rows = "| A-1 | MUST | fail | says A-1 | /a is missing \\& \"gone\" (case some-case) |\n\
                | A-3 | MUST | fail | says A-3 | as A-1 |\n| A-2 |";
    assert!(text.contains(rows), "{text}");
}

#[test]
fn a_page_and_a_table_have_the_same_order() {
    let places = |text: &str, mark: &dyn Fn(&str) -> String| {
        let ids = ["F-2", "F-3", "F-1", "U-2", "U-1", "W-1", "X-1"];
        ids.map(|id| text.find(&mark(id)).expect("a rule"))
    };
    assert!(places(&markdown(&report()), &|id| format!("| {id} |")).is_sorted());
    assert!(places(&html(&report()), &|id| format!("id=\"{id}\"")).is_sorted());
    assert!(markdown(&report()).contains("| X-1 | MUST | fail, as expected | "));
}

#[test]
fn colours_are_only_added() {
    let report = report();
    let coloured = pretty(&report, Colours::On);
    assert!(
        coloured.starts_with("\u{1b}[1;31mfail\u{1b}[0m  F-2 "),
        "{coloured}"
    );
    assert!(
        coloured.contains("\u{1b}[33mwarn\u{1b}[0m  W-1 "),
        "{coloured}"
    );
    assert!(coloured.contains("\u{1b}[1;31mexit 1: "), "{coloured}");
    let mut bare = String::new();
    for part in coloured.split('\u{1b}') {
        let behind = part.split_once('m').filter(|_| part.starts_with('['));
        bare += behind.map_or(part, |(_, behind)| behind);
    }
    assert_eq!(bare, plain(&report));
    assert!(!plain(&report).contains('\u{1b}'));
}

#[test]
fn many_rules_that_one_thing_kept_from_being_reached_are_named_in_a_line() {
    let ids = ["A-1", "A-2", "A-3", "A-4"];
    let shown_of = |ids: &[&'static str]| {
        let levels: Vec<_> = ids.iter().map(|&id| (id, "MUST")).collect();
        let checks = ids.iter().map(|&id| (id, unreached(1))).collect();
        shown(&report_on(&table(&levels), case(checks), &[], false))
    };
    let why = "    some-case, line 1: a step before its check failed: /a is missing & \"gone\"";
    let wanted = ["not reached  4 rules: A-1, A-2, A-3, A-4", why];
    assert_eq!(shown_of(&ids), wanted);
    assert_eq!(shown_of(&ids[..3]).len(), 4);
}
