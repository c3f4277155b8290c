// SPDX-License-Identifier: MIT
//! Loading of rules from folders, including files of untrusted users.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use xqos_rules::files::{FileStatus, Folder, Loaded, Loader, MAX_FILES, default_folders};
use xqos_rules::read::Scope;

/// Three folders that are removed after the test.
struct Places {
    top: PathBuf,
    loader: Loader,
}

impl Places {
    fn new(name: &str) -> Places {
        let top = std::env::temp_dir().join(format!("xqos-rules-{name}-{}", std::process::id()));
        fs::create_dir_all(&top).unwrap();
        let scopes = [("lib", Scope::System), ("etc", Scope::System), ("home", Scope::User)];
        let folders = scopes.map(|(name, scope)| Folder { path: top.join(name), scope });
        for folder in &folders {
            fs::create_dir_all(&folder.path).unwrap();
            fs::set_permissions(&folder.path, Permissions::from_mode(0o755)).unwrap();
        }
        let user = fs::metadata(&top).unwrap().uid();
        Places { loader: Loader::new(folders.to_vec(), user), top }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o644)).unwrap();
    }

    fn load(&mut self) -> Loaded {
        self.loader.load()
    }

    /// Ids of the active rules, and the mistakes without the folder's path.
    fn loaded(&mut self) -> (Vec<String>, Vec<String>) {
        let loaded = self.loader.load();
        let top = format!("{}/", self.top.display());
        let ids = loaded.rules.rules().iter().map(|rule| rule.id.clone()).collect();
        (ids, loaded.mistakes.iter().map(|mistake| mistake.to_string().replace(&top, "")).collect())
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

fn rules(ids: &[&str]) -> String {
    let rule = |id: &&str| format!("[[rule]]\nid = \"{id}\"\nmatch = {{ exe = \"*\" }}\nset = {{ weight = 2 }}\n");
    "version = 1\n".to_owned() + &ids.iter().map(rule).collect::<String>()
}

#[test]
fn files_are_sorted_by_name_and_replace_lower_ones() {
    let mut places = Places::new("order");
    places.write("lib/50-b.toml", rules(&["b1", "b2"]));
    places.write("lib/90-c.toml", rules(&["c"]));
    places.write("etc/10-a.toml", rules(&["a"]));
    places.write("home/50-b.toml", rules(&["mine"]));
    places.write("home/README", "no rules");
    places.write("home/.#50-b.toml", "an editor's");
    assert_eq!(places.loaded(), (vec!["a".into(), "mine".into(), "c".into()], vec![]));
    let masked = FileStatus::MaskedBy(places.path("home/50-b.toml"));
    let expected = [
        ("etc/10-a.toml", FileStatus::Active),
        ("lib/50-b.toml", masked),
        ("home/50-b.toml", FileStatus::Active),
        ("lib/90-c.toml", FileStatus::Active),
    ];
    let files = places.load().files;
    let expected = expected.map(|(name, status)| (places.path(name), status));
    assert_eq!(files.into_iter().map(|file| (file.path, file.status)).collect::<Vec<_>>(), expected);
}

#[test]
fn an_empty_file_masks_lower_ones() {
    let mut places = Places::new("empty");
    places.write("lib/50-b.toml", rules(&["b"]));
    places.write("etc/50-b.toml", "");
    assert_eq!(places.loaded(), (vec![], vec![]));
    assert_eq!(places.load().files[1].status, FileStatus::Empty);
    fs::remove_file(places.path("etc/50-b.toml")).unwrap();
    assert_eq!(places.loaded().0, ["b"]);
}

#[test]
fn a_broken_file_keeps_its_last_good_version() {
    let mut places = Places::new("broken");
    places.write("lib/50-b.toml", rules(&["b"]));
    places.write("home/50-b.toml", rules(&["good"]));
    assert_eq!(places.loaded().0, ["good"]);
    places.write("home/50-b.toml", "version = 1\n[[rule]\n");
    let (ids, mistakes) = places.loaded();
    assert_eq!(ids, ["good"]);
    assert!(mistakes[0].starts_with("home/50-b.toml:2: invalid TOML: "), "{mistakes:?}");
    assert_eq!(places.load().files[1].status, FileStatus::Refused { kept: true });
    places.write("home/50-b.toml", rules(&["mended"]));
    assert_eq!(places.loaded(), (vec!["mended".into()], vec![]));
    fs::remove_file(places.path("home/50-b.toml")).unwrap();
    assert_eq!(places.loaded().0, ["b"], "removing a file removes its rules");
    places.write("home/50-b.toml", "version = 3");
    assert_eq!(places.loaded().0, [""; 0], "and forgets its good version");
    assert_eq!(places.load().files[1].status, FileStatus::Refused { kept: false });
}

#[test]
fn files_that_others_could_have_written_are_refused() {
    let mut places = Places::new("others");
    places.write("home/50-b.toml", rules(&["b"]));
    assert_eq!(places.loaded().0, ["b"]);
    places.write("home/60-w.toml", rules(&["w"]));
    fs::set_permissions(places.path("home/60-w.toml"), Permissions::from_mode(0o666)).unwrap();
    let (ids, mistakes) = places.loaded();
    assert_eq!(
        (ids, mistakes),
        (vec!["b".into()], vec!["home/60-w.toml: is writable by others: chmod go-w it".into()])
    );
    fs::remove_file(places.path("home/60-w.toml")).unwrap();
    fs::set_permissions(places.path("home"), Permissions::from_mode(0o777)).unwrap();
    places.write("home/70-x.toml", rules(&["x"]));
    let (ids, mistakes) = places.loaded();
    assert_eq!(ids, ["b"], "earlier rules stay, and none are added");
    assert!(mistakes[0].starts_with("home: is writable by others"), "{mistakes:?}");
}

#[test]
fn files_of_another_user_are_refused() {
    let mut places = Places::new("foreign");
    places.write("home/50-b.toml", rules(&["b"]));
    let owner = fs::metadata(places.path("home/50-b.toml")).unwrap().uid();
    match owner {
        // Files of root are always accepted, so the test gives the file to another user.
        0 => chown(places.path("home/50-b.toml"), Some(12345), None).unwrap(),
        _ => places.loader = Loader::new(places.loader.folders().to_vec(), owner + 1),
    }
    let (ids, mistakes) = places.loaded();
    assert_eq!(ids, [""; 0]);
    assert!(mistakes.iter().any(|told| told.contains("belongs to user") && told.contains("chown it")), "{mistakes:?}");
}

/// In a folder with these permissions, like /tmp, everybody can create files, but only their owners can delete them.
#[test]
fn a_world_writable_folder_is_refused_with_its_files() {
    let mut places = Places::new("sticky");
    places.write("lib/50-b.toml", rules(&["b"]));
    fs::set_permissions(places.path("home"), Permissions::from_mode(0o1777)).unwrap();
    places.write("home/50-b.toml", rules(&["mine"]));
    places.write("home/60-x.toml", rules(&["theirs"]));
    if fs::metadata(places.path("home")).unwrap().uid() == 0 {
        chown(places.path("home/60-x.toml"), Some(12345), None).unwrap();
    }
    let (ids, mistakes) = places.loaded();
    assert_eq!(ids, ["b"], "the system's file is used");
    assert_eq!(mistakes, ["home: is writable by others: chmod go-w it"]);
    fs::set_permissions(places.path("home"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(places.loaded().0[0], "mine", "after the mode is fixed");
}

#[test]
fn links_are_followed_only_within_their_folder() {
    let mut places = Places::new("links");
    places.write("elsewhere.toml", rules(&["stolen"]));
    places.write("home/50-b.toml", rules(&["b"]));
    let link = |to: &Path, name: &str| symlink(to, places.path(name)).unwrap();
    link(Path::new("50-b.toml"), "home/60-again.toml");
    link(&places.path("elsewhere.toml"), "home/70-out.toml");
    link(Path::new("/dev/null"), "home/80-null.toml");
    link(Path::new("nothing"), "home/90-dangling.toml");
    link(Path::new("91-loop.toml"), "home/91-loop.toml");
    let (ids, mistakes) = places.loaded();
    assert_eq!(ids, ["b", "b"]);
    let out = "is a link out of its folder, to ";
    let expected = [
        ("home/70-out.toml: ", out),
        ("home/80-null.toml: ", out),
        ("home/90-dangling.toml: ", "cannot be found"),
        ("home/91-loop.toml: ", "cannot be found"),
    ];
    assert_eq!(mistakes.len(), expected.len(), "{mistakes:?}");
    for (told, (place, words)) in mistakes.iter().zip(expected) {
        assert!(told.starts_with(place) && told.contains(words), "{told}");
    }
}

#[test]
fn only_text_files_are_read() {
    let mut places = Places::new("kinds");
    places.write("home/10-latin.toml", b"version = 1\n# caf\xe9\n");
    fs::create_dir(places.path("home/20-folder.toml")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, places.path("home/30-pipe.toml"), rustix::fs::Mode::from_raw_mode(0o600))
        .unwrap();
    places.write("home/40-large.toml", vec![b'#'; 10_000_000]);
    places.write("home/50-limits.toml", "version = 1\n[limits]\nauto = 0.1\n");
    places.write("home/60-good.toml", rules(&["good"]));
    let (ids, mistakes) = places.loaded();
    assert_eq!(ids, ["good"], "the others do not affect it");
    let expected = [
        "home/10-latin.toml:2: is not UTF-8 from this line on",
        "home/20-folder.toml: is not a regular file",
        "home/30-pipe.toml: is not a regular file",
        "home/40-large.toml: is larger than 1 MB",
        "home/50-limits.toml:2: limits restrict users",
    ];
    assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
    for (told, expected) in mistakes.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}");
    }
}

#[test]
fn more_than_ten_thousand_rules_are_refused() {
    let mut places = Places::new("many");
    let ids: Vec<String> = (0..6000).map(|at| format!("r{at}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    places.write("lib/50-a.toml", rules(&ids));
    places.write("home/60-b.toml", rules(&ids));
    places.write("home/70-c.toml", rules(&["c"]));
    let (ids, mistakes) = places.loaded();
    assert_eq!((ids.len(), ids.last().unwrap().as_str()), (6001, "c"));
    assert_eq!(mistakes, ["home/60-b.toml: brings the total to 12000 rules, more than 10000: this file is ignored"]);
}

#[test]
fn a_folder_with_too_many_files_is_refused() {
    let mut places = Places::new("files");
    places.write("lib/50-a.toml", rules(&["a"]));
    for at in 0..=MAX_FILES {
        places.write(&format!("home/{at}.toml"), "");
    }
    let (ids, mistakes) = places.loaded();
    assert_eq!(ids, ["a"]);
    assert_eq!(mistakes, ["home: has more than 256 files: merge some"]);
}

#[test]
fn later_limits_override_earlier_ones() {
    let mut places = Places::new("limits");
    places.write("lib/50-a.toml", "version = 1\n[limits]\nauto = 0.6\nper_user = 0.3\n");
    places.write("etc/60-b.toml", "version = 1\n[limits]\nauto = 0.2\n");
    let limits = places.load().limits;
    assert_eq!((limits.auto, limits.per_user), (Some(200_000), Some(300_000)));
}

#[test]
fn the_last_default_folder_is_the_users() {
    let paths = |config: Option<&str>, home: Option<&str>| -> Vec<String> {
        let folders = default_folders(None, config.map(PathBuf::from), home.map(PathBuf::from));
        folders.iter().map(|folder| folder.path.display().to_string()).collect()
    };
    let system = ["/usr/lib/xqos/rules.d", "/etc/xqos/rules.d"];
    assert_eq!(paths(None, None), system);
    assert_eq!(
        default_folders(Some("/usr/local/lib/xqos/rules.d".into()), None, None)[0].path,
        Path::new("/usr/local/lib/xqos/rules.d")
    );
    assert_eq!(paths(None, Some("/home/a"))[2], "/home/a/.config/xqos/rules.d");
    assert_eq!(paths(Some("/conf"), Some("/home/a"))[2], "/conf/xqos/rules.d");
    assert_eq!(paths(Some("relative"), Some("/home/a"))[2], "/home/a/.config/xqos/rules.d");
}
