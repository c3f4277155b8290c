// SPDX-License-Identifier: MIT
//! Finds the module that X servers load.

use anyhow::{Context, Result, bail};
use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const INSTALLED: [&str; 2] = ["/usr/local/lib/xqos/xqos.so", "/usr/lib/xqos/xqos.so"];

/// Absolute path of the module: `given`, or else XQOS_MODULE, or else the module near this program, or else the
/// installed module.
pub fn find(given: Option<&Path>) -> Result<PathBuf> {
    let named = given
        .map(|path| (path.to_owned(), "--module"))
        .or_else(|| env::var_os("XQOS_MODULE").map(|path| (path.into(), "XQOS_MODULE")));
    if let Some((path, named_by)) = named {
        return usable(&path).with_context(|| format!("{named_by} does not name a module"));
    }
    let program = env::current_exe().context("cannot find the path of this program: name the module with --module")?;
    let places = places(&program);
    match places.iter().find(|place| place.is_file()) {
        Some(place) => usable(place),
        None => bail!(
            "the module for X servers was not found ({}): install xqos, or name the file with --module or XQOS_MODULE",
            places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Candidate paths, in the order in which they are tried; `program` is the path of this program.
fn places(program: &Path) -> Vec<PathBuf> {
    let folder = program.parent().unwrap_or(Path::new("/"));
    let mut places = vec![folder.join("libxqos_module.so")];
    places.extend(folder.parent().map(|prefix| prefix.join("lib/xqos/xqos.so")));
    for place in INSTALLED.map(PathBuf::from) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn usable(path: &Path) -> Result<PathBuf> {
    let path = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
    if !path.is_file() {
        bail!("{} is not a file", path.display());
    }
    // The dynamic loader splits LD_PRELOAD at spaces and colons.
    if path.as_os_str().as_bytes().iter().any(|&byte| byte == b' ' || byte == b':') {
        bail!("{} cannot be loaded: move it to a folder without spaces and colons in its name", path.display());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_preferred_to_an_installation() {
        let places = places(Path::new("/home/me/xqos/target/release/xqos"));
        let expected = [
            "/home/me/xqos/target/release/libxqos_module.so",
            "/home/me/xqos/target/lib/xqos/xqos.so",
            "/usr/local/lib/xqos/xqos.so",
            "/usr/lib/xqos/xqos.so",
        ];
        assert_eq!(places, expected.map(PathBuf::from));
        let installed = super::places(Path::new("/usr/bin/xqos"));
        assert_eq!(installed[1], Path::new("/usr/lib/xqos/xqos.so"));
        assert_eq!(installed.len(), 3, "no path is tried or named twice");
    }

    #[test]
    fn paths_that_cannot_be_preloaded_are_refused() {
        assert!(usable(Path::new("/nowhere/xqos.so")).unwrap_err().to_string().contains("cannot find"));
        assert!(usable(Path::new("/usr")).unwrap_err().to_string().contains("not a file"));
        let folder = env::temp_dir().join(format!("xqos test {}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("xqos.so");
        std::fs::write(&file, "").unwrap();
        let error = usable(&file).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("without spaces"), "{error}");
    }
}
