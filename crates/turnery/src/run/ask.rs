//! Ask: who answers when a call needs permission. The person at the terminal, if there is one.

use super::screen::Notices;
use crate::show::{Paint, diff};
use futures_util::future::BoxFuture;
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufRead, BufReader, IsTerminal as _},
};
use tokio::sync::{Mutex, mpsc};
use turnery_agent::{Answer, Ask, AskOption, Client, OptionKind};
use turnery_engine::{Artifact, CallKind};
use turnery_tools::{visible, visible_line};

/// The longest answer that is read. Unit: bytes.
const LONGEST: u64 = 4096;

/// Answers the asks of `turnery run`.
pub(crate) struct Asker {
    notices: Notices,
    paint: Paint,
    /// Held while a question is open: there is one at a time.
    terminal: Mutex<Option<Terminal>>,
}

/// Lines that the person types. Begun with the first question, so that nothing is read before.
enum Terminal {
    Unread(Box<dyn BufRead + Send>),
    Lines(mpsc::Receiver<String>),
}

impl Asker {
    /// Ask at the terminal, if stderr is one and the person can type.
    pub(crate) fn new(notices: Notices) -> Self {
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
            notices,
            paint: Paint(crate::logs::colour()),
            terminal: Mutex::new(terminal.map(Terminal::Unread)),
        }
    }
}

impl Client for Asker {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let mut terminal = self.terminal.lock().await;
            let Some(lines) = terminal.as_mut().and_then(Terminal::lines) else {
                return Answer::NoAnswer(hint(&ask));
            };
            // Typed before the question was there: not an answer to it.
            while lines.try_recv().is_ok() {}
            let mut text = question(&ask, self.paint);
            loop {
                if !self.notices.show(text).await {
                    return Answer::NoAnswer("the question could not be shown".to_owned());
                }
                let Some(line) = lines.recv().await else {
                    return Answer::NoAnswer("the terminal is gone".to_owned());
                };
                match answer(&line, &ask.options) {
                    Some(answer) => return answer,
                    None => text = choices(&ask.options),
                }
            }
        })
    }
}

impl Terminal {
    fn lines(&mut self) -> Option<&mut mpsc::Receiver<String>> {
        if let Self::Unread(_) = self {
            let (sender, receiver) = mpsc::channel(8);
            let Self::Unread(mut reader) = std::mem::replace(self, Self::Lines(receiver)) else {
                return None;
            };
            // Ends with the process: a read of a terminal cannot be taken back.
            std::thread::Builder::new()
                .name("terminal".to_owned())
                .spawn(move || {
                    loop {
                        let mut line = String::new();
                        let read = io::Read::take(&mut reader, LONGEST).read_line(&mut line);
                        if !matches!(read, Ok(1..)) || sender.blocking_send(line).is_err() {
                            return;
                        }
                    }
                })
                .ok()?;
        }
        match self {
            Self::Lines(lines) => Some(lines),
            Self::Unread(_) => None,
        }
    }
}

/// What to do when nobody can be asked: the flag that would have allowed it.
fn hint(ask: &Ask) -> String {
    // The rule for all edits is what a person would be offered; for one file there is a narrower one.
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
        // Its server says that it may destroy: no rule is offered, but the user may write one.
        None if ask.tool_name.starts_with("mcp__") => format!(
            "nobody is there to ask; to allow it, add --allow '{}'",
            ask.tool_name
        ),
        None => "nobody is there to ask, and no rule can allow it; of all modes, auto asks about the least"
            .to_owned(),
    }
}

/// The question as it is shown: all of what is asked about.
fn question(ask: &Ask, paint: Paint) -> String {
    let command = match ask.detail.kind {
        CallKind::Execute => ask.args["command"].as_str(),
        _ => None,
    };
    let mut text = "\n".to_owned();
    let title = visible_line(&ask.detail.title);
    // A command's title is the command, which follows.
    let is_said = |command: &str| title.is_empty() || command.trim() == ask.detail.title;
    if !command.is_some_and(is_said) {
        let _ = writeln!(text, "{}", paint.bold(&title));
    }
    let mut diffs = 0;
    for artifact in &ask.detail.artifacts {
        match artifact {
            Artifact::Diff { path, old, new, .. } => {
                let path = path.display().to_string();
                text.push_str(&diff(&visible_line(&path), old.as_deref(), new, paint));
                diffs += 1;
            }
            Artifact::Content(_) | Artifact::Terminal { .. } => {}
        }
    }
    if diffs == 0 {
        if let (Some(_), Some(reason)) = (command, ask.args["outside_sandbox"].as_str()) {
            let _ = writeln!(text, "The model's reason: {}", visible_line(reason));
        }
        if let (Some(_), Some(folder)) = (command, ask.args["cwd"].as_str()) {
            let _ = writeln!(text, "in {}:", visible_line(folder));
        }
        let _ = match command {
            Some(command) => writeln!(text, "{}", paint.bold(&visible(command))),
            None => writeln!(text, "{}", visible(&ask.args.to_string())),
        };
    }
    text.push_str(&choices(&ask.options));
    text
}

