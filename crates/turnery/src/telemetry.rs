//! Exports traces and metrics of prompts over OTLP, if the `OTEL_*` variables ask for it.
//!
//! The spans and their attributes follow the OpenTelemetry conventions for generative AI; `docs/telemetry.md` lists
//! them. A build without the feature `otel` only warns that the variables have no effect.

#[cfg(feature = "otel")]
mod content;
#[cfg(feature = "otel")]
mod conventions;
#[cfg(feature = "otel")]
mod delivery;
#[cfg(feature = "otel")]
mod http_client;
#[cfg(feature = "otel")]
mod metrics;
#[cfg(feature = "otel")]
mod open_prompt;
#[cfg(feature = "otel")]
mod pipeline;
mod settings;
#[cfg(feature = "otel")]
mod span_sink;

use crate::config::{LiveProviders, environment::process_variable};
use settings::TelemetrySettings;
use std::{sync::Arc, time::Duration};
use turnery_agent::TraceSink;

/// Variables with headers for the collector, which may hold keys: commands and MCP servers do not see them.
pub(crate) const SECRET_VARIABLES: [&str; 4] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
];

/// Longest time that the end of `turnery run` waits for the collector.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Time that the end of `turnery acp` waits for the collector even if nothing is left of the time to end in.
pub(crate) const MIN_FLUSH_TIMEOUT: Duration = Duration::from_millis(250);

/// Telemetry of this process; by default there is none.
#[derive(Default)]
pub(crate) struct Telemetry {
    #[cfg(feature = "otel")]
    pipeline: Option<pipeline::Pipeline>,
}

impl Telemetry {
    /// Starts what the environment asks for. Problems are logged and leave telemetry off. Must be called outside of
    /// an async runtime.
    pub(crate) fn start() -> Self {
        let settings = TelemetrySettings::read(&process_variable);
        match settings {
            Ok(None) => Self::default(),
            Ok(Some(settings)) => Self::with_settings(&settings),
            Err(problem) => {
                tracing::warn!("telemetry is off: {problem}");
                Self::default()
            }
        }
    }

    #[cfg(feature = "otel")]
    fn with_settings(settings: &TelemetrySettings) -> Self {
        match pipeline::Pipeline::start(settings) {
            Ok(pipeline) => Self {
                pipeline: Some(pipeline),
            },
            Err(problem) => {
                tracing::warn!("telemetry is off: {problem}");
                Self::default()
            }
        }
    }

    #[cfg(not(feature = "otel"))]
    fn with_settings(_settings: &TelemetrySettings) -> Self {
        tracing::warn!(
            "this build of turnery has no telemetry, so the OTEL_* variables have no effect: build it with \
             the feature `otel`, which is on by default"
        );
        Self::default()
    }

    /// Returns the sink for an agent; `None` if telemetry is off. `providers` tells where models are served.
    #[cfg(feature = "otel")]
    pub(crate) fn sink(&self, providers: &Arc<LiveProviders>) -> Option<Arc<dyn TraceSink>> {
        let pipeline = self.pipeline.as_ref()?;
        Some(Arc::new(pipeline.sink(Arc::clone(providers))))
    }

    /// Returns no sink.
    #[cfg(not(feature = "otel"))]
    pub(crate) fn sink(&self, _providers: &Arc<LiveProviders>) -> Option<Arc<dyn TraceSink>> {
        None
    }

    /// Sends what is left, for at most `patience`; calls `beat` every few milliseconds meanwhile.
    #[cfg(feature = "otel")]
    pub(crate) fn finish(self, patience: Duration, beat: impl Fn()) {
        if let Some(pipeline) = self.pipeline {
            pipeline.finish(patience, beat);
        }
    }

    /// Does nothing.
    #[cfg(not(feature = "otel"))]
    pub(crate) fn finish(self, _patience: Duration, _beat: impl Fn()) {}
}
