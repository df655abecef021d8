//! Defines whether a model may or must call a tool.

/// Constraint on the calls of a response. Without tools only [`Auto`](Self::Auto) has a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The response must be prose. The tools stay in the request, because many APIs reject a history with calls
    /// otherwise, and because removing them would invalidate the cache.
    None,
    /// The model must call at least one tool, where the API can require that.
    Required,
}
