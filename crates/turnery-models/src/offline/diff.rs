//! Diff: reading a unified diff out of a message.

/// The change of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileDiff {
    /// `None`: the file is new.
    pub(super) old: Option<String>,
    /// `None`: the file goes away.
    pub(super) new: Option<String>,
    pub(super) hunks: Vec<Hunk>,
}

/// One place of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// As in `@@ -12,3 +12,4 @@`.
    pub(super) line: usize,
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
    left: (usize, usize),
}

/// Whether a message holds a unified diff.
pub(super) fn is_diff(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    let header = lines
        .by_ref()
        .any(|line| line.trim_start().starts_with("--- "))
        && lines
            .next()
            .is_some_and(|line| line.trim_start().starts_with("+++ "));
    header && text.lines().any(|line| range(line.trim_start()).is_some())
}

/// The files of a diff. Lines that belong to no hunk are left out.
pub(super) fn read(text: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(hunk) = files.last_mut().and_then(|file| file.hunks.last_mut())
            && hunk.take(line)
        {
            continue;
        }
        if let (Some(old), Some(new)) = (
            line.strip_prefix("--- "),
            lines.peek().and_then(|next| next.strip_prefix("+++ ")),
        ) {
            files.push(FileDiff {
                old: path(old),
                new: path(new),
                hunks: Vec::new(),
            });
            lines.next();
        } else if let (Some((first, old, new)), Some(file)) = (range(line), files.last_mut()) {
            file.hunks.push(Hunk {
                line: first,
                left: (old, new),
                ..Hunk::default()
            });
        }
    }
    files
}

impl Hunk {
    /// Takes a line as long as the header promised more of them.
    fn take(&mut self, line: &str) -> bool {
        let (old, new) = self.left;
        if old == 0 && new == 0 {
            return line.starts_with('\\');
        }
        let (mark, text) = match line.chars().next() {
            None => (' ', ""),
            Some(mark) => (mark, &line[mark.len_utf8()..]),
        };
        match mark {
            ' ' if old > 0 && new > 0 => {
                self.old.push(text.to_owned());
                self.new.push(text.to_owned());
                self.left = (old - 1, new - 1);
            }
            '-' if old > 0 => {
                self.old.push(text.to_owned());
                self.left = (old - 1, new);
            }
            '+' if new > 0 => {
                self.new.push(text.to_owned());
                self.left = (old, new - 1);
            }
            '\\' => {}
            _ => {
                self.left = (0, 0);
                return false;
            }
        }
        true
    }
}

/// `@@ -12,3 +12,4 @@`: the line, and how many lines there are before and after.
fn range(line: &str) -> Option<(usize, usize, usize)> {
    let (old, new) = line
        .strip_prefix("@@ -")?
        .split_once(" @@")?
        .0
        .split_once(" +")?;
    let part = |text: &str| {
        let (line, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((line.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let (line, before) = part(old)?;
    let (_, after) = part(new)?;
    Some((line, before, after))
}

fn path(text: &str) -> Option<String> {
    let text = text
        .split('\t')
        .next()
        .unwrap_or(text)
        .trim()
        .trim_matches('"');
    if text == "/dev/null" {
        return None;
    }
    let bare = text.strip_prefix("a/").or_else(|| text.strip_prefix("b/"));
    Some(bare.unwrap_or(text).to_owned())
}
