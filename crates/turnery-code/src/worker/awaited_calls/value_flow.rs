//! Follows values from where they are awaited back to the calls they come from.

use ruff_python_ast::{
    Comprehension, Expr, ExprCall, ExprContext, ExprName, Stmt, StmtFunctionDef,
    visitor::{Visitor, walk_comprehension, walk_expr, walk_stmt},
};
use ruff_text_size::{Ranged, TextRange};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Methods of containers whose result holds the container's values.
const CONTAINER_METHODS: &[&str] = &["copy", "get", "items", "pop", "values"];
/// Methods of containers that add values.
const ADDING_METHODS: &[&str] = &["add", "append", "extend", "insert", "update"];
/// Functions whose result holds the values of their arguments.
const CONTAINER_FUNCTIONS: &[&str] = &[
    "dict",
    "enumerate",
    "list",
    "reversed",
    "set",
    "sorted",
    "tuple",
    "zip",
];

/// Part of a value that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// The value itself.
    Whole,
    /// Its elements.
    Elements,
}

/// Where the value of a variable, or the result of a local function, comes from.
enum Source<'a> {
    /// It is this value.
    Is(&'a Expr),
    /// It is an element of this value.
    IsElementOf(&'a Expr),
    /// This value was added to it.
    Contains(&'a Expr),
}

/// Source of a variable, from a place in the code on.
struct Assignment<'a> {
    source: Source<'a>,
    /// End of the assignment. Unit: bytes.
    end: u32,
}

/// Flow of values in a block. Variables are told apart by name only, not by scope.
pub(super) struct ValueFlow<'a> {
    /// Names of host functions.
    callable: BTreeSet<&'a str>,
    /// Expressions that are awaited or given to `gather`.
    awaited: Vec<&'a Expr>,
    /// Sources of variables and of the results of local functions, by their names.
    assignments: HashMap<&'a str, Vec<Assignment<'a>>>,
    /// Places where each variable is used.
    uses: HashMap<&'a str, BTreeSet<Place>>,
    /// The functions around the visited statement: name, or `None` if it is `async`.
    functions: Vec<Option<&'a str>>,
}

impl<'a> ValueFlow<'a> {
    /// Creates a visitor that looks for calls of `callable`.
    pub(super) fn new(callable: BTreeSet<&'a str>) -> Self {
        Self {
            callable,
            awaited: Vec::new(),
            assignments: HashMap::new(),
            uses: HashMap::new(),
            functions: Vec::new(),
        }
    }

    /// Returns the places of host functions whose results are awaited, in order.
    pub(super) fn into_awaited_names(self) -> Vec<TextRange> {
        let mut search = Search {
            flow: &self,
            seen: BTreeSet::new(),
            found: BTreeSet::new(),
            direct: BTreeMap::new(),
            awaited_uses: HashMap::new(),
        };
        for expr in &self.awaited {
            search.follow(expr, Part::Whole);
        }
        search.finish()
    }

    /// Adds the source of a target whose assignment ends where `assignment` does.
    fn add_source(&mut self, target: &'a Expr, source: Source<'a>, assignment: &impl Ranged) {
        match target {
            Expr::Name(name) => self.add_assignment(&name.id, source, assignment),
            // `tasks[name] = value`
            Expr::Subscript(target) => {
                let (Source::Is(value) | Source::IsElementOf(value) | Source::Contains(value)) =
                    source;
                self.add_source(&target.value, Source::Contains(value), assignment);
            }
            Expr::Tuple(_) | Expr::List(_) => {
                let targets = elements(target);
                for (target, part) in targets.iter().zip(parts_of(source, targets.len())) {
                    self.add_source(target, part, assignment);
                }
            }
            // Attributes are not followed; others are no targets.
            _ => {}
        }
    }

    fn add_assignment(&mut self, name: &'a str, source: Source<'a>, assignment: &impl Ranged) {
        let (_, end) = place(assignment);
        let assignments = self.assignments.entry(name).or_default();
        assignments.push(Assignment { source, end });
    }
}

/// Returns the elements of a tuple or list.
fn elements(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        _ => &[],
    }
}

