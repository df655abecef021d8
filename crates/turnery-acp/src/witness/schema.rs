//! Schema: whether a value is what an official type says, by the JSON Schema and by reading it.
//!
//! The schema is made from the types of the official crate, which the published files are made from too.
//! To hold lines against those files as well, name their folder in `ACP_SCHEMA`: it is `schema` of the npm
//! package `@agentclientprotocol/sdk`.

use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

/// A type of the protocol.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Whether a value that was written is one, and nothing more than it knows.
    pub(super) check: fn(&Value) -> Result<(), String>,
    /// Whether a text can be read as one, with all the leniency that the protocol asks for.
    pub(super) reads: fn(&str) -> bool,
}

/// What a version of the protocol knows.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// What the agent may ask.
    pub(super) asks: fn(&str) -> Option<Shape>,
    /// What it may say.
    pub(super) tells: fn(&str) -> Option<Shape>,
    /// What the client may ask, and what the answer to it is.
    pub(super) answers: fn(&str) -> Option<(Shape, Shape)>,
    pub(super) error: Shape,
}

/// A type of the first version.
pub(super) const fn v1<T: JsonSchema + Serialize + DeserializeOwned>() -> Shape {
    Shape {
        check: check::<T, 1>,
        reads: reads::<T>,
    }
}

/// A type of the second version.
pub(super) const fn v2<T: JsonSchema + Serialize + DeserializeOwned>() -> Shape {
    Shape {
        check: check::<T, 2>,
        reads: reads::<T>,
    }
}

fn reads<T: DeserializeOwned>(text: &str) -> bool {
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
    // What is read must write the same: nothing unknown, nothing misspelt, nothing lost.
    let typed = serde_json::from_value::<T>(value.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(typed).map_err(|error| error.to_string())?;
    if &again != value {
        return Err(format!("the official types read of it only {again}"));
    }
    Ok(())
}

/// The published schemas, if they are at hand: by version, the stable one and the unstable one.
static PUBLISHED: LazyLock<Result<HashMap<u8, Vec<Value>>, String>> = LazyLock::new(|| {
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

/// Each is made once: that costs more than a thousand uses.
fn validators<T: JsonSchema>(version: u8) -> Result<Validators, String> {
    static MADE: LazyLock<Mutex<HashMap<(u8, String), Validators>>> = LazyLock::new(Mutex::default);
    let name = T::schema_name().into_owned();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(validators) = made.get(&(version, name.clone())) {
        return Ok(validators);
    }
    let published = PUBLISHED.as_ref().map_err(Clone::clone)?;
    let mut schemas = vec![schemars::schema_for!(T).to_value()];
    for all in published.get(&version).into_iter().flatten() {
        // The stable schema does not have all that the unstable one has.
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
