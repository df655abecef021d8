//! Defines `turnery store` and its subcommands.

use crate::config::store_location::{self, StoreSetting};
use clap::{Args as Group, Subcommand};

/// `turnery store`.
#[derive(Debug, Group)]
#[command(after_help = "\
Examples:
  turnery store info
  turnery store migrate --to /backup/sessions.db
  turnery store migrate --to 'postgres://ann@db.example.org/turnery?schema=ann'
  turnery store vacuum")]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreSubcommand,
}

/// Subcommands of `turnery store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreSubcommand {
    /// Show where the sessions are stored, how many there are, and what they take.
    Info {
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Check all sessions and the database for damage. Changes nothing.
    #[command(
        after_help = "Exit codes: 0 no damage, 1 damage was found or the sessions cannot be read."
    )]
    Check {
        /// Print a JSON array with one object per problem.
        #[arg(long)]
        json: bool,
    },
    /// Copy all sessions to another store, and compare what it returns with the originals.
    #[command(after_help = "\
The sessions stay where they are. A session in which a prompt is running, one that is damaged, and one that has \
gone on in the other store are left out and named. Run it again to complete a copy, or to add what was \
stored since.

Exit codes: 0 all sessions are there, 1 some were left out.")]
    Migrate {
        /// The other store, as for --store. A SQLite file, or the schema of a database, is created if there is none.
        #[arg(long, value_name = "STORE", value_parser = store_location::unchecked_store)]
        to: StoreSetting,
    },
    /// Give the space of deleted sessions back to the disk. Harmless while others use the store.
    #[command(after_help = "\
Idle processes do this on their own after a session was deleted; this does it now, and says how much it was.")]
    Vacuum,
}
