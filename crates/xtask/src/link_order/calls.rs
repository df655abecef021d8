//! Reads which functions ran, from what cachegrind writes.

/// Returns the symbols of the functions that ran, in the order of the text
/// (<https://valgrind.org/docs/manual/cg-manual.html>).
pub(super) fn functions(text: &str) -> impl Iterator<Item = String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("fn="));
    names.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_lines() {
        let text = "\
desc: Options: --cache-sim=no
cmd: turnery acp
events: Ir
fl=./stdlib/getenv.c
fn=getenv
38 2
fl=???
fn=_ZN4mainE
0 79
summary: 81";
        assert_eq!(functions(text).collect::<Vec<_>>(), ["getenv", "_ZN4mainE"]);
    }
}
