//! Lists the programs that only read, each with the options that neither write nor run anything.
//!
//! Programs and options that are not listed are not allowed. Read the manual before adding an option.

mod general;
mod git;

pub(crate) use general::{
    FIND_CONFINED_FLAGS, FIND_FLAGS, FIND_VALUED_TESTS, NAME_LISTING_PROGRAMS,
};

/// Table of all read-only programs.
pub(crate) const READ_ONLY_PROGRAMS: [&[ReadOnlyProgram]; 2] =
    [general::GENERAL_PROGRAMS, git::GIT_COMMANDS];

/// Program or subcommand that only reads.
pub(crate) struct ReadOnlyProgram {
    /// Name, followed by the subcommand if any.
    pub(crate) words: &'static [&'static str],
    /// Short options without a value.
    pub(crate) flags: &'static str,
    /// Short options with a value, in the same word or the next.
    pub(crate) valued: &'static str,
    /// Long options. A trailing `=` marks an option with a value, which must follow in the same word.
    pub(crate) long: &'static [&'static str],
    /// Meaning of the remaining arguments.
    pub(crate) operands: ProgramOperands,
    /// Further options for commands that run confined.
    pub(crate) confined_options: ConfinedOptions,
    /// True if the program only reads when it runs confined.
    pub(crate) is_confined_only: bool,
}

/// Additional options of a program entry, in the same format.
#[derive(Clone, Copy)]
pub(crate) struct ConfinedOptions {
    pub(crate) flags: &'static str,
    pub(crate) valued: &'static str,
    pub(crate) long: &'static [&'static str],
}

impl ConfinedOptions {
    pub(crate) const NONE: Self = Self {
        flags: "",
        valued: "",
        long: &[],
    };
}

impl ReadOnlyProgram {
    /// Adds options for commands that run confined.
    const fn with_confined_options(
        self,
        flags: &'static str,
        valued: &'static str,
        long: &'static [&'static str],
    ) -> Self {
        let also = ConfinedOptions {
            flags,
            valued,
            long,
        };
        Self {
            confined_options: also,
            ..self
        }
    }
}

/// Creates an entry for a program that only reads when it runs confined.
const fn confined_program(
    words: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: ProgramOperands,
) -> ReadOnlyProgram {
    let program = program(words, flags, valued, long, operands);
    ReadOnlyProgram {
        is_confined_only: true,
        ..program
    }
}

/// Meaning of the arguments that are not options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramOperands {
    /// No arguments.
    None,
    /// Text that names no file to read.
    Text,
    /// Arbitrary text, even if it looks like an option.
    AnyText,
    /// `printf` format, then text.
    PrintfFormat,
    /// Files or folders whose names or contents are shown.
    Paths,
    /// At most one file or folder.
    OnePath,
    /// Pattern, then files or folders that are searched recursively.
    PatternThenPaths,
    /// Revisions and paths of a git repository.
    Revisions,
    /// `N,Mp`, then paths: a sed script that only prints.
    SedPrintLines,
    /// Folders, then tests of `find`.
    FindTests,
    /// awk program, then paths.
    AwkProgram,
    /// Condition of `test` or `[`.
    Condition,
    /// Optional `+FORMAT`.
    DateFormat,
    /// jq filter, then paths.
    JqFilter,
    /// Archive, then names of its members.
    Archive,
    /// Command that receives names from `xargs`.
    Xargs,
    /// Number.
    Number,
    /// Paths; `@args` files with further arguments are refused.
    PathsWithoutArgFiles,
}

const fn program(
    words: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: ProgramOperands,
) -> ReadOnlyProgram {
    ReadOnlyProgram {
        words,
        flags,
        valued,
        long,
        operands,
        confined_options: ConfinedOptions::NONE,
        is_confined_only: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter in both lists would hide an operand after it.
    #[test]
    fn no_short_option_is_both_flag_and_valued() {
        for program in READ_ONLY_PROGRAMS
            .into_iter()
            .flatten()
            .chain(NAME_LISTING_PROGRAMS)
        {
            let valued = [program.valued, program.confined_options.valued].concat();
            let flags = [program.flags, program.confined_options.flags].concat();
            assert!(
                !flags.contains(|it| valued.contains(it)),
                "{:?}",
                program.words
            );
        }
    }
}