/// Returns the sources of `count` targets that a value from `source` is unpacked to.
fn parts_of(source: Source<'_>, count: usize) -> Vec<Source<'_>> {
    let (value, parts) = match source {
        Source::Is(value) => (value, elements(value).iter().map(Source::Is).collect()),
        Source::IsElementOf(value) => (value, columns_of(value)),
        Source::Contains(value) => (value, vec![]),
    };
    match parts.len() == count && !elements(value).iter().any(Expr::is_starred_expr) {
        true => parts,
        false => (0..count).map(|_| Source::IsElementOf(value)).collect(),
    }
}

/// Returns the sources of the parts of each element of `value`; an empty list if unknown.
fn columns_of(value: &Expr) -> Vec<Source<'_>> {
    let Expr::Call(call) = value else {
        return vec![];
    };
    // The number or key of an element is not to be awaited: its source is the function.
    match (call_name(call), method_of(call), &*call.arguments.args) {
        (Some("zip"), _, columns) => columns.iter().map(Source::IsElementOf).collect(),
        (Some("enumerate"), _, [values, ..]) => {
            vec![Source::Is(&call.func), Source::IsElementOf(values)]
        }
        (_, Some(("items", values)), _) => {
            vec![Source::Is(&call.func), Source::IsElementOf(values)]
        }
        (_, _, _) => vec![],
    }
}

/// Returns the name of the called function, if it is a plain one.
fn call_name(call: &ExprCall) -> Option<&str> {
    match call.func.as_ref() {
        Expr::Name(name) => Some(&name.id),
        _ => None,
    }
}

/// Returns the name of the called method, and the object.
fn method_of(call: &ExprCall) -> Option<(&str, &Expr)> {
    match call.func.as_ref() {
        Expr::Attribute(method) => Some((&method.attr, &method.value)),
        _ => None,
    }
}

/// Returns true for `gather(...)`, `asyncio.gather(...)` and `asyncio.run(...)`.
fn awaits_arguments(call: &ExprCall) -> bool {
    match (call_name(call), method_of(call)) {
        (Some(name), _) => name == "gather",
        (None, Some((method, object))) => {
            method == "gather"
                || method == "run" && matches!(object, Expr::Name(module) if module.id == "asyncio")
        }
        (None, None) => false,
    }
}

impl<'a> Visitor<'a> for ValueFlow<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    self.add_source(target, Source::Is(&assign.value), stmt);
                }
            }
            Stmt::AugAssign(assign) => {
                self.add_source(&assign.target, Source::Is(&assign.value), stmt);
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.add_source(&assign.target, Source::Is(value), stmt);
                }
            }
            Stmt::For(each) => {
                let source = Source::IsElementOf(&each.iter);
                self.add_source(&each.target, source, &*each.iter);
            }
            Stmt::Return(returned) => {
                if let (Some(Some(function)), Some(value)) =
                    (self.functions.last(), &returned.value)
                {
                    self.add_assignment(function, Source::Is(value), stmt);
                }
            }
            Stmt::FunctionDef(StmtFunctionDef { is_async, name, .. }) => {
                self.functions.push((!is_async).then_some(name.as_str()));
                walk_stmt(self, stmt);
                self.functions.pop();
                return;
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Await(awaited) => self.awaited.push(&awaited.value),
            Expr::Named(named) => {
                self.add_source(&named.target, Source::Is(&named.value), expr);
            }
            Expr::Name(name) if name.ctx == ExprContext::Load => {
                self.uses.entry(&name.id).or_default().insert(place(name));
            }
            Expr::Call(call) => {
                if awaits_arguments(call) {
                    self.awaited.extend(&call.arguments.args);
                }
                if let Some((method, object)) = method_of(call)
                    && ADDING_METHODS.contains(&method)
                    && let Some(value) = call.arguments.args.last()
                {
                    self.add_source(object, Source::Contains(value), expr);
                }
            }
            _ => {}
        }
        walk_expr(self, expr);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        let source = Source::IsElementOf(&comprehension.iter);
        self.add_source(&comprehension.target, source, &comprehension.iter);
        walk_comprehension(self, comprehension);
    }
}

