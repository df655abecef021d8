//! Tests of the exit summary and of what the run left out.

use super::*;

/// Returns a report on rules of all weights, one of which has this result.
fn report_with_ruling(rule: &str, ruling: CheckResult, expected: &[&str], strict: bool) -> Report {
    let rules = rule_table(&[
        ("A-1", "MUST"),
        ("A-2", "SHOULD"),
        ("A-3", "interop"),
        ("A-4", "MAY"),
    ]);
    report_of_case(
        &rules,
        outcome_with_checks(vec![(rule, ruling)]),
        expected,
        strict,
    )
}

fn last_line(text: &str) -> &str {
    text.lines().last().expect("a line")
}

#[test]
fn unreached_rule_counts_as_broken() {
    let kept = |rule, ruling, strict| report_with_ruling(rule, ruling, &[], strict).is_conformant();
    for ruling in [
        CheckResult::Failed(finding()),
        CheckResult::NotReached(finding()),
    ] {
        assert!(!kept("A-1", ruling.clone(), false));
        assert!(kept("A-2", ruling.clone(), false));
        assert!(!kept("A-2", ruling.clone(), true));
        assert!(kept("A-3", ruling.clone(), false));
        assert!(!kept("A-3", ruling.clone(), true));
        assert!(kept("A-4", ruling.clone(), true));
        assert!(report_with_ruling("A-1", ruling, &["A-1"], true).is_conformant());
    }
}

#[test]
fn unexpected_failures_and_passes_decide() {
    assert!(!report_expecting(&[], false).is_conformant());
    assert!(report_expecting(&["A-1"], false).is_conformant());
    assert!(!report_expecting(&["A-1", "A-4"], false).is_conformant());
    assert!(!report_expecting(&["A-1"], true).is_conformant());
    let strict = |expected| report_with(CheckResult::Passed, expected, false, true);
    assert!(!strict(&["A-1"]).is_conformant());
    assert!(strict(&["A-1", "A-2"]).is_conformant());
}

#[test]
fn large_slowdown_is_reported() {
    let mut report = report_with_ruling("A-1", CheckResult::Passed, &[], false);
    report.slowdown = 1.4;
    assert!(!render_plain(&report).contains("the machine was busy"));
    report.slowdown = 3.25;
    let told = "note: the machine was busy, so bounds were 3.2 times longer than written \
                (--real-time keeps them as written)\nexit 0: no rule that counts is broken\n";
    assert!(
        render_plain(&report).ends_with(told),
        "{}",
        render_plain(&report)
    );
}

#[test]
fn last_line_explains_the_exit_code() {
    let ending = |report: &Report| last_line(&render_plain(report)).to_owned();
    let passed = report_with_ruling("A-1", CheckResult::Passed, &[], false);
    assert_eq!(ending(&passed), "exit 0: no rule that counts is broken");
    let unreached = |rule| report_with_ruling(rule, CheckResult::NotReached(finding()), &[], false);
    assert_eq!(ending(&unreached("A-1")), "exit 1: 1 rule not reached");
    let lenient = "exit 0: no rule that counts is broken; 1 would count with --strict";
    assert_eq!(ending(&unreached("A-3")), lenient);
    let known = "exit 0: no rule that counts is broken; 1 known to be broken";
    let failed = || CheckResult::Failed(finding());
    assert_eq!(
        ending(&report_with_ruling("A-1", failed(), &["A-1"], false)),
        known
    );
    let stale = "exit 1: 1 rule expected to be broken is not";
    let report = report_with_ruling("A-1", CheckResult::Passed, &["A-1"], false);
    assert_eq!(ending(&report), stale);
    let both = "exit 1: 1 rule broken, 1 not reached, 1 case ended early; 1 more would count with --strict";
    let report = report_with(CheckResult::NotReached(finding()), &[], true, false);
    assert_eq!(ending(&report), both);
    assert!(render_markdown(&report).contains(&format!("\n{both}.\n")));
    assert!(render_html(&report).contains(&format!("<p>{both}.</p>")));
    let all = "exit 1: 2 rules broken, 1 not reached, 1 case ended early";
    let report = report_with(CheckResult::NotReached(finding()), &[], true, true);
    assert_eq!(ending(&report), all);
}

