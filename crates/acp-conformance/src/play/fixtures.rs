//! Steps that create and check files.

use super::{StepError, case_run::CaseRun};
use crate::pattern::{fill_text, short_json};
use std::{fs, path::Path};

fn io_error(path: &Path, error: &std::io::Error) -> StepError {
    StepError::SuiteError(format!("{}: {error}", path.display()))
}

impl CaseRun<'_> {
    pub(super) fn write_file(&mut self, name: &str, text: &str) -> Result<(), StepError> {
        let path = self.resolve_path(name);
        let text = fill_text(text, &self.captures);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| io_error(folder, &error))?;
        }
        fs::write(&path, &text).map_err(|error| io_error(&path, &error))?;
        self.made_files.insert(path, text);
        Ok(())
    }

    pub(super) fn create_folder(&self, name: &str) -> Result<(), StepError> {
        let path = self.resolve_path(name);
        fs::create_dir_all(&path).map_err(|error| io_error(&path, &error))
    }

    pub(super) fn create_link(&self, name: &str, target: &str) -> Result<(), StepError> {
        let path = self.resolve_path(name);
        let target = fill_text(target, &self.captures);
        std::os::unix::fs::symlink(target, &path).map_err(|error| io_error(&path, &error))
    }

    pub(super) fn set_editor_text(&mut self, name: &str, text: &str) {
        let text = fill_text(text, &self.captures);
        self.client.buffers.insert(self.resolve_path(name), text);
    }

    /// Checks the text of a file with `is_right`; on failure the error is the file name, `what` and the text
    /// found.
    fn check_text(
        &self,
        name: &str,
        what: &str,
        is_right: impl FnOnce(&str) -> bool,
    ) -> Result<(), StepError> {
        let text = fs::read_to_string(self.resolve_path(name));
        let text = text.map_err(|error| StepError::mismatch(format!("{name}: {error}")))?;
        if is_right(&text) {
            return Ok(());
        }
        let text = short_json(&text.into());
        Err(StepError::mismatch(format!("{name} {what} {text}")))
    }

    pub(super) fn check_file_equals(&self, name: &str, wanted: &str) -> Result<(), StepError> {
        let wanted = fill_text(wanted, &self.captures);
        self.check_text(name, "holds", |text| text == wanted)
    }

    pub(super) fn check_file_contains(&self, name: &str, wanted: &str) -> Result<(), StepError> {
        let wanted = fill_text(wanted, &self.captures);
        self.check_text(name, "holds", |text| text.contains(&wanted))
    }

    pub(super) fn check_file_unchanged(&self, name: &str) -> Result<(), StepError> {
        match self.made_files.get(&self.resolve_path(name)) {
            Some(made) => self.check_text(name, "was changed and holds", |text| text == made),
            None => Err(StepError::SuiteError(format!("no step made {name}"))),
        }
    }

    pub(super) fn check_file_absent(&self, name: &str) -> Result<(), StepError> {
        if self.resolve_path(name).symlink_metadata().is_err() {
            return Ok(());
        }
        Err(StepError::mismatch(format!("{name} is there")))
    }
}
