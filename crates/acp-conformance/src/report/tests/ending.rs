//! What made the exit code, and what was left out.

use super::*;

/// A report on rules of all weights, one of which has this ruling.
fn with(rule: &str, ruling: Ruling, expected: &[&str], strict: bool) -> Report {
    let rules = table(&[
        ("A-1", "MUST"),
        ("A-2", "SHOULD"),
        ("A-3", "interop"),
        ("A-4", "MAY"),
    ]);
    report_on(&rules, case(vec![(rule, ruling)]), expected, strict)
}

fn last(text: &str) -> &str {
    text.lines().last().expect("a line")
}

#[test]
fn a_rule_out_of_reach_counts_as_if_it_were_broken() {
    let kept = |rule, ruling, strict| with(rule, ruling, &[], strict).is_kept();
    for ruling in [Ruling::Failed(finding()), Ruling::NotReached(finding())] {
        assert!(!kept("A-1", ruling.clone(), false));
        assert!(kept("A-2", ruling.clone(), false));
        assert!(!kept("A-2", ruling.clone(), true));
        assert!(kept("A-3", ruling.clone(), false));
        assert!(!kept("A-3", ruling.clone(), true));
        assert!(kept("A-4", ruling.clone(), true));
        assert!(with("A-1", ruling, &["A-1"], true).is_kept());
    }
}

#[test]
fn what_is_bad_decides() {
    assert!(!report_of(&[], false).is_kept());
    assert!(report_of(&["A-1"], false).is_kept());
    assert!(!report_of(&["A-1", "A-4"], false).is_kept());
    assert!(!report_of(&["A-1"], true).is_kept());
    let strict = |expected| report_with(Ruling::Passed, expected, false, true);
    assert!(!strict(&["A-1"]).is_kept());
    assert!(strict(&["A-1", "A-2"]).is_kept());
}

#[test]
fn longer_bounds_are_told() {
    let mut report = with("A-1", Ruling::Passed, &[], false);
    report.slowdown = 1.4;
    assert!(!plain(&report).contains("the machine was busy"));
    report.slowdown = 3.25;
    let told = "note: the machine was busy, so bounds were 3.2 times longer than written \
                (--real-time keeps to it)\nexit 0: no rule that counts is broken\n";
    assert!(plain(&report).ends_with(told), "{}", plain(&report));
}

#[test]
fn the_last_line_says_what_made_the_exit_code() {
    let ending = |report: &Report| last(&plain(report)).to_owned();
    let passed = with("A-1", Ruling::Passed, &[], false);
    assert_eq!(ending(&passed), "exit 0: no rule that counts is broken");
    let unreached = |rule| with(rule, Ruling::NotReached(finding()), &[], false);
    assert_eq!(ending(&unreached("A-1")), "exit 1: 1 rule not reached");
    let lenient = "exit 0: no rule that counts is broken; 1 would count with --strict";
    assert_eq!(ending(&unreached("A-3")), lenient);
    let known = "exit 0: no rule that counts is broken; 1 known to be broken";
    let failed = || Ruling::Failed(finding());
    assert_eq!(ending(&with("A-1", failed(), &["A-1"], false)), known);
    let stale = "exit 1: 1 rule expected to be broken is not";
    let report = with("A-1", Ruling::Passed, &["A-1"], false);
    assert_eq!(ending(&report), stale);
    let both = "exit 1: 1 rule broken, 1 not reached, 1 case ended early; 1 more would count with --strict";
    let report = report_with(Ruling::NotReached(finding()), &[], true, false);
    assert_eq!(ending(&report), both);
    assert!(markdown(&report).contains(&format!("\n{both}.\n")));
    assert!(html(&report).contains(&format!("<p>{both}.</p>")));
    let all = "exit 1: 2 rules broken, 1 not reached, 1 case ended early";
    let report = report_with(Ruling::NotReached(finding()), &[], true, true);
    assert_eq!(ending(&report), all);
}

