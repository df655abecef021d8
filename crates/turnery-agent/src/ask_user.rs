//! Implements the `ask_user` tool, which puts a question of the model to the user. Answers are validated
//! against the question (ELIC-5); questions for secrets are rejected (ELIC-3).

use crate::client::Client;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{borrow::Cow, collections::HashSet, sync::Arc, time::Duration};
use turnery_engine::{CallDetail, CallId, SessionId, ToolEnvelope, ToolError, ToolErrorKind};
use turnery_tools::{ToolCx, Toolbox, TypedTool, Workspace};

/// No timeout: the user may take as long as needed.
const TIMEOUT: Duration = Duration::MAX;

/// Maximum number of choices.
const MAX_CHOICES: usize = 20;

/// Maximum length of a question, a choice or a text answer. Unit: bytes.
const MAX_TEXT_BYTES: usize = 8 << 10;

/// Words that mark a text question as one for a secret.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passphrase",
    "passcode",
    "api key",
    "apikey",
    "secret",
    "credential",
    "private key",
    "access token",
];

/// Question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserQuestion {
    /// Session that the user sees.
    pub session_id: SessionId,
    /// Call that asks.
    pub call_id: CallId,
    /// Text of the question.
    pub text: String,
    /// Expected kind of answer.
    pub answer_kind: AnswerKind,
}

/// Kind of answer that a question expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// One of these choices: a string.
    OneOf(Vec<String>),
    /// Any of these choices: a list of strings.
    AnyOf(Vec<String>),
    /// Free text: a string.
    Text,
    /// Number.
    Number,
    /// Yes or no: a boolean.
    Boolean,
}

/// Outcome of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum UserAnswer {
    /// The user's answer.
    Answered(Value),
    /// The user declined to answer.
    Declined,
    /// The user dismissed the question.
    Cancelled,
    /// No usable answer. The text gives the reason.
    NoAnswer(String),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskUserArgs {
    question: String,
    choices: Option<Vec<String>>,
    several: Option<bool>,
    answer: Option<AnswerForm>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AnswerForm {
    Text,
    Number,
    Boolean,
}

/// Tool that asks the user through `client`.
pub(crate) struct AskUserTool {
    client: Arc<dyn Client>,
    session_id: SessionId,
}

/// Adds the tool to a toolbox if the client takes questions.
pub(crate) fn with_ask_user(
    toolbox: Toolbox,
    client: &Arc<dyn Client>,
    session_id: &SessionId,
) -> Toolbox {
    match client.can_answer_questions() {
        true => toolbox.with_tool(AskUserTool {
            client: Arc::clone(client),
            session_id: session_id.clone(),
        }),
        false => toolbox,
    }
}

/// Removes the tool from a toolbox, for work that the user does not see.
pub(crate) fn without_ask_user(toolbox: &Toolbox, client: &dyn Client) -> Toolbox {
    match client.can_answer_questions() {
        true => toolbox.clone().without_tool(AskUserTool::NAME),
        false => toolbox.clone(),
    }
}

impl TypedTool for AskUserTool {
    type Args = AskUserArgs;
    const NAME: &'static str = "ask_user";

    fn description(&self) -> Cow<'static, str> {
        "Ask the user something that only they can decide, and wait for the answer. Give \
         choices where you can (several: more than one may be picked), else say which form of \
         answer you want. Never ask for a password, a key or another secret."
            .into()
    }

    fn describe(&self, args: &AskUserArgs, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: match args.question.lines().next() {
                Some(line) => format!("Ask: {}", line.chars().take(80).collect::<String>()),
                None => "Ask the user".to_owned(),
            },
            ..CallDetail::default()
        }
    }

    async fn run(&self, args: AskUserArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let (text, answer) = parse_question(args)?;
        Ok(self.ask_question(text, answer, cx).await)
    }

    fn timeout(&self, _args: &AskUserArgs) -> Duration {
        TIMEOUT
    }
}

