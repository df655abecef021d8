//! How an agent ended by itself is told.

use super::*;

fn died(name: &str, how: &str, stderr: &str) -> PlayedCase {
    let outcome = Outcome {
        case: name.to_owned(),
        died: Some(how.to_owned()),
        stderr: stderr.to_owned(),
        ..case(vec![])
    };
    PlayedCase::new(&outcome)
}

fn report(cases: Vec<PlayedCase>) -> Report {
    let mut report = report_on(&table(&[("A-1", "MUST")]), case(vec![]), &[], false);
    report.cases = cases;
    report
}

#[test]
fn each_way_to_end_is_told_once_with_its_last_words() {
    let trace = "1\n2\nline \u{1b}[2J3\n\n4\n<5> | `\nKeyError: 'a'\n";
    let report = report(vec![
        died("a", "exit status: 1", trace),
        died("b", "signal: 9 (SIGKILL)", ""),
        died("c", "exit status: 1", "other\nKeyError: 'a'"),
        died("d", "exit status: 1", "KeyError: 'b'"),
    ]);
    let text = plain(&report);
    let wanted = "the agent's process ended by itself (exit status: 1) in 2 cases (a, c); its last words on stderr:\n    \
                  2\n    line \u{fffd}[2J3\n    4\n    <5> | `\n    KeyError: 'a'\n\
                  the agent's process ended by itself (signal: 9 (SIGKILL)) in 1 case (b); it wrote nothing to stderr\n\
                  the agent's process ended by itself (exit status: 1) in 1 case (d); its last words on stderr:\n    \
                  KeyError: 'b'\n";
    assert!(text.starts_with(wanted), "{text}");
    let text = markdown(&report);
    let wanted = "in 2 cases (a, c); its last words on stderr:\n\n    2\n    line \u{fffd}[2J3\n    4\n    <5> | `\n    KeyError: 'a'\n\n";
    assert!(text.contains(wanted), "{text}");
    let text = junit(&report);
    let wanted = "in 2 cases (a, c); its last words on stderr:\n2\nline \u{fffd}[2J3\n4\n&lt;5&gt; | `\nKeyError: &#39;a&#39;\n";
    assert!(text.contains(wanted), "{text}");
    assert!(text.ends_with("  </system-err>\n</testsuite>\n"), "{text}");
}

#[test]
fn what_is_told_of_deaths_is_bounded() {
    let name = |number: usize| format!("case-{number}");
    let other = |number| died(&name(number), "exit status: 1", &format!("error {number}"));
    let mut cases: Vec<PlayedCase> = (0..20).map(other).collect();
    let same = |number| died(&name(number), "exit status: 2", &"é".repeat(1000));
    cases.extend((20..27).map(same));
    let text = plain(&report(cases));
    assert_eq!(text.matches("ended by itself").count(), 5);
    let wanted = format!(
        "(exit status: 2) in 7 cases (case-20, case-21, case-22, case-23, case-24, …); its last words on stderr:\n    {}\n",
        "é".repeat(200)
    );
    assert!(text.contains(&wanted), "{text}");
}

#[test]
fn of_an_agent_that_stays_nothing_is_told() {
    let report = report_of(&[], true);
    for text in [plain(&report), markdown(&report), junit(&report)] {
        assert!(
            !text.contains("by itself") && !text.contains("system-err"),
            "{text}"
        );
    }
}