/// `[y] Allow  [a] Always allow ...  [c] Cancel > `
fn choices(options: &[AskOption]) -> String {
    let mut text = String::new();
    for option in options {
        text.push_str(&format!(
            "[{}] {}  ",
            key(option.kind),
            visible_line(&option.name)
        ));
    }
    text.push_str("[c] Cancel > ");
    text
}

fn key(kind: OptionKind) -> char {
    match kind {
        OptionKind::AllowOnce => 'y',
        OptionKind::AllowAlways => 'a',
        OptionKind::RejectOnce => 'n',
        OptionKind::RejectAlways => 'N',
    }
}

/// What a typed line means; `None` when it means nothing.
fn answer(line: &str, options: &[AskOption]) -> Option<Answer> {
    let chosen = |kind| options.iter().find(|option| option.kind == kind);
    let line = line.trim();
    let option = match line {
        "N" | "never" => chosen(OptionKind::RejectAlways),
        _ => match line.to_lowercase().as_str() {
            "c" | "cancel" => return Some(Answer::Cancelled),
            "y" | "yes" => chosen(OptionKind::AllowOnce),
            "a" | "always" => chosen(OptionKind::AllowAlways),
            "n" | "no" => chosen(OptionKind::RejectOnce),
            _ => None,
        },
    };
    option.map(|option| Answer::Chose(option.id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use turnery_engine::CallDetail;

    fn options() -> Vec<AskOption> {
        [
            ("allow_once", "Allow", OptionKind::AllowOnce),
            ("allow_always", "Always allow ls", OptionKind::AllowAlways),
            ("reject_once", "Reject", OptionKind::RejectOnce),
            (
                "reject_always",
                "Always reject ls",
                OptionKind::RejectAlways,
            ),
        ]
        .map(|(id, name, kind)| AskOption {
            id: id.to_owned(),
            name: name.to_owned(),
            kind,
        })
        .into()
    }

    fn ask(detail: CallDetail, args: serde_json::Value) -> Ask {
        Ask {
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
    fn one_letter_answers() {
        let chose = |id: &str| Some(Answer::Chose(id.to_owned()));
        assert_eq!(answer("y\n", &options()), chose("allow_once"));
        assert_eq!(answer("Always", &options()), chose("allow_always"));
        assert_eq!(answer("n", &options()), chose("reject_once"));
        assert_eq!(answer("N\r\n", &options()), chose("reject_always"));
        assert_eq!(answer("c", &options()), Some(Answer::Cancelled));
        assert_eq!(answer("", &options()), None, "enter alone allows nothing");
        assert_eq!(answer("yep", &options()), None);
        assert_eq!(answer("a", &options()[..1]), None, "not offered");
    }

    #[test]
    fn a_question_shows_the_whole_command_and_all_answers() {
        let shown = |title: &str, args: serde_json::Value| {
            let detail = CallDetail {
                title: title.to_owned(),
                kind: CallKind::Execute,
                ..CallDetail::default()
            };
            let text = question(&ask(detail, args), Paint(false));
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
        // The title of a command says nothing more.
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
        let text = question(&ask(detail, args), Paint(false));
        assert!(text.contains("\"z\":\"⟨U+200B⟩end\"}\n[y]"), "{text}");
    }

    #[test]
    fn without_anybody_to_ask_the_flag_is_named() {
        let mut asked = ask(CallDetail::default(), serde_json::json!({}));
        assert_eq!(
            hint(&asked),
            "nobody is there to ask; to allow it, add --allow 'shell(ls)'"
        );
        asked.rule = Some("edit".parse().unwrap());
        asked.args = Arc::new(serde_json::json!({"path": "src/a.rs"}));
        assert_eq!(
            hint(&asked),
            "nobody is there to ask; to allow it, add --allow 'edit(src/a.rs)'"
        );
        asked.rule = None;
        assert_eq!(
            hint(&asked),
            "nobody is there to ask, and no rule can allow it; of all modes, auto asks about the least"
        );
    }

    #[test]
    fn destructive_tool_can_be_allowed_by_a_flag() {
        let mut asked = ask(CallDetail::default(), serde_json::json!({}));
        asked.tool_name = "mcp__db__drop".to_owned();
        asked.rule = None;
        assert_eq!(
            hint(&asked),
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
        let text = question(&ask(detail, serde_json::json!({})), Paint(false));
        assert!(
            text.starts_with("\nEdit a.rs\n/p/a.rs\n@@ -1 +1 @@\n-1\n+2\n[y] Allow"),
            "{text}"
        );
    }
}
