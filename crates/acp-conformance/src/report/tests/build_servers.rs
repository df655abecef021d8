//! What build servers get says what the exit code says.

use super::*;

#[test]
fn there_is_a_test_for_each_rule_and_what_counts_fails() {
    let text = junit(&report_of(&[], true));
    for part in [
        "<testsuite name=\"acp-conformance An &lt;agent&gt;\" tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"1.5\">",
        "<testcase classname=\"MUST\" name=\"A-1 it &lt;answers&gt;\"><failure type=\"fail\" message=\"/a is missing &amp; &quot;gone&quot;\">",
        "<testcase classname=\"fact\" name=\"A-3 it forks\"><skipped message=\"fork\"/></testcase>",
        "<testcase classname=\"MUST NOT\" name=\"A-4 it holds\"/>",
        "<error message=",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("<script"), "{text}");
}

#[test]
fn a_failure_has_its_step_and_what_was_said() {
    let place = "some-case, line 7: /a is missing &amp; &quot;gone&quot;\n  \
                 answered {&quot;a&quot;: 1} @ A-1\n  \
                 &gt; {&quot;id&quot;:1}\n  \
                 &lt; {&quot;text&quot;:&quot;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;}\n";
    let text = junit(&report_of(&[], false));
    let failure = format!("gone&quot;\">\n{place}</failure></testcase>");
    assert!(text.contains(&failure), "{text}");
    // A SHOULD only warns: the test passes, and says so.
    let remark =
        format!("name=\"A-2 it is | quick\"><system-out>warn\n{place}</system-out></testcase>");
    assert!(text.contains(&remark), "{text}");
}

#[test]
fn who_is_strict_sees_warnings_fail_and_who_knows_of_failures_does_not() {
    let strict = junit(&report_with(Ruling::Passed, &[], false, true));
    assert!(strict.contains(" failures=\"2\" "), "{strict}");
    assert!(
        strict.contains("<failure type=\"warn\" message="),
        "{strict}"
    );
    let known = junit(&report_of(&["A-1"], false));
    assert!(known.contains(" failures=\"0\" "), "{known}");
    assert!(
        known.contains("<system-out>fail, as expected\nsome-case, line 7: "),
        "{known}"
    );
    assert!(!known.contains("<failure"), "{known}");
}

#[test]
fn what_passes_though_it_was_expected_to_be_broken_fails() {
    let text = junit(&report_of(&["A-1", "A-4"], false));
    let failure = "name=\"A-4 it holds\"><failure type=\"unexpected pass\" message=\"it was expected to be broken, and is not\"/></testcase>";
    assert!(text.contains(failure), "{text}");
    assert!(text.contains(" failures=\"1\" "), "{text}");
}

#[test]
fn what_was_not_reached_fails_by_the_weight_of_its_rule() {
    let text = |level| {
        let outcome = case(vec![("A-1", Ruling::NotReached(finding()))]);
        junit(&report_on(&table(&[("A-1", level)]), outcome, &[], false))
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
