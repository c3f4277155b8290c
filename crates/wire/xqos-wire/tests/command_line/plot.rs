// SPDX-License-Identifier: MIT
//! Tests `xqos plot`: the formats, and the messages about captures and times that cannot be drawn.

use crate::fixture::{Folder, ended, xqos};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Unpacks a capture of gtk3-demo: two connections, six seconds.
fn capture(folder: &Folder) -> String {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/captures/gtk3-demo.pcapng.zst");
    let file = folder.file("gtk3-demo.pcapng");
    zstd::stream::copy_decode(File::open(packed).unwrap(), File::create(&file).unwrap()).unwrap();
    file
}

#[test]
fn a_capture_becomes_a_page_a_picture_and_a_file_for_xplot() {
    let folder = Folder::new("plot");
    let capture = capture(&folder);
    for (name, begins) in
        [("a.html", "<!doctype html>"), ("a.svg", "<svg xmlns="), ("a.xpl", "timeval double\ntitle\n")]
    {
        let output = folder.file(name);
        let told = ended(xqos().args(["plot", &capture, "-o", &output, "--title", "A toolkit's start"])).with(0);
        let text = fs::read_to_string(&output).unwrap();
        assert!(text.starts_with(begins) && text.len() > 10_000, "{name}: {} bytes", text.len());
        assert!(text.contains("toolkit") && text.contains("start"), "{name} has its title");
        assert_eq!(told.err.contains("drawing connection 1"), name != "a.html", "{}", told.err);
    }
    // --format overrides the extension, and -o has a default.
    let output = folder.file("a.picture");
    ended(xqos().args(["plot", &capture, "-o", &output, "--format", "svg", "--connection", "2"])).with(0);
    assert!(fs::read_to_string(&output).unwrap().contains("connection 2, "));
    ended(xqos().current_dir(&folder.path).args(["plot", &capture, "--to", "1s"])).with(0);
    let part = fs::read(folder.file("plot.html")).unwrap();
    assert!(part.len() < fs::read(folder.file("a.html")).unwrap().len());
    let some = folder.file("some.html");
    ended(xqos().args(["plot", &capture, "-o", &some, "--where", "message=CreateWindow,Expose"])).with(0);
    assert!(fs::read(&some).unwrap().len() < fs::read(folder.file("a.html")).unwrap().len());
    let bare = folder.file("bare.html");
    ended(xqos().args(["plot", &capture, "-o", &bare, "--to", "1s", "--no-fields"])).with(0);
    assert!(fs::read(&bare).unwrap().len() < part.len(), "fields take room");
}

#[test]
fn failures_are_reported_in_one_line() {
    let folder = Folder::new("plot-bad");
    let capture = capture(&folder);
    let html = folder.file("x.html");
    let plot = |arguments: &[&str]| ended(xqos().arg("plot").args(arguments));
    plot(&[&capture, "-o", "x.png"]).failed_saying(&["x.png", ".svg", "--format"]);
    plot(&["/nowhere.pcap", "-o", &html]).failed_saying(&["/nowhere.pcap"]);
    plot(&[&capture, "-o", "/nowhere/x.html"]).failed_saying(&["/nowhere/x.html"]);
    plot(&[&capture, "-o", &html, "--connection", "7"]).failed_saying(&["no connection 7", "has 2"]);
    for late in ["100s", "2h"] {
        plot(&[&capture, "-o", &html, "--from", late]).failed_saying(&["nothing was sent", "5.993 s"]);
    }
    plot(&[&capture, "-o", &html, "--where", "message=BadAlloc"]).failed_saying(&["no message of --where"]);
    plot(&[&capture, "-o", &html, "--from", "2s", "--to", "1s"]).failed_saying(&["--from", "before"]);
    let text = folder.file("text.pcap");
    File::create(&text).unwrap().write_all(b"no capture at all, but long enough to be one").unwrap();
    plot(&[&text, "-o", &html]).failed_saying(&["text.pcap"]);
    assert!(!Path::new(&html).exists(), "nothing was written");
    let wrong: [(&[&str], &str); 4] = [
        (&[], "FILE"),
        (&[&capture, "--connection", "0"], "0 is not in"),
        (&[&capture, "--from", "1"], "unit"),
        (&[&capture, "--format", "png"], "svg"),
    ];
    for (arguments, words) in wrong {
        let told = plot(arguments).with(2);
        assert!(told.err.contains(words), "{arguments:?}: {}", told.err);
    }
}

#[test]
fn a_full_disk_leaves_the_existing_file_and_nothing_else() {
    let folder = Folder::new("plot-full");
    let capture = capture(&folder);
    let output = folder.file("kept");
    fs::write(&output, "before").unwrap();
    let names = || fs::read_dir(&folder.path).unwrap().count();
    let before = names();
    for arguments in [&["plot", "--format", "html", &capture][..], &["cap", "-r", &capture]] {
        // A limit on file sizes acts like a full disk.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh", crate::PROGRAM]).args(arguments);
        ended(shell.args(["-o", &output])).failed_saying(&["cannot write", &output, "File too large"]);
        assert_eq!((fs::read_to_string(&output).unwrap().as_str(), names()), ("before", before), "{arguments:?}");
    }
    ended(xqos().args(["plot", "--format", "svg", &capture, "-o", &output])).with(0);
    assert_eq!((fs::read_to_string(&output).unwrap().starts_with("<svg"), names()), (true, before));
}

#[test]
fn a_truncated_capture_is_drawn_up_to_its_end() {
    let folder = Folder::new("plot-cut");
    let whole = fs::read(capture(&folder)).unwrap();
    let (cut, html) = (folder.file("cut.pcapng"), folder.file("cut.html"));
    for part in 1..8 {
        fs::write(&cut, &whole[..whole.len() * part / 8]).unwrap();
        let ended = ended(xqos().args(["plot", &cut, "-o", &html]));
        assert!([0, 1].contains(&ended.status) && !ended.err.contains("panicked"), "{ended:#?}");
    }
}
