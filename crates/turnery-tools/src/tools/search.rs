//! `search`: finds lines that match a regular expression.

use crate::{
    access::Access,
    call_errors::{cancelled, validation_error},
    suggestions::no_such_file,
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    walk::{HiddenFilter, PathGlob, run_blocking, walk},
    workspace::{Workspace, disk},
};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    borrow::Cow,
    fmt::Write as _,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};
use tokio_util::sync::CancellationToken;
use turnery_engine::{CallDetail, CallKind, Location, ToolEnvelope, ToolError};

mod results;

use results::{FileSink, SearchResults};

const DEFAULT_RESULTS: u32 = 100;
const MAX_RESULTS: u32 = 1_000;
const MAX_CONTEXT: u32 = 10;
/// A file with a longer line is skipped. Unit: bytes.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// A longer pattern is cut in the title of a call; the arguments contain it in full. Unit: characters.
const MAX_TITLE_PATTERN: usize = 60;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArgs {
    /// Regular expression, matched line by line
    pattern: String,
    /// File or folder
    path: Option<String>,
    /// Only files that match, such as *.rs
    glob: Option<String>,
    ignore_case: Option<bool>,
    /// Take pattern as plain text
    literal: Option<bool>,
    /// Lines around each match
    context: Option<u32>,
    /// Default 100
    max_results: Option<u32>,
}

/// Searches file contents.
#[derive(Debug, Default)]
pub(super) struct Search;

impl TypedTool for Search {
    type Args = SearchArgs;
    const NAME: &'static str = "search";
    const KIND: CallKind = CallKind::Search;
    const IS_PARALLEL: bool = true;

    fn description(&self) -> Cow<'static, str> {
        "Search file contents; prints path:line: text. Hidden files, binaries and what \
         git ignores are left out."
            .into()
    }

    fn describe(&self, args: &SearchArgs, workspace: &Workspace) -> CallDetail {
        call_detail(args, workspace.absolute(requested_path(args)), workspace)
    }

    async fn prepare(&self, args: SearchArgs, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        let path = cx.workspace.resolve(requested_path(&args))?;
        build_matcher(&args)?;
        args.glob.as_deref().map(PathGlob::new).transpose()?;
        Ok(PreparedCall {
            detail: call_detail(&args, path.clone(), &cx.workspace),
            access: Access::Read(cx.workspace.path_aliases(path, requested_path(&args))),
        })
    }

    async fn run(&self, args: SearchArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let start = cx.resolve(requested_path(&args))?;
        let plan = SearchQuery {
            matcher: build_matcher(&args)?,
            glob: args.glob.as_deref().map(PathGlob::new).transpose()?,
            context: args.context.unwrap_or(0).min(MAX_CONTEXT) as usize,
            max_results: args
                .max_results
                .unwrap_or(DEFAULT_RESULTS)
                .clamp(1, MAX_RESULTS) as usize,
        };
        let workspace = cx.workspace.clone();
        let veil = HiddenFilter::new(cx, &start, requested_path(&args));
        let hits = run_blocking(&cx.cancel, move |cancel| {
            if !start.exists() {
                return Err(no_such_file(&start, &workspace));
            }
            plan.search_below(&start, &workspace, &veil, cancel)
        })
        .await?;
        Ok(ToolEnvelope::text(hits))
    }
}

fn requested_path(args: &SearchArgs) -> &str {
    args.path.as_deref().unwrap_or(".")
}

fn call_detail(args: &SearchArgs, path: PathBuf, workspace: &Workspace) -> CallDetail {
    let place = match path == workspace.cwd() {
        true => String::new(),
        false => format!(" in {}", workspace.display(&path)),
    };
    let mut pattern: String = args.pattern.chars().take(MAX_TITLE_PATTERN).collect();
    if pattern.len() < args.pattern.len() {
        pattern.push('…');
    }
    CallDetail {
        title: format!("Search {pattern:?}{place}"),
        kind: CallKind::Search,
        locations: vec![Location { path, line: None }],
        artifacts: Vec::new(),
    }
}

fn build_matcher(args: &SearchArgs) -> Result<RegexMatcher, ToolError> {
    if args.pattern.is_empty() {
        return Err(validation_error("pattern is empty"));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case.unwrap_or(false))
        .fixed_strings(args.literal.unwrap_or(false))
        .crlf(true)
        // Without multi-line mode, `$` matches only the end of the file.
        .multi_line(true)
        .build(&args.pattern)
        .map_err(|error| {
            validation_error(format!(
                "pattern is not a valid regular expression for one line: {error}. \
                 Set literal to true to look for the text as it is."
            ))
        })
}

struct SearchQuery {
    matcher: RegexMatcher,
    glob: Option<PathGlob>,
    context: usize,
    max_results: usize,
}

impl SearchQuery {
    fn search_below(
        &self,
        start: &Path,
        workspace: &Workspace,
        veil: &HiddenFilter,
        cancel: &CancellationToken,
    ) -> Result<String, ToolError> {
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(MAX_LINE_BYTES))
            .build();
        let mut hits = SearchResults::new(self.max_results);
        let mut unread = 0;
        let hidden = self.glob.as_ref().is_some_and(|glob| glob.includes_hidden);
        for entry in walk(start, hidden, None, veil) {
            if cancel.is_cancelled() {
                return Err(cancelled());
            }
            let Ok(entry) = entry else { continue };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path();
            let below = path.strip_prefix(start).unwrap_or(path);
            // A file that was named directly is searched regardless of the glob.
            if entry.depth() > 0 && self.glob.as_ref().is_some_and(|glob| !glob.matches(below)) {
                continue;
            }
            let shown = workspace.display(path);
            if !self.search_file(&mut searcher, path, &shown, &mut hits, cancel) {
                unread += 1;
            }
            if hits.is_truncated() {
                break;
            }
        }
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let mut text = hits.into_text();
        if unread > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "[{unread} files could not be read]");
        }
        veil.append_notice(&mut text);
        Ok(text)
    }

    /// Searches one file. Returns false if the file could not be read.
    fn search_file(
        &self,
        searcher: &mut Searcher,
        path: &Path,
        shown: &str,
        hits: &mut SearchResults,
        cancel: &CancellationToken,
    ) -> bool {
        let Ok(file) = disk::open(path) else {
            return false;
        };
        let sink = FileSink {
            matcher: &self.matcher,
            display_path: shown,
            results: hits,
            cancel,
        };
        let file = CancellableFile { file, cancel };
        searcher.search_reader(&self.matcher, file, sink).is_ok()
    }
}

/// A reader that stops once the call is cancelled, however large the file is.
struct CancellableFile<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.cancel.is_cancelled() {
            true => Err(io::Error::other("cancelled")),
            false => self.file.read(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pattern_is_truncated_in_title_only() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::local(folder.path().canonicalize().unwrap()).unwrap();
        let title = |pattern: &str| {
            let args: SearchArgs =
                serde_json::from_value(serde_json::json!({"pattern": pattern})).unwrap();
            call_detail(&args, workspace.cwd().to_owned(), &workspace).title
        };
        assert_eq!(
            title(&"é".repeat(60)),
            format!("Search \"{}\"", "é".repeat(60))
        );
        assert_eq!(
            title(&"é".repeat(61)),
            format!("Search \"{}…\"", "é".repeat(60))
        );
    }
}
