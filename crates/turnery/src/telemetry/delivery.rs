//! Counts what reaches the collector, and warns once if something does not.

use opentelemetry_sdk::{
    error::OTelSdkResult,
    metrics::{Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
    trace::{SpanData, SpanExporter},
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// Signals whose last export has not ended in time.
pub(super) struct UnfinishedSignals {
    pub(super) traces: bool,
    pub(super) metrics: bool,
}

/// State of the export, shared by its threads.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    ended_spans: AtomicU64,
    delivered_spans: AtomicU64,
    /// True once a metric was recorded.
    has_measured: AtomicBool,
    /// Set once the process is about to end: nothing is tried again.
    is_closing: AtomicBool,
    has_warned: AtomicBool,
    /// Reason why the last request failed, without secrets.
    last_failure: Mutex<Option<String>>,
}

impl Delivery {
    pub(super) fn count_ended_span(&self) {
        self.ended_spans.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_measurement(&self) {
        self.has_measured.store(true, Ordering::Relaxed);
    }

    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    pub(super) fn set_last_failure(&self, reason: String) {
        let mut last = self.last_failure.lock();
        let last = last.as_deref_mut().map_err(PoisonError::get_mut);
        *last.unwrap_or_else(|poisoned| poisoned) = Some(reason);
    }

    fn last_failure(&self) -> String {
        let last = self.last_failure.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner).clone();
        last.unwrap_or_else(|| "the data cannot be encoded".to_owned())
    }

    /// Warns that an export failed, the first time.
    fn report_failure(&self) {
        self.warn_once(&format!("telemetry is lost: {}", self.last_failure()));
    }

    /// Warns that something was lost, unless a warning has said why.
    pub(super) fn report_end(&self, unfinished: UnfinishedSignals) {
        let ended = self.ended_spans.load(Ordering::Relaxed);
        let lost = ended.saturating_sub(self.delivered_spans.load(Ordering::Relaxed));
        if lost > 0 {
            let why = match unfinished.traces {
                true => "the collector does not answer in time",
                false => "more ended than could be sent",
            };
            self.warn_once(&format!(
                "telemetry is lost: {lost} of {ended} spans were not delivered, since {why}"
            ));
            tracing::debug!("{lost} of {ended} spans were not delivered");
        } else if unfinished.metrics && self.has_measured.load(Ordering::Relaxed) {
            self.warn_once("telemetry is lost: the last metrics were not delivered in time");
        }
    }

    fn warn_once(&self, text: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("{text}");
        }
    }
}

/// Exporter whose results are counted.
#[derive(Debug)]
pub(super) struct CountedExporter<E> {
    pub(super) exporter: E,
    pub(super) delivery: Arc<Delivery>,
}

impl<E> CountedExporter<E> {
    fn check(&self, result: OTelSdkResult) -> OTelSdkResult {
        if result.is_err() {
            self.delivery.report_failure();
        }
        result
    }
}

impl<E: SpanExporter> SpanExporter for CountedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        self.check(self.exporter.export(batch).await)?;
        let delivered = &self.delivery.delivered_spans;
        delivered.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &opentelemetry_sdk::Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for CountedExporter<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.check(self.exporter.export(metrics).await)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
