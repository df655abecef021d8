//! Assembles the prompt from the argument, stdin and attached files.

use crate::args::AttachedFiles;
use anyhow::{Context as _, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::Duration,
};
use turnery_engine::{AudioData, Content, DocumentData, ImageData};

/// Longest prompt; longer ones are refused. Unit: bytes.
const MAX_PROMPT_BYTES: u64 = 16 << 20;
/// Largest image, recording or document; model APIs refuse larger ones too. Unit: bytes.
const MAX_MEDIA_BYTES: u64 = 10 << 20;

/// Time to wait for the first byte of stdin. Programs often start others with a pipe that they never write to
/// and never close.
const STDIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Behaviour when stdin stays silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SilentStdin {
    /// Keep waiting: stdin is the whole prompt.
    Wait,
    /// Report it and keep waiting: the user can end the input.
    WarnAndWait,
    /// Report it and continue without stdin.
    Skip,
}

/// Reads stdin to its end. Calls `say` when stdin stays silent.
pub(crate) fn read_stdin(
    stdin: impl Read + Send + 'static,
    silence: SilentStdin,
    say: impl Fn(&str),
) -> anyhow::Result<Vec<u8>> {
    read_stdin_within(stdin, silence, STDIN_TIMEOUT, say)
}

fn read_stdin_within(
    stdin: impl Read + Send + 'static,
    silence: SilentStdin,
    patience: Duration,
    say: impl Fn(&str),
) -> anyhow::Result<Vec<u8>> {
    let (began, begin) = sync_channel(1);
    let (ended, end) = sync_channel(1);
    // A blocked read cannot be cancelled; the thread then ends with the process.
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut stdin = BufReader::new(stdin);
            let first = stdin.fill_buf().map(|_| ());
            let _ = began.send(());
            let mut piped = Vec::new();
            let read =
                first.and_then(|()| stdin.take(MAX_PROMPT_BYTES + 1).read_to_end(&mut piped));
            let _ = ended.send(read.map(|_| piped));
        })?;
    if silence != SilentStdin::Wait
        && begin.recv_timeout(patience) == Err(RecvTimeoutError::Timeout)
    {
        if silence == SilentStdin::Skip {
            say(
                "stdin is open, but nothing came on it for 3 seconds: going on without it \
                 (to wait for it, pipe the prompt too: `turnery run -`)",
            );
            return Ok(Vec::new());
        }
        say("waiting for stdin; Ctrl-C ends it, and `< /dev/null` leaves stdin out");
    }
    let piped = end
        .recv()
        .context("the thread that reads stdin has failed")?
        .context("cannot read stdin")?;
    ensure!(
        piped.len() as u64 <= MAX_PROMPT_BYTES,
        "stdin holds more than 16 MiB"
    );
    Ok(piped)
}

/// Joins the argument and stdin with a blank line; either may be missing.
pub(crate) fn join_prompt(argument: Option<&str>, piped: &[u8]) -> String {
    let piped = String::from_utf8_lossy(piped);
    match (argument, piped.trim()) {
        (Some(argument), "") => argument.to_owned(),
        (Some(argument), _) => format!("{argument}\n\n{}", piped.trim_end()),
        (None, _) => piped.trim_end().to_owned(),
    }
}

/// Returns the content of the prompt.
pub(crate) fn build_content(
    text: String,
    attached: &AttachedFiles,
) -> anyhow::Result<Vec<Content>> {
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(Content::Text { text });
    }
    for path in &attached.image {
        content.push(Content::Image(
            read_image(path).with_context(|| format!("--image {}", path.display()))?,
        ));
    }
    for path in &attached.audio {
        content.push(Content::Audio(
            read_audio(path).with_context(|| format!("--audio {}", path.display()))?,
        ));
    }
    for path in &attached.document {
        content.push(Content::Document(
            read_document(path).with_context(|| format!("--document {}", path.display()))?,
        ));
    }
    Ok(content)
}

fn read_media_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_MEDIA_BYTES + 1)
        .read_to_end(&mut bytes)?;
    ensure!(
        bytes.len() as u64 <= MAX_MEDIA_BYTES,
        "is larger than 10 MiB"
    );
    Ok(bytes)
}

fn is_riff(bytes: &[u8], form_type: &[u8; 4]) -> bool {
    bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(form_type)
}

fn read_audio(path: &Path) -> anyhow::Result<AudioData> {
    let bytes = read_media_file(path)?;
    let mime_type = match bytes.as_slice() {
        bytes if is_riff(bytes, b"WAVE") => "audio/wav",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        // Eleven sync bits, then layer III; other layers and AAC start alike.
        [0xff, next, ..] if next & 0xe6 == 0xe2 => "audio/mpeg",
        _ => bail!("is no WAV or MP3 recording"),
    };
    Ok(AudioData {
        mime_type: mime_type.to_owned(),
        base64: STANDARD.encode(&bytes).into(),
    })
}

fn read_document(path: &Path) -> anyhow::Result<DocumentData> {
    let bytes = read_media_file(path)?;
    ensure!(bytes.starts_with(b"%PDF-"), "is no PDF document");
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(DocumentData {
        name: name.to_string_lossy().into_owned(),
        mime_type: DocumentData::PDF_MIME_TYPE.to_owned(),
        base64: STANDARD.encode(&bytes).into(),
    })
}

