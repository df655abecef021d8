//! Recognises sed, awk and jq scripts that neither write, nor run a program, nor read files other than those
//! named.

use super::{command_line::SimpleCommand, shell_word::ShellWord};

/// Returns the files that a sed command reads; `None` unless its scripts only print. Options must match as
/// whole words, because sed also accepts options after the files and `-i` within any group.
pub(crate) fn sed_input_files(command: &SimpleCommand) -> Option<Vec<&str>> {
    let mut scripts = Vec::new();
    let mut operands: Vec<&ShellWord> = Vec::new();
    let mut args = command.args.iter();
    while let Some(arg) = args.next() {
        match arg {
            ShellWord::Literal(option)
            | ShellWord::FileName(option)
            | ShellWord::UnorderedFileName(option)
                if option.starts_with('-') && option != "-" =>
            {
                match option.as_str() {
                    "--posix" | "--quiet" | "--regexp-extended" | "--sandbox" | "--silent" => {}
                    "-n" | "-E" | "-r" | "-u" | "-nE" | "-En" | "-nr" | "-rn" => {}
                    "-e" | "-ne" | "-Ee" | "-re" | "-nEe" | "-Ene" | "-nre" | "-rne" => {
                        scripts.push(args.next()?);
                    }
                    _ => return None,
                }
            }
            arg => operands.push(arg),
        }
    }
    let files = match (scripts.is_empty(), operands.split_first()) {
        (true, Some((script, files))) => {
            scripts.push(script);
            files.to_vec()
        }
        (true, None) => return None,
        (false, _) => operands,
    };
    let is_harmless =
        |script: &&ShellWord| matches!(script, ShellWord::Literal(text) if sed_only_prints(text));
    scripts.iter().all(is_harmless).then_some(())?;
    files.into_iter().map(ShellWord::known_text).collect()
}

#[cfg(test)]
thread_local! {
    /// Disables the script checks, to show that the tests against bash detect the difference.
    pub(super) static IGNORES_SCRIPTS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Returns true if every command of a sed script only changes what is printed.
fn sed_only_prints(script: &str) -> bool {
    #[cfg(test)]
    if IGNORES_SCRIPTS.get() {
        return true;
    }
    let mut rest = script;
    let mut depth = 0_usize;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';']);
        if rest.is_empty() {
            return depth == 0;
        }
        let Some(after) = skip_sed_addresses(rest) else {
            return false;
        };
        rest = after.trim_start_matches([' ', '!']);
        let mut chars = rest.chars();
        let command = chars.next();
        rest = chars.as_str();
        match command {
            Some('{') => {
                depth += 1;
                continue;
            }
            Some('}') => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            Some('p' | 'd' | 'q' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | 'P' | 'D' | '=') => {}
            Some('s') => match skip_sed_substitution(rest) {
                Some(after) => rest = after,
                None => return false,
            },
            _ => return false,
        }
        rest = rest.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with([';', '\n', '}']) {
            return false;
        }
    }
}

/// Returns the text after the addresses of a sed command: `1`, `$`, `/x/`, `1,+3`.
fn skip_sed_addresses(script: &str) -> Option<&str> {
    let rest = skip_sed_address(script)?;
    match rest.strip_prefix(',') {
        Some(second) => {
            let second = second.trim_start_matches(' ');
            let second = second.strip_prefix(['+', '~']).unwrap_or(second);
            let after = skip_sed_address(second)?;
            (after.len() < second.len()).then_some(after)
        }
        None => Some(rest),
    }
}

fn skip_sed_address(script: &str) -> Option<&str> {
    if let Some(rest) = script.strip_prefix('$') {
        return Some(rest);
    }
    if let Some(rest) = script.strip_prefix('/') {
        let (_, after) = split_sed_delimited(rest, '/')?;
        return Some(after.strip_prefix('I').unwrap_or(after));
    }
    let rest = script.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix('~') {
        Some(step) if rest.len() < script.len() => {
            Some(step.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        _ => Some(rest),
    }
}

/// Returns the text after an `s` command: pattern, replacement and flags, none of which may write or run
/// anything.
fn skip_sed_substitution(rest: &str) -> Option<&str> {
    let delimiter = rest.chars().next().filter(|c| "/|#,:@!%_".contains(*c))?;
    let rest = rest.get(1..)?;
    let (_, rest) = split_sed_delimited(rest, delimiter)?;
    let (replacement, rest) = split_sed_delimited(rest, delimiter)?;
    let is_one_line = !replacement.contains('\n');
    is_one_line.then(|| rest.trim_start_matches(|c: char| c.is_ascii_digit() || "gpIi".contains(c)))
}

/// Splits the text at the next delimiter. `None` where implementations of sed disagree on its position: for a
/// delimiter within brackets, or brackets that are hard to parse.
fn split_sed_delimited(text: &str, delimiter: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let is_end = *c == delimiter && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    });
    let (end, _) = end?;
    let (inside, after) = (text.get(..end)?, text.get(end + 1..)?);
    let is_plain = !inside.contains('\n') && !inside.contains("\\c") && has_plain_brackets(inside);
    is_plain.then_some((inside, after))
}