#[test]
fn faulty_case_is_reported_beside_the_rest() {
    let outcome = CaseOutcome {
        error: Some("line 3: no <such> step".to_owned()),
        ..outcome_with_checks(vec![])
    };
    let report = report_of_case(&rule_table(&[("A-1", "MUST")]), outcome, &[], false);
    let told = "the case some-case is at fault itself: line 3: no <such> step\n";
    assert!(
        render_plain(&report).contains(told),
        "{}",
        render_plain(&report)
    );
    assert_eq!(
        last_line(&render_plain(&report)),
        "exit 2: 1 case at fault itself"
    );
    assert!(
        render_markdown(&report)
            .contains("some-case is at fault itself: line 3: no \\<such\\> step\n")
    );
    assert!(
        render_html(&report)
            .contains("some-case is at fault itself: line 3: no &#60;such&#62; step<")
    );
    let error = "errors=\"1\" skipped=\"1\" time=\"1.5\">";
    assert!(
        render_junit(&report).contains(error),
        "{}",
        render_junit(&report)
    );
    assert!(
        render_junit(&report)
            .contains("name=\"some-case\"><error message=\"line 3: no &#60;such&#62; step\"/>")
    );
    let faults: Vec<_> = report.faulty_cases().collect();
    assert_eq!(faults, [("some-case", "line 3: no <such> step")]);
}

/// Returns a report on rules that are not applicable for these reasons.
fn report_of_not_applicable(profile: Option<&str>) -> Report {
    let rules = [
        "A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "A-7", "A-8", "A-9",
    ];
    let reasons = [
        "sessionCapabilities.list",
        "model",
        "model",
        "tool that runs commands",
        "no initialize.authMethods",
        "v2",
        "the agent offered the model no tool that asks the user",
        "$ask",
        "no $call",
    ];
    let missing = reasons.map(|reason| CheckResult::NotApplicable(reason.to_owned()));
    let checks = rules.into_iter().zip(missing).collect();
    let rules = rules.map(|id| (id, "MUST"));
    let mut report = report_of_case(&rule_table(&rules), outcome_with_checks(checks), &[], false);
    report.agent.profile = profile.map(str::to_owned);
    report
}

#[test]
fn not_applicable_rules_are_grouped_by_reason() {
    let text = render_plain(&report_of_not_applicable(None));
    let line = "\nnot applicable: 2 need a model (--profile), 2 need a value that was not captured, \
                1 needs a tool that runs commands, 1 needs no initialize.authMethods, \
                1 needs sessionCapabilities.list, 1 needs version 2, \
                1 since the agent offered the model no tool that asks the user\n";
    assert!(text.contains(line), "{text}");
    let text = render_plain(&report_of_not_applicable(Some("x")));
    assert!(
        text.contains("\nnot applicable: 2 need a model, "),
        "{text}"
    );
    assert!(
        !render_plain(&report_with_ruling("A-1", CheckResult::Passed, &[], false))
            .contains("not applicable:")
    );
}

#[test]
fn missing_profile_hint_counts_omitted_rules() {
    let hint = "3 rules were left out because no profile was given: a profile connects the agent to the fake \
                model (--profile NAME or FILE)";
    let report = report_of_not_applicable(None);
    assert!(
        render_plain(&report).contains(&format!("\nhint: {hint}\n")),
        "{}",
        render_plain(&report)
    );
    assert!(render_markdown(&report).contains(&format!("\n{hint}.\n")));
    assert!(render_html(&report).contains(&format!("<p>{hint}.</p>")));
    for other in [
        report_of_not_applicable(Some("x")),
        report_with_ruling("A-1", CheckResult::Passed, &[], false),
    ] {
        for text in [
            render_plain(&other),
            render_markdown(&other),
            render_html(&other),
        ] {
            assert!(!text.contains("left out"), "{text}");
        }
    }
}

#[test]
fn levels_without_a_rule_are_not_shown() {
    let report = report_of_case(
        &rule_table(&[("A-1", "MUST")]),
        outcome_with_checks(vec![]),
        &[],
        false,
    );
    let (pretty, markdown, html) = (
        render_plain(&report),
        render_markdown(&report),
        render_html(&report),
    );
    assert!(pretty.contains("\n      MUST  1 unchecked\n"), "{pretty}");
    assert!(markdown.contains("\n| MUST | 1 |\n"), "{markdown}");
    assert!(html.contains("<td>MUST</td>"), "{html}");
    for text in [pretty, markdown, html] {
        assert!(!text.contains("SHOULD"), "{text}");
    }
}

#[test]
fn agent_without_version_has_no_trailing_space() {
    let mut report = report_expecting(&[], false);
    report.agent.version = None;
    assert!(render_plain(&report).contains("\nAn <agent>: 1 case in 1.5 s"));
    assert!(render_markdown(&report).starts_with("# An \\<agent\\>\n"));
    assert!(render_html(&report).contains("<h1>An &#60;agent&#62;</h1>"));
}
