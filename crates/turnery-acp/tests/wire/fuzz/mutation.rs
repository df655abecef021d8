//! Derives new inputs from old ones.

use serde_json::Value;

/// Deterministic random number generator (splitmix64).
pub(super) struct FuzzRng(u64);

impl FuzzRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, or 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Fragments that have broken some parser.
const PIECES: [&str; 32] = [
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1e999",
    "-0",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "\"\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\u{feff}\"",
    "\"SESSION\"",
    "\"/nowhere\"",
    "\"data:\"",
    "\"file:///%00\"",
    "[]",
    "{}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "{\"$serde_json::private::RawValue\":\"[1\"}",
    "{\"$serde_json::private::RawValue\":1}",
    "{\"type\":\"text\",\"text\":\"/help\"}",
    "{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"}",
    "{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"\"}",
    "\"id\":1,",
    "\"result\":{},",
    "\"error\":null,",
    "\"_meta\":42,",
    "\n",
    "\r",
];

/// Derives a new input.
pub(super) fn mutate(pool: &[Vec<u8>], rng: &mut FuzzRng) -> Vec<u8> {
    let mut input = rng.pick(pool).clone();
    for _ in 0..=rng.below(6) {
        input = match rng.below(10) {
            0..5 => mutate_json(&input, rng),
            5 => {
                let other: &Vec<u8> = rng.pick(pool);
                splice_lines(&input, other, rng)
            }
            _ => mutate_bytes(input, rng),
        };
    }
    input.truncate(64 << 10);
    input
}

/// Changes, removes or duplicates one value of one line.
fn mutate_json(input: &[u8], rng: &mut FuzzRng) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = input
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let at = rng.below(lines.len());
    if let Ok(mut message) = serde_json::from_slice::<Value>(&lines[at]) {
        let nodes = count_nodes(&message);
        change_node(&mut message, &mut rng.below(nodes), rng);
        lines[at] = message.to_string().into_bytes();
    }
    lines.join(&b'\n')
}

fn count_nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_nodes).sum(),
        Value::Object(members) => members.values().map(count_nodes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Changes the value at `index` of a depth-first walk, which this function counts down; returns true
/// if it was reached.
fn change_node(value: &mut Value, index: &mut usize, rng: &mut FuzzRng) -> bool {
    if *index == 0 {
        let piece: &&str = rng.pick(&PIECES);
        let piece = serde_json::from_str(piece);
        match (rng.below(4), &mut *value) {
            (0, Value::Object(members)) if !members.is_empty() => {
                let name = members.keys().nth(rng.below(members.len())).cloned();
                name.and_then(|name| members.remove(&name));
            }
            (0, Value::Array(items)) if !items.is_empty() => {
                items.push(items[rng.below(items.len())].clone());
            }
            (1, Value::String(text)) => *text = text.repeat(rng.below(300)),
            _ => *value = piece.unwrap_or(Value::Null),
        }
        return true;
    }
    *index -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| change_node(item, index, rng)),
        Value::Object(members) => members
            .values_mut()
            .any(|item| change_node(item, index, rng)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Joins some lines of one input with some of another.
fn splice_lines(one: &[u8], other: &[u8], rng: &mut FuzzRng) -> Vec<u8> {
    let split = |input: &[u8]| -> Vec<Vec<u8>> {
        let lines = input.split(|byte| *byte == b'\n');
        lines.map(<[u8]>::to_vec).collect()
    };
    let (mut lines, mut more) = (split(one), split(other));
    lines.truncate(1 + rng.below(lines.len()));
    lines.extend(more.split_off(rng.below(more.len())));
    lines.join(&b'\n')
}

/// Changes some of the bytes.
fn mutate_bytes(mut input: Vec<u8>, rng: &mut FuzzRng) -> Vec<u8> {
    let at = rng.below(input.len());
    let end = (at + rng.below(40)).min(input.len());
    match rng.below(5) {
        0 if at < input.len() => input[at] ^= 1 << rng.below(8),
        1 => drop(input.drain(at..end)),
        2 => {
            let again = input[at..end].to_vec();
            input.splice(at..at, again);
        }
        _ => {
            let piece: &&str = rng.pick(&PIECES);
            let piece = piece.as_bytes().to_vec();
            input.splice(at..if rng.below(2) == 0 { at } else { end }, piece);
        }
    }
    input
}
