//! `read_file`: text with line numbers, or a picture.

use crate::{
    Access, FileError, Prepared, Tool, ToolCx, Workspace,
    arguments::{invalid, parse_args, spec_for},
    near::no_such_file,
    text::{cut, size},
    tool::end,
    walk::off_thread,
    workspace::disk,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{
    fmt::Write as _,
    io::{Read as _, Seek as _},
    path::{Path, PathBuf},
};
use turnery_engine::{
    CallDetail, CallKind, Content, FailureKind, ImageData, Location, ToolEnvelope, ToolFailure,
    ToolSpec,
};

const MOST_LINES: usize = 2_000;
const MOST_BYTES: usize = 50 * 1024;
const LONGEST_LINE: usize = 2_000;
/// What model APIs take.
const LARGEST_IMAGE: u64 = 5 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    /// First line, from 1
    start_line: Option<u32>,
    /// Last line, included
    end_line: Option<u32>,
}

/// Reads one file.
#[derive(Debug)]
pub struct ReadFile {
    spec: ToolSpec,
}

impl ReadFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self {
            spec: spec_for::<Args>(
                "read_file",
                "Read a text file or an image (png, jpeg, gif, webp). Each line of text is shown \
                 after its number and a tab; those are not part of the file.",
            ),
        }
    }
}

impl Default for ReadFile {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn parallel(&self, _args: &Value) -> bool {
        true
    }

    fn kind(&self) -> CallKind {
        CallKind::Read
    }

    fn describe(&self, args: &Value, workspace: &Workspace) -> CallDetail {
        parse_args::<Args>(args)
            .map(|args| detail(&args, workspace.absolute(&args.path), workspace))
            .unwrap_or_default()
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        Box::pin(async move {
            let args: Args = parse_args(args)?;
            let path = cx.workspace.resolve(&args.path)?;
            if let (Some(start), Some(last)) = (args.start_line, args.end_line)
                && start > last
            {
                return Err(invalid(format!(
                    "start_line {start} is after end_line {last}"
                )));
            }
            Ok(Prepared {
                detail: detail(&args, path.clone(), &cx.workspace),
                access: Access::Read(cx.workspace.names(path, &args.path)),
            })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(run(args, cx).await) })
    }
}

fn detail(args: &Args, path: PathBuf, workspace: &Workspace) -> CallDetail {
    let lines = match (args.start_line, args.end_line) {
        (None, None) => String::new(),
        (start, Some(last)) => format!(":{}-{last}", start.unwrap_or(1)),
        (Some(start), None) => format!(":{start}-"),
    };
    CallDetail {
        title: format!("Read {}{lines}", workspace.display(&path)),
        kind: CallKind::Read,
        locations: vec![Location {
            path,
            line: args.start_line.map(|line| line.max(1)),
        }],
        artifacts: Vec::new(),
    }
}

async fn run(args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolFailure> {
    let args: Args = parse_args(args)?;
    let workspace = &cx.workspace;
    let path = cx.resolve(&args.path)?;
    let shown = workspace.display(&path);
    let looked_at = path.clone();
    let probed = off_thread(&cx.cancel, move |_| Ok(probe(&looked_at))).await?;
    match probed {
        Probe::Folder => {
            return Err(unread(format!("{shown} is a folder: use list_dir")));
        }
        Probe::LargeImage(bytes) => {
            return Err(unread(format!(
                "{shown} is an image of {}, more than the 5 MiB that can be shown",
                size(bytes)
            )));
        }
        Probe::Image(mime_type, bytes) => {
            let note = format!("{shown}: {mime_type}, {}", size(bytes.len() as u64));
            let image = ImageData {
                mime_type: mime_type.to_owned(),
                base64: STANDARD.encode(bytes).into(),
            };
            return Ok(ToolEnvelope::ok(vec![
                Content::text(note),
                Content::Image(image),
            ]));
        }
        // Something that is not on disk may still be open in the editor.
        Probe::Other => {}
    }
    let text = match workspace.files().read(&path).await {
        Ok(text) => text,
        Err(FileError::NotFound(_)) => return Err(no_such_file(&path, workspace)),
        Err(FileError::NotText(_)) => {
            return Err(unread(format!("{shown} is not a text file")));
        }
        Err(error @ FileError::Other(_)) => return Err(error.into()),
    };
    page(&text, &args, &shown).map(ToolEnvelope::text)
}

/// The lines asked for, as many as fit, and how to read on.
fn page(text: &str, args: &Args, shown: &str) -> Result<String, ToolFailure> {
    if text.is_empty() {
        return Ok(format!("[{shown} is empty]"));
    }
    let start = args.start_line.map_or(1, |line| line.max(1) as usize);
    let last = args.end_line.map_or(usize::MAX, |line| line as usize);
    let mut page = String::new();
    let mut lines = text.lines().enumerate().skip(start - 1);
    let mut next = start;
    for (index, line) in &mut lines {
        let number = index + 1;
        if number > last {
            return Ok(page);
        }
        if number - start == MOST_LINES || page.len() >= MOST_BYTES {
            next = number;
            break;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{number}\t{}", cut(line, LONGEST_LINE));
        next = number + 1;
    }
    let total = text.lines().count();
    if start > total {
        return Err(invalid(format!(
            "{shown} has {total} lines; start_line is {start}"
        )));
    }
    if next <= total.min(last) {
        let _ = write!(
            page,
            "[lines {start}-{} of {total}; read on with start_line {next}]",
            next - 1
        );
    }
    Ok(page)
}

enum Probe {
    Folder,
    Image(&'static str, Vec<u8>),
    LargeImage(u64),
    Other,
}

fn probe(path: &Path) -> Probe {
    // A folder is not a secret: it was resolved inside the roots a moment ago.
    if path.is_dir() {
        return Probe::Folder;
    }
    let Ok(mut file) = disk::open(path) else {
        return Probe::Other;
    };
    let mut head = Vec::new();
    if (&mut file).take(12).read_to_end(&mut head).is_err() {
        return Probe::Other;
    }
    let Some(mime_type) = image_type(&head) else {
        return Probe::Other;
    };
    let length = file.metadata().map_or(0, |data| data.len());
    if length > LARGEST_IMAGE {
        return Probe::LargeImage(length);
    }
    let mut bytes = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(LARGEST_IMAGE).read_to_end(&mut bytes));
    match read {
        Ok(_) => Probe::Image(mime_type, bytes),
        Err(_) => Probe::Other,
    }
}

fn image_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("image/webp"),
        _ => None,
    }
}

fn unread(message: String) -> ToolFailure {
    ToolFailure {
        kind: FailureKind::ExecutionError,
        message,
        details: None,
    }
}
