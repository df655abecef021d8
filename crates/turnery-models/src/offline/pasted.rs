//! Pasted: what came with the sentence, from stdin or the clipboard: a diff to tell about, or what a
//! test runner or a compiler printed.

use super::{
    diff,
    failures::Report,
    git::{Changed, message, read},
    intent::Ask,
    output::{count, fenced, list},
    replay::{Halt, Replay},
    run,
};

/// Tell what a diff changes, without applying it.
pub(super) fn diff(text: &str, ask: Ask, replay: &mut Replay<'_>) -> Result<(), Halt> {
    let entries: Vec<String> = diff::read(text)
        .into_iter()
        .filter_map(|file| match (file.old, file.new) {
            (Some(_), Some(path)) => Some(format!(" M {path}")),
            (None, Some(path)) => Some(format!("?? {path}")),
            (Some(path), None) => Some(format!(" D {path}")),
            (None, None) => None,
        })
        .collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let files = read(text, &entries);
    if files.is_empty() {
        return Err(Halt::Stop(
            "I see the beginning of a diff, but no change in it.".to_owned(),
        ));
    }
    let message = fenced(&message(&files), "");
    if ask == Ask::CommitMessage {
        replay.say(message);
        replay.say("\nIt tells what was touched; why, you know better than I do.\n");
        return Ok(());
    }
    let added: usize = files.iter().map(|file| file.added).sum();
    let removed: usize = files.iter().map(|file| file.removed).sum();
    let lines: Vec<String> = files.iter().map(Changed::in_a_line).collect();
    replay.say(format!(
        "The diff changes {}, +{added} -{removed} lines:\n{}",
        count(files.len(), "file"),
        list(&lines, 40)
    ));
    replay.say(format!("\nA commit message could be:\n\n{message}"));
    replay.say(
        "\nA judgement of it needs a model, and none is connected (say \"help\" for how). \
         To have it applied, say: apply this patch.\n",
    );
    Ok(())
}

/// Sort the failures in what a program printed.
pub(super) fn output(text: &str, replay: &mut Replay<'_>) {
    let report = Report::of(text);
    let counts = report.counts();
    if !counts.is_empty() {
        replay.say(format!("What was pasted shows {counts}.\n"));
    }
    run::tell(&report, text, true, replay);
}
