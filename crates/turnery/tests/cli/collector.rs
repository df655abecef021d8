//! Fake OTLP collector on loopback: keeps what it receives and decodes it with the types of the protocol.

use crate::{
    fake_http::{self, HttpRequest},
    home::{CommandOutput, Home, wait_with_output},
};
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{AnyValue, KeyValue, any_value::Value},
    metrics::v1::metric::Data,
    trace::v1::{Span, status::StatusCode},
};
use prost::Message as _;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

/// Collector that answers every request with one status.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl Collector {
    /// Starts a collector that takes everything.
    pub(crate) fn start() -> Self {
        Self::answering(Some("200 OK"))
    }

    /// Starts a collector that answers with this status; `None` leaves its clients waiting.
    pub(crate) fn answering(status: Option<&'static str>) -> Self {
        Self::with(move || status)
    }

    /// Starts a collector that asks for the status of each answer.
    pub(crate) fn with(status: impl Fn() -> Option<&'static str> + Send + Sync + 'static) -> Self {
        let requests: Arc<Mutex<Vec<HttpRequest>>> = Arc::default();
        let kept = Arc::clone(&requests);
        let address = fake_http::serve(move |request| {
            kept.lock().expect("no panic").push(request);
            status().map(|status| fake_http::response(status, "application/x-protobuf", ""))
        });
        Self { address, requests }
    }

    /// Runs a command that exports to this collector.
    pub(crate) async fn run(
        &self,
        home: &Home,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> CommandOutput {
        let mut command = home.command(args);
        let endpoint = format!("http://{}", self.address);
        command
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            // Little is left for the end, which waits for a limited time.
            .env("OTEL_BSP_SCHEDULE_DELAY", "1");
        for (name, value) in variables {
            command.env(name, value);
        }
        wait_with_output(command.spawn().expect("started")).await
    }

    pub(crate) fn request_count(&self) -> usize {
        self.requests.lock().expect("no panic").len()
    }

    /// Returns all bytes received so far, as text.
    pub(crate) fn text(&self) -> String {
        let requests = self.requests.lock().expect("no panic");
        let parts = requests.iter().map(|request| {
            let body = String::from_utf8_lossy(&request.body);
            format!("{}\n{body}\n", request.head.join("\n"))
        });
        parts.collect()
    }

    fn bodies(&self, path: &str) -> Vec<Vec<u8>> {
        let requests = self.requests.lock().expect("no panic");
        let line = format!("POST {path} HTTP/1.1");
        let fitting = requests.iter().filter(|request| request.head[0] == line);
        fitting.map(|request| request.body.clone()).collect()
    }

    fn trace_requests(&self) -> impl Iterator<Item = ExportTraceServiceRequest> {
        let bodies = self.bodies("/v1/traces").into_iter();
        bodies.map(|body| ExportTraceServiceRequest::decode(&*body).expect("protobuf"))
    }

    /// Returns the attributes of the resource and the schema of the spans.
    pub(crate) fn origin(&self) -> (BTreeMap<String, String>, String) {
        let mut requests = self.trace_requests();
        let spans = requests.next().expect("a request").resource_spans;
        let resource = spans[0].resource.as_ref().expect("a resource");
        let attributes = attributes(&resource.attributes);
        (attributes, spans[0].scope_spans[0].schema_url.clone())
    }

    /// Returns all spans received so far, in the order of their starts.
    pub(crate) fn spans(&self) -> Vec<ReceivedSpan> {
        let resources = self.trace_requests().flat_map(|it| it.resource_spans);
        let scopes = resources.flat_map(|it| it.scope_spans);
        let mut spans: Vec<Span> = scopes.flat_map(|it| it.spans).collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans.into_iter().map(ReceivedSpan).collect()
    }

    /// Returns the sums of all histograms received so far, by name, attributes and unit.
    pub(crate) fn histograms(&self) -> Vec<(String, BTreeMap<String, String>, f64)> {
        let bodies = self.bodies("/v1/metrics").into_iter();
        let requests =
            bodies.map(|body| ExportMetricsServiceRequest::decode(&*body).expect("protobuf"));
        let resources = requests.flat_map(|it| it.resource_metrics);
        let metrics = resources
            .flat_map(|it| it.scope_metrics)
            .flat_map(|it| it.metrics);
        let mut found = Vec::new();
        for metric in metrics {
            let Some(Data::Histogram(histogram)) = metric.data else {
                panic!("{} is no histogram", metric.name);
            };
            let name = format!("{} {}", metric.name, metric.unit);
            found.extend(histogram.data_points.into_iter().map(|point| {
                let sum = point.sum.expect("a sum");
                (name.clone(), attributes(&point.attributes), sum)
            }));
        }
        found
    }
}

/// Span as the collector received it.
#[derive(Debug)]
pub(crate) struct ReceivedSpan(pub(crate) Span);

impl ReceivedSpan {
    /// Returns an attribute as text; empty if it is absent.
    pub(crate) fn attribute(&self, name: &str) -> String {
        let mut all = attributes(&self.0.attributes);
        all.remove(name).unwrap_or_default()
    }

    pub(crate) fn is_failed(&self) -> bool {
        let status = self.0.status.as_ref();
        status.is_some_and(|status| status.code() == StatusCode::Error)
    }

    /// Returns the events as their names and attributes.
    pub(crate) fn events(&self) -> Vec<(String, BTreeMap<String, String>)> {
        let events = self.0.events.iter();
        events
            .map(|event| (event.name.clone(), attributes(&event.attributes)))
            .collect()
    }
}

/// Renders the spans as a tree: one line for each, two spaces for each parent.
pub(crate) fn tree(spans: &[ReceivedSpan]) -> Vec<String> {
    let mut lines = Vec::new();
    let ids: Vec<&[u8]> = spans.iter().map(|span| &*span.0.span_id).collect();
    let is_root = |span: &&ReceivedSpan| !ids.contains(&&*span.0.parent_span_id);
    for root in spans.iter().filter(is_root) {
        push_lines(spans, root, 0, &mut lines);
    }
    lines
}

fn push_lines(spans: &[ReceivedSpan], span: &ReceivedSpan, depth: usize, lines: &mut Vec<String>) {
    lines.push(format!("{}{}", "  ".repeat(depth), span.0.name));
    for child in spans
        .iter()
        .filter(|it| it.0.parent_span_id == span.0.span_id)
    {
        push_lines(spans, child, depth + 1, lines);
    }
}

fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    let pairs = all
        .iter()
        .map(|it| (it.key.clone(), render(it.value.as_ref())));
    pairs.collect()
}

fn render(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::ArrayValue(array)) => {
            let items: Vec<String> = array.values.iter().map(|it| render(Some(it))).collect();
            format!("[{}]", items.join(", "))
        }
        other => panic!("unexpected value: {other:?}"),
    }
}
