//! Tests of the summary of unexpected exits.

use super::*;

fn exited_case(name: &str, how: &str, stderr: &str) -> PlayedCase {
    let outcome = CaseOutcome {
        case: name.to_owned(),
        unexpected_exit: Some(how.to_owned()),
        stderr: stderr.to_owned(),
        ..outcome_with_checks(vec![])
    };
    PlayedCase::new(&outcome)
}

fn report_of_cases(cases: Vec<PlayedCase>) -> Report {
    let mut report = report_of_case(
        &rule_table(&[("A-1", "MUST")]),
        outcome_with_checks(vec![]),
        &[],
        false,
    );
    report.cases = cases;
    report
}

#[test]
fn each_unexpected_exit_is_reported_once() {
    let trace = "1\n2\nline \u{1b}[2J3\n\n4\n<5> | `\nKeyError: 'a'\n";
    let report = report_of_cases(vec![
        exited_case("a", "exit status: 1", trace),
        exited_case("b", "signal: 9 (SIGKILL)", ""),
        exited_case("c", "exit status: 1", "other\nKeyError: 'a'"),
        exited_case("d", "exit status: 1", "KeyError: 'b'"),
    ]);
    let text = render_plain(&report);
    let wanted = "the agent's process ended by itself (exit status: 1) in 2 cases (a, c); last lines of stderr:\n    \
                  2\n    line \u{fffd}[2J3\n    4\n    <5> | `\n    KeyError: 'a'\n\
                  the agent's process ended by itself (signal: 9 (SIGKILL)) in 1 case (b); it wrote nothing to stderr\n\
                  the agent's process ended by itself (exit status: 1) in 1 case (d); last lines of stderr:\n    \
                  KeyError: 'b'\n";
    assert!(text.starts_with(wanted), "{text}");
    let text = render_markdown(&report);
    let wanted = "in 2 cases (a, c); last lines of stderr:\n\n    2\n    line \u{fffd}[2J3\n    4\n    <5> | `\n    KeyError: 'a'\n\n";
    assert!(text.contains(wanted), "{text}");
    let text = render_junit(&report);
    let wanted = "in 2 cases (a, c); last lines of stderr:\n2\nline \u{fffd}[2J3\n4\n&#60;5&#62; | `\nKeyError: &#39;a&#39;\n";
    assert!(text.contains(wanted), "{text}");
    assert!(text.ends_with("  </system-err>\n</testsuite>\n"), "{text}");
}

#[test]
fn unexpected_exit_report_is_bounded() {
    let name = |number: usize| format!("case-{number}");
    let other = |number| exited_case(&name(number), "exit status: 1", &format!("error {number}"));
    let mut cases: Vec<PlayedCase> = (0..20).map(other).collect();
    let same = |number| exited_case(&name(number), "exit status: 2", &"é".repeat(1000));
    cases.extend((20..27).map(same));
    let text = render_plain(&report_of_cases(cases));
    assert_eq!(text.matches("ended by itself").count(), 5);
    let wanted = format!(
        "(exit status: 2) in 7 cases (case-20, case-21, case-22, case-23, case-24, …); last lines of stderr:\n    {}\n",
        "é".repeat(200)
    );
    assert!(text.contains(&wanted), "{text}");
}

#[test]
fn no_exit_is_reported_while_agent_runs() {
    let report = report_expecting(&[], true);
    for text in [
        render_plain(&report),
        render_markdown(&report),
        render_junit(&report),
    ] {
        assert!(
            !text.contains("by itself") && !text.contains("system-err"),
            "{text}"
        );
    }
}
