//! The page for those who embed turnery says what holds.

const PAGE: &str = include_str!("../../../../docs/embedding.md");

// proves: LASH-52, LASH-75, LASH-98
#[test]
fn every_channel_and_its_stability_is_on_the_page() {
    for line in [
        "| `TraceSink` (`Agent::with_trace`) | each attempt to call a model, in every session |",
        "| `TurnEvent::Usage`, `TurnEvent::ChildUsage` | each call of a model, live |",
        "| `PromptResult` | each prompt |",
        "| `session.usage_report()` | the session so far |",
        "| `Observed` (`session.observe`) | applications with readers elsewhere |",
        "| `TurnActivity` (`TurnEvent`) | applications | fields stay; kinds and optional fields may be added |",
        "it cannot be resumed",
    ] {
        assert!(PAGE.contains(line), "{line}");
    }
}
