//! Finds the calls of host functions whose results the code awaits.
//!
//! The interpreter asks for the result of a call before the code uses it: `f()` needs a value, `await f()` and
//! `asyncio.gather(f(), f())` need a future. The syntax tree tells them apart: it shows which results flow into
//! `await` or `gather`, through variables, containers, comprehensions and local functions. In these calls the
//! function gets another name of the same length, which keeps lines and columns in tracebacks; see [`to_mark`].

mod bindings;
mod value_flow;

use crate::snapshot::FunctionNames;
use bindings::Bindings;
use monty_types::MontyObject;
use ruff_python_ast::visitor::Visitor as _;
use ruff_python_parser::parse_module;
use ruff_text_size::TextSize;
use std::collections::BTreeSet;
use value_flow::ValueFlow;

/// Prefix of the name of a function whose result is awaited, as the interpreter knows it.
const AWAIT_PREFIX: &str = "await ";
/// First of the letters that mark names: syllables that do not change under normalization.
const FIRST_MARK: u32 = 0xa000;

/// Returns `code` with marked names where the result of a function is awaited, and records the names that the
/// code uses. Code with a syntax error is returned unchanged.
pub(super) fn mark(code: &str, functions: &[String], names: &mut FunctionNames) -> String {
    let Ok(parsed) = parse_module(code) else {
        return code.to_owned();
    };
    let body = &parsed.syntax().body;
    let mut bindings = Bindings::default();
    bindings.visit_body(body);
    names.rebound.extend(bindings.global);
    let callable: BTreeSet<&str> = functions
        .iter()
        .map(String::as_str)
        .filter(|name| !names.rebound.contains(*name) && !bindings.local.contains(*name))
        .collect();
    if callable.is_empty() {
        return code.to_owned();
    }
    let mut flow = ValueFlow::new(callable);
    flow.visit_body(body);
    let mut marked = code.to_owned();
    // From the end, since a mark has more bytes than the letter it replaces.
    for range in flow.into_awaited_names().into_iter().rev() {
        let letter = range.start()..range.start() + TextSize::from(1);
        let letter = usize::from(letter.start)..usize::from(letter.end);
        let name = &code[usize::from(range.start())..usize::from(range.end())];
        if let Some(mark) = to_mark(name) {
            marked.replace_range(letter, mark.encode_utf8(&mut [0; 4]));
            names.awaited.insert(name.to_owned());
        }
    }
    marked
}

/// Returns a text of the interpreter with the original names.
pub(super) fn unmark(text: &str, functions: &[String], names: &FunctionNames) -> String {
    let mut text = text.to_owned();
    for name in names.awaited.iter().chain(functions) {
        if let Some(marked) = marked_name(name) {
            text = text.replace(&marked, name);
        }
    }
    text
}

/// Function of the host, as code refers to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FunctionReference<'a> {
    pub(super) name: &'a str,
    /// The result is awaited.
    pub(super) is_awaited: bool,
}

impl<'a> FunctionReference<'a> {
    /// Returns the function that a name in the code, or of a function that the interpreter calls, stands for;
    /// `None` if there is no such function.
    pub(super) fn resolve(name: &str, functions: &'a [String]) -> Option<Self> {
        functions.iter().find_map(|function| {
            let is_awaited = name.strip_prefix(AWAIT_PREFIX) == Some(function)
                || marked_name(function).is_some_and(|marked| marked == name);
            (is_awaited || name == function).then_some(Self {
                name: function,
                is_awaited,
            })
        })
    }

    /// Returns the value of the name in the code.
    pub(super) fn to_object(&self) -> MontyObject {
        let prefix = match self.is_awaited {
            true => AWAIT_PREFIX,
            false => "",
        };
        MontyObject::Function {
            name: format!("{prefix}{}", self.name),
            docstring: None,
        }
    }
}

/// Returns the name in the code of a function that the interpreter calls.
pub(super) fn original_name(name: &str) -> String {
    let name = name.strip_prefix(AWAIT_PREFIX).unwrap_or(name);
    let mut letters = name.chars();
    let offset = letters
        .next()
        .and_then(|first| u32::from(first).checked_sub(FIRST_MARK));
    let first = offset
        .and_then(|offset| u8::try_from(offset).ok()?.checked_add(b'A'))
        .map(char::from);
    match first {
        Some(first) if to_mark(first.encode_utf8(&mut [0; 4])).is_some() => {
            format!("{first}{}", letters.as_str())
        }
        Some(_) | None => name.to_owned(),
    }
}

fn marked_name(name: &str) -> Option<String> {
    let mark = to_mark(name)?;
    Some(format!("{mark}{}", &name[1..]))
}

