//! Collects the names that code binds.

use ruff_python_ast::{
    Alias, ExceptHandler, Expr, ExprContext, Parameter, Pattern, Stmt,
    visitor::{
        Visitor, walk_alias, walk_except_handler, walk_expr, walk_parameter, walk_pattern,
        walk_stmt,
    },
};
use std::collections::BTreeSet;

/// Names that code binds anywhere: by assignment, definition, import, as parameter and so on.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    names: BTreeSet<String>,
}

impl Bindings {
    pub(super) fn into_names(self) -> BTreeSet<String> {
        self.names
    }

    fn add(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }
}

impl<'a> Visitor<'a> for Bindings {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.add(&function.name),
            Stmt::ClassDef(class) => self.add(&class.name),
            // Other statements bind through expressions, aliases and handlers.
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr
            && name.ctx == ExprContext::Store
        {
            self.add(&name.id);
        }
        walk_expr(self, expr);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.add(&parameter.name);
        walk_parameter(self, parameter);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        self.add(alias.asname.as_ref().unwrap_or(&alias.name));
        walk_alias(self, alias);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.add(name);
        }
        walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            Pattern::MatchValue(_)
            | Pattern::MatchSingleton(_)
            | Pattern::MatchSequence(_)
            | Pattern::MatchClass(_)
            | Pattern::MatchOr(_) => None,
        };
        if let Some(name) = name {
            self.add(name);
        }
        walk_pattern(self, pattern);
    }
}
