//! Tests that the embedding page lists the channels for activities and usage.

const PAGE: &str = include_str!("../../../../docs/embedding.md");

// proves: LASH-30, LASH-52, LASH-75, LASH-98, LASH-49, LASH-54
#[test]
fn embedding_page_lists_every_channel() {
    for line in [
        "| `TraceSink` (`Agent::with_trace`) | each attempt of a model call, in every session |",
        "| `ActivityEvent::Usage`, `ActivityEvent::ChildUsage` | each model call, live |",
        "| `PromptResult` | each prompt |",
        "| `session.usage_report()` | the session so far |",
        "| `ObservedEvent` (`session.observe`) | applications with remote readers | like `PromptActivity`; cursors are valid for one opening |",
        "| `PromptResult`, `Outcome` | applications | three categories, ten stops; details of a stop may grow |",
        "| `LoopRecord` (the store) | reading past conversations | old records remain readable |",
        "| `Event` (`Outbox`) | protocol front ends in this repository | may change in any version |",
        "| `PromptActivity` (`ActivityEvent`) | applications | fields stay; kinds and optional fields may be added |",
        "| `Incomplete`, `ProviderError` | `OtherModel`: use another model, or a shorter context |",
        "it cannot be resumed",
    ] {
        assert!(PAGE.contains(line), "{line}");
    }
}
