//! Serves the fake model over HTTP.

use super::{
    exchange::{Exchange, ExchangeRole, ExchangeState},
    playback::{ConnectionCutError, ResponsePlayback, ResponseStart},
    request::Api,
    script::ScriptedResponse,
    state::{ExchangeGuard, SharedState},
    wire_format::{encode_error_body, parse_request},
};
use crate::mcp_server;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_ENCODING, CONTENT_TYPE, UPGRADE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Limit on the size of a request body. Unit: bytes.
const MAX_BODY_BYTES: usize = 64 << 20;
/// Header that the MCP endpoint requires; cases pass it to the agent.
const MCP_KEY_HEADER: (&str, &str) = ("x-conformance", "hush = 4711");
/// Result of every request that counts tokens.
const COUNTED_TOKENS: u64 = 1200;

type ResponseBody = UnsyncBoxBody<Bytes, ConnectionCutError>;

/// Serves until the task is aborted, which also closes the connections.
pub(super) async fn serve(listener: TcpListener, state: SharedState) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // If no file descriptor is left, the next accept may succeed.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve_connection(stream, SharedState::clone(&state)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, state: SharedState) {
    // Send each event at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| handle_request(SharedState::clone(&state), request));
    // The state of each exchange tells how the connection ended.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Endpoint of a request.
