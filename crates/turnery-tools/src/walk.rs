//! Walks folders: skips what git ignores, follows no links, and sorts names.

use crate::{
    call_errors::{cancelled, validation_error},
    glob_matcher::compile_glob,
    policy::HiddenFiles,
    tool::ToolCx,
};
use globset::GlobMatcher;
use ignore::{DirEntry, WalkBuilder};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio_util::sync::CancellationToken;
use turnery_engine::ToolError;

mod ignore_files;

use ignore_files::IgnoreFiles;

/// Hides files from a walk and records whether it met any.
#[derive(Clone)]
pub(crate) struct HiddenFilter {
    hidden: HiddenFiles,
    roots: Arc<[PathBuf]>,
    /// Names of the walk's start, the resolved one first.
    starts: Arc<[PathBuf]>,
    has_hidden_any: Arc<AtomicBool>,
}

impl HiddenFilter {
    /// Creates the filter for the walk of a call from `start`, which the call named `called`.
    pub(crate) fn new(cx: &ToolCx, start: &Path, called: &str) -> Self {
        let starts = cx.workspace.path_aliases(start.to_owned(), called);
        Self {
            hidden: cx.hidden.clone(),
            roots: cx.workspace.roots().into(),
            starts: starts.into(),
            has_hidden_any: Arc::default(),
        }
    }

    fn hides(&self, path: &Path) -> bool {
        let start = self.starts.first();
        let below = start.and_then(|start| path.strip_prefix(start).ok());
        let below = below.unwrap_or(path);
        let mut names = self.starts.iter().map(|start| start.join(below));
        let covers = names.any(|name| self.hidden.hides(&name, &self.roots));
        if covers {
            self.has_hidden_any.store(true, Ordering::Relaxed);
        }
        covers
    }

    /// Notes for the model that something was omitted.
    pub(crate) fn append_notice(&self, text: &mut String) {
        if self.has_hidden_any.load(Ordering::Relaxed) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str("[files that rules deny to read are left out]");
        }
    }
}

/// Walks what is below `start`, in the order of names. Skips what git ignores, files that `filter` hides and,
/// unless `show_hidden`, names that begin with a dot; `start` itself is never skipped.
pub(crate) fn walk(
    start: &Path,
    show_hidden: bool,
    depth: Option<usize>,
    filter: &HiddenFilter,
) -> ignore::Walk {
    let (ignored, veil) = (IgnoreFiles::new(start, show_hidden), filter.clone());
    let shows = move |entry: &DirEntry| {
        entry.depth() == 0
            || (entry.file_name() != ".git"
                && !ignored.is_ignored(entry)
                && !veil.hides(entry.path()))
    };
    WalkBuilder::new(start)
        .standard_filters(false)
        .max_depth(depth)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(shows)
        .build()
}

/// Runs blocking work on another thread. If the caller stops waiting, the token fires, and the work must
/// check for that.
pub(crate) async fn run_blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let token = cancel.child_token();
    let _stop = token.clone().drop_guard();
    match tokio::task::spawn_blocking(move || work(&token)).await {
        Ok(done) => done,
        Err(gone) => match gone.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(cancelled()),
        },
    }
}

/// A glob as models write it: `*.rs` matches in any folder, `src/*.rs` only in that folder.
pub(crate) struct PathGlob {
    matcher: GlobMatcher,
    matches_name_only: bool,
    is_negated: bool,
    /// The glob names hidden files, so they are included.
    pub(crate) includes_hidden: bool,
}

impl PathGlob {
    pub(crate) fn new(text: &str) -> Result<Self, ToolError> {
        let (is_negated, pattern) = match text.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, text),
        };
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let whole = match pattern.strip_suffix('/') {
            Some(folder) => format!("{folder}/**"),
            None => pattern.to_owned(),
        };
        let matcher = compile_glob(&whole, |glob| {
            glob.literal_separator(true);
        });
        let matcher = matcher
            .map_err(|error| validation_error(format!("{text:?} is not a valid glob: {error}")))?;
        Ok(Self {
            matcher,
            matches_name_only: !whole.contains('/'),
            is_negated,
            includes_hidden: !is_negated && (whole.starts_with('.') || whole.contains("/.")),
        })
    }

    /// Returns true if `path`, relative to the start of the walk, matches.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let matched = if self.matches_name_only {
            path.file_name()
                .is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(path)
        };
        matched != self.is_negated
    }
}