fn read_image(path: &Path) -> anyhow::Result<ImageData> {
    let bytes = read_media_file(path)?;
    let mime_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        bytes if is_riff(bytes, b"WEBP") => "image/webp",
        _ => bail!("is no PNG, JPEG, GIF or WebP picture"),
    };
    Ok(ImageData {
        mime_type: mime_type.to_owned(),
        base64: STANDARD.encode(&bytes).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_and_stdin_are_joined_by_a_blank_line() {
        let piped = b"diff --git\n+x\n";
        assert_eq!(join_prompt(Some("review this"), b""), "review this");
        assert_eq!(join_prompt(None, piped), "diff --git\n+x");
        assert_eq!(
            join_prompt(Some("review this"), piped),
            "review this\n\ndiff --git\n+x"
        );
        assert_eq!(join_prompt(Some("hello"), b"\n"), "hello");
        assert_eq!(join_prompt(None, b""), "");
    }

    #[test]
    fn silent_stdin_is_skipped_unless_user_can_end_it() {
        use std::{cell::RefCell, io::Write as _};
        let said = RefCell::new(Vec::new());
        let say = |text: &str| said.borrow_mut().push(text.to_owned());
        let (silent, _open) = std::io::pipe().unwrap();
        let read_it =
            |stdin, silence| read_stdin_within(stdin, silence, Duration::ZERO, say).unwrap();
        assert_eq!(read_it(silent, SilentStdin::Skip), b"");
        assert!(said.take()[0].contains("going on without it"));

        // The writer starts only after the wait has been reported.
        let (slow, open) = std::io::pipe().unwrap();
        let open = RefCell::new(Some(open));
        let read_slow = read_stdin_within(slow, SilentStdin::WarnAndWait, Duration::ZERO, |text| {
            assert!(text.starts_with("waiting for stdin"), "{text}");
            open.take().unwrap().write_all(b"late").unwrap();
        });
        assert_eq!(read_slow.unwrap(), b"late");
    }

    #[test]
    fn stdin_is_read_to_its_end_and_bounded() {
        let quiet = |text: &str| panic!("{text}");
        let all = read_stdin(&b"all of it"[..], SilentStdin::Wait, quiet).unwrap();
        assert_eq!(all, b"all of it");
        let error = read_stdin(std::io::repeat(b'a'), SilentStdin::Wait, quiet).unwrap_err();
        assert_eq!(error.to_string(), "stdin holds more than 16 MiB");
    }

    fn images(path: &Path) -> AttachedFiles {
        AttachedFiles {
            image: vec![path.to_owned()],
            ..AttachedFiles::default()
        }
    }

    #[test]
    fn document_is_detected_from_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("année 1.dat");
        let read = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            let attached = AttachedFiles {
                document: vec![file.clone()],
                ..AttachedFiles::default()
            };
            let read = build_content("sum up".to_owned(), &attached);
            read.map_err(|error| format!("{error:#}"))
        };
        let document = DocumentData {
            name: "année 1.dat".to_owned(),
            mime_type: "application/pdf".to_owned(),
            base64: "JVBERi0xLjc=".into(),
        };
        assert_eq!(
            read(b"%PDF-1.7"),
            Ok(vec![Content::text("sum up"), Content::Document(document)])
        );
        let none = format!("--document {}: is no PDF document", file.display());
        for other in [&b"PDF-1.7"[..], b" %PDF-1.7", b""] {
            assert_eq!(read(other), Err(none.clone()), "{other:?}");
        }
    }

    #[test]
    fn image_type_is_detected_from_content() {
        let folder = tempfile::tempdir().unwrap();
        let picture = folder.path().join("screen.dat");
        std::fs::write(&picture, [0xff, 0xd8, 0xff, 0xe0]).unwrap();
        let content = build_content(String::new(), &images(&picture)).unwrap();
        assert_eq!(
            content,
            [Content::Image(ImageData {
                mime_type: "image/jpeg".to_owned(),
                base64: "/9j/4A==".into(),
            })]
        );
        let note = folder.path().join("note.png");
        std::fs::write(&note, "text").unwrap();
        let error = build_content(String::new(), &images(&note)).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            format!(
                "--image {}: is no PNG, JPEG, GIF or WebP picture",
                note.display()
            )
        );
    }
    #[test]
    fn audio_type_is_detected_from_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sound.dat");
        let read = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            let attached = AttachedFiles {
                audio: vec![file.clone()],
                ..AttachedFiles::default()
            };
            let read = build_content(String::new(), &attached);
            read.map_err(|error| format!("{error:#}"))
        };
        let heard = |mime_type: &str, base64: &str| {
            Ok(vec![Content::Audio(AudioData {
                mime_type: mime_type.to_owned(),
                base64: base64.into(),
            })])
        };
        let wav = heard("audio/wav", "UklGRgAAAABXQVZF");
        assert_eq!(read(b"RIFF\0\0\0\0WAVE"), wav);
        assert_eq!(read(b"ID3"), heard("audio/mpeg", "SUQz"));
        assert_eq!(read(&[0xff, 0xfb, 0x90]), heard("audio/mpeg", "//uQ"));
        let none = format!("--audio {}: is no WAV or MP3 recording", file.display());
        for other in [
            &b"RIFF\0\0\0\0WEBP"[..],
            &[0xff, 0xd8, 0xff],
            &[0xff, 0xf1, 0x50],
            b"",
        ] {
            assert_eq!(read(other), Err(none.clone()), "{other:?}");
        }
    }
}
