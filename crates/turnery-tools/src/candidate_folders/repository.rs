//! Runs git for the work trees of candidates, so that nothing that a repository names is run.

use super::CandidateFoldersError;
use crate::{
    GitSettings, Workspace,
    policy::git::environment::apply_git_settings,
    processes::{ProgramSpec, run_piped},
    shell::{hidden_variables, inherited_env, strip_project_code},
    workspace::canonicalize,
};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// Time limit of one git command.
const GIT_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum output of one git command. Unit: bytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// Repository around a folder.
#[derive(Debug)]
pub(super) struct SourceRepository {
    top: PathBuf,
    environment: BTreeMap<OsString, OsString>,
}

impl SourceRepository {
    /// Finds the repository around `cwd`. `None` if there is none, if it has no commit, or if the user's home folder
    /// lies in its work tree, which then is no project.
    pub(super) async fn find(
        cwd: &Path,
        workspace: &Workspace,
    ) -> Result<Option<Self>, CandidateFoldersError> {
        let is_marked = |folder: &Path| folder.join(".git").symlink_metadata().is_ok();
        if !cwd.ancestors().any(is_marked) {
            return Ok(None);
        }
        let mut environment = inherited_env(&hidden_variables([]));
        strip_project_code(&mut environment, cwd, workspace);
        apply_git_settings(GitSettings::Hardened, &mut environment);
        let mut found = Self {
            top: cwd.to_owned(),
            environment,
        };
        let top = found.git(&["rev-parse", "--show-toplevel"]).await?;
        found.top = canonicalize(Path::new(OsStr::from_bytes(top.trim_ascii_end())))?;
        let home = std::env::home_dir().and_then(|home| canonicalize(&home).ok());
        if !cwd.starts_with(&found.top) || home.is_some_and(|home| home.starts_with(&found.top)) {
            return Ok(None);
        }
        let head = ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"];
        Ok(found.git(&head).await.is_ok().then_some(found))
    }

    /// Returns the top of the work tree.
    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    /// Returns the paths of the tracked files in the work tree.
    pub(super) async fn tracked_files(&self) -> Result<Vec<PathBuf>, CandidateFoldersError> {
        let listed = self.git(&["ls-files", "-z", "--cached"]).await?;
        let paths = listed
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty());
        Ok(paths
            .map(|path| PathBuf::from(OsString::from_vec(path.to_vec())))
            .collect())
    }

    /// Adds an empty work tree at `path`, with `HEAD` in its index. Returns git's folder about it.
    pub(super) async fn add_work_tree(
        &self,
        path: &Path,
    ) -> Result<PathBuf, CandidateFoldersError> {
        let text = path.as_os_str();
        let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout"].map(OsStr::new);
        let add = [&add[..], &[text, OsStr::new("HEAD")]].concat();
        self.git(&add).await?;
        let index = [
            OsStr::new("-C"),
            text,
            OsStr::new("read-tree"),
            OsStr::new("HEAD"),
        ];
        self.git(&index).await?;
        let named = fs::read(path.join(".git"))?;
        let record = named.strip_prefix(b"gitdir: ").unwrap_or_default();
        Ok(path.join(OsStr::from_bytes(record.trim_ascii_end())))
    }

    /// Runs git in the work tree. Returns its output.
    async fn git(&self, args: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, CandidateFoldersError> {
        let failed = |why: &str| {
            let words = args.iter().map(|arg| arg.as_ref().to_string_lossy());
            let words: Vec<_> = words.collect();
            CandidateFoldersError::Git(format!("git {}: {why}", words.join(" ")))
        };
        let program = ProgramSpec {
            program: "git".into(),
            args: args.iter().map(|arg| arg.as_ref().to_owned()).collect(),
            working_directory: self.top.clone(),
            environment: self.environment.clone(),
            confinement: None,
        };
        let ended = run_piped(program, &[], GIT_TIMEOUT, MAX_OUTPUT_BYTES).await;
        let ended = ended.map_err(|why| failed(&why))?;
        match ended.finished.status {
            Some(status) if status.success() => Ok(ended.stdout),
            Some(_) | None => Err(failed(String::from_utf8_lossy(&ended.stderr).trim())),
        }
    }
}
