//! Recognizes the command in a prompt by the patterns of `commands.txt`. There, a line with `=` names a
//! sub-pattern, and a line with `:` is the pattern of a command for the whole first line of a prompt. The
//! first matching pattern with valid operands wins.

use super::{
    command_context::{CommandContext, CommandResult, pattern},
    edit, run, search,
};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// Length above which a first line is no command. Unit: bytes.
const MAX_LINE_BYTES: usize = 2048;

/// Operands of a command, and the rest of the prompt after its first line.
struct Operands<'a>(Captures<'a>, &'a str);

impl Operands<'_> {
    fn raw_operand(&self, name: &str) -> Option<&str> {
        Some(self.0.name(name)?.as_str())
    }

    /// Returns an operand without its quotes.
    fn operand(&self, name: &str) -> Option<&str> {
        let word = self.raw_operand(name)?;
        let quote = word.chars().next().filter(|it| "`\"'".contains(*it));
        let inner = quote.and_then(|quote| word.strip_prefix(quote)?.strip_suffix(quote));
        Some(inner.unwrap_or(word))
    }

    /// Returns the path, or the working directory; `None` if the operand is not a path.
    fn path(&self) -> Option<&str> {
        Some(self.operand("path").unwrap_or(".")).filter(|path| !is_placeholder_word(path))
    }

    /// Runs a command; `None` if its operands are invalid.
    fn execute(&self, command: &str, cx: &mut CommandContext) -> Option<CommandResult> {
        Some(match command {
            "lookup" => search::lookup(self.name()?, cx),
            "search" => search::search(self.text()?, self.path()?, cx),
            "todos" => search::todos(self.path()?, cx),
            "files" => search::files(self.glob()?, self.path()?, cx),
            "outline" => search::outline(self.path()?, cx),
            "show" => {
                let is_path = |it: &&str| is_file_name(it) || it.contains('/');
                let path = self.path().filter(is_path)?;
                let line = |name| self.raw_operand(name)?.parse().ok();
                let first = line("first");
                search::show(path, first.unwrap_or(1), line("last").or(first), cx)
            }
            "replace" => {
                let (old, new) = (self.literal("text")?, self.literal("new")?);
                edit::replace(old, new, self.file()?, cx)
            }
            "apply" if pattern!(r"(?m)^@@ -").is_match(self.1) => edit::apply(self.1, cx),
            "run" => run::run_command(self.operand("text")?, cx),
            "tests" => run::run_tests(cx),
            "sort" if !self.1.trim().is_empty() => Ok(run::summarize_failures(self.1)),
            "changes" => run::summarize_changes(cx),
            _ => return None,
        })
    }

    /// Returns a code identifier: in backticks, or not an English word, or called an identifier in the prompt.
    fn name(&self) -> Option<&str> {
        let (raw, name) = (self.raw_operand("name")?, self.operand("name")?);
        let is_code = pattern!(r"[_:(!$#\p{Lu}]").is_match(name) || name.len() < raw.len();
        let sure = self.raw_operand("sure");
        let is_meant = is_code || sure.is_some() || self.raw_operand("kind").is_some();
        let is_defined = pattern!(r"(?i)^(?:defined|declared)$").is_match(sure.unwrap_or_default());
        let is_file = is_file_name(name) && !is_defined;
        let name = name.trim_end_matches("()").trim_end_matches('!');
        let form = pattern!(r"^[\w$]{1,80}(?:(?:::|\.|#)[\w$]{1,80})*$");
        (is_meant && !is_file && form.is_match(name) && !is_placeholder_word(name)).then_some(name)
    }

    fn text(&self) -> Option<&str> {
        self.operand("text").filter(|it| !is_placeholder_word(it))
    }

    /// Returns a text to replace, or its replacement: in quotes, or a word that does not name a character.
    fn literal(&self, name: &str) -> Option<&str> {
        let (raw, text) = (self.raw_operand(name)?, self.operand(name)?);
        let is_word = pattern!(r"(?i)^(?:tabs?|spaces?|blanks?|commas?|newlines?|quotes?|semicolons?|nothing|yours?|mine|another|one|two)$").is_match(raw);
        let is_meant = raw.len() > text.len() || !(is_word || is_placeholder_word(raw));
        is_meant.then_some(text)
    }

    /// Returns the file to replace in, from the operand `file`, which must look like a file; without that
    /// operand, the path.
    fn file(&self) -> Option<&str> {
        let is_path = |it: &&str| is_file_name(it) || it.contains('/');
        let file = self.operand("file");
        file.map_or_else(|| self.path(), |file| Some(file).filter(is_path))
    }

    fn glob(&self) -> Option<&str> {
        match self.operand("glob")? {
            "files" => Some("*"),
            glob => Some(glob).filter(|glob| glob.contains(['*', '?']) || is_file_name(glob)),
        }
    }
}

