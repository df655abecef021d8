//! Validates values against the official types, by JSON Schema and by deserialising them.
//!
//! The schema is generated from the types of the official crate, like the published files. To validate against
//! those files too, set `ACP_SCHEMA` to their folder: `schema` of the npm package `@agentclientprotocol/sdk`.

use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

/// Checks for one type of the protocol.
#[derive(Clone, Copy)]
pub(super) struct TypeCheck {
    /// Checks that a value written by the agent is valid and has no unknown members.
    pub(super) check: fn(&Value) -> Result<(), String>,
    /// Returns true if a text can be read as the type, with the leniency the protocol asks for.
    pub(super) is_readable: fn(&str) -> bool,
}

/// Methods of a protocol version.
#[derive(Clone, Copy)]
pub(super) struct MethodTable {
    /// Requests of the agent.
    pub(super) agent_requests: fn(&str) -> Option<TypeCheck>,
    /// Notifications of the agent.
    pub(super) agent_notifications: fn(&str) -> Option<TypeCheck>,
    /// Requests of the client, as types of parameters and result.
    pub(super) client_requests: fn(&str) -> Option<(TypeCheck, TypeCheck)>,
    pub(super) error: TypeCheck,
}

/// Checks for a v1 type.
pub(super) const fn check_v1<T: JsonSchema + Serialize + DeserializeOwned>() -> TypeCheck {
    TypeCheck {
        check: check::<T, 1>,
        is_readable: is_readable::<T>,
    }
}

/// Checks for a v2 type.
pub(super) const fn check_v2<T: JsonSchema + Serialize + DeserializeOwned>() -> TypeCheck {
    TypeCheck {
        check: check::<T, 2>,
        is_readable: is_readable::<T>,
    }
}

fn is_readable<T: DeserializeOwned>(text: &str) -> bool {
    serde_json::from_str::<T>(text).is_ok()
}

fn check<T: JsonSchema + Serialize + DeserializeOwned, const VERSION: u8>(
    value: &Value,
) -> Result<(), String> {
    for validator in validators::<T>(VERSION)? {
        let faults = validator
            .iter_errors(value)
            .map(|fault| format!("{fault} at {}", fault.instance_path()));
        let faults: Vec<String> = faults.collect();
        if !faults.is_empty() {
            return Err(faults.join(", "));
        }
    }
    // A round trip must preserve the value: no unknown, misspelt or lost members.
    let typed = serde_json::from_value::<T>(value.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(typed).map_err(|error| error.to_string())?;
    if &again != value {
        return Err(format!("the official types read of it only {again}"));
    }
    Ok(())
}

/// Published schemas by version, stable and unstable, if `ACP_SCHEMA` is set.
static PUBLISHED_SCHEMAS: LazyLock<Result<HashMap<u8, Vec<Value>>, String>> = LazyLock::new(|| {
    let Some(folder) = std::env::var_os("ACP_SCHEMA") else {
        return Ok(HashMap::new());
    };
    let folder = std::path::Path::new(&folder);
    let read = |version: u8| {
        let files = ["schema.json", "schema.unstable.json"];
        let schemas = files.map(|name| {
            let path = folder.join(format!("v{version}")).join(name);
            let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let text = std::fs::read_to_string(&path).map_err(|error| fault(&error))?;
            serde_json::from_str(&text).map_err(|error| fault(&error))
        });
        let schemas: Result<Vec<Value>, String> = schemas.into_iter().collect();
        schemas.map(|schemas| (version, schemas))
    };
    [1, 2].into_iter().map(read).collect()
});

type Validators = &'static [Validator];

/// Returns the validators of a type, cached: building one costs more than a thousand uses.
fn validators<T: JsonSchema>(version: u8) -> Result<Validators, String> {
    static CACHE: LazyLock<Mutex<HashMap<(u8, String), Validators>>> =
        LazyLock::new(Mutex::default);
    let name = T::schema_name().into_owned();
    let mut made = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(validators) = made.get(&(version, name.clone())) {
        return Ok(validators);
    }
    let published = PUBLISHED_SCHEMAS.as_ref().map_err(Clone::clone)?;
    let mut schemas = vec![schemars::schema_for!(T).to_value()];
    for all in published.get(&version).into_iter().flatten() {
        // The stable schema lacks some types of the unstable one.
        if all["$defs"].get(&name).is_some() {
            schemas.push(json!({"$ref": format!("#/$defs/{name}"), "$defs": all["$defs"]}));
        }
    }
    let validators = schemas.iter().map(jsonschema::validator_for);
    let validators: Result<Vec<Validator>, _> = validators.collect();
    let validators = validators.map_err(|error| format!("{name}: {error}"))?;
    let validators: Validators = Vec::leak(validators);
    made.insert((version, name), validators);
    Ok(validators)
}
