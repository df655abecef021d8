//! Asks the user at the terminal, with echo off for keys.

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use secrecy::SecretString;
use std::io::{self, BufRead, IsTerminal as _, Write as _};

/// Longest line that is read. Unit: bytes.
const MAX_LINE_BYTES: usize = 16 << 10;

/// The user at the terminal.
pub(crate) struct TerminalUser;

impl TerminalUser {
    /// Returns the user if stdin and stderr are a terminal.
    pub(crate) fn at_terminal() -> Option<Self> {
        (io::stdin().is_terminal() && io::stderr().is_terminal()).then_some(Self)
    }

    /// Prints text.
    pub(super) fn show(&self, text: &str) -> io::Result<()> {
        let mut screen = io::stderr().lock();
        screen.write_all(text.as_bytes())?;
        screen.flush()
    }

    /// Asks a question and reads a line.
    pub(super) fn ask_line(&mut self, question: &str) -> io::Result<String> {
        self.show(question)?;
        let mut line = String::new();
        let most = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
        let read = io::Read::take(io::stdin().lock(), most).read_line(&mut line)?;
        match read {
            0 => Err(cancelled()),
            _ => Ok(line.trim().to_owned()),
        }
    }

    /// Asks a yes/no question; returns true if the answer starts with `y`.
    pub(crate) fn confirm(&mut self, question: &str) -> io::Result<bool> {
        let answer = self.ask_line(&format!("{question} [y/N] "))?;
        Ok(answer.starts_with(['y', 'Y']))
    }

    /// Asks a question and reads a line with echo off.
    pub(super) fn ask_hidden_line(&mut self, question: &str) -> io::Result<SecretString> {
        // Before the question, so that nothing typed after it is echoed.
        let unseen = EchoOff::begin()?;
        self.show(question)?;
        let line = read_hidden_line(&mut io::stdin().lock());
        drop(unseen);
        self.show("\n")?;
        line.map(SecretString::from)
    }
}

/// Turns echo off until dropped. Each key is read as it is typed, including Ctrl-C, so that no signal leaves the
/// terminal in this state.
struct EchoOff(Termios);

impl EchoOff {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut unseen = before.clone();
        let shown = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
        unseen.local_modes.remove(shown);
        unseen.special_codes[SpecialCodeIndex::VMIN] = 1;
        unseen.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Keep what was typed ahead, for scripts that simulate a user.
        tcsetattr(io::stdin(), OptionalActions::Now, &unseen)?;
        Ok(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Reads a line key by key; handles deletion and cancellation.
fn read_hidden_line(input: &mut impl BufRead) -> io::Result<String> {
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
            byte if line.len() < MAX_LINE_BYTES => line.push(byte),
            _ => {}
        }
    }
    String::from_utf8(line).map_err(|_| io::Error::other("this is no text"))
}

fn cancelled() -> io::Error {
    io::Error::from(io::ErrorKind::Interrupted)
}

/// Returns true if the user cancelled the input.
pub(super) fn is_cancel(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Option<String> {
        read_hidden_line(&mut &*bytes).ok()
    }

    #[test]
    fn hidden_line_supports_editing_and_cancel() {
        assert_eq!(read_bytes(b"sk-1\nrest").as_deref(), Some("sk-1"));
        assert_eq!(read_bytes(b"sk-1\r").as_deref(), Some("sk-1"));
        assert_eq!(read_bytes(b"sx\x7fk\x08k-1\n").as_deref(), Some("sk-1"));
        assert_eq!(
            read_bytes(b"\x7f\x7fwrong\x15sk-1\n").as_deref(),
            Some("sk-1")
        );
        for given_up in [&b"sk-1\x03"[..], b"\x04", b"sk-1", b""] {
            assert_eq!(read_bytes(given_up), None, "{given_up:?}");
        }
    }
}
