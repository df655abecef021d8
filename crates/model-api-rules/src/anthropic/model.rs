//! Generations of Claude, by the names of the models.

/// A Claude model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claude<'a> {
    /// Name after `claude-`.
    name: &'a str,
    /// Major and minor version.
    version: (u32, u32),
}

impl<'a> Claude<'a> {
    /// Returns the model of this name; `None` for other models and for names without a version.
    pub(super) fn of(model: &'a str) -> Option<Self> {
        let start = model.rfind("claude-")?;
        let name = model.get(start..)?.strip_prefix("claude-")?;
        let mut numbers = name
            .split(['-', '.', '@'])
            // Longer numbers are dates.
            .filter(|word| word.len() <= 2)
            .filter_map(|word| word.parse().ok());
        let version = (numbers.next()?, numbers.next().unwrap_or(0));
        Some(Self { name, version })
    }

    /// Returns true for this version and later ones.
    pub(super) fn is_since(self, major: u32, minor: u32) -> bool {
        self.version >= (major, minor)
    }

    /// Returns true if thinking cannot be switched off.
    pub(super) fn always_thinks(self) -> bool {
        let is = |family: &str| self.name.starts_with(family);
        is("fable") || is("mythos") || (self.is_since(5, 5) && (is("opus") || is("sonnet")))
    }

    /// Returns true if the model can be asked to think between calls only.
    pub(super) fn thinks_between_tools(self) -> bool {
        self.is_since(5, 5) && self.name.starts_with("sonnet")
    }

    /// Returns true if the model thinks unless told otherwise.
    pub(super) fn thinks_by_default(self) -> bool {
        self.is_since(5, 0)
    }
}
