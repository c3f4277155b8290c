// SPDX-License-Identifier: MIT
//! X through ssh: a daemon at the program's end that accepts only this cell's key, and a client at the server's end.
//!
//! `-Y` trusts the program, as Debian's configuration does even with `-X`. Without it, the server's SECURITY extension
//! refuses requests that today's toolkits make. The user's own ssh is not touched: keys, files and settings are those
//! of the cell.

use super::Site;
use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result, bail};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use xqos_wire::link::Side;

const PORT: u16 = 2222;
/// When run as root, sshd refuses to start without this folder.
const PRIVILEGE_FOLDER: &str = "/run/sshd";

/// Debian's ssh service creates this folder, but the service may not be running here. The folder is removed when this
/// is dropped, unless it existed before. All cells share it.
#[derive(Debug)]
pub(super) struct PrivilegeFolder(bool);

impl PrivilegeFolder {
    pub fn make() -> PrivilegeFolder {
        // If it cannot be created, sshd reports what is missing.
        let made = fs::create_dir(PRIVILEGE_FOLDER);
        let made = made.and_then(|()| fs::set_permissions(PRIVILEGE_FOLDER, Permissions::from_mode(0o755)));
        PrivilegeFolder(made.is_ok())
    }
}

impl Drop for PrivilegeFolder {
    fn drop(&mut self) {
        if self.0 {
            let _ = fs::remove_dir(PRIVILEGE_FOLDER);
        }
    }
}

/// Starts daemon and client. The program starts once they are connected. As root this needs a [`PrivilegeFolder`].
pub(super) fn start(site: &Site, program: &[&str], compressed: bool) -> Result<Vec<Owned>> {
    let daemon = daemon(site)?;
    let mut command = Command::new(program::find("ssh")?);
    let compression = if compressed { "Compression=yes" } else { "Compression=no" };
    command.args(options(site)).args(["-Y", "-T", "-o", compression]);
    let quoted = program.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    command.arg(Side::Client.address().to_string()).arg(format!("exec {quoted}"));
    Ok(vec![site.start(Side::Server, "program", &site.near_display(), &mut command)?, daemon])
}

/// The daemon at the program's end. Only clients with [`options`] can log in.
pub(super) fn daemon(site: &Site) -> Result<Owned> {
    for name in ["host", "user"] {
        let mut command = Command::new(program::find("ssh-keygen")?);
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(site.path(name));
        let made = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("cannot run ssh-keygen")?;
        if !made.success() {
            bail!("ssh-keygen did not create a key");
        }
    }
    fs::copy(site.path("user.pub"), site.path("authorized_keys"))?;
    fs::write(site.path("sshd_config"), settings(site))?;
    // sshd starts itself again for each connection, so it must be started by its full path.
    let mut command = Command::new(program::find("sshd")?);
    command.args(["-D", "-e", "-f"]).arg(site.path("sshd_config"));
    let mut daemon = site.start(Side::Client, "sshd", "", &mut command)?;
    site.wait_for(PORT, &mut [("sshd", &mut daemon)])?;
    Ok(daemon)
}

/// Options for an ssh client at the server's end, or for a program that passes them on to ssh.
pub(super) fn options(site: &Site) -> Vec<String> {
    let user = site.path("user").display().to_string();
    let known = format!("UserKnownHostsFile={}", site.path("known").display());
    // A key exchange over 10 kb/s takes seconds.
    let settings = "StrictHostKeyChecking=no GlobalKnownHostsFile=none IdentitiesOnly=yes BatchMode=yes LogLevel=ERROR \
                    ConnectTimeout=60 IdentityAgent=none";
    let mut all = ["-F", "none", "-p", &PORT.to_string(), "-i", &user].map(str::to_owned).to_vec();
    let settings = settings.split(' ').chain([known.as_str()]);
    all.extend(settings.flat_map(|setting| ["-o".to_owned(), setting.to_owned()]));
    all
}

fn settings(site: &Site) -> String {
    let path = |name: &str| site.path(name).display().to_string();
    // SetEnv takes all variables on one line.
    let setting = |all: String, (name, value): &(String, String)| all + " " + name + "=\"" + value + "\"";
    let set = site.environment().iter().fold(String::new(), setting);
    format!(
        "Port {PORT}\nAddressFamily inet\nListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
         PermitRootLogin yes\nPubkeyAuthentication yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitUserRC no\nPrintMotd no\nPrintLastLog no\nX11Forwarding yes\nX11UseLocalhost yes\nX11DisplayOffset 10\n\
         XAuthLocation {}\nCompression yes\nUseDNS no\nSetEnv{set}\n",
        Side::Client.address(),
        path("host"),
        path("authorized_keys"),
        program::find("xauth").map_or_else(|_| "xauth".to_owned(), |place| place.display().to_string()),
    )
}
