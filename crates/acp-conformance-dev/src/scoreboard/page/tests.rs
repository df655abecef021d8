//! Tests of the page, with results made by hand.

use super::*;
use crate::scoreboard::{FailureReason, RuleResult, manual_checks::ManualCheck};
use std::{collections::BTreeMap, time::Duration};

fn sample_requirements() -> Requirements {
    Requirements::parse(
        r#"
        revision = "r1"
        [rules.A-1]
        level = "MUST"
        says = "it ends"
        source = "s"
        [rules.A-2]
        level = "MUST NOT"
        says = "it talks"
        source = "s"
        [rules.A-3]
        level = "SHOULD"
        says = "it sings"
        source = "s"
        [rules.A-4]
        level = "interop"
        says = "it dances"
        source = "s"
        "#,
    )
    .unwrap()
}

fn sample_results() -> AgentResults {
    let found = |verdict, why| RuleResult { verdict, why };
    let why = FailureReason {
        case: "leaving".to_owned(),
        line: 7,
        text: "it does `not` end".to_owned(),
        step: "exit any".to_owned(),
        received: Some("{}".to_owned()),
    };
    AgentResults {
        name: "x".to_owned(),
        about: "An agent.".to_owned(),
        revision: Some("r1".to_owned()),
        packages: vec!["x@1".to_owned()],
        reported_agent: "X 1.0".to_owned(),
        rules: BTreeMap::from([
            ("A-1".to_owned(), found(Verdict::Fail, Some(why))),
            ("A-2".to_owned(), found(Verdict::Pass, None)),
            ("A-3".to_owned(), found(Verdict::NotReached, None)),
            ("A-4".to_owned(), found(Verdict::NotApplicable, None)),
        ]),
        run_problems: vec!["shell, line 3: nothing came".to_owned()],
        flaky_failures: vec!["A-2: busy, line 1: late".to_owned()],
        took: Duration::from_secs(12),
        slowdown: Some(1.4),
        ..AgentResults::default()
    }
}

/// Returns another agent, which fails these rules and passes the rest.
fn results_failing(name: &str, failed: &[&str]) -> AgentResults {
    let found = |id: &str| {
        let verdict = match failed.contains(&id) {
            true => Verdict::Fail,
            false => Verdict::Pass,
        };
        (id.to_owned(), RuleResult { verdict, why: None })
    };
    AgentResults {
        name: name.to_owned(),
        packages: Vec::new(),
        rules: ["A-1", "A-2", "A-3", "A-4"].map(found).into(),
        run_problems: Vec::new(),
        flaky_failures: Vec::new(),
        ..sample_results()
    }
}

/// Asserts that the page contains these parts, in this order.
fn assert_order(page: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        let at = page[from..].find(part);
        from += at.unwrap_or_else(|| panic!("{part} is not behind the one before it:\n{page}"));
    }
}

#[test]
fn page_counts_by_level_and_describes_failures() {
    let checked = ManualChecks {
        checked: vec![ManualCheck {
            agent: "x".to_owned(),
            rules: vec!["A-1".to_owned()],
            how: "a pipe, and nothing came".to_owned(),
        }],
    };
    let page = render_page(
        &sample_requirements(),
        &[sample_results()],
        &[],
        &checked,
        9,
    );
    assert!(
        page.contains("Agents: 1. Examples of the official SDKs: 0."),
        "{page}"
    );
    assert!(
        page.contains("9 [cases](cases) look at 4 [rules]"),
        "{page}"
    );
    let row = "| [x](#x) | 1 | 1 of 2 | – | – | – | – | 1 | 1 |\n";
    assert!(page.contains(row), "{page}");
    let about = "An agent. Installed: `x@1`. It calls itself `X 1.0`.\n\n";
    assert!(page.contains(about), "{page}");
    let failure = "- **A-1**, MUST: it ends.\n  In [leaving](cases/leaving.case), line 7: `it does 'not' end`; came `{}`\n  *By hand:* a pipe, and nothing came\n";
    assert!(page.contains(failure), "{page}");
    assert!(page.contains("Not reached: A-3.\n"), "{page}");
    assert_order(
        &page,
        &[
            "Steps that ended their case: 1",
            "- `shell, line 3: nothing came`\n",
            "Failed in one play, and not in the last: 1",
            "- `A-2: busy, line 1: late`\n",
        ],
    );
    assert!(!page.contains("**A-2**") && !page.contains("**A-4**"));
    assert!(
        !page.contains("stumble") && !page.contains("SDKs\n"),
        "{page}"
    );
}