#[test]
fn a_case_that_is_at_fault_is_told_and_the_rest_stays() {
    let outcome = Outcome {
        fault: Some("line 3: no <such> step".to_owned()),
        ..case(vec![])
    };
    let report = report_on(&table(&[("A-1", "MUST")]), outcome, &[], false);
    let told = "the case some-case is at fault itself: line 3: no <such> step\n";
    assert!(plain(&report).contains(told), "{}", plain(&report));
    assert_eq!(last(&plain(&report)), "exit 2: 1 case at fault itself");
    assert!(
        markdown(&report).contains("some-case is at fault itself: line 3: no \\<such\\> step\n")
    );
    assert!(html(&report).contains("some-case is at fault itself: line 3: no &lt;such&gt; step<"));
    let error = "errors=\"1\" skipped=\"1\" time=\"1.5\">";
    assert!(junit(&report).contains(error), "{}", junit(&report));
    assert!(
        junit(&report)
            .contains("name=\"some-case\"><error message=\"line 3: no &lt;such&gt; step\"/>")
    );
    let faults: Vec<_> = report.faults().collect();
    assert_eq!(faults, [("some-case", "line 3: no <such> step")]);
}

/// Rules that are not applicable for these reasons.
fn left_out(profile: Option<&str>) -> Report {
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
    let missing = reasons.map(|reason| Ruling::NotApplicable(reason.to_owned()));
    let checks = rules.into_iter().zip(missing).collect();
    let rules = rules.map(|id| (id, "MUST"));
    let mut report = report_on(&table(&rules), case(checks), &[], false);
    report.agent.profile = profile.map(str::to_owned);
    report
}

#[test]
fn what_is_not_applicable_is_summed_up_by_what_it_needs() {
    let text = plain(&left_out(None));
    let line = "\nnot applicable: 2 need a model (--profile), 2 need what did not come up, \
                1 needs a tool that runs commands, 1 needs no initialize.authMethods, \
                1 needs sessionCapabilities.list, 1 needs version 2, \
                1 since the agent offered the model no tool that asks the user\n";
    assert!(text.contains(line), "{text}");
    let text = plain(&left_out(Some("x")));
    assert!(
        text.contains("\nnot applicable: 2 need a model, "),
        "{text}"
    );
    assert!(!plain(&with("A-1", Ruling::Passed, &[], false)).contains("not applicable:"));
}

#[test]
fn who_gives_no_profile_is_told_how_many_rules_that_leaves_out() {
    let hint = "3 rules were left out because no profile was given: one says how the agent is pointed at a model that \
                is played (--profile NAME or FILE)";
    let report = left_out(None);
    assert!(
        plain(&report).contains(&format!("\nhint: {hint}\n")),
        "{}",
        plain(&report)
    );
    assert!(markdown(&report).contains(&format!("\n{hint}.\n")));
    assert!(html(&report).contains(&format!("<p>{hint}.</p>")));
    for other in [left_out(Some("x")), with("A-1", Ruling::Passed, &[], false)] {
        for text in [plain(&other), markdown(&other), html(&other)] {
            assert!(!text.contains("left out"), "{text}");
        }
    }
}

#[test]
fn levels_without_a_rule_are_not_shown() {
    let report = report_on(&table(&[("A-1", "MUST")]), case(vec![]), &[], false);
    let (pretty, markdown, html) = (plain(&report), markdown(&report), html(&report));
    assert!(pretty.contains("\n      MUST  1 unchecked\n"), "{pretty}");
    assert!(markdown.contains("\n| MUST | 1 |\n"), "{markdown}");
    assert!(html.contains("<td>MUST</td>"), "{html}");
    for text in [pretty, markdown, html] {
        assert!(!text.contains("SHOULD"), "{text}");
    }
}

#[test]
fn an_agent_without_a_version_is_named_without_a_gap() {
    let mut report = report_of(&[], false);
    report.agent.version = None;
    assert!(plain(&report).contains("\nAn <agent>: 1 case in 1.5 s"));
    assert!(markdown(&report).starts_with("# An \\<agent\\>\n"));
    assert!(html(&report).contains("<h1>An &lt;agent&gt;</h1>"));
}
