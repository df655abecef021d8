//! Collects the names that code binds.

use ruff_python_ast::{
    Alias, ExceptHandler, Expr, ExprContext, Parameter, Pattern, Stmt,
    visitor::{
        Visitor, walk_alias, walk_except_handler, walk_expr, walk_parameter, walk_pattern,
        walk_stmt,
    },
};
use std::collections::BTreeSet;

/// Names that code binds: by assignment, definition, import, as parameter and so on.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// Names that stay bound in later blocks.
    pub(super) global: BTreeSet<String>,
    /// Names bound only in functions, classes and comprehensions of this block.
    pub(super) local: BTreeSet<String>,
    /// Number of functions, classes and comprehensions around the visited node.
    depth: usize,
}

impl Bindings {
    fn add(&mut self, name: &str) {
        match self.depth {
            0 => self.global.insert(name.to_owned()),
            _ => self.local.insert(name.to_owned()),
        };
    }
}

impl<'a> Visitor<'a> for Bindings {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let scopes = match stmt {
            Stmt::FunctionDef(function) => {
                self.add(&function.name);
                1
            }
            Stmt::ClassDef(class) => {
                self.add(&class.name);
                1
            }
            Stmt::Global(declaration) => {
                let names = declaration.names.iter();
                self.global.extend(names.map(|name| name.to_string()));
                0
            }
            // Other statements bind through expressions, aliases and handlers.
            _ => 0,
        };
        self.depth += scopes;
        walk_stmt(self, stmt);
        self.depth -= scopes;
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let scopes = match expr {
            Expr::Name(name) if name.ctx == ExprContext::Store => {
                self.add(&name.id);
                0
            }
            Expr::Lambda(_)
            | Expr::ListComp(_)
            | Expr::SetComp(_)
            | Expr::DictComp(_)
            | Expr::Generator(_) => 1,
            _ => 0,
        };
        self.depth += scopes;
        walk_expr(self, expr);
        self.depth -= scopes;
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
