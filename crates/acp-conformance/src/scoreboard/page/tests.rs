//! The page, for standings made up by hand.

use super::*;
use crate::scoreboard::{Check, Found};
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
    }
}

#[test]
fn rules_are_counted_by_level_and_failures_told_in_words() {
    let checked = Checked {
        checked: vec![Check {
            agent: "x".to_owned(),
            rules: vec!["A-1".to_owned()],
            how: "by hand, with a pipe".to_owned(),
        }],
    };
    let page = page(&rules(), &[standing()], &checked, 9);
    assert!(page.contains("4 rules of revision r1, 9 cases"), "{page}");
    let row = "| [x](#x) | X 1.0 | 1 of 2 | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 0 | 1 | 1 | 12 s |\n";
    assert!(page.contains(row), "{page}");
    let failure = "- **A-1** it ends (leaving, line 7: `it does 'not' end`; came `{}`)\n  Checked: by hand, with a pipe\n";
    assert!(page.contains(failure), "{page}");
    assert!(page.contains("An agent. Installed: `x@1`."), "{page}");
    assert!(page.contains("- `shell, line 3: nothing came`"), "{page}");
    let once = "Failed once, and not when played again alone:\n\n- `A-2: busy, line 1: late`\n";
    assert!(page.contains(once), "{page}");
    assert!(!page.contains("**A-2**") && !page.contains("**A-3**"));
}
