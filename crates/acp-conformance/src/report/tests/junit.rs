//! Tests that the JUnit report agrees with the exit code.

use super::*;

#[test]
fn each_rule_is_a_test_and_counted_ones_fail() {
    let text = render_junit(&report_expecting(&[], true));
    for part in [
        "<testsuite name=\"acp-conformance An &#60;agent&#62;\" tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"1.5\">",
        "<testcase classname=\"MUST\" name=\"A-1 it &#60;answers&#62;\"><failure type=\"fail\" message=\"/a is missing &#38; &#34;gone&#34;\">",
        "<testcase classname=\"fact\" name=\"A-3 it forks\"><skipped message=\"fork\"/></testcase>",
        "<testcase classname=\"MUST NOT\" name=\"A-4 it holds\"/>",
        "<error message=",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("<script"), "{text}");
}

#[test]
fn failure_has_step_and_messages() {
    let place = "some-case, line 7: /a is missing &#38; &#34;gone&#34;\n  \
                 answered {&#34;a&#34;: 1} @ A-1\n  \
                 &#62; {&#34;id&#34;:1}\n  \
                 &#60; {&#34;text&#34;:&#34;&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;&#34;}\n";
    let text = render_junit(&report_expecting(&[], false));
    let failure = format!("gone&#34;\">\n{place}</failure></testcase>");
    assert!(text.contains(&failure), "{text}");
    // A SHOULD only warns: the test passes, with a remark.
    let remark =
        format!("name=\"A-2 it is | quick\"><system-out>warn\n{place}</system-out></testcase>");
    assert!(text.contains(&remark), "{text}");
}

#[test]
fn strict_fails_warnings_and_expected_failures_pass() {
    let strict = render_junit(&report_with(CheckResult::Passed, &[], false, true));
    assert!(strict.contains(" failures=\"2\" "), "{strict}");
    assert!(
        strict.contains("<failure type=\"warn\" message="),
        "{strict}"
    );
    let known = render_junit(&report_expecting(&["A-1"], false));
    assert!(known.contains(" failures=\"0\" "), "{known}");
    assert!(
        known.contains("<system-out>fail, as expected\nsome-case, line 7: "),
        "{known}"
    );
    assert!(!known.contains("<failure"), "{known}");
}

#[test]
fn unexpected_pass_is_a_failure() {
    let text = render_junit(&report_expecting(&["A-1", "A-4"], false));
    let failure = "name=\"A-4 it holds\"><failure type=\"unexpected pass\" message=\"it was expected to be broken, and is not\"/></testcase>";
    assert!(text.contains(failure), "{text}");
    assert!(text.contains(" failures=\"1\" "), "{text}");
}

#[test]
fn unreached_rule_fails_by_its_level() {
    let text = |level| {
        let outcome = outcome_with_checks(vec![("A-1", CheckResult::NotReached(finding()))]);
        render_junit(&report_of_case(
            &rule_table(&[("A-1", level)]),
            outcome,
            &[],
            false,
        ))
    };
    assert!(
        text("MUST").contains("<failure type=\"not reached\""),
        "{}",
        text("MUST")
    );
    assert!(
        text("SHOULD").contains("<system-out>not reached\n"),
        "{}",
        text("SHOULD")
    );
}
