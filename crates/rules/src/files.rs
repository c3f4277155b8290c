// SPDX-License-Identifier: MIT
//! The folders that rules are read from; the only file here that does I/O.
//!
//! A file replaces the one of the same name in a lower folder, an empty one masks it. Files count in the order of their
//! names. What others could have written is refused: a file or folder that others may write to or that is another user's, a
//! link that leads out of its folder. A file that is refused or broken keeps its last good version as long as the loader
//! lives, so a load never takes rules away because of a mistake.

use crate::decide::RuleSet;
use crate::mistake::Mistake;
use crate::read::{self, File, MAX_FILE, MAX_RULES, Scope};
use crate::rule::{Limits, Rule};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Files of one folder that count. With files of 1 MB it bounds what a load may cost.
pub const MAX_FILES: usize = 256;
/// Where the rules of packages are.
const OF_PACKAGES: &str = "/usr/lib/xqos/rules.d";
/// Where those of the machine are.
const OF_MACHINE: &str = "/etc/xqos/rules.d";
/// Bits of a mode: a group, and everybody, may write.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// A place of rule files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    pub scope: Scope,
}

/// The usual places, the lowest first. `packages`: where an installation elsewhere than in /usr has its rules; `config`:
/// XDG_CONFIG_HOME, and `home`: HOME, where they are set.
pub fn usual(packages: Option<PathBuf>, config: Option<PathBuf>, home: Option<PathBuf>) -> Vec<Folder> {
    let config = config.filter(|path| path.is_absolute()).or_else(|| Some(home?.join(".config")));
    let of_user = config.map(|config| Folder { path: config.join("xqos/rules.d"), scope: Scope::User });
    let of_system = |path: PathBuf| Folder { path, scope: Scope::System };
    let packages = packages.unwrap_or_else(|| OF_PACKAGES.into());
    [of_system(packages), of_system(OF_MACHINE.into())].into_iter().chain(of_user).collect()
}

/// What has become of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Counts,
    /// Has no rules, and masks those below.
    Empty,
    /// The file that replaces it.
    MaskedBy(PathBuf),
    /// It was refused; `kept`: its last good version counts.
    Refused {
        kept: bool,
    },
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub path: PathBuf,
    pub standing: Standing,
}

/// What a load came to.
#[derive(Debug, Default)]
pub struct Loaded {
    pub rules: RuleSet,
    pub limits: Limits,
    /// In the order in which they count; a masked one stands before that which masks it.
    pub files: Vec<Listed>,
    pub mistakes: Vec<Mistake>,
}

/// Reads rule files, again and again.
#[derive(Debug)]
pub struct Loader {
    folders: Vec<Folder>,
    user: u32,
    /// The last good version of each file.
    good: HashMap<PathBuf, File>,
    /// What was in each folder when it could be listed.
    listings: HashMap<PathBuf, Vec<String>>,
}

impl Loader {
    /// Only files of `user` and of root are taken.
    pub fn new(folders: Vec<Folder>, user: u32) -> Loader {
        Loader { folders, user, good: HashMap::new(), listings: HashMap::new() }
    }

    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Reads everything anew.
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
            let masked =
                |folder: &Folder| Listed { path: folder.path.join(&name), standing: Standing::MaskedBy(path.clone()) };
            loaded.files.extend(folders.iter().map(masked));
            self.take(&top, path, &mut rules, &mut loaded);
        }
        let files = &loaded.files;
        self.good.retain(|path, _| files.iter().any(|file| file.path == *path));
        Loaded { rules: RuleSet::new(rules), ..loaded }
    }

    /// One file that nothing masks.
    fn take(&mut self, folder: &Folder, path: PathBuf, rules: &mut Vec<Rule>, loaded: &mut Loaded) {
        let (kept, standing) = match self.read(folder, &path) {
            Ok(file) => {
                let standing = if is_empty(&file) { Standing::Empty } else { Standing::Counts };
                self.good.insert(path.clone(), file.clone());
                (Some(file), standing)
            }
            Err(mistakes) => {
                loaded.mistakes.extend(mistakes);
                let kept = self.good.get(&path).cloned();
                let standing = Standing::Refused { kept: kept.is_some() };
                (kept, standing)
            }
        };
        let file = kept.unwrap_or_default();
        let all = rules.len() + file.rules.len();
        if all > MAX_RULES {
            let what = format!("with its rules there are {all}, and at most {MAX_RULES} count: none of them does");
            loaded.mistakes.push(Mistake::whole(&path.to_string_lossy(), what));
            loaded.files.push(Listed { path, standing: Standing::Refused { kept: false } });
            return;
        }
        loaded.limits = loaded.limits.overridden_by(file.limits);
        rules.extend(file.rules);
        loaded.files.push(Listed { path, standing });
    }

    /// The names of a folder's rule files; those of the last time where it cannot be believed.
    fn listing(&mut self, folder: &Folder, mistakes: &mut Vec<Mistake>) -> Vec<String> {
        match list(&folder.path, self.user, mistakes) {
            Ok(names) => {
                self.listings.insert(folder.path.clone(), names.clone());
                names
            }
            Err(what) => {
                mistakes.push(Mistake::whole(&folder.path.to_string_lossy(), what));
                self.listings.get(&folder.path).cloned().unwrap_or_default()
            }
        }
    }

    fn read(&self, folder: &Folder, path: &Path) -> Result<File, Vec<Mistake>> {
        let shown = path.to_string_lossy();
        let whole = |what: String| vec![Mistake::whole(&shown, what)];
        check_folder(&folder.path, self.user).map_err(whole)?;
        let path = inside(&folder.path, path).map_err(whole)?;
        let bytes = contents(&path, Some(self.user)).map_err(whole)?;
        read::file(&shown, &text(&shown, bytes)?, folder.scope)
    }
}

