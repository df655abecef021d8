//! Recognises the command in a prompt, by the patterns of `commands.txt`. There, a line with `=` names
//! a part of patterns, and one with `:` is the pattern of a command, for the whole first line of a
//! prompt. The first pattern counts that matches and whose operands make sense.

use super::{
    conversation::{Answer, Conversation, pattern},
    edit, find, run,
};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// A longer first line is no command. Unit: bytes.
const LONGEST: usize = 2048;

/// The operands of a command, and what follows the first line of the prompt.
struct Operands<'a>(Captures<'a>, &'a str);

impl Operands<'_> {
    fn raw(&self, name: &str) -> Option<&str> {
        Some(self.0.name(name)?.as_str())
    }

    /// An operand without its quotes.
    fn get(&self, name: &str) -> Option<&str> {
        let word = self.raw(name)?;
        let quote = word.chars().next().filter(|it| "`\"'".contains(*it));
        let inner = quote.and_then(|quote| word.strip_prefix(quote)?.strip_suffix(quote));
        Some(inner.unwrap_or(word))
    }

    /// The path, or the working directory; `None` if the word in its place names none.
    fn path(&self) -> Option<&str> {
        Some(self.get("path").unwrap_or(".")).filter(|path| !stands_for_another(path))
    }

    /// Carries out a command; `None` if the operands are none of its own.
    fn carry_out(&self, command: &str, cx: &mut Conversation) -> Option<Answer> {
        Some(match command {
            "lookup" => find::lookup(self.name()?, cx),
            "search" => find::search(self.text()?, self.path()?, cx),
            "todos" => find::todos(self.path()?, cx),
            "files" => find::files(self.glob()?, self.path()?, cx),
            "outline" => find::outline(self.path()?, cx),
            "show" => {
                let is_path = |it: &&str| is_file_name(it) || it.contains('/');
                let path = self.path().filter(is_path)?;
                let line = |name| self.raw(name)?.parse().ok();
                let first = line("first");
                find::show(path, first.unwrap_or(1), line("last").or(first), cx)
            }
            "replace" => edit::replace(self.old()?, self.new_text()?, self.file()?, cx),
            "apply" if pattern!(r"(?m)^@@ -").is_match(self.1) => edit::apply(self.1, cx),
            "run" => run::run(self.get("text")?, cx),
            "tests" => run::tests(cx),
            "sort" if !self.1.trim().is_empty() => Ok(run::sort(self.1)),
            "changes" => run::changes(cx),
            _ => return None,
        })
    }

    /// A name of code: in backticks, or one that is no English word, or said to be one.
    fn name(&self) -> Option<&str> {
        let (raw, name) = (self.raw("name")?, self.get("name")?);
        let is_code = pattern!(r"[_:(!$#\p{Lu}]").is_match(name) || name.len() < raw.len();
        let is_sure = self.raw("sure").is_some();
        let is_meant = is_code || is_sure || self.raw("kind").is_some();
        let is_defined =
            pattern!(r"(?i)^(?:defined|declared)$").is_match(self.raw("sure").unwrap_or_default());
        let is_file = is_file_name(name) && !is_defined;
        let name = name.trim_end_matches("()").trim_end_matches('!');
        let form = pattern!(r"^[\w$]{1,80}(?:(?:::|\.|#)[\w$]{1,80})*$");
        (is_meant && !is_file && form.is_match(name) && !stands_for_another(name)).then_some(name)
    }

    fn text(&self) -> Option<&str> {
        self.get("text").filter(|text| !stands_for_another(text))
    }

    /// A text to replace: in quotes, or a word that stands for no character.
    fn old(&self) -> Option<&str> {
        self.literal("text")
    }

    fn new_text(&self) -> Option<&str> {
        self.literal("new")
    }

    fn literal(&self, name: &str) -> Option<&str> {
        let (raw, text) = (self.raw(name)?, self.get(name)?);
        let is_word = pattern!(r"(?i)^(?:tabs?|spaces?|blanks?|commas?|newlines?|quotes?|semicolons?|nothing|yours?|mine|another|one|two)$").is_match(raw);
        let is_meant = raw.len() > text.len() || !(is_word || stands_for_another(raw));
        is_meant.then_some(text)
    }

    /// Where to replace: a file that is named as one if the text is not in quotes.
    fn file(&self) -> Option<&str> {
        let is_path = |it: &&str| is_file_name(it) || it.contains('/');
        match self.get("file") {
            Some(file) => Some(file).filter(is_path),
            None => self.path(),
        }
    }

    fn glob(&self) -> Option<&str> {
        match self.get("glob")? {
            "files" => Some("*"),
            glob => Some(glob).filter(|glob| glob.contains(['*', '?']) || is_file_name(glob)),
        }
    }
}

/// Words that name nothing themselves, or nothing that a search for the word would find.
fn stands_for_another(word: &str) -> bool {
    pattern!(r"(?i)^(?:it|this|that|these|those|them|they|he|she|you|we|here|there|everything|anything|something|all|what|who|which|how|why|the|a|an|bugs?|errors?|problems?)$").is_match(word)
}

/// A name with a known ending, or one of the names that files without an ending have.
fn is_file_name(word: &str) -> bool {
    pattern!(r"(?i)^[^\s*?]*\.(?:rs|toml|md|txt|py|pyi|[mc]?jsx?|tsx?|jsonc?|ya?ml|go|mod|sum|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|sh|sql|html?|s?css|lock|proto|xml|csv|log|vue|svelte|zig|lua|hs|scala|exs?|ini|cfg|\w*ignore)$|^(?:\S*/)?(?:README|LICENSE|Makefile|Dockerfile)$").is_match(word)
}

/// The names and patterns of the commands.
fn compile() -> Vec<(&'static str, Regex)> {
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

/// Carries out the command of the prompt; `None` unless it is clearly one.
pub(super) fn carry_out(cx: &mut Conversation) -> Option<Answer> {
    static COMMANDS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(compile);
    let prompt = cx.prompt.trim().to_owned();
    let (first, rest) = prompt.split_once('\n').unwrap_or((&prompt, ""));
    // What an editor adds is no part of the sentence; all else is, except for what it may be about.
    let is_whole = pattern!(r"^(?:\s*$|\[.*\]\(|/.*\n```)").is_match(rest);
    if first.len() > LONGEST {
        return None;
    }
    let polite = pattern!(
        r"(?i)^(?:(?:please|hey|hi|hello|ok|okay|now|then|can you|could you|would you|will you|tell me|i want to know|do you know),? )+"
    );
    let first = polite.replace(first.trim(), "");
    let tail = pattern!(
        r"(?i)(?:,? (?:please|thanks|thank you)|[?!:]| here| (?:in|of|across) (?:this|the|my|our) (?:repository|repo|project|code|codebase|code base|workspace))+$"
    );
    let first = tail.replace(first.trim_end_matches(['.', ' ']), "");
    COMMANDS.iter().find_map(|(name, form)| {
        let is_meant = is_whole || matches!(*name, "apply" | "sort");
        let parts = form.captures(&first).filter(|_| is_meant)?;
        Operands(parts, rest).carry_out(name, cx)
    })
}