#[test]
fn agents_are_ranked_and_examples_listed_apart() {
    let mut unplayed = results_failing("unplayed", &[]);
    unplayed.rules.clear();
    let example = AgentResults {
        is_example: true,
        ..results_failing("example", &[])
    };
    let all_results = [
        example,
        unplayed,
        results_failing("must", &["A-1"]),
        results_failing("interop", &["A-4"]),
        results_failing("should", &["A-3"]),
        results_failing("best", &[]),
    ];
    let page = render_page(
        &sample_requirements(),
        &all_results,
        &[],
        &ManualChecks::default(),
        9,
    );
    assert!(
        page.contains("Agents: 5. Examples of the official SDKs: 1."),
        "{page}"
    );
    assert_order(
        &page,
        &[
            "## Agents",
            "| [best](#best) | 1.0 | 2 of 2 | – | 1 of 1 | 1 of 1 | – | 0 | 0 |",
            "| [interop]",
            "| [should]",
            "| [must]",
            "| [unplayed](#unplayed) | 1.0 | – |",
            "## Examples of the official SDKs",
            "| [example]",
            "### best",
            "It keeps all 2 MUST and 0 facts.",
            "### interop",
            "<details><summary>0 SHOULD, 1 interop</summary>\n\n- **A-4**",
            "### unplayed",
            "It could not be played.",
            "### example",
        ],
    );
}

#[test]
fn common_failures_are_listed_once() {
    let both = ["A-1", "A-4"];
    let all_results = [
        results_failing("one", &both),
        results_failing("two", &both),
        results_failing("three", &["A-2", "A-4"]),
    ];
    let page = render_page(
        &sample_requirements(),
        &all_results,
        &[],
        &ManualChecks::default(),
        9,
    );
    assert_order(
        &page,
        &[
            "## What agents stumble over",
            "| A-4, interop | it dances | one, three, two |",
            "| A-1, MUST | it ends | one, two |",
        ],
    );
    assert!(!page.contains("| A-2,"), "{page}");
}

#[test]
fn large_slowdown_is_reported() {
    let with = |slowdown| {
        let results = AgentResults {
            slowdown,
            ..sample_results()
        };
        render_page(
            &sample_requirements(),
            &[results],
            &[],
            &ManualChecks::default(),
            9,
        )
    };
    let busy = with(Some(2.46));
    let told =
        "`X 1.0`. The machine was busy, so bounds of time were 2.5 times longer than written.\n\n";
    assert!(busy.contains(told), "{busy}");
    let unknown = with(None);
    let told = "`X 1.0`. How busy the machine was is not recorded: bounds of time may have been longer than written.\n\n";
    assert!(unknown.contains(told), "{unknown}");
    assert!(!with(Some(1.4)).contains("bounds of time"));
}

#[test]
fn results_of_other_revision_is_marked() {
    let with = |revision: Option<&str>| {
        let results = AgentResults {
            revision: revision.map(str::to_owned),
            ..sample_results()
        };
        render_page(
            &sample_requirements(),
            &[results],
            &[],
            &ManualChecks::default(),
            9,
        )
    };
    let old = with(Some("r0"));
    let told = "`X 1.0`. It was played with revision r0 of the rules.\n\n";
    assert!(old.contains(told), "{old}");
    let row = "| [x](#x), revision r0 | 1 |";
    assert!(old.contains(row), "{old}");
    let unknown = with(None);
    let told = "`X 1.0`. Which revision of the rules it was played with is not recorded.\n\n";
    assert!(unknown.contains(told), "{unknown}");
    assert!(
        unknown.contains("| [x](#x), revision unknown | 1 |"),
        "{unknown}"
    );
    assert!(!with(Some("r1")).contains("of the rules"));
}

#[test]
fn agents_without_a_result_are_named() {
    let of = |missing: &[&str]| {
        render_page(
            &sample_requirements(),
            &[sample_results()],
            missing,
            &ManualChecks::default(),
            9,
        )
    };
    assert_order(
        &of(&["y", "z"]),
        &["Not played, so not on this page: y, z.\n", "## Agents"],
    );
    assert!(!of(&[]).contains("Not played"));
}

#[test]
fn cell_text_is_escaped() {
    assert_eq!(escape_cell("a\u{1b}|\nb"), "a\u{fffd}\\| b");
}
