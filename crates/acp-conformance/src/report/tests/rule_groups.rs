//! Tests of the order and grouping of broken rules.

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

fn finding_at(line: usize) -> Finding {
    Finding { line, ..finding() }
}

fn failed(line: usize) -> CheckResult {
    CheckResult::Failed(finding_at(line))
}

fn unreached(line: usize) -> CheckResult {
    let why = "a step before its check failed: /a is missing & \"gone\"".to_owned();
    CheckResult::NotReached(Finding {
        why,
        ..finding_at(line)
    })
}

fn sample_report() -> Report {
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
    report_of_case(
        &rule_table(&LEVELS),
        outcome_with_checks(checks),
        &["X-1"],
        false,
    )
}

/// Returns the lines that name rules, and the lines that name places.
fn rule_and_place_lines(report: &Report) -> Vec<String> {
    let text = render_plain(report);
    let (wrong, _) = text.split_once("\n\n").expect("what is wrong");
    let lines = wrong.lines().filter(|line| !line.starts_with("      "));
    lines.map(str::to_owned).collect()
}

#[test]
fn rules_are_ordered_by_weight_without_repeats() {
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
    assert_eq!(rule_and_place_lines(&sample_report()), wanted);
}

#[test]
fn rules_with_equal_findings_are_grouped() {
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
        // In the same place, but a different failure.
        (
            "A-4",
            CheckResult::Failed(Finding {
                why: "odd".to_owned(),
                ..finding_at(1)
            }),
        ),
    ];
    let report = report_of_case(
        &rule_table(&levels),
        outcome_with_checks(checks),
        &[],
        false,
    );
    let wanted = [
        "fail  A-1 (MUST, docs): says A-1",
        "fail  A-3 (MUST, docs): says A-3",
        "    some-case, line 1: /a is missing & \"gone\"",
        "fail  A-2 (MUST, docs): says A-2",
        "    some-case, line 2: /a is missing & \"gone\"",
        "fail  A-4 (MUST, docs): says A-4",
        "    some-case, line 1: odd",
    ];
    assert_eq!(rule_and_place_lines(&report), wanted);
    let text = render_markdown(&report);
    let rows = "| A-1 | MUST | fail | says A-1 | /a is missing \\& \"gone\" (case some-case) |\n\
                | A-3 | MUST | fail | says A-3 | as A-1 |\n| A-2 |";
    assert!(text.contains(rows), "{text}");
}

#[test]
fn html_and_markdown_have_the_same_order() {
    let places = |text: &str, mark: &dyn Fn(&str) -> String| {
        let ids = ["F-2", "F-3", "F-1", "U-2", "U-1", "W-1", "X-1"];
        ids.map(|id| text.find(&mark(id)).expect("a rule"))
    };
    assert!(
        places(&render_markdown(&sample_report()), &|id| format!(
            "| {id} |"
        ))
        .is_sorted()
    );
    assert!(places(&render_html(&sample_report()), &|id| format!("id=\"{id}\"")).is_sorted());
    assert!(render_markdown(&sample_report()).contains("| X-1 | MUST | fail, as expected | "));
}

#[test]
fn colours_add_only_escape_sequences() {
    let report = sample_report();
    let coloured = render_pretty(&report, Colours::On);
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
    assert_eq!(bare, render_plain(&report));
    assert!(!render_plain(&report).contains('\u{1b}'));
}

#[test]
fn many_unreached_rules_share_one_line() {
    let ids = ["A-1", "A-2", "A-3", "A-4"];
    let shown_of = |ids: &[&'static str]| {
        let levels: Vec<_> = ids.iter().map(|&id| (id, "MUST")).collect();
        let checks = ids.iter().map(|&id| (id, unreached(1))).collect();
        rule_and_place_lines(&report_of_case(
            &rule_table(&levels),
            outcome_with_checks(checks),
            &[],
            false,
        ))
    };
    let why = "    some-case, line 1: a step before its check failed: /a is missing & \"gone\"";
    let wanted = ["not reached  4 rules: A-1, A-2, A-3, A-4", why];
    assert_eq!(shown_of(&ids), wanted);
    assert_eq!(shown_of(&ids[..3]).len(), 4);
}
