//! `read_file`: reads text with line numbers, an image or a PDF document.

use crate::{
    access::Access,
    call_errors::{execution_error, validation_error},
    suggestions::no_such_file,
    text::{format_size, truncate_line},
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    walk::run_blocking,
    workspace::{FileError, Workspace, disk},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{Read as _, Seek as _},
    path::{Path, PathBuf},
};
use turnery_engine::{
    CallDetail, CallKind, Content, DocumentData, ImageData, Location, ToolEnvelope, ToolError,
};

const MAX_LINES: usize = 2_000;
const MAX_BYTES: usize = 50 * 1024;
const MAX_LINE_LEN: usize = 2_000;
/// Limit of model APIs for an image, and for a document what leaves room for others.
const MAX_MEDIA_BYTES: u64 = 5 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFileArgs {
    path: String,
    /// First line, from 1
    start_line: Option<u32>,
    /// Last line, included
    end_line: Option<u32>,
}

/// Reads one file.
#[derive(Debug, Default)]
pub(super) struct ReadFile;

impl TypedTool for ReadFile {
    type Args = ReadFileArgs;
    const NAME: &'static str = "read_file";
    const KIND: CallKind = CallKind::Read;
    const IS_PARALLEL: bool = true;

    fn description(&self) -> Cow<'static, str> {
        "Read a text file, an image (png, jpeg, gif, webp) or a PDF. Each line of text is shown \
         after its number and a tab; those are not part of the file."
            .into()
    }

    fn describe(&self, args: &ReadFileArgs, workspace: &Workspace) -> CallDetail {
        call_detail(args, workspace.absolute(&args.path), workspace)
    }

    async fn prepare(&self, args: ReadFileArgs, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        let path = cx.workspace.resolve(&args.path)?;
        if let (Some(start), Some(last)) = (args.start_line, args.end_line)
            && start > last
        {
            return Err(validation_error(format!(
                "start_line {start} is after end_line {last}"
            )));
        }
        Ok(PreparedCall {
            detail: call_detail(&args, path.clone(), &cx.workspace),
            access: Access::Read(cx.workspace.path_aliases(path, &args.path)),
        })
    }

    async fn run(&self, args: ReadFileArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let workspace = &cx.workspace;
        let path = cx.resolve(&args.path)?;
        let shown = workspace.display(&path);
        let looked_at = path.clone();
        let probed = run_blocking(&cx.cancel, move |_| Ok(probe_file(&looked_at))).await?;
        match probed {
            FileProbe::Folder => {
                return Err(execution_error(format!(
                    "{shown} is a folder: use list_dir"
                )));
            }
            FileProbe::LargeMedia(media, bytes) => {
                let hint = match media {
                    MediaType::Image(_) => "",
                    MediaType::Pdf => ": extract the text of the pages that matter",
                };
                return Err(execution_error(format!(
                    "{shown} is {} of {}, more than the 5 MiB that can be shown{hint}",
                    media.noun(),
                    format_size(bytes)
                )));
            }
            FileProbe::Media(media, bytes) => {
                let size = format_size(bytes.len() as u64);
                let note = format!("{shown}: {}, {size}", media.mime_type());
                let content = media.to_content(&shown, &bytes);
                return Ok(ToolEnvelope::ok(vec![Content::text(note), content]));
            }
            // A file that is not on disk may still be open in the editor.
            FileProbe::Other => {}
        }
        let text = match workspace.files().read(&path).await {
            Ok(text) => text,
            Err(FileError::NotFound(_)) => return Err(no_such_file(&path, workspace)),
            Err(FileError::NotText(_)) => {
                return Err(execution_error(format!("{shown} is not a text file")));
            }
            Err(error @ FileError::Other(_)) => return Err(error.into()),
        };
        render_page(&text, &args, &shown).map(ToolEnvelope::text)
    }
}

fn call_detail(args: &ReadFileArgs, path: PathBuf, workspace: &Workspace) -> CallDetail {
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

/// Returns the requested lines, as many as fit, and how to continue.
fn render_page(text: &str, args: &ReadFileArgs, shown: &str) -> Result<String, ToolError> {
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
        if number - start == MAX_LINES || page.len() >= MAX_BYTES {
            next = number;
            break;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{number}\t{}", truncate_line(line, MAX_LINE_LEN));
        next = number + 1;
    }
    let total = text.lines().count();
    if start > total {
        return Err(validation_error(format!(
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

enum FileProbe {
    Folder,
    Media(MediaType, Vec<u8>),
    /// Media of this many bytes, which is too many.
    LargeMedia(MediaType, u64),
    Other,
}

/// Type of a file that is no text.
#[derive(Clone, Copy)]
enum MediaType {
    /// Image of this MIME type.
    Image(&'static str),
    Pdf,
}

impl MediaType {
    /// Returns the type of a file that starts with these bytes.
    fn from_head(head: &[u8]) -> Option<Self> {
        match head {
            [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, ..] => Some(Self::Image("image/png")),
            [0xFF, 0xD8, 0xFF, ..] => Some(Self::Image("image/jpeg")),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Image("image/gif")),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => {
                Some(Self::Image("image/webp"))
            }
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(Self::Pdf),
            _ => None,
        }
    }

    fn mime_type(self) -> &'static str {
        match self {
            Self::Image(mime_type) => mime_type,
            Self::Pdf => DocumentData::PDF_MIME_TYPE,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Image(_) => "an image",
            Self::Pdf => "a PDF",
        }
    }

    fn to_content(self, name: &str, bytes: &[u8]) -> Content {
        let mime_type = self.mime_type().to_owned();
        let base64 = STANDARD.encode(bytes).into();
        match self {
            Self::Image(_) => Content::Image(ImageData { mime_type, base64 }),
            Self::Pdf => Content::Document(DocumentData {
                name: name.to_owned(),
                mime_type,
                base64,
            }),
        }
    }
}

fn probe_file(path: &Path) -> FileProbe {
    // The path was just resolved inside the roots, so naming the folder reveals nothing.
    if path.is_dir() {
        return FileProbe::Folder;
    }
    let Ok(mut file) = disk::open(path) else {
        return FileProbe::Other;
    };
    let mut head = Vec::new();
    if (&mut file).take(12).read_to_end(&mut head).is_err() {
        return FileProbe::Other;
    }
    let Some(media) = MediaType::from_head(&head) else {
        return FileProbe::Other;
    };
    let length = file.metadata().map_or(0, |data| data.len());
    if length > MAX_MEDIA_BYTES {
        return FileProbe::LargeMedia(media, length);
    }
    let mut bytes = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(MAX_MEDIA_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => FileProbe::Media(media, bytes),
        Err(_) => FileProbe::Other,
    }
}