/// Search for the calls that awaited values come from.
struct Search<'f, 'a> {
    flow: &'f ValueFlow<'a>,
    /// Variables that were followed.
    seen: BTreeSet<(&'a str, Part)>,
    /// Places of host functions.
    found: BTreeSet<Place>,
    /// Places of host functions whose result is assigned to a variable as it is, with the variable and the end of
    /// the assignment.
    direct: BTreeMap<Place, (&'a str, u32)>,
    /// Places where a variable is awaited or passed on to be awaited.
    awaited_uses: HashMap<&'a str, BTreeSet<Place>>,
}

impl<'a> Search<'_, 'a> {
    /// Follows a value of which `part` is awaited.
    fn follow(&mut self, expr: &'a Expr, part: Part) {
        match expr {
            Expr::Starred(starred) => self.follow(&starred.value, Part::Elements),
            Expr::Tuple(_) | Expr::List(_) => self.follow_all(elements(expr), Part::Whole),
            Expr::Set(set) => self.follow_all(&set.elts, Part::Whole),
            Expr::Dict(dict) => {
                for item in &dict.items {
                    self.follow(&item.value, Part::Whole);
                }
            }
            Expr::ListComp(each) => self.follow(&each.elt, Part::Whole),
            Expr::SetComp(each) => self.follow(&each.elt, Part::Whole),
            Expr::Generator(each) => self.follow(&each.elt, Part::Whole),
            Expr::DictComp(each) => self.follow(&each.value, Part::Whole),
            Expr::If(either) => {
                self.follow(&either.body, part);
                self.follow(&either.orelse, part);
            }
            Expr::Named(named) => self.follow(&named.value, part),
            Expr::BinOp(sum) => {
                self.follow(&sum.left, Part::Elements);
                self.follow(&sum.right, Part::Elements);
            }
            Expr::Subscript(item) => self.follow(&item.value, Part::Elements),
            Expr::Name(name) => self.follow_variable(name, part),
            Expr::Call(call) => self.follow_call(call, part),
            // Values of other expressions are not known.
            _ => {}
        }
    }

    fn follow_all(&mut self, exprs: &'a [Expr], part: Part) {
        exprs.iter().for_each(|expr| self.follow(expr, part));
    }

    fn follow_variable(&mut self, variable: &'a ExprName, part: Part) {
        let uses = self.awaited_uses.entry(&variable.id).or_default();
        uses.insert(place(variable));
        if !self.seen.insert((&variable.id, part)) {
            return;
        }
        let flow = self.flow;
        let assignments = flow.assignments.get(variable.id.as_str());
        for Assignment { source, end } in assignments.into_iter().flatten() {
            match source {
                Source::Is(Expr::Call(call))
                    if part == Part::Whole && self.is_callable(&call.func) =>
                {
                    self.direct.insert(place(&*call.func), (&variable.id, *end));
                }
                Source::Is(value) => self.follow(value, part),
                Source::IsElementOf(value) => self.follow(value, Part::Elements),
                Source::Contains(value) => self.follow(value, Part::Whole),
            }
        }
    }

    fn follow_call(&mut self, call: &'a ExprCall, part: Part) {
        if self.is_callable(&call.func) {
            // The elements of a result are plain values.
            if part == Part::Whole {
                self.found.insert(place(&*call.func));
            }
            return;
        }
        if let Some((method, object)) = method_of(call)
            && CONTAINER_METHODS.contains(&method)
        {
            self.follow(object, Part::Elements);
        }
        match (call_name(call), call.func.as_ref(), &*call.arguments.args) {
            (Some(name), _, args) if CONTAINER_FUNCTIONS.contains(&name) => {
                self.follow_all(args, Part::Elements)
            }
            // A local function: its sources are what it returns.
            (_, Expr::Name(function), _) => self.follow_variable(function, part),
            (_, _, _) => {}
        }
    }

    fn is_callable(&self, function: &Expr) -> bool {
        matches!(function, Expr::Name(name) if self.flow.callable.contains(name.id.as_str()))
    }

    /// Returns the places, in order. The result of a call that was assigned to a variable counts as awaited only
    /// if the variable is used for nothing else until its next assignment.
    fn finish(mut self) -> Vec<TextRange> {
        for (place, (variable, end)) in &self.direct {
            if self.is_only_awaited(variable, *end) {
                self.found.insert(*place);
            }
        }
        let to_range = |(start, end): Place| TextRange::new(start.into(), end.into());
        self.found.into_iter().map(to_range).collect()
    }
}

impl Search<'_, '_> {
    /// Returns true if a variable is only awaited between an assignment, which ends at `begin`, and the next. If it
    /// is not used there, all its uses count: it may be in a loop or a branch.
    fn is_only_awaited(&self, variable: &str, begin: u32) -> bool {
        let assignments = self.flow.assignments.get(variable).into_iter().flatten();
        let later = assignments.filter(|assignment| match assignment.source {
            Source::Is(_) | Source::IsElementOf(_) => assignment.end > begin,
            Source::Contains(_) => false,
        });
        let end = later.map(|assignment| assignment.end).min();
        let is_between = |place: &&Place| place.0 >= begin && end.is_none_or(|end| place.0 < end);
        let is_awaited = |place: &Place| {
            let awaited = self.awaited_uses.get(variable);
            awaited.is_some_and(|awaited| awaited.contains(place))
        };
        let all: Vec<&Place> = self.flow.uses.get(variable).into_iter().flatten().collect();
        let between: Vec<&Place> = all.iter().copied().filter(is_between).collect();
        let relevant = match between.is_empty() {
            true => all,
            false => between,
        };
        relevant.into_iter().all(is_awaited)
    }
}

/// Start and end of an expression. Unit: bytes.
type Place = (u32, u32);

fn place(expr: &impl Ranged) -> Place {
    let range = expr.range();
    (range.start().into(), range.end().into())
}
