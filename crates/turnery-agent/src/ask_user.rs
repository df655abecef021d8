//! `ask_user`: the model puts a question to the person, if the client can show one. What comes back is held
//! against what was asked (ELIC-5), and a secret is not asked for (ELIC-3).

use crate::Client;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::HashSet, sync::Arc, time::Duration};
use turnery_engine::{
    CallDetail, CallId, FailureKind, SessionId, ToolEnvelope, ToolFailure, ToolSpec,
};
use turnery_tools::{Tool, ToolCx, Toolbox, Workspace, parse_args, spec_for};

const NAME: &str = "ask_user";

/// A person takes as long as a person takes.
const TIMEOUT: Duration = Duration::MAX;

/// How many choices there may be.
const CHOICES: usize = 20;

/// How long a question, a choice or an answer in words may be. Unit: bytes.
const LONGEST: usize = 8 << 10;

/// What is asked for in words by somebody who is after a secret.
const SECRETS: [&str; 9] = [
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

/// A question to the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The session that the person knows.
    pub session_id: SessionId,
    /// The call that asks.
    pub call_id: CallId,
    /// What is asked.
    pub text: String,
    /// What may be answered.
    pub answer: Wanted,
}

/// What may be answered to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One of these: a string.
    One(Vec<String>),
    /// Any of these: a list of strings.
    Some(Vec<String>),
    /// Words: a string.
    Text,
    /// A number.
    Number,
    /// Yes or no: a boolean.
    Boolean,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The person answered this.
    Given(Value),
    /// The person would rather not.
    Declined,
    /// The person closed it without a word.
    Cancelled,
    /// Nobody can be asked, or the answer made no sense. The text says why.
    NoAnswer(String),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    question: String,
    choices: Option<Vec<String>>,
    several: Option<bool>,
    answer: Option<Form>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Form {
    Text,
    Number,
    Boolean,
}

/// Asks the person at `client`.
pub(crate) struct AskUser {
    spec: ToolSpec,
    client: Arc<dyn Client>,
    session_id: SessionId,
}

/// The same tools, and the one that asks, if the client takes questions.
pub(crate) fn offered(
    toolbox: Toolbox,
    client: &Arc<dyn Client>,
    session_id: &SessionId,
) -> Toolbox {
    match client.takes_questions() {
        true => toolbox.and(AskUser {
            spec: spec_for::<Args>(
                NAME,
                "Ask the user something that only they can decide, and wait for the answer. Give \
                 choices where you can (several: more than one may be picked), else say which form of \
                 answer you want. Never ask for a password, a key or another secret.",
            ),
            client: Arc::clone(client),
            session_id: session_id.clone(),
        }),
        false => toolbox,
    }
}

/// The same tools without it, for whoever works out of the person's sight.
pub(crate) fn withheld(toolbox: &Toolbox, client: &dyn Client) -> Toolbox {
    match client.takes_questions() {
        true => toolbox.clone().without(NAME),
        false => toolbox.clone(),
    }
}

impl Tool for AskUser {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn describe(&self, args: &Value, _workspace: &Workspace) -> CallDetail {
        let question = args.get("question").and_then(Value::as_str);
        let line = question.and_then(|text| text.lines().next());
        CallDetail {
            title: match line {
                Some(line) => format!("Ask: {}", line.chars().take(80).collect::<String>()),
                None => "Ask the user".to_owned(),
            },
            ..CallDetail::default()
        }
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            match question(args) {
                Ok((text, answer)) => self.ask(text, answer, cx).await,
                Err(failure) => ToolEnvelope::from(failure),
            }
        })
    }

    fn timeout(&self, _args: &Value) -> Duration {
        TIMEOUT
    }
}

impl AskUser {
    async fn ask(&self, text: String, answer: Wanted, cx: &ToolCx) -> ToolEnvelope {
        let asked = self.client.question(Question {
            session_id: self.session_id.clone(),
            call_id: cx.call_id.clone(),
            text,
            answer: answer.clone(),
        });
        let reply = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                return ToolEnvelope::failed(FailureKind::Cancelled, "the question was taken back");
            }
            reply = asked => reply,
        };
        match reply {
            Reply::Given(value) => match told(&value, &answer) {
                Some(told) => ToolEnvelope::text(format!("The user answers: {told}")),
                None => no_answer("what came back is no answer to this question"),
            },
            Reply::Declined => ToolEnvelope::text(
                "The user declines to answer. Do not ask this again; go on without it, or say what \
                 you cannot do.",
            ),
            Reply::Cancelled => ToolEnvelope::text(
                "The user closed the question without an answer: it is still open.",
            ),
            Reply::NoAnswer(why) => no_answer(&why),
        }
    }
}

fn no_answer(why: &str) -> ToolEnvelope {
    ToolEnvelope::failed(
        FailureKind::ExecutionError,
        format!("there is no answer: {why}. Ask in your reply instead, and end it."),
    )
}

