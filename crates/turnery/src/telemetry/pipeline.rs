//! Sets up the OpenTelemetry SDK: exporters, their threads and queues, and their end.

use super::{
    conventions::SCHEMA_URL,
    delivery::{CountedExporter, Delivery, UnfinishedSignals},
    http_client::CollectorClient,
    metrics::CallMetrics,
    settings::TelemetrySettings,
    span_sink::{SpanSink, parent_context},
};
use crate::config::LiveProviders;
use opentelemetry::{
    Context, InstrumentationScope, KeyValue, metrics::MeterProvider as _,
    trace::TracerProvider as _,
};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    metrics::{PeriodicReader, SdkMeterProvider},
    trace::{Sampler, SdkTracerProvider},
};
use reqwest::Url;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};
use turnery_models::ProviderSource as _;

/// Interval of heartbeats while the process waits for the collector.
const BEAT_INTERVAL: Duration = Duration::from_millis(50);

/// Kind of telemetry with an exporter of its own.
enum Signal {
    Traces,
    Metrics,
}

/// Running export. Its queues are bounded: what does not fit is dropped and counted.
pub(super) struct Pipeline {
    traces: SdkTracerProvider,
    metrics: Option<SdkMeterProvider>,
    delivery: Arc<Delivery>,
    captures_content: bool,
    parent: Context,
}

impl Pipeline {
    /// Starts the export. Connects only once there is something to send.
    pub(super) fn start(settings: &TelemetrySettings) -> Result<Self, String> {
        let delivery = Arc::new(Delivery::default());
        let client = Arc::new(CollectorClient::new(settings, Arc::clone(&delivery))?);
        let describe = |error: ExporterBuildError| error.to_string();
        let mut resource = Resource::builder()
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        if let Some(name) = settings.service_name {
            resource = resource.with_service_name(name);
        }
        let resource = resource.build();
        let mut traces = SdkTracerProvider::builder().with_resource(resource.clone());
        if settings.has_traces {
            let exporter = SpanExporter::builder()
                .with_http()
                .with_shared_http_client(client.clone())
                .build()
                .map_err(describe)?;
            traces = traces.with_batch_exporter(CountedExporter {
                exporter,
                delivery: Arc::clone(&delivery),
            });
        } else {
            // Sampled spans count as lost unless they are delivered.
            traces = traces.with_sampler(Sampler::AlwaysOff);
        }
        let mut metrics = None;
        if settings.has_metrics {
            let exporter = MetricExporter::builder()
                .with_http()
                .with_shared_http_client(client)
                .build()
                .map_err(describe)?;
            let exporter = CountedExporter {
                exporter,
                delivery: Arc::clone(&delivery),
            };
            let provider = SdkMeterProvider::builder()
                .with_reader(PeriodicReader::builder(exporter).build())
                .with_resource(resource);
            metrics = Some(provider.build());
        }
        let parent = settings.parent.iter();
        let parent = parent_context(parent.map(|(key, value)| (*key, value.as_str())));
        Ok(Self {
            traces: traces.build(),
            metrics,
            delivery,
            captures_content: settings.captures_content,
            parent: parent.unwrap_or_default(),
        })
    }

    /// Returns a sink that exports here.
    pub(super) fn sink(&self, providers: Arc<LiveProviders>) -> SpanSink {
        let scope = InstrumentationScope::builder("turnery")
            .with_version(env!("CARGO_PKG_VERSION"))
            .with_schema_url(SCHEMA_URL)
            .build();
        let meters = self.metrics.as_ref();
        let meter = meters.map(|meters| meters.meter_with_scope(scope.clone()));
        SpanSink {
            tracer: self.traces.tracer_with_scope(scope),
            metrics: meter.map(|meter| CallMetrics::new(&meter)),
            delivery: Arc::clone(&self.delivery),
            captures_content: self.captures_content,
            process_parent: self.parent.clone(),
            server: Box::new(move |provider| server_of(&providers, provider)),
            prompts: Mutex::new(HashMap::new()),
        }
    }

    /// Sends what is left, for at most `patience`.
    pub(super) fn finish(self, patience: Duration, beat: impl Fn()) {
        let Self {
            traces,
            metrics,
            delivery,
            ..
        } = self;
        delivery.close();
        let until = Instant::now() + patience;
        let (done, ended) = mpsc::sync_channel(2);
        let also_done = done.clone();
        // Errors are counted where they arise. Without a thread nothing is sent.
        let _ = thread::Builder::new().spawn(move || {
            let _ = traces.shutdown_with_timeout(patience);
            let _ = done.send(Signal::Traces);
        });
        let _ = thread::Builder::new().spawn(move || {
            let _ = metrics.map(|metrics| metrics.shutdown_with_timeout(patience));
            let _ = also_done.send(Signal::Metrics);
        });
        let mut unfinished = UnfinishedSignals {
            traces: true,
            metrics: true,
        };
        while unfinished.traces || unfinished.metrics {
            beat();
            let left = until.saturating_duration_since(Instant::now());
            match ended.recv_timeout(left.min(BEAT_INTERVAL)) {
                Ok(Signal::Traces) => unfinished.traces = false,
                Ok(Signal::Metrics) => unfinished.metrics = false,
                Err(mpsc::RecvTimeoutError::Timeout) if left.is_zero() => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        delivery.report_end(unfinished);
    }
}

/// Returns host and port of a provider.
fn server_of(providers: &LiveProviders, name: &str) -> Option<(String, u16)> {
    let providers = providers.current();
    let provider = providers.iter().find(|it| it.name == name)?;
    let url = Url::parse(&provider.display_url()).ok()?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}
