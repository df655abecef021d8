//! `turnery sessions`: what was said and done, kept in the store.

mod damage;
mod transfer;
mod tree;
mod usage;

use crate::{
    args::{Global, Kept},
    config::Choice,
    parts::{Parts, folder},
    run::{exit, number},
    runtime::runtime,
    show::{line, plain, when},
};
use std::{
    collections::HashSet,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};
use turnery_engine::{Content, LoopId, LoopRecord, Message, SessionId};
use turnery_store::{Archived, ListQuery, SessionInfo, Store, StoreError};
use turnery_tools::visible_line;

/// Longest title in a list. Unit: characters.
const TITLE: usize = 60;
/// Longest line of a tool's result in a transcript. Unit: characters.
const RESULT: usize = 120;

/// Carry out what `turnery sessions` does without a model.
pub(crate) fn run(global: &Global, what: Kept) -> anyhow::Result<ExitCode> {
    let parts = Parts::read(global, Choice::default());
    let store = parts.store()?;
    let runtime = runtime()?;
    let mut out = io::stdout().lock();
    runtime.block_on(async {
        match what {
            Kept::List { all, json } => list(&store, all, json, &mut out).await,
            Kept::Show { id, json } => show(&store, &SessionId::from(id), json, &mut out).await,
            Kept::Export { id, file } => {
                transfer::export(&store, &SessionId::from(id), file.as_deref(), &mut out).await
            }
            Kept::Import { file, new } => transfer::import(&store, &file, new, &mut out).await,
            Kept::Usage { id, json } => {
                let price = |model: &str| parts.price(model);
                usage::usage(&store, &SessionId::from(id), price, json, &mut out).await
            }
            Kept::Delete { id, force } => delete(&store, id, force, &mut out).await,
            Kept::Check { id, json, repair } => {
                let id = id.map(SessionId::from);
                damage::check(&store, id.as_ref(), json, repair, &mut out).await
            }
            Kept::Repair { id, json } => {
                let ids: Vec<SessionId> = id.into_iter().map(SessionId::from).collect();
                damage::repair(&store, &ids, json, &mut out).await
            }
        }
    })
}

