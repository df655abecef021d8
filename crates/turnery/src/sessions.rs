//! `turnery sessions`: lists, shows, exports, repairs and deletes stored sessions.

mod damage;
pub(crate) mod loop_table;
mod transfer;
mod usage;

use crate::{
    app::{App, resolve_cwd},
    args::{GlobalOptions, StoreCommand},
    config::Config,
    logs::print_message,
    run::{exit, loop_number},
    runtime::current_thread_runtime,
    terminal_text::{first_line, format_timestamp, replace_control_chars},
};
use serde::Serialize;
use std::{
    collections::HashSet,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};
use turnery_engine::{Content, LoopId, LoopRecord, Message, SessionId};
use turnery_store::{
    ArchivedFilter, ListQuery, SessionInfo, Store, StoreError, lineage::child_loop_ids,
};
use turnery_tools::escape_invisible_line;

/// Longest title in a list. Unit: characters.
const TITLE_WIDTH: usize = 60;
/// Longest tool result line in a transcript. Unit: characters.
const RESULT_WIDTH: usize = 120;

/// Runs the `turnery sessions` commands that need no model.
pub(crate) fn run(global: &GlobalOptions, what: StoreCommand) -> anyhow::Result<ExitCode> {
    let app = App::load(global, Config::default());
    let store = app.open_store()?;
    let runtime = current_thread_runtime()?;
    let mut out = io::stdout().lock();
    runtime.block_on(async {
        match what {
            StoreCommand::List { all, json } => list_sessions(&store, all, json, &mut out).await,
            StoreCommand::Show { id, json } => {
                show_session(&store, &SessionId::from(id), json, &mut out).await
            }
            StoreCommand::Export { id, file } => {
                transfer::export(&store, &SessionId::from(id), file.as_deref(), &mut out).await
            }
            StoreCommand::Import { file, new } => {
                transfer::import(&store, &file, new, &mut out).await
            }
            StoreCommand::Usage { id, json } => {
                let models = app.model_registry();
                let price = |model: &str| models.recorded_price(model);
                usage::print_usage(&store, &SessionId::from(id), price, json, &mut out).await
            }
            StoreCommand::Delete { id, force } => {
                delete_sessions(&store, id, force, &mut out).await
            }
            StoreCommand::Check { id, json, repair } => {
                let id = id.map(SessionId::from);
                damage::check(&store, id.as_ref(), json, repair, &mut out).await
            }
            StoreCommand::Repair { id, json } => {
                let ids: Vec<SessionId> = id.into_iter().map(SessionId::from).collect();
                damage::repair(&store, &ids, json, &mut out).await
            }
        }
    })
}

