//! Fixtures: files that a case makes, and checks of files.

use super::{Miss, stage::Stage};
use crate::pattern::{fill_text, short};
use std::{fs, path::Path};

fn fault(path: &Path, error: &std::io::Error) -> Miss {
    Miss::Fault(format!("{}: {error}", path.display()))
}

impl Stage<'_> {
    pub(super) fn file(&mut self, name: &str, text: &str) -> Result<(), Miss> {
        let path = self.path(name);
        let text = fill_text(text, &self.vars);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| fault(folder, &error))?;
        }
        fs::write(&path, &text).map_err(|error| fault(&path, &error))?;
        self.made.insert(path, text);
        Ok(())
    }

    pub(super) fn folder(&self, name: &str) -> Result<(), Miss> {
        let path = self.path(name);
        fs::create_dir_all(&path).map_err(|error| fault(&path, &error))
    }

    pub(super) fn link(&self, name: &str, target: &str) -> Result<(), Miss> {
        let path = self.path(name);
        let target = fill_text(target, &self.vars);
        std::os::unix::fs::symlink(target, &path).map_err(|error| fault(&path, &error))
    }

    pub(super) fn buffer(&mut self, name: &str, text: &str) {
        let text = fill_text(text, &self.vars);
        self.client.buffers.insert(self.path(name), text);
    }

    fn text_of(&self, name: &str) -> Result<String, Miss> {
        fs::read_to_string(self.path(name)).map_err(|error| Miss::wrong(format!("{name}: {error}")))
    }

    pub(super) fn reads(&self, name: &str, wanted: &str) -> Result<(), Miss> {
        let text = self.text_of(name)?;
        if text == fill_text(wanted, &self.vars) {
            return Ok(());
        }
        Err(Miss::wrong(format!("{name} holds {}", short(&text.into()))))
    }

    pub(super) fn holds(&self, name: &str, wanted: &str) -> Result<(), Miss> {
        let text = self.text_of(name)?;
        if text.contains(&fill_text(wanted, &self.vars)) {
            return Ok(());
        }
        Err(Miss::wrong(format!("{name} holds {}", short(&text.into()))))
    }

    pub(super) fn same(&self, name: &str) -> Result<(), Miss> {
        let Some(made) = self.made.get(&self.path(name)) else {
            return Err(Miss::Fault(format!("no step made {name}")));
        };
        let text = self.text_of(name)?;
        if text == *made {
            return Ok(());
        }
        let text = short(&text.into());
        Err(Miss::wrong(format!("{name} was changed and holds {text}")))
    }

    pub(super) fn absent(&self, name: &str) -> Result<(), Miss> {
        if self.path(name).symlink_metadata().is_err() {
            return Ok(());
        }
        Err(Miss::wrong(format!("{name} is there")))
    }
}
