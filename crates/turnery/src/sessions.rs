//! `turnery sessions`: lists, shows, exports, repairs and deletes stored sessions.

mod damage;
mod follow;
mod list;
pub(crate) mod loop_table;
mod markdown;
mod prune;
mod stats;
mod store;
mod tool_calls;
mod transcript;
mod transfer;
mod usage;

pub(crate) use store::run as run_store_command;

use crate::{
    app::{App, resolve_cwd},
    args::{GlobalOptions, StoreCommand},
    config::Config,
    logs::print_message,
    run::{TerminationSignals, exit},
    runtime::current_thread_runtime,
    session_address::{AddressError, find_session},
    terminal_text::{format_timestamp, replace_control_chars},
};
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};
use turnery_engine::{LoopId, LoopRecord, SessionId};
use turnery_store::{FollowFrom, SessionFollower, Store, StoreError, lineage::child_loop_ids};
use turnery_tools::escape_invisible_line;

/// Runs the `turnery sessions` commands that need no model.
pub(crate) fn run(global: &GlobalOptions, what: StoreCommand) -> anyhow::Result<ExitCode> {
    let app = App::load(global, Config::default());
    let store = app.open_store(None)?;
    let runtime = current_thread_runtime()?;
    let mut out = io::stdout().lock();
    runtime.block_on(execute(&app, &store, what, &mut out))
}

async fn execute(
    app: &App,
    shared: &Arc<dyn Store>,
    what: StoreCommand,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let store = &**shared;
    let here = resolve_cwd(None).ok();
    let find = async |name: &str| find_session(store, name, here.as_deref()).await;
    match what {
        StoreCommand::List { all, search, json } => {
            let options = list::ListOptions { all, search, json };
            list::list_sessions(store, options, out).await
        }
        StoreCommand::Show {
            id,
            full,
            tools,
            json,
        } => {
            let what = match (full, tools) {
                (_, true) => Shown::Calls,
                (true, false) => Shown::Full,
                (false, false) => Shown::Short,
            };
            show_session(store, &find(&id).await?, what, json, out).await
        }
        StoreCommand::Follow {
            id,
            now,
            from,
            until_idle,
            json,
        } => {
            let id = find(&id).await?;
            recover_session(store, &id).await;
            let from = match (from, now) {
                (Some(cursor), _) => FollowFrom::After(cursor),
                (None, true) => FollowFrom::Now,
                (None, false) => FollowFrom::Start,
            };
            let follower = SessionFollower::new(Arc::clone(shared), id, from);
            let mut signals = TerminationSignals::listen()?;
            tokio::select! {
                done = follow::follow(follower, until_idle, json, out) => done,
                () = signals.next() => Ok(ExitCode::from(exit::CANCELLED)),
            }
        }
        StoreCommand::Export { id, file, format } => {
            transfer::export(store, &find(&id).await?, file.as_deref(), format, out).await
        }
        StoreCommand::Import { file, new } => transfer::import(store, &file, new, out).await,
        StoreCommand::Usage { id, json } => {
            let models = app.model_registry();
            let price = |model: &str| models.recorded_price(model);
            usage::print_usage(store, &find(&id).await?, price, json, out).await
        }
        StoreCommand::Stats { since, json } => {
            let models = app.model_registry();
            let price = |model: &str| models.recorded_price(model);
            stats::print_stats(store, since, price, json, out).await
        }
        StoreCommand::Prune(args) => prune::prune(store, args, out).await,
        StoreCommand::Delete { id, force } => {
            let (ids, all_found) = find_all(&find, id).await?;
            delete_sessions(store, ids, all_found, force, out).await
        }
        StoreCommand::Check { id, json, repair } => {
            let id = match id {
                Some(id) => Some(find(&id).await?),
                None => None,
            };
            damage::check(store, id.as_ref(), json, repair, out).await
        }
        StoreCommand::Repair { id, json } => {
            let (ids, all_found) = find_all(&find, id).await?;
            let done = damage::repair(store, &ids, json, out).await?;
            Ok(if all_found {
                done
            } else {
                ExitCode::from(exit::ERROR)
            })
        }
    }
}

/// Finds several sessions before any of them is changed, since a number counts those that there are. Returns false with
/// them if one was not found, which is said on stderr.
async fn find_all(
    find: &impl AsyncFn(&str) -> Result<SessionId, AddressError>,
    names: Vec<String>,
) -> Result<(Vec<SessionId>, bool), AddressError> {
    let (mut ids, mut all_found) = (Vec::new(), true);
    for name in names {
        match find(&name).await {
            Ok(id) => ids.push(id),
            Err(error @ AddressError::NotFound(_)) => {
                all_found = false;
                print_message(&error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok((ids, all_found))
}

/// Record of a loop with the loops that follow it in its session (LOOP-62).
#[derive(Serialize)]
struct ShownLoop<'a> {
    #[serde(flatten)]
    record: &'a LoopRecord,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children_loop_ids: Vec<&'a LoopId>,
}

/// What is shown of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// The conversation, with the first lines of results.
    Short,
    /// The conversation with whole results and changes to files.
    Full,
    /// Tool calls only.
    Calls,
}

async fn show_session(
    store: &dyn Store,
    id: &SessionId,
    what: Shown,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    recover_session(store, id).await;
    let info = store.info(id).await?;
    let loops = store.loops(id, 0).await?;
    let history = store.history(id).await?;
    damage::warn_of_damage(store, id).await?;
    if what == Shown::Calls {
        tool_calls::write_calls(&loops, json, out)?;
        return Ok(ExitCode::SUCCESS);
    }
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
    let seen = loop_table::visible_loops(&loops, tip);
    transcript::write_transcript(&loops, &seen, what == Shown::Full, out)?;
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

async fn delete_sessions(
    store: &dyn Store,
    ids: Vec<SessionId>,
    all_found: bool,
    force: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut is_done = all_found;
    let mut is_any_deleted = false;
    for id in ids {
        match delete_session(store, &id, force).await {
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
        list_copies(store).await?;
    }
    Ok(ExitCode::from(if is_done { 0 } else { exit::ERROR }))
}

/// Names the copies of the database that still have deleted sessions.
async fn list_copies(store: &dyn Store) -> io::Result<()> {
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
    Ok(())
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
