//! Typed: what a person types at the terminal; a key among it is not shown.

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use secrecy::SecretString;
use std::io::{self, BufRead, IsTerminal as _, Write as _};

/// Nobody types more. Unit: bytes.
const LONGEST: usize = 16 << 10;

/// The person at the terminal.
pub(super) struct Person;

impl Person {
    /// If there is one.
    pub(super) fn at_terminal() -> Option<Self> {
        (io::stdin().is_terminal() && io::stderr().is_terminal()).then_some(Self)
    }

    /// Show something.
    pub(super) fn sees(&self, text: &str) -> io::Result<()> {
        let mut screen = io::stderr().lock();
        screen.write_all(text.as_bytes())?;
        screen.flush()
    }

    /// A line.
    pub(super) fn types(&mut self, question: &str) -> io::Result<String> {
        self.sees(question)?;
        let mut line = String::new();
        let most = u64::try_from(LONGEST).unwrap_or(u64::MAX);
        let read = io::Read::take(io::stdin().lock(), most).read_line(&mut line)?;
        match read {
            0 => Err(cancelled()),
            _ => Ok(line.trim().to_owned()),
        }
    }

    /// Whether the answer begins like yes.
    pub(super) fn says_yes(&mut self, question: &str) -> io::Result<bool> {
        let answer = self.types(&format!("{question} [y/N] "))?;
        Ok(answer.starts_with(['y', 'Y']))
    }

    /// A line that is not shown.
    pub(super) fn types_unseen(&mut self, question: &str) -> io::Result<SecretString> {
        // First, so that nothing is shown of what is typed as soon as the question is there.
        let unseen = Unseen::begin()?;
        self.sees(question)?;
        let line = hidden_line(&mut io::stdin().lock());
        drop(unseen);
        self.sees("\n")?;
        line.map(SecretString::from)
    }
}

/// While it is there, the terminal shows nothing, and gives each key as it is typed: also Ctrl-C, so
/// that no signal leaves the terminal like that.
struct Unseen(Termios);

impl Unseen {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut unseen = before.clone();
        let shown = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
        unseen.local_modes.remove(shown);
        unseen.special_codes[SpecialCodeIndex::VMIN] = 1;
        unseen.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed ahead stays: scripts that play a person do that.
        tcsetattr(io::stdin(), OptionalActions::Now, &unseen)?;
        Ok(Self(before))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// A line as keys give it: with deletions in it, and perhaps given up.
fn hidden_line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line: Vec<u8> = Vec::new();
    loop {
        let mut byte = [0];
        if input.read(&mut byte)? == 0 {
            return Err(cancelled());
        }
        match byte[0] {
            b'\n' | b'\r' => break,
            // Ctrl-C, Ctrl-D, Ctrl-\.
            3 | 4 | 28 => return Err(cancelled()),
            // Backspace, in both forms.
            8 | 127 => {
                line.pop();
            }
            // Ctrl-U.
            21 => line.clear(),
            byte if line.len() < LONGEST => line.push(byte),
            _ => {}
        }
    }
    String::from_utf8(line).map_err(|_| io::Error::other("this is no text"))
}

fn cancelled() -> io::Error {
    io::Error::from(io::ErrorKind::Interrupted)
}

/// Whether the person gave up.
pub(super) fn is_cancel(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> Option<String> {
        hidden_line(&mut &*bytes).ok()
    }

    #[test]
    fn what_is_typed_unseen_can_be_mended_and_given_up() {
        assert_eq!(typed(b"sk-1\nrest").as_deref(), Some("sk-1"));
        assert_eq!(typed(b"sk-1\r").as_deref(), Some("sk-1"));
        assert_eq!(typed(b"sx\x7fk\x08k-1\n").as_deref(), Some("sk-1"));
        assert_eq!(typed(b"\x7f\x7fwrong\x15sk-1\n").as_deref(), Some("sk-1"));
        for given_up in [&b"sk-1\x03"[..], b"\x04", b"sk-1", b""] {
            assert_eq!(typed(given_up), None, "{given_up:?}");
        }
    }
}
