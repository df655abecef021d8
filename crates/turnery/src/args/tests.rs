//! Tests of the command line and its help.

use super::*;
use clap::{Command, CommandFactory as _};

#[test]
fn command_line_is_consistent() {
    Args::command().debug_assert();
    assert!(welcome_text().contains("turnery run"));
}

/// clap wraps paragraphs to the width of the terminal, so the texts contain no manual line breaks.
#[test]
fn help_paragraphs_have_no_hard_line_breaks() {
    let mut commands = vec![whole_command::<Args>()];
    let mut paragraphs = 0;
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().cloned());
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let lines: Vec<&str> = help.lines().collect();
        let is_prose =
            |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        for pair in lines.windows(2) {
            assert!(!pair.iter().all(|line| is_prose(line)), "{pair:?}");
        }
        paragraphs += lines.iter().filter(|line| is_prose(line)).count();
    }
    assert!(paragraphs > 10, "{paragraphs}");
}

#[test]
fn deferred_commands_have_the_help_of_whole_ones() {
    let (mut deferred, mut whole) = (Args::command(), whole_command::<Args>());
    let list = |command: &Command| {
        command
            .find_subcommand("sessions")
            .unwrap()
            .has_subcommands()
    };
    assert_eq!((list(&deferred), list(&whole)), (false, true));
    for command in [&mut deferred, &mut whole] {
        command.build();
    }
    let mut pairs = vec![(deferred, whole)];
    let mut compared = 0;
    while let Some((mut deferred, mut whole)) = pairs.pop() {
        let [found, expected] =
            [&mut deferred, &mut whole].map(|it| it.render_long_help().to_string());
        assert_eq!(found, expected);
        compared += 1;
        // The copies below `help` differ: see `whole_command`.
        for below in whole.get_subcommands().filter(|it| it.get_name() != "help") {
            let other = deferred.find_subcommand(below.get_name()).unwrap();
            pairs.push((other.clone(), below.clone()));
        }
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn unquoted_prompt_gets_quoting_tip() {
    for (line, has_tip) in [
        ("turnery run fix the bug", true),
        ("turnery sessions branch a 1 try it", true),
        ("turnery run --fix the", false),
        ("turnery models x", false),
    ] {
        let error = Args::try_parse_from(line.split(' ')).map(|_| ());
        let text = suggest_quotes(error.unwrap_err()).to_string();
        assert_eq!(text.contains("in quotes"), has_tip, "{text}");
    }
}

#[test]
fn a_rule_about_an_unknown_tool_is_a_usage_error() {
    for option in ["--allow", "--deny"] {
        let line = ["turnery", "run", option, "Edit(**)", "x"];
        let error = Args::try_parse_from(line).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("write edit(**)"), "{error}");
    }
}
