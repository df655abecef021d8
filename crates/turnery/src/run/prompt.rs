//! Prompt: what to send, from the argument, from stdin and from picture files.

use anyhow::{Context as _, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};
use turnery_engine::{Content, ImageData};

/// A prompt longer than this is refused. Unit: bytes.
const LONGEST: u64 = 16 << 20;
/// A picture larger than this is refused; the model APIs refuse them too. Unit: bytes.
const LARGEST: u64 = 10 << 20;

/// The argument, then a blank line and what stdin says; either may be missing.
pub(crate) fn text(argument: Option<&str>, stdin: Option<impl Read>) -> anyhow::Result<String> {
    let mut piped = Vec::new();
    if let Some(stdin) = stdin {
        stdin
            .take(LONGEST + 1)
            .read_to_end(&mut piped)
            .context("cannot read stdin")?;
        ensure!(
            piped.len() as u64 <= LONGEST,
            "stdin holds more than 16 MiB"
        );
    }
    let piped = String::from_utf8_lossy(&piped);
    let text = match (
        argument.map(str::trim).filter(|text| !text.is_empty()),
        piped.trim(),
    ) {
        (Some(argument), "") => argument.to_owned(),
        (Some(argument), _) => format!("{argument}\n\n{}", piped.trim_end()),
        (None, _) => piped.trim_end().to_owned(),
    };
    Ok(text)
}

/// The whole prompt.
pub(crate) fn content(text: String, images: &[PathBuf]) -> anyhow::Result<Vec<Content>> {
    let mut content = Vec::with_capacity(1 + images.len());
    if !text.is_empty() {
        content.push(Content::Text { text });
    }
    for path in images {
        content.push(Content::Image(
            image(path).with_context(|| format!("--image {}", path.display()))?,
        ));
    }
    Ok(content)
}

fn image(path: &Path) -> anyhow::Result<ImageData> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= LARGEST, "is larger than 10 MiB");
    let mime_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "image/webp",
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
        let none = None::<&[u8]>;
        let piped = Some(&b"diff --git\n+x\n"[..]);
        assert_eq!(text(Some("review this"), none).unwrap(), "review this");
        assert_eq!(text(None, piped).unwrap(), "diff --git\n+x");
        assert_eq!(
            text(Some("review this"), piped).unwrap(),
            "review this\n\ndiff --git\n+x"
        );
        assert_eq!(text(Some("hello"), Some(&b"\n"[..])).unwrap(), "hello");
        assert_eq!(text(Some("  "), none).unwrap(), "");
    }

    #[test]
    fn a_picture_is_known_by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let picture = folder.path().join("screen.dat");
        std::fs::write(&picture, [0xff, 0xd8, 0xff, 0xe0]).unwrap();
        let content = content(String::new(), &[picture]).unwrap();
        assert_eq!(
            content,
            [Content::Image(ImageData {
                mime_type: "image/jpeg".to_owned(),
                base64: "/9j/4A==".into(),
            })]
        );
        let note = folder.path().join("note.png");
        std::fs::write(&note, "text").unwrap();
        let error = super::content(String::new(), std::slice::from_ref(&note)).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            format!(
                "--image {}: is no PNG, JPEG, GIF or WebP picture",
                note.display()
            )
        );
    }
}
