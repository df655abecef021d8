//! Order and content of turns.

use super::{
    generation::Generation,
    turns::{contents, is_of_user, members, parts},
};
use crate::{
    check::{Check, require},
    json::{has, is_word, list, only_fields, require_base64, require_form, text},
    request::ApiRequest,
};
use serde_json::Value;

/// Stands for a signature that the client does not have:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures#faqs>.
const SKIP_MARKERS: [&str; 2] = [
    "skip_thought_signature_validator",
    "context_engineering_is_the_way_to_go",
];

const MEDIA_TYPES: [&str; 9] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "application/pdf",
    "audio/wav",
    "audio/mp3",
    "audio/mpeg",
];

/// Kinds of data of a part.
const DATA: [&str; 6] = [
    "text",
    "inlineData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

/// Contents and parts have the documented fields; a part has one kind of data.
pub(super) fn known_parts(request: &ApiRequest<'_>) -> Check {
    for (i, content) in contents(request).iter().enumerate() {
        only_fields(&format!("contents[{i}]"), content, &["role", "parts"])?;
        let role = text(content, "role");
        require(["user", "model"].contains(&role), || {
            format!("contents[{i}].role: Please use a valid role: user, model.")
        })?;
    }
    for (at, part) in parts(request) {
        only_fields(
            &at,
            part,
            &[&DATA[..], &["thought", "thoughtSignature"]].concat(),
        )?;
        let kinds = DATA
            .iter()
            .filter(|kind| part.get(**kind).is_some())
            .count();
        require(kinds == 1, || {
            format!("{at}: required oneof field 'data' must have one initialized field")
        })?;
        let inner: &[(&str, &[&str])] = &[
            ("inlineData", &["mimeType", "data"]),
            ("functionCall", &["id", "name", "args"]),
            ("functionResponse", &["id", "name", "response", "parts"]),
        ];
        for (kind, known) in inner {
            if let Some(value) = part.get(*kind) {
                only_fields(&format!("{at}.{kind}"), value, known)?;
            }
        }
    }
    Ok(())
}

/// The first turn and the last one are the user's.
pub(super) fn user_begins_and_ends(request: &ApiRequest<'_>) -> Check {
    let all = contents(request);
    let has_user = |content: Option<&Value>| content.is_some_and(is_of_user);
    require(has_user(all.first()) && has_user(all.last()), || {
        "Please ensure that single turn requests end with a user role or the role field is empty."
            .to_owned()
    })
}

/// Two turns of the model do not follow each other.
pub(super) fn model_follows_user(request: &ApiRequest<'_>) -> Check {
    let mut pairs = contents(request).windows(2);
    require(!pairs.any(|pair| !pair.iter().any(is_of_user)), || {
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.".to_owned()
    })
}

/// Turns have parts, and texts have characters unless they carry a signature.
pub(super) fn no_empty_part(request: &ApiRequest<'_>) -> Check {
    for (i, content) in contents(request).iter().enumerate() {
        require(!list(content, "parts").is_empty(), || {
            format!("contents[{i}].parts: must not be empty")
        })?;
    }
    for (at, part) in parts(request) {
        let is_empty =
            part.get("text").is_some_and(|text| text == "") && !has(part, "thoughtSignature");
        require(!is_empty, || {
            format!("{at}: Unable to submit request because it must have a text parameter")
        })?;
    }
    Ok(())
}

/// The turn after calls has a response for each.
pub(super) fn as_many_responses_as_calls(request: &ApiRequest<'_>) -> Check {
    let all = contents(request);
    for (i, content) in all.iter().enumerate() {
        let calls = members(content, "functionCall").len();
        let responses = all
            .get(i + 1)
            .map_or(0, |next| members(next, "functionResponse").len());
        require(calls == 0 || calls == responses, || {
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned()
        })?;
    }
    Ok(())
}

/// Responses stand in the turn after calls.
pub(super) fn responses_after_calls(request: &ApiRequest<'_>) -> Check {
    let mut has_calls = false;
    for content in contents(request) {
        let is_late = !members(content, "functionResponse").is_empty() && !has_calls;
        require(!is_late, || {
            "Please ensure that function response turn comes immediately after a function call turn.".to_owned()
        })?;
        has_calls = !members(content, "functionCall").is_empty();
    }
    Ok(())
}

/// Responses have the ids and names of the calls, in the same order.
pub(super) fn responses_in_order(request: &ApiRequest<'_>) -> Check {
    for pair in contents(request).windows(2) {
        let [before, after] = pair else {
            continue;
        };
        let calls = members(before, "functionCall");
        for (call, response) in calls.into_iter().zip(members(after, "functionResponse")) {
            let same = |name: &str| text(call, name) == text(response, name);
            require(same("id") && same("name"), || {
                format!("function response {response} does not match the call {call}")
            })?;
        }
    }
    Ok(())
}

/// Arguments and responses are objects.
pub(super) fn structs(request: &ApiRequest<'_>) -> Check {
    for (at, part) in parts(request) {
        for (kind, name) in [("functionCall", "args"), ("functionResponse", "response")] {
            let value = part.get(kind).map(|value| value.get(name));
            require(
                value.is_none_or(|value| value.is_some_and(Value::is_object)),
                || {
                    format!(
                        "{at}.{kind}.{name}: Proto field is not repeating, an object is expected"
                    )
                },
            )?;
        }
    }
    Ok(())
}

/// Since Gemini 3, the first call of a turn has a signature.
pub(super) fn first_call_is_signed(request: &ApiRequest<'_>) -> Check {
    if !Generation::of(request.model()).is_since_3() {
        return Ok(());
    }
    for content in contents(request) {
        let mut calls = list(content, "parts")
            .iter()
            .filter(|part| has(part, "functionCall"));
        let is_signed = calls
            .next()
            .is_none_or(|part| has(part, "thoughtSignature"));
        require(is_signed, || {
            "Function call is missing a thought_signature in functionCall parts.".to_owned()
        })?;
    }
    Ok(())
}

/// Signatures were issued by this model, or are a marker instead.
pub(super) fn signatures_were_issued(request: &ApiRequest<'_>) -> Check {
    let Some(issued) = request.issued else {
        return Ok(());
    };
    for (at, part) in parts(request)
        .into_iter()
        .filter(|(_, part)| has(part, "thoughtSignature"))
    {
        let signature = text(part, "thoughtSignature");
        let is_known =
            SKIP_MARKERS.contains(&signature) || issued.is_of(signature, request.model());
        require(is_known, || format!("{at}: Corrupted thought signature."))?;
    }
    Ok(())
}

/// Signatures are base64, or a marker instead.
pub(super) fn signature_form(request: &ApiRequest<'_>) -> Check {
    for (at, part) in parts(request)
        .into_iter()
        .filter(|(_, part)| has(part, "thoughtSignature"))
    {
        let signature = text(part, "thoughtSignature");
        if !SKIP_MARKERS.contains(&signature) {
            require_base64(&format!("{at}.thoughtSignature"), signature)?;
        }
    }
    Ok(())
}

/// Media have a type that the API documents, and valid base64.
pub(super) fn media_types(request: &ApiRequest<'_>) -> Check {
    for (at, part) in parts(request) {
        let response = part.get("functionResponse").unwrap_or(&Value::Null);
        for part in std::iter::once(part).chain(list(response, "parts")) {
            if let Some(data) = part.get("inlineData") {
                let media_type = text(data, "mimeType");
                require(MEDIA_TYPES.contains(&media_type), || {
                    format!("{at}: Unsupported MIME type: {media_type}")
                })?;
                require_base64(&at, text(data, "data"))?;
            }
        }
    }
    Ok(())
}

/// Responses hold media since Gemini 3 only.
pub(super) fn media_in_responses(request: &ApiRequest<'_>) -> Check {
    let is_since_3 = Generation::of(request.model()).is_since_3();
    for (at, part) in parts(request) {
        let response = part.get("functionResponse").unwrap_or(&Value::Null);
        require(is_since_3 || !has(response, "parts"), || {
            format!("{at}.functionResponse.parts: not supported by this model")
        })?;
    }
    Ok(())
}

/// Names in calls of the history have the form of tool names.
pub(super) fn called_names(request: &ApiRequest<'_>) -> Check {
    for (at, part) in parts(request) {
        for kind in ["functionCall", "functionResponse"] {
            if let Some(value) = part.get(kind) {
                require_name(&format!("{at}.{kind}.name"), text(value, "name"))?;
            }
        }
    }
    Ok(())
}

/// Requires a name that begins with a letter or `_`, of up to 64 letters, digits, `_`, `.`, `:` and `-`.
pub(super) fn require_name(at: &str, name: &str) -> Check {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    require(begins, || {
        format!("{at}: Invalid function name. Must start with a letter or an underscore.")
    })?;
    require_form(at, name, 1..=64, |c| is_word(c) || c == '.' || c == ':')
}
