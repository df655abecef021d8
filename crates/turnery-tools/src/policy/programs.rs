//! Programs that only read, each with the options that are known to neither write nor run anything.
//! What is not listed here is not harmless: adding an option means having read its manual.

mod git;
mod table;

pub(crate) use table::{FIND_ALONE, FIND_CONFINED, FIND_VALUED, NAMING};

/// The table.
pub(crate) const PROGRAMS: [&[Program]; 2] = [table::OTHERS, git::GIT];

/// A program, or one of its subcommands.
pub(crate) struct Program {
    /// Its name, and the subcommand if it has some.
    pub(crate) words: &'static [&'static str],
    /// Short options without a value.
    pub(crate) flags: &'static str,
    /// Short options with a value, in the same word or the next.
    pub(crate) valued: &'static str,
    /// Long options; with a `=` at the end when they take a value, which must follow in the same word.
    pub(crate) long: &'static [&'static str],
    /// What its other arguments are.
    pub(crate) operands: Operands,
    /// Further options of commands that run confined.
    pub(crate) also: Options,
    /// Whether only commands that run confined are known to be harmless.
    pub(crate) only_confined: bool,
}

/// Options, as in [`Program`].
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) flags: &'static str,
    pub(crate) valued: &'static str,
    pub(crate) long: &'static [&'static str],
}

impl Options {
    pub(crate) const NONE: Self = Self {
        flags: "",
        valued: "",
        long: &[],
    };
}

impl Program {
    /// With these options too when the command runs confined.
    const fn also(
        self,
        flags: &'static str,
        valued: &'static str,
        long: &'static [&'static str],
    ) -> Self {
        let also = Options {
            flags,
            valued,
            long,
        };
        Self { also, ..self }
    }
}

/// A program that is known only when it runs confined.
const fn confined(
    words: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> Program {
    let program = program(words, flags, valued, long, operands);
    Program {
        only_confined: true,
        ..program
    }
}

/// What the arguments that are no options stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// There must be none.
    None,
    /// Text that names no file that is read.
    Text,
    /// Text, whatever it looks like: there is no option that matters.
    Words,
    /// A format of `printf`, then text.
    Format,
    /// Files or folders whose names or contents are shown.
    Paths,
    /// At most one such.
    OnePath,
    /// A pattern, then such, searched with all that is below them.
    PatternThenPaths,
    /// Revisions and paths of a git repository.
    Revisions,
    /// `N,Mp`, then paths: the one script of sed that is known to only print.
    PrintLines,
    /// Folders, then tests of `find`.
    FindTests,
    /// A program of awk, then paths.
    Awk,
    /// What `test` and `[` look at.
    Condition,
    /// `+FORMAT`, if anything.
    Date,
    /// A filter of jq, then paths.
    Filter,
    /// An archive, then names of what is in it.
    Archive,
    /// A command that is given names.
    Xargs,
    /// A number.
    Number,
    /// Paths, of which none is a file with further arguments (`@args`).
    Strings,
}

const fn program(
    words: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> Program {
    Program {
        words,
        flags,
        valued,
        long,
        operands,
        also: Options::NONE,
        only_confined: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter that may be both would hide an operand behind it.
    #[test]
    fn no_short_option_is_with_and_without_a_value() {
        for program in PROGRAMS.into_iter().flatten().chain(NAMING) {
            let valued = [program.valued, program.also.valued].concat();
            let flags = [program.flags, program.also.flags].concat();
            assert!(
                !flags.contains(|it| valued.contains(it)),
                "{:?}",
                program.words
            );
        }
    }
}