/// Returns the letter that replaces the first of a name; `None` for a name that begins with none of ASCII.
fn to_mark(name: &str) -> Option<char> {
    let first = name.bytes().next()?;
    let offset = (first.is_ascii_alphabetic() || first == b'_').then(|| first - b'A')?;
    char::from_u32(FIRST_MARK + u32::from(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the code with `@` before each name whose result is awaited.
    fn awaited(code: &str) -> String {
        let functions = ["f".to_owned(), "read".to_owned()];
        let marked = mark(code, &functions, &mut FunctionNames::default());
        marked
            .replace(&marked_name("f").unwrap(), "@f")
            .replace(&marked_name("read").unwrap(), "@read")
    }

    #[test]
    fn awaited_calls_are_found() {
        for code in [
            "await @f(1)",
            "await @f(read('a'))",
            "x = read('a')\ny = await @f(x)",
            "await asyncio.gather(@f(1), @read('a'))",
            "await gather(@f(1), x)",
            "asyncio.run(asyncio.gather(@f(1)))",
            "await asyncio.gather(*[@read(p) for p in f()])",
            "await asyncio.gather(*(@read(p) for p in ps))",
            "ts = [@read(p) for p in ps]\nprint(len(ts))\nrs = await asyncio.gather(*ts)",
            "ts = []\nfor p in ps:\n    ts.append(@read(p))\nawait asyncio.gather(*ts)",
            "ts = []\nfor p in ps:\n    t = @read(p)\n    ts.append(t)\nawait asyncio.gather(*ts)",
            "ts = {p: @read(p) for p in ps}\nfor p, t in ts.items():\n    print(p, await t)",
            "ps = f()\nts = [@read(p) for p in ps]\nfor p, t in zip(ps, ts):\n    print(p, await t)",
            "a = @f(1)\nb = @f(2)\nx, y = await asyncio.gather(a, b)",
            "a, b = @f(1), @f(2)\nawait asyncio.gather(a, b)",
            "a = @f(1)\nb = @f(2)\na, b = await asyncio.gather(a, b)\nprint(a, b)",
            "x = @f(1)\nx = await x\nprint(x)\nx = f(2)\nprint(x)",
            "if y:\n    x = @f(1)\nelse:\n    x = @f(2)\nx = await x",
            "x = @f(0)\nwhile y:\n    y = await x\n    x = @f(y)",
            "def g(p):\n    return @read(p)\nawait asyncio.gather(g(1), g(2))",
            "async def g(p):\n    return read(p)\nawait asyncio.gather(g(1), g(2))",
            "async def g(p):\n    return await @read(p)\nawait asyncio.gather(g(1), g(2))",
            "await (@f(1) if x else @read(2))",
            "ts = [(p, @read(p)) for p in f()]\nfor p, t in ts:\n    print(p, await t)",
            "ts = []\nts += [@f(1)]\nts.extend([@f(2)])\nawait asyncio.gather(*ts)",
            "ts = {}\nts['a'] = @f(1)\nx = await ts['a']",
        ] {
            let plain = code.replace('@', "");
            assert_eq!(awaited(&plain), code);
        }
    }

    #[test]
    fn plain_calls_are_left_alone() {
        for code in [
            "f(1)",
            "x = f(1)\nprint(x)",
            "rs = [read(p) for p in ps]\nprint(rs)",
            "x = f(1)\nprint(x)\nawait other(x)",
            // Used as a value too, so the first result cannot be one to await.
            "x = f(1)\nprint(x)\nx = other()\nawait x",
            "def f(): pass\nawait f()",
            "import f\nawait f()",
            "await g(f)",
            "def g(f):\n    return f\nawait f()",
            "def g():\n    global f\n    f = 1\nawait f()",
            "for t in f():\n    await t",
            "await asyncio.gather(*f())",
            "a, b = f()\nawait a",
            "await f()[0]",
            "await f(",
            "'await f(1)'",
        ] {
            assert_eq!(awaited(code), code);
        }
    }

    #[test]
    fn names_bound_in_earlier_blocks_are_left_alone() {
        let functions = ["f".to_owned()];
        let mut names = FunctionNames::default();
        mark("async def f(): pass", &functions, &mut names);
        assert_eq!(mark("await f()", &functions, &mut names), "await f()");
        // Names bound in a function or a comprehension are unknown outside.
        for local in ["def g(f): pass", "[f for f in x]", "lambda f: f"] {
            let mut names = FunctionNames::default();
            mark(local, &functions, &mut names);
            let marked = mark("await f()", &functions, &mut names);
            assert_eq!(marked, "await \u{a025}()", "{local}");
        }
    }

    #[test]
    fn marked_names_are_restored_in_texts() {
        let functions = ["read".to_owned()];
        let mut names = FunctionNames::default();
        let marked = mark("await read(1)", &functions, &mut names);
        assert_eq!(marked, "await \u{a031}ead(1)");
        assert_eq!(unmark(&marked, &[], &names), "await read(1)");
    }

    #[test]
    fn marked_names_lead_to_functions() {
        let functions = ["read".to_owned()];
        for (name, is_awaited) in [("read", false), ("await read", true), ("\u{a031}ead", true)] {
            let expected = FunctionReference {
                name: "read",
                is_awaited,
            };
            let function = FunctionReference::resolve(name, &functions);
            assert_eq!(function, Some(expected), "{name}");
            assert_eq!(FunctionReference::resolve(name, &[]), None, "{name}");
            assert_eq!(original_name(name), "read");
        }
        assert_eq!(original_name("\u{e9}t\u{e9}"), "\u{e9}t\u{e9}");
        assert_eq!(original_name("\u{a001}"), "B");
        assert_eq!(original_name(""), "");
    }
}
