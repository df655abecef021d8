//! Tests of rules that span messages, with valid and invalid streams.

use super::{
    every_rule::{ending, exchange},
    *,
};
use std::collections::BTreeMap;

/// Returns a line of a stream; an object alone is a session update.
pub(super) fn whole_line(text: &str) -> String {
    match text.starts_with('{') {
        true => update_line(text),
        false => text.to_owned(),
    }
}

/// Plays the streams of a text, and returns those with another result than they say.
fn wrong_streams(text: &str) -> Vec<(usize, &str, Vec<&'static str>)> {
    let mut messages: BTreeMap<&str, String> = BTreeMap::new();
    let mut before: (&[&[&str]], Option<OutputEnding>) = (&[], None);
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split_whitespace();
        match words.next() {
            None | Some("#") => {}
            Some("=") => {
                let (name, message) = line[2..].split_once(' ').expect("= NAME MESSAGE");
                messages.insert(name, whole_line(message));
            }
            Some("before") => {
                let name = words.next().expect("before EXCHANGE");
                before = (exchange(name), ending(words.next()));
            }
            Some(rule) => {
                let lines: Vec<&str> = words.map(|name| messages[name].as_str()).collect();
                let broken = violations_after(before.0, &lines, before.1);
                if broken != Vec::from_iter(Some(rule).filter(|rule| *rule != "ok")) {
                    wrong.push((number, line, broken));
                }
            }
        }
    }
    wrong
}

#[test]
fn streams_of_version_1_break_just_the_named_rule() {
    assert_eq!(wrong_streams(include_str!("v1.txt")), []);
}

#[test]
fn streams_of_version_2_break_just_the_named_rule() {
    assert_eq!(wrong_streams(include_str!("v2.txt")), []);
}
