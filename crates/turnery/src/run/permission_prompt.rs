//! Answers permission requests by asking the user at the terminal, if there is one.

use super::output_thread::OutputSender;
use crate::terminal_text::{Paint, render_diff};
use futures_util::future::BoxFuture;
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufRead, BufReader, IsTerminal as _},
};
use tokio::sync::{Mutex, mpsc};
use turnery_agent::{
    Client, PermissionAnswer, PermissionChoice, PermissionChoiceKind, PermissionRequest,
};
use turnery_engine::{Artifact, CallKind};
use turnery_tools::{escape_invisible, escape_invisible_line};

/// Longest answer that is read. Unit: bytes.
const MAX_ANSWER_BYTES: u64 = 4096;

/// Answers the permission requests of `turnery run`.
pub(crate) struct PermissionPrompter {
    questions: OutputSender,
    paint: Paint,
    /// Held while a question is open, so that there is only one at a time.
    terminal: Mutex<Option<TerminalInput>>,
}

/// Lines that the user types. Reading starts with the first question.
enum TerminalInput {
    Unstarted(Box<dyn BufRead + Send>),
    Lines(mpsc::Receiver<String>),
}

impl PermissionPrompter {
    /// Creates a prompter that asks at the terminal if stderr is one and the user can type.
    pub(crate) fn new(questions: OutputSender) -> Self {
        let terminal = match io::stderr().is_terminal() {
            false => None,
            true if io::stdin().is_terminal() => {
                Some(Box::new(BufReader::new(io::stdin())) as Box<dyn BufRead + Send>)
            }
            true => File::open("/dev/tty")
                .ok()
                .map(|tty| Box::new(BufReader::new(tty)) as _),
        };
        Self {
            questions,
            paint: Paint(crate::logs::is_colour_enabled()),
            terminal: Mutex::new(terminal.map(TerminalInput::Unstarted)),
        }
    }
}

impl Client for PermissionPrompter {
    fn request_permission(&self, ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let mut terminal = self.terminal.lock().await;
            let Some(lines) = terminal.as_mut().and_then(TerminalInput::lines) else {
                return PermissionAnswer::NoAnswer(denial_hint(&ask));
            };
            // Lines typed before the question appeared are no answer to it.
            while lines.try_recv().is_ok() {}
            let mut text = render_question(&ask, self.paint);
            loop {
                if !self.questions.show_question(text).await {
                    return PermissionAnswer::NoAnswer(
                        "the question could not be shown".to_owned(),
                    );
                }
                let Some(line) = lines.recv().await else {
                    return PermissionAnswer::NoAnswer("the terminal is gone".to_owned());
                };
                match parse_answer(&line, &ask.options) {
                    Some(answer) => return answer,
                    None => text = render_choices(&ask.options),
                }
            }
        })
    }
}

impl TerminalInput {
    fn lines(&mut self) -> Option<&mut mpsc::Receiver<String>> {
        if let Self::Unstarted(_) = self {
            let (sender, receiver) = mpsc::channel(8);
            let Self::Unstarted(mut reader) = std::mem::replace(self, Self::Lines(receiver)) else {
                return None;
            };
            // A blocked read of a terminal cannot be cancelled, so the thread ends with the process.
            std::thread::Builder::new()
                .name("terminal".to_owned())
                .spawn(move || {
                    loop {
                        let mut line = String::new();
                        let read =
                            io::Read::take(&mut reader, MAX_ANSWER_BYTES).read_line(&mut line);
                        if !matches!(read, Ok(1..)) || sender.blocking_send(line).is_err() {
                            return;
                        }
                    }
                })
                .ok()?;
        }
        match self {
            Self::Lines(lines) => Some(lines),
            Self::Unstarted(_) => None,
        }
    }
}

/// Returns the hint for a denied call: the flag that would have allowed it.
fn denial_hint(ask: &PermissionRequest) -> String {
    // A user would be offered the rule for all edits; for a single file, suggest the narrower one.
    let path = ask.args["path"]
        .as_str()
        .filter(|path| !path.contains(['*', '?', '[', '{', '(', ')']));
    match &ask.rule {
        Some(rule) => {
            let rule = rule.to_string();
            let rule = match path {
                Some(path) if rule == "edit" => format!("edit({path})"),
                Some(_) | None => rule,
            };
            format!(
                "nobody is there to ask; to allow it, add --allow '{}'",
                rule.replace('\'', "'\\''")
            )
        }
        // For a destructive tool no rule is offered, but the user may write one.
        None if ask.tool_name.starts_with("mcp__") => format!(
            "nobody is there to ask; to allow it, add --allow '{}'",
            ask.tool_name
        ),
        None => "nobody is there to ask, and no rule can allow it; of all modes, auto asks about the least"
            .to_owned(),
    }
}