enum Route {
    Model(Api),
    CountTokens(&'static str),
    ListModels,
    Mcp,
    NotFound,
}

fn parse_route(method: &Method, path: &str) -> Route {
    let path = path.trim_end_matches('/');
    let ends = |end: &str| path.ends_with(end);
    if *method == Method::GET && ends("/models") {
        Route::ListModels
    } else if *method != Method::POST {
        Route::NotFound
    } else if path == "/mcp" {
        Route::Mcp
    } else if ends("/chat/completions") {
        Route::Model(Api::Chat)
    } else if ends("/responses") {
        Route::Model(Api::Responses)
    } else if ends("/messages") {
        Route::Model(Api::Anthropic)
    } else if ends(":generateContent") || ends(":streamGenerateContent") {
        Route::Model(Api::Gemini)
    } else if ends("/messages/count_tokens") {
        Route::CountTokens("input_tokens")
    } else if ends(":countTokens") {
        Route::CountTokens("totalTokens")
    } else {
        Route::NotFound
    }
}

async fn handle_request(
    state: SharedState,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, ConnectionCutError> {
    let (head, body) = request.into_parts();
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let exchange = Exchange::new(head.method.to_string(), target.to_owned(), &head.headers);
    let exchange_guard = ExchangeGuard::new(&state, exchange);
    let path = head.uri.path();
    let route = parse_route(&head.method, path);
    let body = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            exchange_guard.update_exchange(|exchange| {
                exchange.role = ExchangeRole::Unreadable(error.to_string())
            });
            let broken = encode_error_body(Api::Chat, 400, "cannot read the request body");
            return Ok(fixed_response(exchange_guard, 400, &broken));
        }
    };
    let read = serde_json::from_slice::<Value>(&body);
    let recorded_body = match &read {
        Ok(body) => body.clone(),
        Err(_) => String::from_utf8_lossy(&body).into_owned().into(),
    };
    exchange_guard.update_exchange(|exchange| exchange.body = recorded_body);
    if head.headers.contains_key(UPGRADE) {
        let sorry = encode_error_body(Api::Chat, 426, "protocol upgrades are not supported");
        return Ok(fixed_response(exchange_guard, 426, &sorry));
    }
    let api = match route {
        Route::Model(api) => api,
        Route::CountTokens(field) => {
            exchange_guard.update_exchange(|exchange| exchange.role = ExchangeRole::Service);
            return Ok(fixed_response(
                exchange_guard,
                200,
                &json!({ field: COUNTED_TOKENS }),
            ));
        }
        Route::ListModels => {
            exchange_guard.update_exchange(|exchange| exchange.role = ExchangeRole::Service);
            let models = list_models(&state.borrow().config.requests.models);
            return Ok(fixed_response(exchange_guard, 200, &models));
        }
        Route::Mcp => {
            exchange_guard.update_exchange(|exchange| exchange.role = ExchangeRole::Service);
            let key = head.headers.get(MCP_KEY_HEADER.0);
            if key.is_none_or(|key| key.as_bytes() != MCP_KEY_HEADER.1.as_bytes()) {
                return Ok(fixed_response(
                    exchange_guard,
                    401,
                    &json!({"error": "missing or wrong header x-conformance"}),
                ));
            }
            let reply = read.ok().as_ref().and_then(mcp_server::respond);
            return Ok(match reply {
                Some(reply) => fixed_response(exchange_guard, 200, &reply),
                None => fixed_response(exchange_guard, 202, &Value::Null),
            });
        }
        Route::NotFound => {
            let nothing = encode_error_body(Api::Chat, 404, &format!("no endpoint at {path}"));
            return Ok(fixed_response(exchange_guard, 404, &nothing));
        }
    };
    let body = match read {
        Ok(body) if body.is_object() => body,
        Ok(_) | Err(_) => {
            let encoding = head.headers.get(CONTENT_ENCODING);
            let reason = format!("no JSON object (content-encoding: {encoding:?})");
            let broken = encode_error_body(api, 400, &reason);
            exchange_guard
                .update_exchange(|exchange| exchange.role = ExchangeRole::Unreadable(reason));
            return Ok(fixed_response(exchange_guard, 400, &broken));
        }
    };
    let request = parse_request(api, path, &body);
    // Gemini streams as one JSON array unless events are requested.
    let events = api != Api::Gemini || target.contains("alt=sse");
    let mut due = (ExchangeRole::AfterScript, ScriptedResponse::default());
    let mut tools = super::ToolCandidates::default();
    state.send_modify(|state| {
        due = state.next_response(&request);
        tools.clone_from(&state.config.tools);
    });
    let (role, answer) = due;
    exchange_guard.update_exchange(|exchange| {
        exchange.role = role;
        exchange.request = Some(request.clone());
    });
    let playback = ResponsePlayback::new(answer, &request, &tools, &state, exchange_guard);
    match playback.start().await? {
        ResponseStart::Error(status, message) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            let body = encode_error_body(api, status.as_u16(), &message);
            Ok(json_response(status, &body))
        }
        ResponseStart::Response(playback) if request.streaming && events => {
            let body = StreamBody::new(playback.into_stream()).boxed_unsync();
            Ok(build_response(StatusCode::OK, "text/event-stream", body))
        }
        ResponseStart::Response(playback) => {
            let whole = playback.into_json().await?;
            let body = if request.streaming {
                json!([whole])
            } else {
                whole
            };
            Ok(json_response(StatusCode::OK, &body))
        }
    }
}

/// Returns a list of models that the clients of all APIs can read.
fn list_models(names: &[String]) -> Value {
    let models: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({
                "id": name,
                "object": "model",
                "created": 1_700_000_000,
                "owned_by": "conformance",
                "type": "model",
                "display_name": name,
                "created_at": "2023-11-14T22:13:20Z",
                "name": format!("models/{name}"),
                "inputTokenLimit": 1_000_000,
                "outputTokenLimit": 32_000,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            })
        })
        .collect();
    json!({
        "object": "list",
        "data": models,
        "models": models,
        "has_more": false,
        "first_id": names.first(),
        "last_id": names.last(),
    })
}

/// Returns a response that does not come from a script.
fn fixed_response(mut ticket: ExchangeGuard, status: u16, body: &Value) -> Response<ResponseBody> {
    ticket.update_exchange(|exchange| exchange.status = Some(status));
    ticket.settle(ExchangeState::Answered);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    json_response(status, body)
}

fn json_response(status: StatusCode, body: &Value) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from(body.to_string()));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    build_response(status, "application/json", body)
}

fn build_response(
    status: StatusCode,
    kind: &'static str,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
