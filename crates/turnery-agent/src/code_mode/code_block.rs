//! Finds the block of code in a response: from a line ```` ```python ```` to the next line of as many backticks.

/// Name of the tool that runs a block of code.
pub const CODE_TOOL: &str = "run_code";

/// Language of the blocks that are run.
pub(crate) const LANGUAGE: &str = "python";

/// Number of backticks of the shortest fence.
const MIN_FENCE: usize = 3;

/// Maximum number of spaces before a fence, as in Markdown. Lines of the code lose as many.
const MAX_INDENT: usize = 3;

/// Code in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CodeBlock {
    /// The text contains no block.
    None,
    /// A block with both its fences.
    Closed {
        /// Start of the block. Unit: bytes.
        start: usize,
        code: String,
    },
    /// A block without a closing fence.
    Unclosed {
        /// Start of the block. Unit: bytes.
        start: usize,
        code: String,
    },
}

/// Returns the first block of code in a text.
pub(super) fn find_code_block(text: &str) -> CodeBlock {
    let mut at = 0;
    let mut opened: Option<(usize, Fence)> = None;
    let mut code = String::new();
    // Blocks of other languages are skipped whole, since they may contain the fence of a block.
    let mut other: Option<Fence> = None;
    for line in text.split_inclusive('\n') {
        match (opened, other) {
            (Some((start, fence)), _) if fence.is_closed_by(line) => {
                return CodeBlock::Closed { start, code };
            }
            (Some((_, fence)), _) => code.push_str(fence.without_indent(line)),
            (None, Some(fence)) => {
                if fence.is_closed_by(line) {
                    other = None;
                }
            }
            (None, None) => match opening_fence(line) {
                Some((fence, true)) => opened = Some((at, fence)),
                Some((fence, false)) => other = Some(fence),
                None => {}
            },
        }
        at += line.len();
    }
    match opened {
        Some((start, _)) => CodeBlock::Unclosed { start, code },
        None => CodeBlock::None,
    }
}

/// Line of backticks that begins a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    /// Number of spaces before it.
    indent: usize,
    /// Number of backticks.
    length: usize,
}

impl Fence {
    fn is_closed_by(self, line: &str) -> bool {
        split_fence(line)
            .is_some_and(|(fence, rest)| fence.length >= self.length && rest.is_empty())
    }

    /// Returns a line of the block without the indentation of the fence.
    fn without_indent(self, line: &str) -> &str {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        &line[spaces.min(self.indent)..]
    }
}

/// Returns true for the names by which models mark a block that is run.
fn is_run(language: &str) -> bool {
    [LANGUAGE, "py", "python3"]
        .iter()
        .any(|it| language.eq_ignore_ascii_case(it))
}

/// Returns an opening fence, and true if its block is run. Only the first word after it is the language.
fn opening_fence(line: &str) -> Option<(Fence, bool)> {
    let (fence, info) = split_fence(line)?;
    let language = info.split_whitespace().next().unwrap_or_default();
    (!info.contains('`')).then_some((fence, is_run(language)))
}

fn split_fence(line: &str) -> Option<(Fence, &str)> {
    let unindented = line.trim_start_matches(' ');
    let indent = line.len() - unindented.len();
    let rest = unindented.trim_start_matches('`');
    let length = unindented.len() - rest.len();
    let is_fence = length >= MIN_FENCE && indent <= MAX_INDENT;
    is_fence.then_some((Fence { indent, length }, rest.trim()))
}

/// Separates the fragments of a streaming text into prose and code.
///
/// Holds back a line only while it may become a fence.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeBlockStream {
    /// Start of the current line, if it may become a fence.
    held: String,
    /// True if the current line is known not to be a fence.
    is_line_decided: bool,
    state: StreamState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StreamState {
    #[default]
    Prose,
    /// In a block of another language.
    Other(Fence),
    Code(Fence),
    /// After the block; the rest of the response is ignored.
    Done,
}

/// Fragment of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fragment {
    Prose(String),
    Code(String),
}

impl CodeBlockStream {
    /// Appends text and returns the fragments that are certain.
    pub(super) fn push(&mut self, text: &str) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        for part in text.split_inclusive('\n') {
            self.held.push_str(part);
            if part.ends_with('\n') {
                self.end_line(&mut fragments);
            } else if self.is_line_decided || !may_become_fence(&self.held) {
                self.is_line_decided = true;
                let line = std::mem::take(&mut self.held);
                self.emit(line, &mut fragments);
            }
        }
        fragments
    }

    /// Returns what was held back, at the end of the text.
    pub(super) fn finish(&mut self) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        self.end_line(&mut fragments);
        fragments
    }

    fn end_line(&mut self, fragments: &mut Vec<Fragment>) {
        let line = std::mem::take(&mut self.held);
        let is_whole = !std::mem::take(&mut self.is_line_decided);
        let fence = opening_fence(&line).filter(|_| is_whole);
        match (self.state, fence) {
            (StreamState::Prose, Some((fence, true))) => {
                self.state = StreamState::Code(fence);
            }
            (StreamState::Code(fence), _) if is_whole && fence.is_closed_by(&line) => {
                self.state = StreamState::Done;
            }
            (StreamState::Prose, Some((fence, false))) => {
                self.state = StreamState::Other(fence);
                self.emit(line, fragments);
            }
            (StreamState::Other(fence), _) if is_whole && fence.is_closed_by(&line) => {
                self.emit(line, fragments);
                self.state = StreamState::Prose;
            }
            _ => self.emit(line, fragments),
        }
    }

    fn emit(&self, text: String, fragments: &mut Vec<Fragment>) {
        let fragment = match self.state {
            StreamState::Done => return,
            _ if text.is_empty() => return,
            StreamState::Prose | StreamState::Other(_) => Fragment::Prose(text),
            StreamState::Code(_) => Fragment::Code(text),
        };
        match (fragments.last_mut(), fragment) {
            (Some(Fragment::Prose(last)), Fragment::Prose(text))
            | (Some(Fragment::Code(last)), Fragment::Code(text)) => last.push_str(&text),
            (_, fragment) => fragments.push(fragment),
        }
    }
}

