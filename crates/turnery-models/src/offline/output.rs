//! Output: reading what the tools print, and laying out what a person reads.

use super::rules::pattern;
use std::fmt::Write;

/// One line that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) text: String,
}

/// Reads `path:line: text`; other lines are notices and are left out.
pub(super) fn hits(text: &str) -> Vec<Hit> {
    let form = pattern!(r"^(.+?):(\d+): ?(.*)$");
    text.lines()
        .filter_map(|line| {
            let parts = form.captures(line)?;
            Some(Hit {
                path: clean_path(&parts[1]).to_owned(),
                line: parts[2].parse().ok()?,
                text: parts[3].to_owned(),
            })
        })
        .collect()
}

pub(super) fn clean_path(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

/// Groups that keep the order in which their first member came.
pub(super) fn by_path(hits: &[Hit]) -> Vec<(&str, Vec<&Hit>)> {
    let mut groups: Vec<(&str, Vec<&Hit>)> = Vec::new();
    for hit in hits {
        match groups.iter_mut().find(|(path, _)| *path == hit.path) {
            Some((_, members)) => members.push(hit),
            None => groups.push((&hit.path, vec![hit])),
        }
    }
    groups
}

/// The lines of a file with their numbers, whether or not the tool numbered them.
pub(super) fn numbered(text: &str, first: usize) -> Vec<(usize, &str)> {
    if text.starts_with('[') && text.trim_end().ends_with(" is empty]") {
        return Vec::new();
    }
    let form = pattern!(r"^\s*(\d+)(?:\t|→|\||: | \| )(.*)$");
    let own: Vec<(usize, &str)> = text
        .lines()
        .filter_map(|line| {
            let parts = form.captures(line)?;
            Some((parts[1].parse().ok()?, parts.get(2)?.as_str()))
        })
        .collect();
    let rising = own.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("[lines "))
        .count();
    if rising && !own.is_empty() && own.len() * 10 >= lines * 8 {
        return own;
    }
    text.lines()
        .enumerate()
        .map(|(at, line)| (first.saturating_add(at), line))
        .collect()
}

/// A file of a folder's tree, with its size in bytes where that is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) path: String,
    pub(super) bytes: u64,
}

/// Reads a tree: two blanks for each level, `name/` for a folder, `name  12 B` for a file. Hidden
/// files and folders are left out. Also tells whether the tree was cut short.
pub(super) fn tree(text: &str) -> (Vec<Leaf>, bool) {
    let sized = pattern!(r"^(.+?)  ([\d.]+) (B|KiB|MiB)$");
    let (mut leaves, mut folders, mut cut) = (Vec::new(), Vec::<&str>::new(), false);
    for line in text.lines() {
        let name = line.trim_start();
        if name.starts_with('[') {
            cut |= name.contains("cut");
            continue;
        }
        folders.truncate((line.len() - name.len()) / 2);
        if let Some(folder) = name.strip_suffix('/') {
            folders.push(folder);
            continue;
        }
        let (name, bytes) = match sized.captures(name) {
            Some(parts) => {
                let unit = match &parts[3] {
                    "B" => 1.0,
                    "KiB" => 1024.0,
                    _ => 1_048_576.0,
                };
                let number: f64 = parts[2].parse().unwrap_or(0.0);
                (
                    parts.get(1).map_or(name, |name| name.as_str()),
                    number * unit,
                )
            }
            None => (name, 0.0),
        };
        if name.is_empty() || name.contains(" -> ") {
            continue;
        }
        let path = folders
            .iter()
            .chain([&name])
            .copied()
            .collect::<Vec<_>>()
            .join("/");
        if !path.split('/').any(|part| part.starts_with('.')) {
            // A float that is too big or negative saturates.
            leaves.push(Leaf {
                path,
                bytes: bytes as u64,
            });
        }
    }
    (leaves, cut)
}

/// One path a line, as the file tools print them; notices in brackets are left out.
pub(super) fn paths(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| clean_path(line.trim()))
        .filter(|line| !line.is_empty() && !line.starts_with(['[', '(']))
        .filter(|line| !line.contains("  ") && line.len() < 400)
        .collect()
}

/// The text that a command printed, and its exit code.
pub(super) fn shell(text: &str) -> (&str, Option<i32>) {
    let form = pattern!(r"(?m)^exit code: (-?\d+)\s*$");
    match form.captures_iter(text).last() {
        Some(parts) => {
            let at = parts.get(0).map_or(0, |all| all.start());
            (text[..at].trim_end(), parts[1].parse().ok())
        }
        None => (text.trim_end(), None),
    }
}

/// At most `most` characters of one line.
pub(super) fn short(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// `1 file`, `3 files`.
pub(super) fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ if thing.ends_with('s') || thing.ends_with("ch") => format!("{number} {thing}es"),
        _ => match thing.strip_suffix('y') {
            Some(stem) => format!("{number} {stem}ies"),
            None => format!("{number} {thing}s"),
        },
    }
}

/// A block of code, fenced so that nothing in it can end it.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let fence = if text.contains("```") { "````" } else { "```" };
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

/// Items as a list, at most `most`, with the number of the others.
pub(super) fn list<T: AsRef<str>>(items: &[T], most: usize) -> String {
    let mut text = String::new();
    for item in items.iter().take(most) {
        let _ = writeln!(text, "- {}", item.as_ref());
    }
    if items.len() > most {
        let _ = writeln!(text, "- … and {} more", items.len() - most);
    }
    text
}
