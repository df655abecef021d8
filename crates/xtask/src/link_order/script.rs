//! Writes a linker script that places the sections of functions first.
//!
//! A symbol of Rust ends with a hash that depends on the compiler and on the versions of all crates, so the script has
//! patterns that leave it out. Generic functions have one section for each of their types: where those that did not
//! run are the larger part, the script names the sections that ran, and has the pattern at its end, for programs in which
//! the hashes are others.

use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Size of sections that did not run up to which a pattern may stand for them. Unit: bytes.
const SMALL: u64 = 300;

/// A section of the linker's map.
struct Section<'a> {
    name: &'a str,
    address: u64,
    size: u64,
}

/// Sizes of the sections that a pattern stands for. Unit: bytes.
#[derive(Default)]
struct PatternSizes {
    all: u64,
    run: u64,
}

/// Returns the symbols of the functions that ran, in the order of the text, which cachegrind writes
/// (<https://valgrind.org/docs/manual/cg-manual.html>).
pub(super) fn functions(text: &str) -> impl Iterator<Item = String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("fn="));
    names.map(str::to_owned)
}

/// Returns the script for functions that ran, in this order. `map` is written by LLD, `symbols` by `nm`.
pub(super) fn write(map: &str, symbols: &str, run: &[String]) -> Result<String> {
    let sections: BTreeMap<u64, Section<'_>> = map
        .lines()
        .filter_map(parse_section)
        .map(|section| (section.address, section))
        .collect();
    let addresses: HashMap<&str, u64> = symbols.lines().filter_map(parse_symbol).collect();
    let (mut seen, mut used) = (HashSet::new(), Vec::new());
    for name in run {
        let address = addresses.get(name.as_str());
        let section = address.and_then(|it| section_at(&sections, *it));
        if let Some(section) = section
            && seen.insert(section.address)
        {
            used.push(section);
        }
    }
    ensure!(!used.is_empty(), "no function of the program ran");
    let mut sizes: HashMap<String, PatternSizes> = HashMap::new();
    for section in sections.values() {
        sizes.entry(pattern(section.name)).or_default().all += section.size;
    }
    for section in &used {
        sizes.entry(pattern(section.name)).or_default().run += section.size;
    }
    let (mut first, mut last, mut written) = (Vec::new(), Vec::new(), HashSet::new());
    for section in used {
        let name = pattern(section.name);
        let size = sizes.get(&name).context("a section has no size")?;
        let is_new = written.insert(name.clone());
        if size.all <= (2 * size.run).max(size.run + SMALL) {
            first.extend(is_new.then_some(name));
        } else {
            first.push(section.name.to_owned());
            last.extend(is_new.then_some(name));
        }
    }
    let patterns = first.iter().chain(&last);
    let lines: String = patterns.map(|name| format!("*({name})\n")).collect();
    Ok(format!(
        "/* Written by `cargo xtask link-order`: what a usual session runs, in one part of the program. */\n\
         SECTIONS {{\n.text.first : {{\n{lines}}}\n}}\nINSERT BEFORE .text;\n"
    ))
}

/// Returns the section that has this address.
fn section_at<'m, 's>(
    sections: &'m BTreeMap<u64, Section<'s>>,
    address: u64,
) -> Option<&'m Section<'s>> {
    let (start, section) = sections.range(..=address).next_back()?;
    (address < start + section.size).then_some(section)
}

/// Parses a line of the map that has an input section with code: its address, load address, size, alignment, file and
/// name.
fn parse_section(line: &str) -> Option<Section<'_>> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let size = u64::from_str_radix(words.nth(1)?, 16).ok()?;
    let (_, name) = line.strip_suffix(')')?.rsplit_once(":(")?;
    // Others hold many functions.
    let is_of_function = name.starts_with(".text.") && size > 0;
    is_of_function.then_some(Section {
        name,
        address,
        size,
    })
}

/// Parses a line of `nm`: address, kind and name.
fn parse_symbol(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let name = words.nth(1)?;
    Some((name, address))
}

/// Returns a pattern for this section in other programs: the hash at the end of a name, those of the crates in names of
/// the newer form, and the number that tells functions of one name apart are left out.
fn pattern(section: &str) -> String {
    match section.rsplit_once('.') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}.*", pattern_without_hashes(name))
        }
        _ => pattern_without_hashes(section),
    }
}

fn pattern_without_hashes(section: &str) -> String {
    const HASH: usize = 16;
    if let Some((before, hash)) = section.rsplit_once("17h")
        && let Some((hash, after)) = hash.split_at_checked(HASH)
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return format!("{before}17h*{after}");
    }
    if !section.contains("._R") {
        return section.to_owned();
    }
    let mut parts = section.split("Cs");
    let mut pattern = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('_') {
            Some((hash, after)) if hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                pattern.push_str("Cs*_");
                pattern.push_str(after);
            }
            _ => {
                pattern.push_str("Cs");
                pattern.push_str(part);
            }
        }
    }
    pattern
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

    const MAP: &str = "\
             VMA              LMA     Size Align Out     In      Symbol
              10               10       20    16         a.o:(.text._ZN4main17h0123456789abcdefE)
              10               10       20     1                 _ZN4main17h0123456789abcdefE
              30               30        8    16         a.o:(.text._ZN3map17h0000000000000000E)
              38               38      800    16         a.o:(.text._ZN3map17h1111111111111111E)
             900              900       10    16         lib.rlib(b.o):(.text.sqlite3_step)
             910              910       10    16         a.o:(.text)
             920              920       10    16         a.o:(.text._RNvCs1aB_4core3add.1234)
             930              930       10    16         a.o:(.rodata.cst)";

    const SYMBOLS: &str = "\
0000000000000010 t _ZN4main17h0123456789abcdefE
0000000000000030 t _ZN3map17h0000000000000000E
0000000000000038 t _ZN3map17h1111111111111111E
0000000000000030 t same_code_as_map
                 U malloc
0000000000000900 t sqlite3_step
0000000000000910 t handwritten
0000000000000920 t _RNvCs1aB_4core3add";

    fn patterns(run: &[&str]) -> Vec<String> {
        let run: Vec<String> = run.iter().copied().map(str::to_owned).collect();
        let script = write(MAP, SYMBOLS, &run).unwrap();
        let lines = script.lines().filter_map(|line| line.strip_prefix("*("));
        lines
            .filter_map(|line| Some(line.strip_suffix(')')?.to_owned()))
            .collect()
    }

    #[test]
    fn sections_are_named_without_hashes() {
        assert_eq!(
            patterns(&[
                "sqlite3_step",
                "_ZN4main17h0123456789abcdefE",
                "_RNvCs1aB_4core3add",
                "malloc",
            ]),
            [
                ".text.sqlite3_step",
                ".text._ZN4main17h*E",
                ".text._RNvCs*_4core3add.*",
            ]
        );
    }

    #[test]
    fn section_of_a_generic_function_is_named_with_its_hash_and_the_others_come_last() {
        assert_eq!(
            patterns(&["same_code_as_map", "sqlite3_step"]),
            [
                ".text._ZN3map17h0000000000000000E",
                ".text.sqlite3_step",
                ".text._ZN3map17h*E",
            ]
        );
    }

    #[test]
    fn program_without_functions_is_an_error() {
        // The second is in no section of its own.
        for name in ["malloc", "handwritten"] {
            assert!(write(MAP, SYMBOLS, &[name.to_owned()]).is_err(), "{name}");
        }
    }
}
