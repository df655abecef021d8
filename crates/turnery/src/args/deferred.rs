//! Describes the arguments of a command to clap only when that command is used.
//!
//! A start of `turnery acp` would otherwise describe the options of all other commands.

use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, builder::Resettable};
use std::cell::Cell;

thread_local! {
    /// True while nothing is deferred.
    static DESCRIBES_ALL: Cell<bool> = const { Cell::new(false) };
}

/// Arguments of a command, unknown to clap until the command line names the command.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) T);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        match DESCRIBES_ALL.get() {
            true => describe::<T>(command),
            false => command.defer(describe::<T>),
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Returns the command line with the arguments of all commands. Completions need them: clap copies the commands below
/// `help` before it describes those that are deferred.
pub(crate) fn whole_command<T: CommandFactory>() -> Command {
    DESCRIBES_ALL.set(true);
    let command = T::command();
    DESCRIBES_ALL.set(false);
    command
}

/// Adds the arguments. The text about the command stays that of the enum, as without [`Deferred`].
fn describe<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    let command = T::augment_args(command);
    let command = command.about(Resettable::from(about));
    command.long_about(Resettable::from(long_about))
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}