/// Returns true if each `[` has its `]`, with only letters, digits, classes and the like in between.
fn has_plain_brackets(text: &str) -> bool {
    let mut text = text.to_owned();
    for class in [
        "[:space:]",
        "[:alnum:]",
        "[:alpha:]",
        "[:digit:]",
        "[:upper:]",
        "[:lower:]",
        "[:blank:]",
    ] {
        text = text.replace(class, "c");
    }
    let mut rest = text.as_str();
    loop {
        let Some(at) = rest.find(['[', '\\']) else {
            return true;
        };
        let Some(after) = rest.get(at + 1..) else {
            return false;
        };
        if rest.get(at..at + 1) == Some("\\") {
            let mut chars = after.chars();
            chars.next();
            rest = chars.as_str();
            continue;
        }
        let after = after.strip_prefix('^').unwrap_or(after);
        match after.split_once(']') {
            Some((set, after)) if !set.is_empty() && !set.contains(['[', '\\']) => rest = after,
            _ => return false,
        }
    }
}

/// Returns the files that an awk command reads; `None` unless its program only prints.
pub(crate) fn awk_input_files(command: &SimpleCommand) -> Option<Vec<&str>> {
    let mut args = command.args.iter();
    let program = loop {
        match args.next()? {
            ShellWord::Literal(option) if option == "-F" => {
                args.next()?.known_text()?;
            }
            ShellWord::Literal(option) if option == "-v" => {
                let value = args.next()?.known_text()?;
                let (name, _) = value.split_once('=')?;
                let is_name =
                    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                is_name.then_some(())?;
            }
            ShellWord::Literal(option) if option.starts_with("-F") => {}
            ShellWord::Literal(program) if !program.starts_with('-') => break program,
            _ => return None,
        }
    };
    awk_only_prints(program).then_some(())?;
    let files: Option<Vec<&str>> = args.map(ShellWord::known_text).collect();
    // awk reads `x=y` as an assignment.
    files.filter(|files| {
        let is_file = |file: &&str| !file.contains('=') && (*file == "-" || !file.starts_with('-'));
        files.iter().all(is_file)
    })
}

/// Returns true if an awk program contains nothing that writes, runs commands or reads other files. Comments
/// and quotes are not parsed: text that could be either is refused.
fn awk_only_prints(program: &str) -> bool {
    #[cfg(test)]
    if IGNORES_SCRIPTS.get() {
        return true;
    }
    const REFUSED: &[&str] = &[
        "system",
        "getline",
        "close",
        "fflush",
        "ENVIRON",
        "PROCINFO",
        "ARGV",
        "ARGC",
        "SYMTAB",
        "FUNCTAB",
        "gettext",
        "textdomain",
        "@",
        "#",
    ];
    // Before the first brace there are only patterns.
    let actions = program.find('{').and_then(|at| program.get(at..));
    let pipes = actions.unwrap_or_default().replace("||", "  ");
    if pipes.contains('|') || REFUSED.iter().any(|word| program.contains(word)) {
        return false;
    }
    let greater = program.replace(">=", "  ");
    if !greater.contains('>') {
        return true;
    }
    // `>` compares outside braces and within brackets; strings and patterns would break the count of both.
    if program.contains(['"', '/', '\\']) {
        return false;
    }
    let (mut braces, mut brackets) = (0_i32, 0_i32);
    let (mut opened, mut prints) = (0, false);
    let chars = program.char_indices().zip(greater.chars());
    chars.into_iter().all(|((at, c), compared)| {
        if brackets == 0 {
            (opened, prints) = (at, false);
        }
        // A loop may contain a print statement within brackets.
        let before = program.get(opened..at).unwrap_or_default();
        prints |= before.ends_with("print");
        match c {
            '{' => braces += 1,
            '}' => braces -= 1,
            '(' => brackets += 1,
            ')' => brackets -= 1,
            _ => {}
        }
        braces >= 0 && brackets >= 0 && (compared != '>' || braces == 0 || brackets > 0 && !prints)
    })
}

/// Returns true if a jq filter reads only its input: neither modules nor the environment.
pub(crate) fn jq_only_filters(filter: &ShellWord) -> bool {
    let ShellWord::Literal(filter) = filter else {
        return false;
    };
    ![
        "env",
        "ENV",
        "import",
        "include",
        "modulemeta",
        "get_search_list",
        "input_filename",
        "debug",
        "stderr",
    ]
    .iter()
    .any(|word| filter.contains(word))
}
