//! The HTTP side of the fake model: connections, paths and bodies.

use super::{
    asked::Api,
    perform::{CutOff, Opening, Performance},
    record::{Exchange, Fate, Role},
    script::Answer,
    spoken::{asked, error_body},
    stage::{Shared, Ticket},
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

/// The longest request that is read.
const LONGEST: usize = 64 << 20;
/// The header that the MCP server wants, as the case says it to the agent.
const SERVER_KEY: (&str, &str) = ("x-conformance", "hush = 4711");
/// Tokens of any prompt, when they are counted.
const COUNTED: u64 = 1200;

type Body = UnsyncBoxBody<Bytes, CutOff>;

/// Serve until the task is ended; its connections end with it.
pub(super) async fn serve(listener: TcpListener, stage: Shared) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Without a descriptor left, the next connection may find one.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, Shared::clone(&stage)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, stage: Shared) {
    // Each event is to go out at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(Shared::clone(&stage), request));
    // How a connection ended is seen in the fate of its requests.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// What a path is for.
enum Route {
    Model(Api),
    Count(&'static str),
    Models,
    Server,
    Nothing,
}

fn route(method: &Method, path: &str) -> Route {
    let path = path.trim_end_matches('/');
    let ends = |end: &str| path.ends_with(end);
    if *method == Method::GET && ends("/models") {
        Route::Models
    } else if *method != Method::POST {
        Route::Nothing
    } else if path == "/mcp" {
        Route::Server
    } else if ends("/chat/completions") {
        Route::Model(Api::Chat)
    } else if ends("/responses") {
        Route::Model(Api::Responses)
    } else if ends("/messages") {
        Route::Model(Api::Anthropic)
    } else if ends(":generateContent") || ends(":streamGenerateContent") {
        Route::Model(Api::Gemini)
    } else if ends("/messages/count_tokens") {
        Route::Count("input_tokens")
    } else if ends(":countTokens") {
        Route::Count("totalTokens")
    } else {
        Route::Nothing
    }
}

async fn answer(stage: Shared, request: Request<Incoming>) -> Result<Response<Body>, CutOff> {
    let (head, body) = request.into_parts();
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let exchange = Exchange::new(head.method.to_string(), target.to_owned(), &head.headers);
    let ticket = Ticket::new(&stage, exchange);
    let path = head.uri.path();
    let route = route(&head.method, path);
    let body = match Limited::new(body, LONGEST).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            ticket.note(|exchange| exchange.role = Role::Broken(error.to_string()));
            let broken = error_body(Api::Chat, 400, "the body does not come through");
            return Ok(settled(ticket, 400, &broken));
        }
    };
    let read = serde_json::from_slice::<Value>(&body);
    let shown = match &read {
        Ok(body) => body.clone(),
        Err(_) => String::from_utf8_lossy(&body).into_owned().into(),
    };
    ticket.note(|exchange| exchange.body = shown);
    if head.headers.contains_key(UPGRADE) {
        let sorry = error_body(Api::Chat, 426, "there is no other protocol here");
        return Ok(settled(ticket, 426, &sorry));
    }
    let api = match route {
        Route::Model(api) => api,
        Route::Count(field) => {
            ticket.note(|exchange| exchange.role = Role::Service);
            return Ok(settled(ticket, 200, &json!({ field: COUNTED })));
        }
        Route::Models => {
            ticket.note(|exchange| exchange.role = Role::Service);
            let models = models(&stage.borrow().rules.models);
            return Ok(settled(ticket, 200, &models));
        }
        Route::Server => {
            ticket.note(|exchange| exchange.role = Role::Service);
            let key = head.headers.get(SERVER_KEY.0);
            if key.is_none_or(|key| key.as_bytes() != SERVER_KEY.1.as_bytes()) {
                return Ok(settled(
                    ticket,
                    401,
                    &json!({"error": "the header is not right"}),
                ));
            }
            let reply = read.ok().as_ref().and_then(mcp_server::reply);
            return Ok(match reply {
                Some(reply) => settled(ticket, 200, &reply),
                None => settled(ticket, 202, &Value::Null),
            });
        }
        Route::Nothing => {
            let nothing = error_body(Api::Chat, 404, &format!("nothing is at {path}"));
            return Ok(settled(ticket, 404, &nothing));
        }
    };
    let body = match read {
        Ok(body) if body.is_object() => body,
        Ok(_) | Err(_) => {
            let encoding = head.headers.get(CONTENT_ENCODING);
            let reason = format!("no JSON object (content-encoding: {encoding:?})");
            let broken = error_body(api, 400, &reason);
            ticket.note(|exchange| exchange.role = Role::Broken(reason));
            return Ok(settled(ticket, 400, &broken));
        }
    };
    let asked = asked(api, path, &body);
    // Gemini streams as one JSON array unless asked for events.
    let events = api != Api::Gemini || target.contains("alt=sse");
    let mut due = (Role::Beyond, Answer::default());
    let mut tools = super::Candidates::default();
    stage.send_modify(|stage| {
        due = stage.take(&asked);
        tools.clone_from(&stage.rules.tools);
    });
    let (role, answer) = due;
    ticket.note(|exchange| {
        exchange.role = role;
        exchange.asked = Some(asked.clone());
    });
    let performance = Performance::new(answer, &asked, &tools, &stage, ticket);
    match performance.open().await? {
        Opening::Error(status, message) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            let body = error_body(api, status.as_u16(), &message);
            Ok(json_response(status, &body))
        }
        Opening::Answer(performance) if asked.streaming && events => {
            let body = StreamBody::new(performance.stream()).boxed_unsync();
            Ok(response(StatusCode::OK, "text/event-stream", body))
        }
        Opening::Answer(performance) => {
            let whole = performance.whole().await?;
            let body = if asked.streaming {
                json!([whole])
            } else {
                whole
            };
            Ok(json_response(StatusCode::OK, &body))
        }
    }
}

/// Lists models in a way that all the APIs read.
fn models(names: &[String]) -> Value {
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

/// An answer that no script is needed for.
fn settled(mut ticket: Ticket, status: u16, body: &Value) -> Response<Body> {
    ticket.note(|exchange| exchange.status = Some(status));
    ticket.settle(Fate::Answered);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    json_response(status, body)
}

fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_string()));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    response(status, "application/json", body)
}

fn response(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