impl AskUserTool {
    async fn ask_question(&self, text: String, answer: AnswerKind, cx: &ToolCx) -> ToolEnvelope {
        let reply = self.client.answer_question(UserQuestion {
            session_id: self.session_id.clone(),
            call_id: cx.call_id.clone(),
            text,
            answer_kind: answer.clone(),
        });
        let reply = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                return ToolEnvelope::failed(ToolErrorKind::Cancelled, "the question was taken back");
            }
            reply = reply => reply,
        };
        match reply {
            UserAnswer::Answered(value) => match render_answer(&value, &answer) {
                Some(answer) => ToolEnvelope::text(format!("The user answers: {answer}")),
                None => no_answer_error("what came back is no answer to this question"),
            },
            UserAnswer::Declined => ToolEnvelope::text(
                "The user declines to answer. Do not ask this again; go on without it, or say what \
                 you cannot do.",
            ),
            UserAnswer::Cancelled => ToolEnvelope::text(
                "The user closed the question without an answer: it is still open.",
            ),
            UserAnswer::NoAnswer(why) => no_answer_error(&why),
        }
    }
}

fn no_answer_error(why: &str) -> ToolEnvelope {
    ToolEnvelope::failed(
        ToolErrorKind::ExecutionError,
        format!("there is no answer: {why}. Ask in your reply instead, and end it."),
    )
}

/// Parses and validates the question.
fn parse_question(args: AskUserArgs) -> Result<(String, AnswerKind), ToolError> {
    let invalid = |message: &str| ToolError::new(ToolErrorKind::Validation, message);
    if args.question.trim().is_empty() || args.question.len() > MAX_TEXT_BYTES {
        return Err(invalid("question must hold a short question"));
    }
    let Some(choices) = args.choices else {
        let wanted = match args.answer.unwrap_or(AnswerForm::Text) {
            AnswerForm::Text => AnswerKind::Text,
            AnswerForm::Number => AnswerKind::Number,
            AnswerForm::Boolean => AnswerKind::Boolean,
        };
        let question = args.question.to_lowercase();
        if wanted == AnswerKind::Text && SECRET_WORDS.iter().any(|word| question.contains(word)) {
            return Err(invalid(
                "a secret must not be asked for here: ask the user to put it into the environment or \
                 a file of theirs, and use it from there without reading it",
            ));
        }
        return Ok((args.question, wanted));
    };
    let mut seen = HashSet::new();
    let fits = |choice: &String| !choice.trim().is_empty() && choice.len() <= MAX_TEXT_BYTES;
    if !(2..=MAX_CHOICES).contains(&choices.len())
        || !choices
            .iter()
            .all(|it| fits(it) && seen.insert(it.as_str()))
    {
        return Err(invalid("choices must be 2 to 20 different short texts"));
    }
    let wanted = match args.several {
        Some(true) => AnswerKind::AnyOf(choices),
        Some(false) | None => AnswerKind::OneOf(choices),
    };
    Ok((args.question, wanted))
}

