//! Slips: what is wrong with a step of a case and would be blamed on the agent when it is played.

use super::{Expect, Guard, Line, Need, Step};
use crate::{
    near::unknown,
    official::official,
    pattern::{self, slips},
};
use serde_json::Value;
use std::collections::BTreeSet;

/// What is set before the first step, and what steps set for themselves.
const GIVEN: [&str; 10] = [
    "CWD",
    "HOME",
    "TOP",
    "RUNNER",
    "MODEL",
    "LOGIN",
    "INSTRUCTIONS",
    "PAGE",
    "_probe",
    "_login",
];

/// The variables that may be set up to some line of a case.
pub(super) struct Variables(BTreeSet<String>);

impl Variables {
    /// At the beginning.
    pub(super) fn given() -> Self {
        Self(GIVEN.map(str::to_owned).into())
    }

    /// Check the next line.
    pub(super) fn check(&mut self, line: &Line) -> Result<(), String> {
        for pattern in patterns(&line.step) {
            slips::check(pattern)?;
        }
        let mentioned = pattern::names(&line.text).filter(|name| line.uses(name));
        for name in mentioned.chain(wanted(line)) {
            if !self.0.contains(name) {
                let known: Vec<String> = self.0.iter().map(|name| format!("${name}")).collect();
                let known = known.iter().map(String::as_str);
                let kind = "variable that a step before this one sets";
                return Err(unknown(&format!("${name}"), kind, known));
            }
        }
        self.set_by(&line.step);
        Ok(())
    }

    fn set_by(&mut self, step: &Step) {
        match step {
            Step::Let(name, _)
            | Step::Repeat(name, ..)
            | Step::Call { name, .. }
            | Step::Prompt { name, .. } => self.set(name),
            Step::Initialize(_) => self.set("initialize"),
            Step::Session(name, _) => {
                self.set(name);
                self.set(&format!("{name}_new"));
                self.set(&format!("{name}_result"));
            }
            Step::Load(..) => self.set("load"),
            Step::Resume(..) => self.set("resume"),
            // They keep nothing of what they look at.
            Step::No(_) | Step::Count(..) => return,
            _ => {}
        }
        for pattern in patterns(step) {
            slips::captured(pattern, &mut self.0);
        }
    }

    fn set(&mut self, name: &str) {
        self.0.insert(name.to_owned());
    }
}

/// The variables that a line names without a `$`, or as its condition.
fn wanted(line: &Line) -> impl Iterator<Item = &str> {
    let guards = line.guards.iter().filter_map(|guard| match guard {
        Guard::If(Need::Captured(name)) | Guard::Unless(Need::Captured(name)) => Some(&**name),
        Guard::If(_) | Guard::Unless(_) => None,
    });
    let named = match &line.step {
        Step::Load(name, _)
        | Step::Resume(name, _)
        | Step::Cancel(name)
        | Step::Answered(name, _)
        | Step::Prompt { session: name, .. }
        | Step::Said { session: name, .. } => Some(&**name),
        _ => None,
    };
    guards.chain(named)
}

fn patterns(step: &Step) -> Vec<&Value> {
    let of_answer = |expect| match expect {
        &Expect::Result(ref pattern) | &Expect::Error(ref pattern) => vec![pattern],
        &Expect::Any => Vec::new(),
    };
    match step {
        Step::Next(pattern)
        | Step::Until(pattern)
        | Step::No(pattern)
        | Step::Some(pattern)
        | Step::Maybe(pattern)
        | Step::Count(_, pattern)
        | Step::Value(_, pattern) => vec![pattern],
        Step::Order(patterns) => patterns.iter().collect(),
        Step::Answered(_, expect) => of_answer(expect),
        Step::Call { then, .. } => then.as_ref().map_or_else(Vec::new, of_answer),
        _ => Vec::new(),
    }
}

