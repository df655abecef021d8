//! Protocol version of a connection, negotiated once by `initialize`.

/// Version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AcpVersion {
    /// Stable version.
    #[default]
    V1,
    /// Draft of the second version, available if enabled.
    V2,
}