/// Renders the question, with everything that the user approves.
fn render_question(ask: &PermissionRequest, paint: Paint) -> String {
    let command = match ask.detail.kind {
        CallKind::Execute => ask.args["command"].as_str(),
        _ => None,
    };
    let mut text = "\n".to_owned();
    let title = escape_invisible_line(&ask.detail.title);
    // The title of a command usually repeats the command.
    let is_said = |command: &str| title.is_empty() || command.trim() == ask.detail.title;
    if !command.is_some_and(is_said) {
        let _ = writeln!(text, "{}", paint.bold(&title));
    }
    let mut diffs = 0;
    for artifact in &ask.detail.artifacts {
        match artifact {
            Artifact::Diff { path, old, new, .. } => {
                let path = path.display().to_string();
                text.push_str(&render_diff(
                    &escape_invisible_line(&path),
                    old.as_deref(),
                    new,
                    paint,
                ));
                diffs += 1;
            }
            Artifact::Content(_) | Artifact::Terminal { .. } => {}
        }
    }
    if diffs == 0 {
        if let (Some(_), Some(reason)) = (command, ask.args["outside_sandbox"].as_str()) {
            let _ = writeln!(
                text,
                "The model's reason: {}",
                escape_invisible_line(reason)
            );
        }
        if let (Some(_), Some(folder)) = (command, ask.args["cwd"].as_str()) {
            let _ = writeln!(text, "in {}:", escape_invisible_line(folder));
        }
        let _ = match command {
            Some(command) => writeln!(text, "{}", paint.bold(&escape_invisible(command))),
            None => writeln!(text, "{}", escape_invisible(&ask.args.to_string())),
        };
    }
    text.push_str(&render_choices(&ask.options));
    text
}

/// `[y] Allow  [a] Always allow ...  [c] Cancel > `
fn render_choices(options: &[PermissionChoice]) -> String {
    let mut text = String::new();
    for option in options {
        text.push_str(&format!(
            "[{}] {}  ",
            option_key(option.kind),
            escape_invisible_line(&option.name)
        ));
    }
    text.push_str("[c] Cancel > ");
    text
}

fn option_key(kind: PermissionChoiceKind) -> char {
    match kind {
        PermissionChoiceKind::AllowOnce => 'y',
        PermissionChoiceKind::AllowAlways => 'a',
        PermissionChoiceKind::RejectOnce => 'n',
        PermissionChoiceKind::RejectAlways => 'N',
    }
}