/// Reads one file by its name, wherever it is and whoever's it is: it was named by whoever asks.
pub fn named(path: &Path, scope: Scope) -> Result<File, Vec<Mistake>> {
    read::file(&path.to_string_lossy(), &named_text(path)?, scope)
}

/// The text of such a file.
pub fn named_text(path: &Path) -> Result<String, Vec<Mistake>> {
    let shown = path.to_string_lossy();
    let bytes = contents(path, None).map_err(|what| vec![Mistake::whole(&shown, what)])?;
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
        // Editors keep hidden files beside those that they change.
        let is_rules = name.as_encoded_bytes().ends_with(b".toml") && !name.as_encoded_bytes().starts_with(b".");
        match name.to_str() {
            Some(name) if is_rules => names.push(name.to_owned()),
            None if is_rules => {
                let path = folder.join(&name);
                mistakes.push(Mistake::whole(&path.to_string_lossy(), "its name is no UTF-8: rename it"));
            }
            _ => {}
        }
        if names.len() > MAX_FILES {
            return Err(format!("at most {MAX_FILES} files of a folder count, and it has more: merge some"));
        }
    }
    Ok(names)
}

fn check_folder(folder: &Path, user: u32) -> Result<(), String> {
    let metadata = fs::metadata(folder).map_err(|error| format!("cannot be looked at: {error}"))?;
    if !metadata.is_dir() {
        return Err("is no folder: rules are files in a folder of this name".to_owned());
    }
    trusted(&metadata, user)
}

/// Whether nobody but root and the user can have written it.
fn trusted(metadata: &Metadata, user: u32) -> Result<(), String> {
    let (owner, mode) = (metadata.uid(), metadata.mode());
    if owner != 0 && owner != user {
        return Err(format!("belongs to user {owner}, and only files of root and of user {user} count: chown it"));
    }
    // A group of the same number is the user's own, as many systems make it; files are then made so.
    let is_groups = mode & GROUP_WRITES != 0 && metadata.gid() != owner;
    match is_groups || mode & OTHERS_WRITE != 0 {
        true => Err("can be written to by others: chmod go-w it".to_owned()),
        false => Ok(()),
    }
}

/// Where a file really is, if that is in its folder.
fn inside(folder: &Path, path: &Path) -> Result<PathBuf, String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| format!("cannot be found: {error}"));
    let (folder, target) = (real(folder)?, real(path)?);
    match target.starts_with(&folder) {
        true => Ok(target),
        false => Err(format!(
            "is a link that leads out of its folder, to {}: copy it here (an empty file masks a lower one)",
            crate::mistake::shown(&target.to_string_lossy())
        )),
    }
}

/// What is in a file, if it is one, of a size that counts, and of this user's or root's. It is looked at after it was opened.
fn contents(path: &Path, user: Option<u32>) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    // A pipe would let us wait for its other end.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if !metadata.is_file() {
        return Err("is no plain file: write the rules into one".to_owned());
    }
    if let Some(user) = user {
        trusted(&metadata, user)?;
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(cannot)?;
    match bytes.len() as u64 > MAX_FILE {
        true => Err("a rule file has at most 1 MB, and this one has more: split it".to_owned()),
        false => Ok(bytes),
    }
}

fn text(file: &str, bytes: Vec<u8>) -> Result<String, Vec<Mistake>> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        vec![Mistake { file: file.into(), line, what: "is no UTF-8 from here on: save it as such".to_owned() }]
    })
}