async fn list_sessions(
    store: &dyn Store,
    all: bool,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let cwd = match all {
        true => None,
        false => Some(resolve_cwd(None)?),
    };
    let mut query = ListQuery {
        folder: cwd,
        archived: match all {
            true => ArchivedFilter::Include,
            false => ArchivedFilter::Exclude,
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
                false => write_session_row(session, all, out)?,
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

fn write_session_row(session: &SessionInfo, all: bool, out: &mut impl Write) -> io::Result<()> {
    let title = session.title.as_deref().unwrap_or("(nothing asked yet)");
    write!(
        out,
        "{}  {}  {}",
        session.id,
        format_timestamp(session.updated_at),
        first_line(title, TITLE_WIDTH)
    )?;
    match all {
        true => writeln!(
            out,
            "  {}",
            escape_invisible_line(&session.cwd.display().to_string())
        ),
        false => writeln!(out),
    }
}

/// Record of a loop with the loops that follow it in its session (LOOP-62).
#[derive(Serialize)]
struct ShownLoop<'a> {
    #[serde(flatten)]
    record: &'a LoopRecord,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children_loop_ids: Vec<&'a LoopId>,
}

async fn show_session(
    store: &dyn Store,
    id: &SessionId,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    recover_session(store, id).await;
    let info = store.info(id).await?;
    let loops = store.loops(id, 0).await?;
    let history = store.history(id).await?;
    damage::warn_of_damage(store, id).await?;
    if json {
        let shown = loops.iter().map(|record| ShownLoop {
            record,
            children_loop_ids: child_loop_ids(record, &loops).collect(),
        });
        serde_json::to_writer_pretty(&mut *out, &shown.collect::<Vec<_>>())?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "{}\n{} in {}, {}",
        escape_invisible_line(info.title.as_deref().unwrap_or("(no title)")),
        info.model,
        escape_invisible_line(&info.cwd.display().to_string()),
        format_timestamp(info.created_at)
    )?;
    // In a damaged session, the last readable loop.
    let tip = match history.damage.is_empty() {
        true => info.tip_loop_id.as_ref(),
        false => history.loops.last().map(|last| &last.loop_id),
    };
    loop_table::write_loop_table(&loops, tip, out)?;
    write_transcript(&loops, &loop_table::visible_loops(&loops, tip), out)?;
    Ok(ExitCode::SUCCESS)
}

/// Recovers the prompt that a killed process left unfinished. If the store cannot be written, the session is shown
/// without it.
async fn recover_session(store: &dyn Store, id: &SessionId) {
    let told = match store.recover(id).await {
        Ok(damage) => damage.iter().map(ToString::to_string).collect(),
        Err(StoreError::NotFound(_)) => Vec::new(),
        Err(error) => vec![error.to_string()],
    };
    for why in told {
        print_message(&format!(
            "part of an interrupted prompt of {id} cannot be read: {why}"
        ));
    }
}

/// Writes the messages in order, as readable text.
fn write_transcript(
    loops: &[Arc<LoopRecord>],
    seen: &HashSet<LoopId>,
    out: &mut impl Write,
) -> io::Result<()> {
    for record in loops {
        if !seen.contains(&record.loop_id) {
            let number = loop_number(&record.loop_id);
            writeln!(
                out,
                "\n· loop {number}, which the model does not see any more"
            )?;
        }
        for message in &record.messages {
            match &message.message {
                Message::User { content } => {
                    writeln!(out)?;
                    write_content("> ", content, out)?;
                }
                Message::Assistant { content, error, .. } => {
                    write_content("", content, out)?;
                    if let Some(error) = error {
                        writeln!(out, "✗ {}", first_line(error, RESULT_WIDTH))?;
                    }
                }
                Message::System { text } => {
                    writeln!(out, "· {}", replace_control_chars(text.trim_end()))?
                }
                Message::ToolResult {
                    content, is_error, ..
                } => {
                    let mark = if *is_error { "✗" } else { "✓" };
                    let text = content.iter().find_map(Content::as_text).unwrap_or("");
                    writeln!(out, "  {mark} {}", first_line(text, RESULT_WIDTH))?;
                }
            }
        }
        if let Some(rejection) = &record.rejection {
            writeln!(out, "✗ {}", replace_control_chars(rejection))?;
        }
    }
    Ok(())
}

fn write_content(mark: &str, content: &[Content], out: &mut impl Write) -> io::Result<()> {
    for item in content {
        match item {
            Content::Text { text } => {
                for line in text.trim_end().lines() {
                    writeln!(out, "{mark}{}", replace_control_chars(line))?;
                }
            }
            Content::Image(image) => writeln!(out, "{mark}(a picture, {})", image.mime_type)?,
            Content::Audio(audio) => writeln!(out, "{mark}(a recording, {})", audio.mime_type)?,
            Content::Document(document) => {
                let name = replace_control_chars(&document.name);
                writeln!(out, "{mark}(a document, {name})")?
            }
            Content::ToolCall(call) => {
                writeln!(
                    out,
                    "• {} {}",
                    escape_invisible_line(&call.name),
                    first_line(&call.args.to_string(), RESULT_WIDTH)
                )?;
            }
            Content::Thinking { .. } | Content::Opaque { .. } => {}
        }
    }
    Ok(())
}

async fn delete_sessions(
    store: &dyn Store,
    ids: Vec<String>,
    force: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut is_done = true;
    let mut is_any_deleted = false;
    for id in ids {
        match delete_session(store, &SessionId::from(id.as_str()), force).await {
            Ok(Some(holders)) => {
                is_any_deleted = true;
                writeln!(out, "deleted {id}")?;
                for holder in holders {
                    print_message(&format!("{holder} was at work in {id}"));
                }
            }
            Ok(None) => {
                is_done = false;
                print_message(&format!("there is no session {id}"));
            }
            // Go on with the other sessions.
            Err(error @ StoreError::Busy { .. }) => {
                is_done = false;
                print_message(&format!(
                    "{error}; stop the prompt first, or delete it with --force"
                ));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if is_any_deleted {
        let copies = store.backups().await;
        if let Err(error) = &copies {
            print_message(&format!(
                "cannot tell whether repairs have left copies of the database: {error}"
            ));
        }
        for copy in copies.unwrap_or_default() {
            writeln!(
                io::stderr(),
                "turnery: {} was made by a repair and still has what was stored then, also of \
                 sessions deleted since; delete it if you do not need it",
                replace_control_chars(&copy.display().to_string())
            )?;
        }
    }
    Ok(ExitCode::from(if is_done { 0 } else { exit::ERROR }))
}

/// Deletes a session. Returns the holders whose lease was broken, or `None` if there is no such session.
async fn delete_session(
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
    fn transcript_has_line_for_each_content_item() {
        let mut out = Vec::new();
        let content = [
            Content::text("first\nsecond\n"),
            Content::Image(ImageData {
                mime_type: "image/png".to_owned(),
                base64: "AA==".into(),
            }),
            Content::ToolCall(ToolCall::new("c", "read", serde_json::json!({"path": "a"}))),
        ];
        write_content("> ", &content, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "> first\n> second\n> (a picture, image/png)\n• read {\"path\":\"a\"}\n"
        );
    }
}
