//! Which texts are commands.

use crate::commands::{TABLE, find, split};
use proptest::prelude::*;
use turnery_engine::Content;

/// By hand.
const NAMES: [&str; 9] = [
    "help", "model", "mode", "compact", "branch", "rerun", "try", "cost", "export",
];

fn parsed(text: &str) -> Option<(&'static str, &str)> {
    split(text).map(|(command, args)| (command.name, args))
}

/// CMD-3: no slash, no space, each once.
// proves: CMD-3
#[test]
fn the_names_are_names() {
    let names: Vec<&str> = TABLE.iter().map(|command| command.name).collect();
    assert_eq!(names, NAMES);
    for name in names {
        assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{name}");
    }
}

#[test]
fn a_command_is_a_slash_and_a_name_and_what_follows() {
    for (text, expected) in [
        ("/help", Some(("help", ""))),
        ("/mode", Some(("mode", ""))),
        ("/model", Some(("model", ""))),
        ("/model a/b c\nd \n", Some(("model", "a/b c\nd"))),
        ("/mode\u{a0}plan", Some(("mode", "plan"))),
        ("/mode\tplan", Some(("mode", "plan"))),
        ("/models", None),
        ("/mod", None),
        ("/ help", None),
        ("help", None),
        (" /help", None),
        ("/help.", None),
        ("/usr/bin", None),
        ("/", None),
        ("", None),
    ] {
        assert_eq!(parsed(text), expected, "{text:?}");
    }
}

/// What is typed may come with mentions and files, before it and after; what an editor repeats of an
/// earlier prompt in front is no part of it. Here a text in brackets is a mention.
// proves: CMD-2
#[test]
fn a_command_is_found_among_other_blocks() {
    type Case = (
        &'static [&'static str],
        Option<(&'static str, &'static str, &'static [&'static str])>,
    );
    let table: &[Case] = &[
        (&["/help"], Some(("help", "", &[]))),
        (&["[a]", "/help"], Some(("help", "", &["[a]"]))),
        (&["/try m do", "[a]"], Some(("try", "m do", &["[a]"]))),
        (
            &["[a]", "/try m do", "[b]", "and this"],
            Some(("try", "m do", &["[a]", "[b]", "and this"])),
        ),
        (&["said before", "/help"], Some(("help", "", &[]))),
        (&["/mode plan", "/mode ask"], Some(("mode", "ask", &[]))),
        (&["/help", "and now this"], None),
        (&["[/help]"], None),
        (&["see", "[a]", "/usr/bin"], None),
        (&["see /help", "[a]"], None),
    ];
    for (blocks, expected) in table {
        let is_text: Vec<bool> = blocks.iter().map(|text| !text.starts_with('[')).collect();
        let input: Vec<Content> = blocks.iter().copied().map(Content::text).collect();
        let found = find(&input, &is_text);
        let found = found.map(|it| (it.command.name, it.args, it.rest));
        let expected = expected.map(|(name, args, rest)| {
            let rest = rest.iter().copied().map(Content::text);
            (name, args.to_owned(), rest.collect::<Vec<_>>())
        });
        assert_eq!(found, expected, "{blocks:?}");
    }
}

proptest! {
    /// Whatever is typed after a name comes back, and nothing around it.
    #[test]
    fn what_follows_a_name_is_kept(
        name in prop::sample::select(NAMES.to_vec()),
        before in "[ \t\n\u{3000}]{1,3}",
        args in "(\\S(.|\n)*\\S|\\S|)",
        after in "[ \t\r\n]{0,3}",
    ) {
        let text = format!("/{name}{before}{args}{after}");
        prop_assert_eq!(parsed(&text), Some((name, args.as_str())));
    }

    /// A text is a command only if a name stands right behind its slash, and nothing else does.
    #[test]
    fn any_text_is_a_command_or_is_not(text in "/?(help|mode|model|compact|branch|rerun|try|cost|export|[a-z/]{0,6})(.|\n){0,20}") {
        let is = NAMES.iter().any(|name| {
            let rest = text.strip_prefix('/').and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        });
        prop_assert_eq!(parsed(&text).is_some(), is, "{:?}", text);
    }
}