async fn list(
    store: &dyn Store,
    all: bool,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let cwd = match all {
        true => None,
        false => Some(folder(None)?),
    };
    let mut query = ListQuery {
        cwd,
        archived: match all {
            true => Archived::Include,
            false => Archived::Exclude,
        },
        ..ListQuery::default()
    };
    let mut first = true;
    loop {
        let page = store.list(query.clone()).await?;
        for session in &page.sessions {
            match json {
                true => {
                    out.write_all(if first { b"[" } else { b",\n" })?;
                    serde_json::to_writer(&mut *out, session)?;
                }
                false => row(session, all, out)?,
            }
            first = false;
        }
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => break,
        }
    }
    match (json, first) {
        (true, true) => writeln!(out, "[]")?,
        (true, false) => writeln!(out, "]")?,
        (false, true) => writeln!(
            io::stderr(),
            "{}",
            match all {
                true => "no session was held yet",
                false => "no session was held in this folder yet; --all shows those of others",
            }
        )?,
        (false, false) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn row(session: &SessionInfo, all: bool, out: &mut impl Write) -> io::Result<()> {
    let title = session.title.as_deref().unwrap_or("(nothing asked yet)");
    write!(
        out,
        "{}  {}  {}",
        session.id,
        when(session.updated_at),
        line(title, TITLE)
    )?;
    match all {
        true => writeln!(
            out,
            "  {}",
            visible_line(&session.cwd.display().to_string())
        ),
        false => writeln!(out),
    }
}

async fn show(
    store: &dyn Store,
    id: &SessionId,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    recover(store, id).await;
    let info = store.info(id).await?;
    let loops = store.loops(id, 0).await?;
    let history = store.history(id).await?;
    damage::tell(store, id).await?;
    if json {
        serde_json::to_writer_pretty(&mut *out, &loops)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "{}\n{} in {}, {}",
        visible_line(info.title.as_deref().unwrap_or("(no title)")),
        info.model,
        visible_line(&info.cwd.display().to_string()),
        when(info.created_at)
    )?;
    // Of a damaged session, the last loop that can be read.
    let tip = match history.damage.is_empty() {
        true => info.tip_loop_id.as_ref(),
        false => history.loops.last().map(|last| &last.loop_id),
    };
    tree::write(&loops, tip, out)?;
    transcript(&loops, &tree::seen(&loops, tip), out)?;
    Ok(ExitCode::SUCCESS)
}

/// Brings back what a killed process has left of a prompt. A store that cannot be written is read
/// without.
async fn recover(store: &dyn Store, id: &SessionId) {
    let told = match store.recover(id).await {
        Ok(damage) => damage.iter().map(ToString::to_string).collect(),
        Err(StoreError::NotFound(_)) => Vec::new(),
        Err(error) => vec![error.to_string()],
    };
    for why in told {
        // Nobody has to read it.
        let _ = writeln!(
            io::stderr(),
            "turnery: part of an interrupted prompt of {id} cannot be read: {why}"
        );
    }
}

/// What was said, in order, for reading.
fn transcript(
    loops: &[Arc<LoopRecord>],
    seen: &HashSet<LoopId>,
    out: &mut impl Write,
) -> io::Result<()> {
    for record in loops {
        if !seen.contains(&record.loop_id) {
            let number = number(&record.loop_id);
            writeln!(
                out,
                "\n· loop {number}, which the model does not see any more"
            )?;
        }
        for message in &record.messages {
            match &message.message {
                Message::User { content } => {
                    writeln!(out)?;
                    said("> ", content, out)?;
                }
                Message::Assistant { content, error, .. } => {
                    said("", content, out)?;
                    if let Some(error) = error {
                        writeln!(out, "✗ {}", line(error, RESULT))?;
                    }
                }
                Message::System { text } => writeln!(out, "· {}", plain(text.trim_end()))?,
                Message::ToolResult {
                    content, is_error, ..
                } => {
                    let mark = if *is_error { "✗" } else { "✓" };
                    let text = content.iter().find_map(Content::as_text).unwrap_or("");
                    writeln!(out, "  {mark} {}", line(text, RESULT))?;
                }
            }
        }
        if let Some(rejection) = &record.rejection {
            writeln!(out, "✗ {}", plain(rejection))?;
        }
    }
    Ok(())
}

fn said(mark: &str, content: &[Content], out: &mut impl Write) -> io::Result<()> {
    for item in content {
        match item {
            Content::Text { text } => {
                for line in text.trim_end().lines() {
                    writeln!(out, "{mark}{}", plain(line))?;
                }
            }
            Content::Image(image) => writeln!(out, "{mark}(a picture, {})", image.mime_type)?,
            Content::Audio(audio) => writeln!(out, "{mark}(a recording, {})", audio.mime_type)?,
            Content::ToolCall(call) => {
                writeln!(
                    out,
                    "• {} {}",
                    visible_line(&call.name),
                    line(&call.args.to_string(), RESULT)
                )?;
            }
            Content::Thinking { .. } | Content::Opaque { .. } => {}
        }
    }
    Ok(())
}

async fn delete(
    store: &dyn Store,
    ids: Vec<String>,
    force: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut is_done = true;
    let mut is_any_deleted = false;
    for id in ids {
        match delete_one(store, &SessionId::from(id.as_str()), force).await {
            Ok(Some(holders)) => {
                is_any_deleted = true;
                writeln!(out, "deleted {id}")?;
                for holder in holders {
                    writeln!(io::stderr(), "turnery: {holder} was at work in {id}")?;
                }
            }
            Ok(None) => {
                is_done = false;
                writeln!(io::stderr(), "turnery: there is no session {id}")?;
            }
            // The others are deleted all the same.
            Err(error @ StoreError::Busy { .. }) => {
                is_done = false;
                writeln!(
                    io::stderr(),
                    "turnery: {error}; stop the prompt first, or delete it with --force"
                )?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if is_any_deleted {
        let copies = store.copies().await;
        if let Err(error) = &copies {
            writeln!(
                io::stderr(),
                "turnery: cannot tell whether repairs have left copies of the database: {error}"
            )?;
        }
        for copy in copies.unwrap_or_default() {
            writeln!(
                io::stderr(),
                "turnery: {} was made by a repair and still has what was stored then, also of \
                 sessions deleted since; delete it if you do not need it",
                plain(&copy.display().to_string())
            )?;
        }
    }
    Ok(ExitCode::from(if is_done { 0 } else { exit::ERROR }))
}

/// The holders from whom the session was taken; `None` if there is no such session.
async fn delete_one(
    store: &dyn Store,
    id: &SessionId,
    force: bool,
) -> Result<Option<Vec<String>>, StoreError> {
    match force {
        true => store.delete_in_use(id).await,
        false => Ok(store.delete(id).await?.then(Vec::new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::{ImageData, ToolCall};

    #[test]
    fn a_transcript_line_for_everything_that_was_said() {
        let mut out = Vec::new();
        let content = [
            Content::text("first\nsecond\n"),
            Content::Image(ImageData {
                mime_type: "image/png".to_owned(),
                base64: "AA==".into(),
            }),
            Content::ToolCall(ToolCall {
                call_id: "c".into(),
                name: "read".to_owned(),
                args: Arc::new(serde_json::json!({"path": "a"})),
            }),
        ];
        said("> ", &content, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "> first\n> second\n> (a picture, image/png)\n• read {\"path\":\"a\"}\n"
        );
    }
}