/// Returns true for words that stand for something else, or that are useless to search for.
fn is_placeholder_word(word: &str) -> bool {
    pattern!(r"(?i)^(?:it|this|that|these|those|them|they|he|she|you|we|here|there|everything|anything|something|all|what|who|which|how|why|the|a|an|bugs?|errors?|problems?)$").is_match(word)
}

/// Returns true for names with a known extension, and for common names without one.
fn is_file_name(word: &str) -> bool {
    pattern!(r"(?i)^[^\s*?]*\.(?:rs|toml|md|txt|py|pyi|[mc]?jsx?|tsx?|jsonc?|ya?ml|go|mod|sum|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|sh|sql|html?|s?css|lock|proto|xml|csv|log|vue|svelte|zig|lua|hs|scala|exs?|ini|cfg|\w*ignore)$|^(?:\S*/)?(?:README|LICENSE|Makefile|Dockerfile)$").is_match(word)
}

/// Compiles the patterns of the commands.
fn compile_patterns() -> Vec<(&'static str, Regex)> {
    let (mut parts, mut commands) = (Vec::new(), Vec::new());
    for line in include_str!("commands.txt").lines() {
        if let Some(part) = line.split_once(" = ") {
            parts.push(part);
        } else if let Some((name, text)) = line.split_once(": ") {
            let fold = |text: String, (name, part): &(&str, &str)| text.replace(name, part);
            let text = parts.iter().fold(text.to_owned(), fold);
            let form = Regex::new(&format!("(?i)^(?:{text})$"));
            commands.push((name, form.expect("a valid pattern")));
        }
    }
    commands
}

/// Runs the command of the prompt; `None` unless there clearly is one.
pub(super) fn execute(cx: &mut CommandContext) -> Option<CommandResult> {
    static COMMANDS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(compile_patterns);
    let prompt = cx.prompt.trim().to_owned();
    let (first, rest) = prompt.split_once('\n').unwrap_or((&prompt, ""));
    // Context added by an editor is ignored; other text makes the prompt no command, unless the command takes
    // it as input.
    let is_whole = pattern!(r"^(?:\s*$|\[.*\]\(|/.*\n```)").is_match(rest);
    (first.len() <= MAX_LINE_BYTES).then_some(())?;
    let polite = pattern!(
        r"(?i)^(?:(?:please|hey|hi|hello|ok|okay|now|then|can you|could you|would you|will you|tell me|i want to know|do you know),? )+|(?:,? (?:please|thanks|thank you)|[?!:]| here| (?:in|of|across) (?:this|the|my|our) (?:repository|repo|project|code|codebase|code base|workspace))+$"
    );
    let first = polite.replace_all(first.trim().trim_end_matches(['.', ' ']), "");
    COMMANDS.iter().find_map(|(name, form)| {
        let is_meant = is_whole || matches!(*name, "apply" | "sort");
        let parts = form.captures(&first).filter(|_| is_meant)?;
        Operands(parts, rest).execute(name, cx)
    })
}
