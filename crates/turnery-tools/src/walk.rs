//! Walking folders: what git ignores is left out, links are not followed, names are in order.

use crate::{Hidden, ToolCx, arguments::invalid};
use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio_util::sync::CancellationToken;
use turnery_engine::{FailureKind, ToolFailure};

mod ignored;

use ignored::Ignored;

/// What a walk may not show, and whether it met any of it.
#[derive(Clone)]
pub(crate) struct Veil {
    hidden: Hidden,
    roots: Arc<[PathBuf]>,
    met: Arc<AtomicBool>,
}

impl Veil {
    /// For the walks of one call.
    pub(crate) fn new(cx: &ToolCx) -> Self {
        Self {
            hidden: cx.hidden.clone(),
            roots: cx.workspace.roots().into(),
            met: Arc::default(),
        }
    }

    fn covers(&self, path: &Path) -> bool {
        let covers = self.hidden.hides(path, &self.roots);
        if covers {
            self.met.store(true, Ordering::Relaxed);
        }
        covers
    }

    /// Tell the model when something was left out.
    pub(crate) fn tell(&self, text: &mut String) {
        if self.met.load(Ordering::Relaxed) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str("[what rules keep from being read is left out]");
        }
    }
}

/// All below `start`, which itself is never left out, in the order of their names. Nothing that the
/// veil covers is among it.
pub(crate) fn walk(start: &Path, hidden: bool, depth: Option<usize>, veil: &Veil) -> ignore::Walk {
    let (ignored, veil) = (Ignored::new(start, hidden), veil.clone());
    let shows = move |entry: &DirEntry| {
        entry.depth() == 0
            || (entry.file_name() != ".git"
                && !ignored.leaves_out(entry)
                && !veil.covers(entry.path()))
    };
    WalkBuilder::new(start)
        .standard_filters(false)
        .max_depth(depth)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(shows)
        .build()
}

/// Work that waits for the disk, on a thread where that harms nobody. It is told through its token
/// when nobody waits for it any more, and has to look.
pub(crate) async fn off_thread<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
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

/// What work says that has seen its token fire.
pub(crate) fn cancelled() -> ToolFailure {
    ToolFailure {
        kind: FailureKind::Cancelled,
        message: "cancelled".to_owned(),
        details: None,
    }
}

/// A glob as models write them: `*.rs` means in any folder, `src/*.rs` in that one.
pub(crate) struct Glob {
    matcher: GlobMatcher,
    anywhere: bool,
    excludes: bool,
    /// Whether it names hidden files, so that they are to be looked at.
    pub(crate) hidden: bool,
}

impl Glob {
    pub(crate) fn new(text: &str) -> Result<Self, ToolFailure> {
        let (excludes, pattern) = match text.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, text),
        };
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let whole = match pattern.strip_suffix('/') {
            Some(folder) => format!("{folder}/**"),
            None => pattern.to_owned(),
        };
        let matcher = GlobBuilder::new(&whole)
            .literal_separator(true)
            .build()
            .map_err(|error| invalid(format!("{text:?} is not a valid glob: {}", error.kind())))?
            .compile_matcher();
        Ok(Self {
            matcher,
            anywhere: !whole.contains('/'),
            excludes,
            hidden: !excludes && (whole.starts_with('.') || whole.contains("/.")),
        })
    }

    /// `path` is relative to the folder that the walk started in.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let matched = if self.anywhere {
            path.file_name()
                .is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(path)
        };
        matched != self.excludes
    }
}
