//! Tests which texts are commands.

use crate::{
    commands::{
        COMMANDS,
        find_command::{find_command, parse_command},
    },
    server::prompt_content::PromptContent,
};
use proptest::prelude::*;
use turnery_engine::Content;

/// Names, written by hand.
const NAMES: [&str; 10] = [
    "help", "model", "mode", "compact", "branch", "continue", "rerun", "try", "cost", "export",
];

fn parse(text: &str) -> Option<(&'static str, &str)> {
    parse_command(text).map(|(command, args)| (command.name, args))
}

/// CMD-3: no slash, no space, each once.
// proves: CMD-3
#[test]
fn command_names_are_lowercase_and_unique() {
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    assert_eq!(names, NAMES);
    for name in names {
        assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{name}");
    }
}

#[test]
fn command_is_slash_name_and_args() {
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
        assert_eq!(parse(text), expected, "{text:?}");
    }
}

/// Resource links and files may surround a command; the text of a previous prompt that an editor prepends is
/// no part of it. Here a text in brackets is a resource link.
// proves: CMD-2
#[test]
fn command_is_found_between_other_blocks() {
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
        let content: Vec<Content> = blocks.iter().copied().map(Content::text).collect();
        let found = find_command(&PromptContent { content, is_text });
        let found = found.map(|it| (it.command.name, it.args, it.attachments));
        let expected = expected.map(|(name, args, rest)| {
            let rest = rest.iter().copied().map(Content::text);
            (name, args.to_owned(), rest.collect::<Vec<_>>())
        });
        assert_eq!(found, expected, "{blocks:?}");
    }
}

proptest! {
    /// The arguments are returned unchanged, except for surrounding blanks.
    #[test]
    fn command_args_are_trimmed_and_kept(
        name in prop::sample::select(NAMES.to_vec()),
        before in "[ \t\n\u{3000}]{1,3}",
        args in "(\\S(.|\n)*\\S|\\S|)",
        after in "[ \t\r\n]{0,3}",
    ) {
        let text = format!("/{name}{before}{args}{after}");
        prop_assert_eq!(parse(&text), Some((name, args.as_str())));
    }

    /// A text is a command only if a known name directly follows its slash.
    #[test]
    fn only_slash_and_known_name_is_a_command(text in "/?(help|mode|model|compact|branch|continue|rerun|try|cost|export|[a-z/]{0,9})(.|\n){0,20}") {
        let is = NAMES.iter().any(|name| {
            let rest = text.strip_prefix('/').and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        });
        prop_assert_eq!(parse(&text).is_some(), is, "{:?}", text);
    }
}
