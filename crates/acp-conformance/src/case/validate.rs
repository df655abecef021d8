//! Validates the steps of a case, so that mistakes of the case are not blamed on the agent.

use super::{CaseLine, CaseStep, ExpectedResponse, LineCondition, Need};
use crate::{
    official_schema::official_schema,
    pattern::{self, validate},
    suggestions::unknown_name_message,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Variables that the runner sets itself.
const PREDEFINED: [&str; 10] = [
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

/// Variables that can be set before the current line of a case.
pub(super) struct KnownVariables(BTreeSet<String>);

impl KnownVariables {
    /// Returns the variables that are set before the first step.
    pub(super) fn predefined() -> Self {
        Self(PREDEFINED.map(str::to_owned).into())
    }

    /// Checks the next line, and adds the variables it sets.
    pub(super) fn check_line(&mut self, line: &CaseLine) -> Result<(), String> {
        for pattern in step_patterns(&line.step) {
            validate::validate_pattern(pattern)?;
        }
        let mentioned =
            pattern::variable_names(&line.text).filter(|name| line.requires_variable(name));
        for name in mentioned.chain(required_variables(line)) {
            if !self.0.contains(name) {
                let known: Vec<String> = self.0.iter().map(|name| format!("${name}")).collect();
                let known = known.iter().map(String::as_str);
                let kind = "variable that a step before this one sets";
                return Err(unknown_name_message(&format!("${name}"), kind, known));
            }
        }
        self.insert_set_by(&line.step);
        Ok(())
    }

    fn insert_set_by(&mut self, step: &CaseStep) {
        match step {
            CaseStep::Let(name, _)
            | CaseStep::Repeat(name, ..)
            | CaseStep::Call { name, .. }
            | CaseStep::Prompt { name, .. } => self.insert(name),
            CaseStep::Initialize(_) => self.insert("initialize"),
            CaseStep::Session(name, _) => {
                self.insert(name);
                self.insert(&format!("{name}_new"));
                self.insert(&format!("{name}_result"));
            }
            CaseStep::Load(..) => self.insert("load"),
            CaseStep::Resume(..) => self.insert("resume"),
            // These steps capture nothing.
            CaseStep::No(_) | CaseStep::Count(..) => return,
            _ => {}
        }
        for pattern in step_patterns(step) {
            validate::collect_captured_names(pattern, &mut self.0);
        }
    }

    fn insert(&mut self, name: &str) {
        self.0.insert(name.to_owned());
    }
}

/// Returns the variables that a line names without a `$` or in a condition.
fn required_variables(line: &CaseLine) -> impl Iterator<Item = &str> {
    let guards = line.conditions.iter().filter_map(|guard| match guard {
        LineCondition::If(Need::Captured(name)) | LineCondition::Unless(Need::Captured(name)) => {
            Some(&**name)
        }
        LineCondition::If(_) | LineCondition::Unless(_) => None,
    });
    let named = match &line.step {
        CaseStep::Load(name, _)
        | CaseStep::Resume(name, _)
        | CaseStep::Cancel(name)
        | CaseStep::ExpectResponse(name, _)
        | CaseStep::Prompt { session: name, .. }
        | CaseStep::MessageText { session: name, .. } => Some(&**name),
        _ => None,
    };
    guards.chain(named)
}

fn step_patterns(step: &CaseStep) -> Vec<&Value> {
    let of_answer = |expect| match expect {
        &ExpectedResponse::Result(ref pattern) | &ExpectedResponse::Error(ref pattern) => {
            vec![pattern]
        }
        &ExpectedResponse::Any => Vec::new(),
    };
    match step {
        CaseStep::Next(pattern)
        | CaseStep::Until(pattern)
        | CaseStep::No(pattern)
        | CaseStep::Some(pattern)
        | CaseStep::CaptureIfAny(pattern)
        | CaseStep::Count(_, pattern)
        | CaseStep::Value(_, pattern) => vec![pattern],
        CaseStep::Order(patterns) => patterns.iter().collect(),
        CaseStep::ExpectResponse(_, expect) => of_answer(expect),
        CaseStep::Call { expected: then, .. } => then.as_ref().map_or_else(Vec::new, of_answer),
        _ => Vec::new(),
    }
}

/// Checks that the official schema has all members of a capability path.
pub(super) fn check_capability_path(path: &str) -> Result<(), String> {
    const WORDS: &[&str] = &["v2", "profile", "model", "keyless", "tool"];
    let (name, root, members) = match path.split_once('.') {
        Some(("initialize", members)) => ("InitializeResponse", "initialize.", members),
        Some(("session", members)) => ("NewSessionResponse", "session.", members),
        _ => ("AgentCapabilities", "", path),
    };
    let Err((before, known)) = official_schema(1).check_path(name, members) else {
        return Ok(());
    };
    let (name, kind, words) = match format!("{root}{before}").strip_suffix('.') {
        None => (Some(members), "capability of an agent".to_owned(), WORDS),
        Some(of) => {
            let member = members[before.len()..].split('.').next();
            (member, format!("member of {of}"), &[][..])
        }
    };
    let known = known.into_iter().chain(words.iter().copied());
    Err(unknown_name_message(name.unwrap_or_default(), &kind, known))
}

#[cfg(test)]
mod tests {
    use crate::case::Case;

    fn assert_rejected(lines: &str, number: usize, why: &str) {
        let error = Case::parse("x", &format!("# x\n{lines}")).expect_err(lines);
        assert_eq!(
            (error.line, error.reason.as_str()),
            (number, why),
            "{lines}"
        );
    }

    #[test]
    fn invalid_pattern_is_reported_with_its_line() {
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
            assert_rejected(&format!("mark\n{step} {{\"$mtach\": \"x\"}}"), 3, why);
        }
        assert_rejected("order [1, {\"a\": {\"$mtach\": 1}}]", 2, why);
        for step in ["answered", "refused"] {
            assert_rejected(
                &format!("session\nprompt \"x\"\n{step} {{\"$mtach\": 1}}"),
                4,
                why,
            );
        }
    }

    #[test]
    fn sent_and_set_values_may_hold_any_member() {
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
    fn unset_variable_is_reported() {
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
            assert_rejected(&format!("let session 1\n{step}"), 3, &near);
        }
        // A later step, the step itself and a step that captures nothing do not count.
        let why = unset("kept", "");
        assert_rejected("value \"$kept\" 1\nlet kept 1", 2, &why);
        assert_rejected("call x {\"a\": \"$kept\"} as kept", 2, &why);
        for pattern in [
            "no {\"a\": \"$kept\"}",
            "count 1 {\"a\": \"$kept\"}",
            "some {\"a\": {\"$not\": \"$kept\"}}",
            "some {\"a\": {\"$each\": \"$kept\"}}",
        ] {
            assert_rejected(&format!("{pattern}\nvalue \"$kept\" 1"), 3, &why);
        }
    }

    #[test]
    fn step_that_sets_variable_makes_it_known() {
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
        // Patterns capture new variables, and free text may contain any `$NAME`.
        let texts = "some {\"a\": \"$new\"}\nsaw \"costs $five\"\n>! {\"a\": \"$raw\"}";
        assert!(Case::parse("x", &format!("# x\n{texts}")).is_ok());
    }

    #[test]
    fn impossible_capability_is_reported() {
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
            assert_rejected(&format!("needs {path}"), 2, why);
            assert_rejected(&format!("mark\nif {path} mark"), 3, why);
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