/// Renders an answer as text; `None` if it does not fit the question.
fn render_answer(value: &Value, wanted: &AnswerKind) -> Option<String> {
    match wanted {
        AnswerKind::OneOf(choices) => {
            let choice = value.as_str()?;
            let is_offered = choices.iter().any(|it| it == choice);
            is_offered.then(|| choice.to_owned())
        }
        AnswerKind::AnyOf(choices) => {
            let chosen: Vec<&str> = value
                .as_array()?
                .iter()
                .map(Value::as_str)
                .collect::<Option<_>>()?;
            let is_offered = |one: &&str| choices.iter().any(|it| it == one);
            match chosen.is_empty() {
                true => Some("none of them".to_owned()),
                false => chosen.iter().all(is_offered).then(|| chosen.join(", ")),
            }
        }
        AnswerKind::Text => value
            .as_str()
            .filter(|text| text.len() <= MAX_TEXT_BYTES)
            .map(str::to_owned),
        AnswerKind::Number => value.is_number().then(|| value.to_string()),
        AnswerKind::Boolean => value.as_bool().map(|yes| match yes {
            true => "yes".to_owned(),
            false => "no".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample_choices() -> Vec<String> {
        vec!["red".to_owned(), "blue".to_owned()]
    }

    fn parse_json_question(args: &Value) -> Result<(String, AnswerKind), ToolError> {
        parse_question(AskUserArgs::deserialize(args).expect("arguments"))
    }

    // proves: ELIC-5
    #[test]
    fn answer_must_match_asked_kind() {
        let table = [
            (
                AnswerKind::OneOf(sample_choices()),
                json!("red"),
                Some("red"),
            ),
            (AnswerKind::OneOf(sample_choices()), json!("green"), None),
            (AnswerKind::OneOf(sample_choices()), json!(["red"]), None),
            (
                AnswerKind::AnyOf(sample_choices()),
                json!(["red", "blue"]),
                Some("red, blue"),
            ),
            (
                AnswerKind::AnyOf(sample_choices()),
                json!([]),
                Some("none of them"),
            ),
            (
                AnswerKind::AnyOf(sample_choices()),
                json!(["red", "green"]),
                None,
            ),
            (AnswerKind::AnyOf(sample_choices()), json!(["red", 7]), None),
            (AnswerKind::AnyOf(sample_choices()), json!("red"), None),
            (AnswerKind::Text, json!("so"), Some("so")),
            (AnswerKind::Text, json!(7), None),
            (
                AnswerKind::Text,
                json!("x".repeat(MAX_TEXT_BYTES + 1)),
                None,
            ),
            (AnswerKind::Number, json!(-7), Some("-7")),
            (AnswerKind::Number, json!(0.5), Some("0.5")),
            (AnswerKind::Number, json!("7"), None),
            (AnswerKind::Boolean, json!(true), Some("yes")),
            (AnswerKind::Boolean, json!(false), Some("no")),
            (AnswerKind::Boolean, json!("true"), None),
            (AnswerKind::Boolean, json!(null), None),
        ];
        for (wanted, value, expected) in table {
            assert_eq!(
                render_answer(&value, &wanted).as_deref(),
                expected,
                "{wanted:?} {value}"
            );
        }
    }

    // proves: ELIC-3
    #[test]
    fn question_for_secret_is_rejected() {
        for question in [
            "What is your API key?",
            "Your password, please",
            "Paste the Access Token",
            "the PRIVATE KEY of the server",
        ] {
            let failure = parse_json_question(&json!({"question": question})).unwrap_err();
            assert_eq!(failure.kind, ToolErrorKind::Validation, "{question}");
        }
        // A question about a secret is allowed if the answer cannot contain it.
        let about = json!({"question": "Is there a password?", "answer": "boolean"});
        assert_eq!(parse_json_question(&about).unwrap().1, AnswerKind::Boolean);
    }

    #[test]
    fn invalid_question_is_rejected() {
        for args in [
            json!({"question": " "}),
            json!({"question": "x".repeat(MAX_TEXT_BYTES + 1)}),
            json!({"question": "which?", "choices": []}),
            json!({"question": "which?", "choices": ["one"]}),
            json!({"question": "which?", "choices": ["one", "one"]}),
            json!({"question": "which?", "choices": ["one", " "]}),
            json!({"question": "which?", "choices": vec!["x"; 21]}),
        ] {
            let failure = parse_json_question(&args).unwrap_err();
            assert_eq!(failure.kind, ToolErrorKind::Validation, "{args}");
        }
        let several = json!({"question": "which?", "choices": ["red", "blue"], "several": true});
        assert_eq!(
            parse_json_question(&several).unwrap().1,
            AnswerKind::AnyOf(sample_choices())
        );
        let one = json!({"question": "which?", "choices": ["red", "blue"]});
        assert_eq!(
            parse_json_question(&one).unwrap().1,
            AnswerKind::OneOf(sample_choices())
        );
        let text = json!({"question": "what?"});
        assert_eq!(parse_json_question(&text).unwrap().1, AnswerKind::Text);
    }
}