/// The question that the model asks, if it is one that may be asked.
fn question(args: &Value) -> Result<(String, Wanted), ToolFailure> {
    let args: Args = parse_args(args)?;
    let invalid = |message: &str| ToolFailure {
        kind: FailureKind::Validation,
        message: message.to_owned(),
        details: None,
    };
    if args.question.trim().is_empty() || args.question.len() > LONGEST {
        return Err(invalid("question must hold a short question"));
    }
    let Some(choices) = args.choices else {
        let wanted = match args.answer.unwrap_or(Form::Text) {
            Form::Text => Wanted::Text,
            Form::Number => Wanted::Number,
            Form::Boolean => Wanted::Boolean,
        };
        let asked = args.question.to_lowercase();
        if wanted == Wanted::Text && SECRETS.iter().any(|word| asked.contains(word)) {
            return Err(invalid(
                "a secret must not be asked for here: ask the user to put it into the environment or \
                 a file of theirs, and use it from there without reading it",
            ));
        }
        return Ok((args.question, wanted));
    };
    let mut seen = HashSet::new();
    let fits = |choice: &String| !choice.trim().is_empty() && choice.len() <= LONGEST;
    if !(2..=CHOICES).contains(&choices.len())
        || !choices
            .iter()
            .all(|it| fits(it) && seen.insert(it.as_str()))
    {
        return Err(invalid("choices must be 2 to 20 different short texts"));
    }
    let wanted = match args.several {
        Some(true) => Wanted::Some(choices),
        Some(false) | None => Wanted::One(choices),
    };
    Ok((args.question, wanted))
}

/// An answer in words, if it is one to what was asked.
fn told(value: &Value, wanted: &Wanted) -> Option<String> {
    match wanted {
        Wanted::One(choices) => {
            let choice = value.as_str()?;
            let is_offered = choices.iter().any(|it| it == choice);
            is_offered.then(|| choice.to_owned())
        }
        Wanted::Some(choices) => {
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
        Wanted::Text => value
            .as_str()
            .filter(|text| text.len() <= LONGEST)
            .map(str::to_owned),
        Wanted::Number => value.is_number().then(|| value.to_string()),
        Wanted::Boolean => value.as_bool().map(|yes| match yes {
            true => "yes".to_owned(),
            false => "no".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn choices() -> Vec<String> {
        vec!["red".to_owned(), "blue".to_owned()]
    }

    // proves: ELIC-5
    #[test]
    fn an_answer_counts_only_if_it_was_asked_for() {
        let table = [
            (Wanted::One(choices()), json!("red"), Some("red")),
            (Wanted::One(choices()), json!("green"), None),
            (Wanted::One(choices()), json!(["red"]), None),
            (
                Wanted::Some(choices()),
                json!(["red", "blue"]),
                Some("red, blue"),
            ),
            (Wanted::Some(choices()), json!([]), Some("none of them")),
            (Wanted::Some(choices()), json!(["red", "green"]), None),
            (Wanted::Some(choices()), json!(["red", 7]), None),
            (Wanted::Some(choices()), json!("red"), None),
            (Wanted::Text, json!("so"), Some("so")),
            (Wanted::Text, json!(7), None),
            (Wanted::Text, json!("x".repeat(LONGEST + 1)), None),
            (Wanted::Number, json!(-7), Some("-7")),
            (Wanted::Number, json!(0.5), Some("0.5")),
            (Wanted::Number, json!("7"), None),
            (Wanted::Boolean, json!(true), Some("yes")),
            (Wanted::Boolean, json!(false), Some("no")),
            (Wanted::Boolean, json!("true"), None),
            (Wanted::Boolean, json!(null), None),
        ];
        for (wanted, value, expected) in table {
            assert_eq!(
                told(&value, &wanted).as_deref(),
                expected,
                "{wanted:?} {value}"
            );
        }
    }

    // proves: ELIC-3
    #[test]
    fn a_secret_is_not_asked_for_in_words() {
        for asked in [
            "What is your API key?",
            "Your password, please",
            "Paste the Access Token",
            "the PRIVATE KEY of the server",
        ] {
            let failure = question(&json!({"question": asked})).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Validation, "{asked}");
        }
        // About one may be asked what is none itself.
        let about = json!({"question": "Is there a password?", "answer": "boolean"});
        assert_eq!(question(&about).unwrap().1, Wanted::Boolean);
    }

    #[test]
    fn what_is_no_question_is_refused() {
        for args in [
            json!({"question": " "}),
            json!({"question": "x".repeat(LONGEST + 1)}),
            json!({"question": "which?", "choices": []}),
            json!({"question": "which?", "choices": ["one"]}),
            json!({"question": "which?", "choices": ["one", "one"]}),
            json!({"question": "which?", "choices": ["one", " "]}),
            json!({"question": "which?", "choices": vec!["x"; 21]}),
        ] {
            let failure = question(&args).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Validation, "{args}");
        }
        let several = json!({"question": "which?", "choices": ["red", "blue"], "several": true});
        assert_eq!(question(&several).unwrap().1, Wanted::Some(choices()));
        let one = json!({"question": "which?", "choices": ["red", "blue"]});
        assert_eq!(question(&one).unwrap().1, Wanted::One(choices()));
        let text = json!({"question": "what?"});
        assert_eq!(question(&text).unwrap().1, Wanted::Text);
    }
}
