//! Keeps the schemas of the last request: most requests of a session have the same tools.

use super::{DialectSchema, SchemaDialect};
use std::sync::{Arc, Mutex, PoisonError};
use turnery_engine::ToolSpec;

/// Schemas of the tools of a model's last request that has any, in the model's dialect.
#[derive(Debug)]
pub(crate) struct SchemaCache {
    pub(crate) dialect: SchemaDialect,
    last: Mutex<Option<CachedSchemas>>,
}

#[derive(Debug)]
struct CachedSchemas {
    tools: Arc<[ToolSpec]>,
    schemas: Arc<[DialectSchema]>,
}

impl SchemaCache {
    /// Creates an empty cache.
    pub(crate) fn new(dialect: SchemaDialect) -> Self {
        Self {
            dialect,
            last: Mutex::default(),
        }
    }

    /// Returns the schemas of `tools`, in their order.
    pub(crate) fn schemas(&self, tools: &Arc<[ToolSpec]>) -> Arc<[DialectSchema]> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && Arc::ptr_eq(&last.tools, tools)
        {
            return Arc::clone(&last.schemas);
        }
        let schemas = self.dialect.adapt(tools);
        // Requests besides those of a turn, such as for a summary, have no tools.
        if tools.is_empty() {
            return schemas;
        }
        *last = Some(CachedSchemas {
            tools: Arc::clone(tools),
            schemas: Arc::clone(&schemas),
        });
        schemas
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tools(names: &[&str]) -> Arc<[ToolSpec]> {
        let tool = |name: &&str| ToolSpec::new(*name, "", json!({"title": name}));
        names.iter().map(tool).collect()
    }

    fn encode(schemas: &[DialectSchema]) -> String {
        serde_json::to_string(schemas).unwrap()
    }

    #[test]
    fn schemas_are_those_of_the_tools_of_each_request() {
        let cache = SchemaCache::new(SchemaDialect::OpenAi);
        let (one, two) = (tools(&["a"]), tools(&["b", "c"]));
        let a = r#"{"title":"a","type":"object","properties":{}}"#;
        let b = r#"{"title":"b","type":"object","properties":{}}"#;
        let c = r#"{"title":"c","type":"object","properties":{}}"#;
        for _ in 0..2 {
            assert_eq!(encode(&cache.schemas(&one)), format!("[{a}]"));
            assert_eq!(encode(&cache.schemas(&two)), format!("[{b},{c}]"));
        }
    }

    #[test]
    fn same_tools_are_adapted_once() {
        let cache = SchemaCache::new(SchemaDialect::OpenAi);
        let tools = tools(&["a"]);
        let first = cache.schemas(&tools);
        assert!(cache.schemas(&Arc::from([])).is_empty());
        assert!(Arc::ptr_eq(&first, &cache.schemas(&tools)));
    }
}
