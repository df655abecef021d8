//! Store: sessions on disk. Lanes keep two writers apart, a commit is all or nothing.

pub mod contract;

pub use contract::{
    Commit, Lane, ListPage, ListQuery, NewSession, Opened, Owner, SessionInfo, SessionPatch, Store,
    StoreError,
};