/// Returns true if the start of a line may become a fence.
fn may_become_fence(start: &str) -> bool {
    let unindented = start.trim_start_matches(' ');
    let rest = unindented.trim_start_matches('`');
    let has_indent = start.len() - unindented.len() <= MAX_INDENT;
    has_indent && (rest.is_empty() || unindented.len() - rest.len() >= MIN_FENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code_of(text: &str) -> Option<String> {
        match find_code_block(text) {
            CodeBlock::Closed { code, .. } => Some(code),
            CodeBlock::None | CodeBlock::Unclosed { .. } => None,
        }
    }

    // proves: UP-33
    #[test]
    fn first_closed_python_block_is_found() {
        for (text, code) in [
            ("```python\nx = 1\n```\n", Some("x = 1\n")),
            ("I look.\n```python\nprint(1)\n```", Some("print(1)\n")),
            ("````python\n```\n````\n", Some("```\n")),
            ("``` python \na\n``` \nmore", Some("a\n")),
            ("```python\n```\n", Some("")),
            ("```Py\na\n```\n", Some("a\n")),
            ("```python\na\n```\n```python\nb\n```\n", Some("a\n")),
            ("```rust\n```python\n```\n", None),
            ("```rust\nx\n```\n```python\ny\n```\n", Some("y\n")),
            ("```\nplain\n```\n", None),
            ("Use `x` or ```python inline```.", None),
            (
                "  ```python\n  if a:\n      b\nc\n  ```\n",
                Some("if a:\n    b\nc\n"),
            ),
            ("    ```python\nx\n    ```\n", None),
            ("```python title=\"a.py\"\na\n```\n", Some("a\n")),
            ("```python-repl\na\n```\n", None),
        ] {
            assert_eq!(code_of(text).as_deref(), code, "{text:?}");
        }
        let unclosed = CodeBlock::Unclosed {
            start: 3,
            code: "x = 1\n".to_owned(),
        };
        assert_eq!(find_code_block("Hi\n```python\nx = 1\n"), unclosed);
    }

    #[test]
    fn fragments_are_passed_on_as_soon_as_they_are_certain() {
        let mut stream = CodeBlockStream::default();
        let prose = |text: &str| vec![Fragment::Prose(text.to_owned())];
        let code = |text: &str| vec![Fragment::Code(text.to_owned())];
        for (pushed, fragments) in [
            ("He", prose("He")),
            ("llo\n``", prose("llo\n")),
            ("`py", vec![]),
            ("thon\nx =", code("x =")),
            (" 1\n`", code(" 1\n")),
            ("``", vec![]),
            ("\nignored", vec![]),
        ] {
            assert_eq!(stream.push(pushed), fragments, "{pushed:?}");
        }
        assert_eq!(stream.finish(), []);
    }

    proptest! {
        /// Streaming, cut anywhere, gives the prose and the code of the whole text.
        #[test]
        fn streamed_text_gives_same_code_as_whole_text(
            lines in proptest::collection::vec(" {0,4}`{0,4}(python|rust|x|) ?", 0..8),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let text = lines.join("\n");
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            places.extend([0, text.len()]);
            places.sort_unstable();
            let mut stream = CodeBlockStream::default();
            let pushed = places.windows(2).flat_map(|pair| stream.push(&text[pair[0]..pair[1]]));
            let mut fragments: Vec<Fragment> = pushed.collect();
            fragments.extend(stream.finish());
            let mut streamed = (String::new(), String::new());
            for fragment in fragments {
                match fragment {
                    Fragment::Prose(text) => streamed.0.push_str(&text),
                    Fragment::Code(text) => streamed.1.push_str(&text),
                }
            }
            // The code is streamed with its indentation.
            let unindented = |code: &str| code.replace(' ', "");
            streamed.1 = unindented(&streamed.1);
            let expected = match find_code_block(&text) {
                CodeBlock::None => (text.clone(), String::new()),
                CodeBlock::Closed { start, code } | CodeBlock::Unclosed { start, code } => {
                    (text[..start].to_owned(), unindented(&code))
                }
            };
            prop_assert_eq!(streamed, expected);
        }
    }
}