/// Whether an agent may have this: a path of members that the official schema knows.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    const WORDS: [&str; 5] = ["v2", "profile", "model", "keyless", "tool"];
    let (name, root, members) = match path.split_once('.') {
        Some(("initialize", members)) => ("InitializeResponse", "initialize.", members),
        Some(("session", members)) => ("NewSessionResponse", "session.", members),
        _ => ("AgentCapabilities", "", path),
    };
    let Err((before, known)) = official(1).walk(name, members) else {
        return Ok(());
    };
    match format!("{root}{before}").strip_suffix('.') {
        None => {
            let known = known.into_iter().chain(WORDS);
            Err(unknown(members, "capability of an agent", known))
        }
        Some(of) => {
            let member = members[before.len()..].split('.').next();
            let kind = format!("member of {of}");
            Err(unknown(member.unwrap_or_default(), &kind, known))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Case;

    fn told(lines: &str, number: usize, why: &str) {
        let error = Case::parse("x", &format!("# x\n{lines}")).expect_err(lines);
        assert_eq!(
            (error.line, error.reason.as_str()),
            (number, why),
            "{lines}"
        );
    }

    #[test]
    fn a_pattern_that_is_none_is_told_with_its_line() {
        let why = "\"$mtach\" is no pattern; there is $match, $each";
        for step in [
            "<",
            "<*",
            "no",
            "some",
            "maybe",
            "count 1",
            "value 1",
            "call x {} ->",
            "call x {} -> error",
        ] {
            told(&format!("mark\n{step} {{\"$mtach\": \"x\"}}"), 3, why);
        }
        told("order [1, {\"a\": {\"$mtach\": 1}}]", 2, why);
        for step in ["answered", "refused"] {
            told(
                &format!("session\nprompt \"x\"\n{step} {{\"$mtach\": 1}}"),
                4,
                why,
            );
        }
    }

    #[test]
    fn what_is_sent_and_set_may_hold_any_member() {
        let any = "{\"$mtach\": 1}";
        for step in [
            "> ",
            ">!",
            "client",
            "let x",
            "initialize",
            "session",
            "call x",
            "tell x",
            "elicitation accept",
            "answer x with",
        ] {
            let step = format!("let mtach 1\n{step} {any}");
            let case = Case::parse("x", &format!("# x\n{step}"));
            assert!(case.is_ok(), "{step}: {case:?}");
        }
    }

    #[test]
    fn a_variable_that_no_step_before_sets_is_told() {
        let unset = |name: &str, near: &str| {
            format!("\"${name}\" is no variable that a step before this one sets{near}")
        };
        let near = unset("sesion", "; there is $session");
        for step in [
            "value \"$sesion\" 1",
            "> {\"a\": \"$sesion\"}",
            "call x {\"a\": \"$sesion\"}",
            "tell x {\"a\": \"$sesion\"}",
            "session b {\"a\": \"$sesion\"}",
            "load sesion",
            "resume sesion",
            "cancel sesion",
            "prompt \"x\" in sesion",
            "ended for sesion",
            "said \"x\" in sesion",
            "if $sesion mark",
            "unless $sesion mark",
        ] {
            told(&format!("let session 1\n{step}"), 3, &near);
        }
        // Not by a step behind it, not by itself, and not by one that keeps nothing.
        let why = unset("kept", "");
        told("value \"$kept\" 1\nlet kept 1", 2, &why);
        told("call x {\"a\": \"$kept\"} as kept", 2, &why);
        for pattern in [
            "no {\"a\": \"$kept\"}",
            "count 1 {\"a\": \"$kept\"}",
            "some {\"a\": {\"$not\": \"$kept\"}}",
            "some {\"a\": {\"$each\": \"$kept\"}}",
        ] {
            told(&format!("{pattern}\nvalue \"$kept\" 1"), 3, &why);
        }
    }

    #[test]
    fn each_step_that_sets_a_variable_is_known() {
        for (step, name) in [
            ("mark", "CWD"),
            ("mark", "PAGE"),
            ("let a 1", "a"),
            ("repeat a 2 \"x\"", "a"),
            ("call x {} as a", "a"),
            ("session\nprompt \"x\"", "prompt"),
            ("initialize", "initialize"),
            ("session b", "b"),
            ("session b", "b_result"),
            ("session", "session_new"),
            ("session\nload", "load"),
            ("session\nresume", "resume"),
            ("if tool read maybe {\"id\": \"$a\"}", "a"),
            ("< {\"id\": {\"$all\": [1, \"$a\"]}}", "a"),
            ("order [1, \"$a\"]", "a"),
            ("value 1 \"$a\"", "a"),
            ("call x {} -> {\"b\": \"$a\"}", "a"),
        ] {
            let text = format!("# x\n{step}\nvalue \"${name}\" 1");
            let case = Case::parse("x", &text);
            assert!(case.is_ok(), "{text}: {case:?}");
        }
        // Where a text may be no variable, it is not told: it is captured, or stays as it is.
        let texts = "some {\"a\": \"$new\"}\nsaw \"costs $five\"\n>! {\"a\": \"$raw\"}";
        assert!(Case::parse("x", &format!("# x\n{texts}")).is_ok());
    }

    #[test]
    fn what_no_agent_can_have_is_told() {
        for (path, why) in [
            (
                "modle",
                "\"modle\" is no capability of an agent; there is model",
            ),
            (
                "loadSesion",
                "\"loadSesion\" is no capability of an agent; there is loadSession",
            ),
            (
                "promptCapabilities.image.deep",
                "\"deep\" is no member of promptCapabilities.image",
            ),
            (
                "sessionCapabilities.frok",
                "\"frok\" is no member of sessionCapabilities; there is fork",
            ),
            (
                "initialize.authMethod",
                "\"authMethod\" is no member of initialize; there is authMethods",
            ),
        ] {
            told(&format!("needs {path}"), 2, why);
            told(&format!("mark\nif {path} mark"), 3, why);
        }
        for path in [
            "loadSession",
            "sessionCapabilities",
            "auth.logout",
            "_meta.own.thing",
            "sessionCapabilities._meta.own",
            "initialize.agentInfo.title",
            "session.modes.availableModes",
            "session.configOptions",
        ] {
            let case = Case::parse("x", &format!("# x\nneeds {path}\nunless {path} mark"));
            assert!(case.is_ok(), "{path}: {case:?}");
        }
    }
}
