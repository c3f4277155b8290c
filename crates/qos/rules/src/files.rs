// SPDX-License-Identifier: MIT
//! Loads rule files from their folders. This is the only module of this crate that does I/O.
//!
//! A file replaces the file of the same name in a lower folder; an empty file masks it. Files are read in the order of
//! their names.
//!
//! Files that another user could have changed are refused: files or folders owned by others or writable by others, and
//! symbolic links that lead out of the folder. If a file is refused or invalid, its last good version stays in force
//! as long as the loader exists, so a mistake never removes rules.

use crate::decide::RuleSet;
use crate::read::{self, File, MAX_FILE, MAX_RULES, Scope};
use crate::rule::{Limits, Rule};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use xqos_text::mistake::{Mistake, clean};

/// Maximum number of files in a folder. Together with the size limit of 1 MB per file it bounds the cost of a load.
pub const MAX_FILES: usize = 256;
const PACKAGE_RULES: &str = "/usr/lib/xqos/rules.d";
/// Rules of the administrator of this machine.
const SYSTEM_RULES: &str = "/etc/xqos/rules.d";
/// Mode bits: write permission for the group, and for everybody.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    pub scope: Scope,
}

/// The default folders, lowest first. `packages` replaces the rules folder in /usr for installations elsewhere;
/// `config` is XDG_CONFIG_HOME and `home` is HOME, if set.
pub fn default_folders(packages: Option<PathBuf>, config: Option<PathBuf>, home: Option<PathBuf>) -> Vec<Folder> {
    let config = config.filter(|path| path.is_absolute()).or_else(|| Some(home?.join(".config")));
    let of_user = config.map(|config| Folder { path: config.join("xqos/rules.d"), scope: Scope::User });
    let of_system = |path: PathBuf| Folder { path, scope: Scope::System };
    let packages = packages.unwrap_or_else(|| PACKAGE_RULES.into());
    [of_system(packages), of_system(SYSTEM_RULES.into())].into_iter().chain(of_user).collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileStatus {
    Active,
    /// The file has no rules and masks files of the same name in lower folders.
    Empty,
    /// The file at this path replaces this one.
    MaskedBy(PathBuf),
    /// The file was refused. `kept`: its last good version is still used.
    Refused {
        kept: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    pub path: PathBuf,
    pub status: FileStatus,
}

#[derive(Debug, Default)]
pub struct Loaded {
    pub rules: RuleSet,
    pub limits: Limits,
    /// In order of evaluation; a masked file precedes the file that masks it.
    pub files: Vec<RuleFile>,
    pub mistakes: Vec<Mistake>,
}

#[derive(Debug)]
pub struct Loader {
    folders: Vec<Folder>,
    user: u32,
    /// Last good version of each file.
    good: HashMap<PathBuf, File>,
    /// Last known contents of each folder.
    listings: HashMap<PathBuf, Vec<String>>,
}

impl Loader {
    /// Accepts only files of `user` and of root.
    pub fn new(folders: Vec<Folder>, user: u32) -> Loader {
        Loader { folders, user, good: HashMap::new(), listings: HashMap::new() }
    }

    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    pub fn load(&mut self) -> Loaded {
        let mut loaded = Loaded::default();
        let mut by_name: BTreeMap<String, Vec<Folder>> = BTreeMap::new();
        for folder in self.folders.clone() {
            for name in self.listing(&folder, &mut loaded.mistakes) {
                by_name.entry(name).or_default().push(folder.clone());
            }
        }
        let mut rules = Vec::new();
        for (name, mut folders) in by_name {
            let Some(top) = folders.pop() else { continue };
            let path = top.path.join(&name);
            let status = FileStatus::MaskedBy(path.clone());
            let masked = |folder: &Folder| RuleFile { path: folder.path.join(&name), status: status.clone() };
            loaded.files.extend(folders.iter().map(masked));
            self.take(&top, path, &mut rules, &mut loaded);
        }
        let files = &loaded.files;
        self.good.retain(|path, _| files.iter().any(|file| file.path == *path));
        Loaded { rules: RuleSet::new(rules), ..loaded }
    }

    /// Reads one file and adds its rules. If it is refused, its last good version is used.
    fn take(&mut self, folder: &Folder, path: PathBuf, rules: &mut Vec<Rule>, loaded: &mut Loaded) {
        let (kept, status) = match self.read(folder, &path) {
            Ok(file) => {
                let status = if is_empty(&file) { FileStatus::Empty } else { FileStatus::Active };
                self.good.insert(path.clone(), file.clone());
                (Some(file), status)
            }
            Err(mistakes) => {
                loaded.mistakes.extend(mistakes);
                let kept = self.good.get(&path).cloned();
                let status = FileStatus::Refused { kept: kept.is_some() };
                (kept, status)
            }
        };
        let file = kept.unwrap_or_default();
        let all = rules.len() + file.rules.len();
        if all > MAX_RULES {
            let what = format!("brings the total to {all} rules, more than {MAX_RULES}: this file is ignored");
            loaded.mistakes.push(Mistake::in_file(&path.to_string_lossy(), what));
            loaded.files.push(RuleFile { path, status: FileStatus::Refused { kept: false } });
            return;
        }
        loaded.limits = loaded.limits.overridden_by(file.limits);
        rules.extend(file.rules);
        loaded.files.push(RuleFile { path, status });
    }

    /// Names of a folder's rule files, or the names of the previous load if the folder is not trusted.
    fn listing(&mut self, folder: &Folder, mistakes: &mut Vec<Mistake>) -> Vec<String> {
        match list(&folder.path, self.user, mistakes) {
            Ok(names) => {
                self.listings.insert(folder.path.clone(), names.clone());
                names
            }
            Err(what) => {
                mistakes.push(Mistake::in_file(&folder.path.to_string_lossy(), what));
                self.listings.get(&folder.path).cloned().unwrap_or_default()
            }
        }
    }

    fn read(&self, folder: &Folder, path: &Path) -> Result<File, Vec<Mistake>> {
        let shown = path.to_string_lossy();
        let whole = |what: String| vec![Mistake::in_file(&shown, what)];
        check_folder(&folder.path, self.user).map_err(whole)?;
        let path = inside(&folder.path, path).map_err(whole)?;
        let bytes = contents(&path, Some(self.user)).map_err(whole)?;
        read::file(&shown, &text(&shown, bytes)?, folder.scope)
    }
}

/// Reads one file by its path. Any owner is accepted, because the caller named the file.
pub fn read_named(path: &Path, scope: Scope) -> Result<File, Vec<Mistake>> {
    read::file(&path.to_string_lossy(), &read_named_text(path)?, scope)
}

/// The text of a file that the caller named.
pub fn read_named_text(path: &Path) -> Result<String, Vec<Mistake>> {
    let shown = path.to_string_lossy();
    let bytes = contents(path, None).map_err(|what| vec![Mistake::in_file(&shown, what)])?;
    text(&shown, bytes)
}

fn is_empty(file: &File) -> bool {
    file.rules.is_empty() && file.limits == Limits::default()
}

fn list(folder: &Path, user: u32, mistakes: &mut Vec<Mistake>) -> Result<Vec<String>, String> {
    match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        _ => check_folder(folder, user)?,
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("cannot be read: {error}"))? {
        let name = entry.map_err(|error| format!("cannot be read: {error}"))?.file_name();
        // Editors put hidden temporary files into the folder.
        let is_rules = name.as_encoded_bytes().ends_with(b".toml") && !name.as_encoded_bytes().starts_with(b".");
        match name.to_str() {
            Some(name) if is_rules => names.push(name.to_owned()),
            None if is_rules => {
                let path = folder.join(&name);
                mistakes.push(Mistake::in_file(&path.to_string_lossy(), "its name is not UTF-8: rename it"));
            }
            _ => {}
        }
        if names.len() > MAX_FILES {
            return Err(format!("has more than {MAX_FILES} files: merge some"));
        }
    }
    Ok(names)
}

fn check_folder(folder: &Path, user: u32) -> Result<(), String> {
    let metadata = fs::metadata(folder).map_err(|error| format!("cannot be accessed: {error}"))?;
    if !metadata.is_dir() {
        return Err("is not a folder: put the rule files into a folder of this name".to_owned());
    }
    trusted(&metadata, user)
}

/// Fails if anybody except root and the user could have written the file.
fn trusted(metadata: &Metadata, user: u32) -> Result<(), String> {
    let (owner, mode) = (metadata.uid(), metadata.mode());
    if owner != 0 && owner != user {
        return Err(format!("belongs to user {owner}, but only files of root and of user {user} are read: chown it"));
    }
    // Many systems give each user a group of the same number and create files writable by that group.
    let is_groups = mode & GROUP_WRITES != 0 && metadata.gid() != owner;
    match is_groups || mode & OTHERS_WRITE != 0 {
        true => Err("is writable by others: chmod go-w it".to_owned()),
        false => Ok(()),
    }
}

/// Resolves symbolic links; fails if the target is outside the folder.
fn inside(folder: &Path, path: &Path) -> Result<PathBuf, String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| format!("cannot be found: {error}"));
    let (folder, target) = (real(folder)?, real(path)?);
    match target.starts_with(&folder) {
        true => Ok(target),
        false => Err(format!(
            "is a link out of its folder, to {}: copy the file here (an empty file masks a lower one)",
            clean(&target.to_string_lossy())
        )),
    }
}

/// The contents of a regular file of at most [`MAX_FILE`] bytes, owned by root or this user. The open file is checked,
/// so that nobody can replace it between the check and the read.
fn contents(path: &Path, user: Option<u32>) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    // Do not block if the file is a pipe.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if !metadata.is_file() {
        return Err("is not a regular file: write the rules into one".to_owned());
    }
    if let Some(user) = user {
        trusted(&metadata, user)?;
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(cannot)?;
    match bytes.len() as u64 > MAX_FILE {
        true => Err("is larger than 1 MB: split it".to_owned()),
        false => Ok(bytes),
    }
}

fn text(file: &str, bytes: Vec<u8>) -> Result<String, Vec<Mistake>> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        vec![Mistake::at(file, error.as_bytes(), at, "is not UTF-8 from this line on: save it as UTF-8")]
    })
}
