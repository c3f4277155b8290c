// SPDX-License-Identifier: MIT
//! Configuration of an Xorg with the dummy driver, which needs neither a graphics card nor a console.

use super::Setup;
use crate::folder::Folder;
use anyhow::Result;
use std::fs;
use std::os::unix::fs::symlink;

pub(super) const POINTER_SOCKET: &str = "pointer";

pub(super) fn config(setup: &Setup, folder: &Folder) -> Result<String> {
    let mut text = String::new();
    if let Some(module) = &setup.module {
        let private = folder.path("modules");
        fs::create_dir(&private)?;
        symlink(fs::canonicalize(&module.path)?, private.join("xqos.so"))?;
        let paths = format!("ModulePath \"{}\"\n ModulePath \"/usr/lib/xorg/modules\"", private.display());
        text = format!("Section \"Files\"\n {paths}\nEndSection\nSection \"Module\"\n Load \"xqos\"\nEndSection\n");
    }
    let (width, height) = setup.screen;
    let size = format!("  Modes \"{width}x{height}\"\n  Virtual {width} {height}\n EndSubSection\nEndSection\n");
    text.extend([DUMMY, &size]);
    if setup.has_pointer {
        let socket = folder.path(POINTER_SOCKET);
        text += &format!("{POINTER} Option \"SocketPath\" \"{}\"\nEndSection\n", socket.display());
    }
    let device = if setup.has_pointer { " InputDevice \"pointer\" \"CorePointer\"\n" } else { "" };
    Ok(format!("{text}Section \"ServerLayout\"\n Identifier \"layout\"\n Screen \"screen\"\n{device}EndSection\n"))
}

/// No devices of the machine, because nothing outside the test may move a pointer. The last section is open.
const DUMMY: &str = r#"Section "ServerFlags"
 Option "AutoAddDevices" "false"
 Option "AutoEnableDevices" "false"
 Option "AutoAddGPU" "false"
EndSection
Section "Device"
 Identifier "dummy"
 Driver "dummy"
 VideoRam 65536
EndSection
Section "Monitor"
 Identifier "monitor"
 HorizSync 5.0-1000.0
 VertRefresh 5.0-200.0
EndSection
Section "Screen"
 Identifier "screen"
 Device "dummy"
 Monitor "monitor"
 DefaultDepth 24
 SubSection "Display"
  Depth 24
"#;

/// A device of Xorg's own test driver: motion passes through the server's input thread, as from a mouse.
const POINTER: &str = r#"Section "InputDevice"
 Identifier "pointer"
 Driver "inputtest"
 Option "DeviceType" "PointerAbsolute"
"#;
