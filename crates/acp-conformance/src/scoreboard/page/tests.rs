//! The page, for standings made up by hand.

use super::*;
use crate::scoreboard::{Check, Found, Why};
use std::{collections::BTreeMap, time::Duration};

fn rules() -> Requirements {
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

fn standing() -> Standing {
    let found = |verdict, why| Found { verdict, why };
    let why = Why {
        case: "leaving".to_owned(),
        line: 7,
        text: "it does `not` end".to_owned(),
        step: "exit any".to_owned(),
        came: Some("{}".to_owned()),
    };
    Standing {
        name: "x".to_owned(),
        about: "An agent.".to_owned(),
        is_example: false,
        revision: Some("r1".to_owned()),
        packages: vec!["x@1".to_owned()],
        says: "X 1.0".to_owned(),
        peculiarities: Vec::new(),
        rules: BTreeMap::from([
            ("A-1".to_owned(), found(Verdict::Fail, Some(why))),
            ("A-2".to_owned(), found(Verdict::Pass, None)),
            ("A-3".to_owned(), found(Verdict::NotReached, None)),
            ("A-4".to_owned(), found(Verdict::NotApplicable, None)),
        ]),
        broken: vec!["shell, line 3: nothing came".to_owned()],
        once: vec!["A-2: busy, line 1: late".to_owned()],
        took: Duration::from_secs(12),
        slowdown: Some(1.4),
    }
}

/// Another agent that fails these rules and passes the rest.
fn other(name: &str, failed: &[&str]) -> Standing {
    let found = |id: &str| {
        let verdict = match failed.contains(&id) {
            true => Verdict::Fail,
            false => Verdict::Pass,
        };
        (id.to_owned(), Found { verdict, why: None })
    };
    Standing {
        name: name.to_owned(),
        packages: Vec::new(),
        rules: ["A-1", "A-2", "A-3", "A-4"].map(found).into(),
        broken: Vec::new(),
        once: Vec::new(),
        ..standing()
    }
}

/// These parts of the page, in this order.
fn assert_order(page: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        let at = page[from..].find(part);
        from += at.unwrap_or_else(|| panic!("{part} is not behind the one before it:\n{page}"));
    }
}

#[test]
fn rules_are_counted_by_level_and_failures_told_in_words() {
    let checked = Checked {
        checked: vec![Check {
            agent: "x".to_owned(),
            rules: vec!["A-1".to_owned()],
            how: "a pipe, and nothing came".to_owned(),
        }],
    };
    let page = page(&rules(), &[standing()], &[], &checked, 9);
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
fn who_breaks_least_comes_first_and_examples_stand_apart() {
    let mut unplayed = other("unplayed", &[]);
    unplayed.rules.clear();
    let example = Standing {
        is_example: true,
        ..other("example", &[])
    };
    let standings = [
        example,
        unplayed,
        other("must", &["A-1"]),
        other("interop", &["A-4"]),
        other("should", &["A-3"]),
        other("best", &[]),
    ];
    let page = page(&rules(), &standings, &[], &Checked::default(), 9);
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
fn what_many_break_is_said_once_for_all_of_them() {
    let both = ["A-1", "A-4"];
    let standings = [
        other("one", &both),
        other("two", &both),
        other("three", &["A-2", "A-4"]),
    ];
    let page = page(&rules(), &standings, &[], &Checked::default(), 9);
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
fn bounds_that_were_stretched_are_told() {
    let with = |slowdown| {
        let standing = Standing {
            slowdown,
            ..standing()
        };
        page(&rules(), &[standing], &[], &Checked::default(), 9)
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
fn a_result_of_another_revision_says_so() {
    let with = |revision: Option<&str>| {
        let standing = Standing {
            revision: revision.map(str::to_owned),
            ..standing()
        };
        page(&rules(), &[standing], &[], &Checked::default(), 9)
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
    let of = |missing: &[&str]| page(&rules(), &[standing()], missing, &Checked::default(), 9);
    assert_order(
        &of(&["y", "z"]),
        &["Not played, so not on this page: y, z.\n", "## Agents"],
    );
    assert!(!of(&[]).contains("Not played"));
}

#[test]
fn what_an_agent_says_does_nothing_in_a_cell() {
    assert_eq!(cell("a\u{1b}|\nb"), "a\u{fffd}\\| b");
}