/// Parses a typed line; returns `None` if it matches no option.
fn parse_answer(line: &str, options: &[PermissionChoice]) -> Option<PermissionAnswer> {
    let chosen = |kind| options.iter().find(|option| option.kind == kind);
    let line = line.trim();
    let option = match line {
        "N" | "never" => chosen(PermissionChoiceKind::RejectAlways),
        _ => match line.to_lowercase().as_str() {
            "c" | "cancel" => return Some(PermissionAnswer::Cancelled),
            "y" | "yes" => chosen(PermissionChoiceKind::AllowOnce),
            "a" | "always" => chosen(PermissionChoiceKind::AllowAlways),
            "n" | "no" => chosen(PermissionChoiceKind::RejectOnce),
            _ => None,
        },
    };
    option.map(|option| PermissionAnswer::Selected(option.id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use turnery_engine::CallDetail;

    fn options() -> Vec<PermissionChoice> {
        [
            ("allow_once", "Allow", PermissionChoiceKind::AllowOnce),
            (
                "allow_always",
                "Always allow ls",
                PermissionChoiceKind::AllowAlways,
            ),
            ("reject_once", "Reject", PermissionChoiceKind::RejectOnce),
            (
                "reject_always",
                "Always reject ls",
                PermissionChoiceKind::RejectAlways,
            ),
        ]
        .map(|(id, name, kind)| PermissionChoice {
            id: id.to_owned(),
            name: name.to_owned(),
            kind,
        })
        .into()
    }

    fn ask(detail: CallDetail, args: serde_json::Value) -> PermissionRequest {
        PermissionRequest {
            session_id: "s".into(),
            call_id: "c".into(),
            tool_name: "shell".to_owned(),
            args: Arc::new(args),
            detail,
            options: options(),
            rule: Some("shell(ls)".parse().unwrap()),
        }
    }

    #[test]
    fn one_letter_selects_option() {
        let chose = |id: &str| Some(PermissionAnswer::Selected(id.to_owned()));
        assert_eq!(parse_answer("y\n", &options()), chose("allow_once"));
        assert_eq!(parse_answer("Always", &options()), chose("allow_always"));
        assert_eq!(parse_answer("n", &options()), chose("reject_once"));
        assert_eq!(parse_answer("N\r\n", &options()), chose("reject_always"));
        assert_eq!(
            parse_answer("c", &options()),
            Some(PermissionAnswer::Cancelled)
        );
        assert_eq!(
            parse_answer("", &options()),
            None,
            "enter alone allows nothing"
        );
        assert_eq!(parse_answer("yep", &options()), None);
        assert_eq!(parse_answer("a", &options()[..1]), None, "not offered");
    }

    #[test]
    fn question_shows_whole_command_and_all_options() {
        let shown = |title: &str, args: serde_json::Value| {
            let detail = CallDetail {
                title: title.to_owned(),
                kind: CallKind::Execute,
                ..CallDetail::default()
            };
            let text = render_question(&ask(detail, args), Paint(false));
            let choices =
                "[y] Allow  [a] Always allow ls  [n] Reject  [N] Always reject ls  [c] Cancel > ";
            let shown = text.strip_suffix(choices).map(str::to_owned);
            shown.unwrap_or_else(|| panic!("{text}"))
        };
        let command = "ls\x1b[8m; rm x\u{202e}\nrm y";
        assert_eq!(
            shown("Sub-agent: ls", serde_json::json!({"command": command})),
            "\nSub-agent: ls\nls⟨U+001B⟩[8m; rm x⟨U+202E⟩\nrm y\n"
        );
        // The title of a command is not repeated.
        let args = serde_json::json!({"command": "ls\nrm x", "cwd": "inner"});
        assert_eq!(shown("ls\nrm x", args), "\nin inner:\nls\nrm x\n");
        let args = serde_json::json!({"command": "ls", "outside_sandbox": "it \u{202e}must"});
        assert_eq!(
            shown("Outside the sandbox: ls", args),
            "\nOutside the sandbox: ls\nThe model's reason: it ⟨U+202E⟩must\nls\n"
        );
        let padded = format!("make test{}; touch M", " ".repeat(4050));
        assert_eq!(
            shown("", serde_json::json!({"command": padded})),
            "\nmake test ⟨4050 blanks⟩ ; touch M\n"
        );
        let long = format!("echo {}; touch M", "a".repeat(100_000));
        let text = shown("", serde_json::json!({"command": long}));
        assert!(text.ends_with("aaa; touch M\n"), "{}", text.len());
    }

    #[test]
    fn other_arguments_are_shown_whole() {
        let detail = CallDetail::default();
        let args = serde_json::json!({"a": "x".repeat(5000), "z": "\u{200b}end"});
        let text = render_question(&ask(detail, args), Paint(false));
        assert!(text.contains("\"z\":\"⟨U+200B⟩end\"}\n[y]"), "{text}");
    }

    #[test]
    fn denial_without_terminal_names_flag() {
        let mut asked = ask(CallDetail::default(), serde_json::json!({}));
        assert_eq!(
            denial_hint(&asked),
            "nobody is there to ask; to allow it, add --allow 'shell(ls)'"
        );
        asked.rule = Some("edit".parse().unwrap());
        asked.args = Arc::new(serde_json::json!({"path": "src/a.rs"}));
        assert_eq!(
            denial_hint(&asked),
            "nobody is there to ask; to allow it, add --allow 'edit(src/a.rs)'"
        );
        asked.rule = None;
        assert_eq!(
            denial_hint(&asked),
            "nobody is there to ask, and no rule can allow it; of all modes, auto asks about the least"
        );
    }

    #[test]
    fn destructive_tool_can_be_allowed_by_a_flag() {
        let mut asked = ask(CallDetail::default(), serde_json::json!({}));
        asked.tool_name = "mcp__db__drop".to_owned();
        asked.rule = None;
        assert_eq!(
            denial_hint(&asked),
            "nobody is there to ask; to allow it, add --allow 'mcp__db__drop'"
        );
    }

    #[test]
    fn an_edit_is_shown_as_a_diff() {
        let detail = CallDetail {
            title: "Edit a.rs".to_owned(),
            kind: CallKind::Edit,
            artifacts: vec![Artifact::Diff {
                path: "/p/a.rs".into(),
                old: Some("1\n".to_owned()),
                new: "2\n".to_owned(),
                from_line: None,
            }],
            ..CallDetail::default()
        };
        let text = render_question(&ask(detail, serde_json::json!({})), Paint(false));
        assert!(
            text.starts_with("\nEdit a.rs\n/p/a.rs\n@@ -1 +1 @@\n-1\n+2\n[y] Allow"),
            "{text}"
        );
    }
}
