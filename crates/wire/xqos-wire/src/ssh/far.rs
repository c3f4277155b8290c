// SPDX-License-Identifier: MIT
//! Commands that run on the far side. They are scripts for a POSIX shell, whatever the user's login shell is.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

#[derive(Clone, Debug)]
pub struct Remote<'a> {
    pub host: &'a str,
    /// Part of the names of this session's files on the far side.
    pub token: &'a str,
    /// Whether this program was copied to the far side for this session.
    pub is_copied: bool,
    /// Value of DISPLAY for `xqos near`; `None` if ssh forwards X11 and sets it.
    pub display: Option<String>,
    /// Options for `xqos near`.
    pub options: Vec<&'static str>,
    pub program: &'a [OsString],
}

/// The session's folder on the far side, which only its user can access.
fn folder(token: &str) -> String {
    format!("/tmp/xqos-{token}")
}

/// The session's socket on the far side. The cache of `xqos near` has a folder of its name.
pub fn socket(token: &str) -> String {
    format!("{}/ssh", folder(token))
}

/// Creates the session's folder, and reads the socket's authority file of that length from standard input.
pub fn prepare(token: &str, length: usize) -> String {
    let folder = folder(token);
    in_shell(format!(
        "umask 077; mkdir {folder} && dd bs=1 count={length} of={folder}/authority 2>/dev/null && \
         cat \"${{XAUTHORITY:-$HOME/.Xauthority}}\" >> {folder}/authority 2>/dev/null; test -s {folder}/authority"
    ))
}

/// Finds xqos-wire, saves the shell's process id for [`signal`], and replaces the shell with `xqos-wire near`.
pub fn run(remote: &Remote<'_>) -> String {
    let Remote { host, token, is_copied, display, options, program } = remote;
    let folder = folder(token);
    let host = plain(host);
    let options = options.iter().map(|option| format!(" {option}")).collect::<Vec<_>>().concat();
    let find = if *is_copied {
        format!("near={folder}/xqos-wire")
    } else {
        "near=$(PATH=\"$PATH:$HOME/.local/bin:$HOME/bin:/usr/local/bin\"; command -v xqos-wire)".to_owned()
    };
    let display = match display {
        Some(display) => format!("export DISPLAY={display} XAUTHORITY={folder}/authority"),
        None => format!(
            "if [ -z \"$DISPLAY\" ]; then \
             echo 'xqos: {host} does not forward X11 either: sshd there needs X11Forwarding yes, and the program xauth' >&2; \
             exit 1; fi"
        ),
    };
    let mut script = format!(
        "{display}\n\
         {find}\n\
         if [ ! -x \"$near\" ]; then \
         echo 'xqos: xqos-wire is not installed on {host}: install it there, or add --copy to copy this one for the session' >&2; \
         exit 1; fi\n\
         echo $$ > {folder}/pid\n\
         exec \"$near\" near --session {folder}{options} --"
    )
    .into_bytes();
    script.extend(starter(program).bytes());
    program.iter().for_each(|word| script.extend([b" ", &*quoted(word.as_bytes())].concat()));
    in_shell(script)
}

/// The prefix that starts the program. As with ssh, the words may begin with assignments, or be one shell command.
fn starter(program: &[OsString]) -> &'static str {
    let is_for_shell = |letter: &u8| letter.is_ascii_whitespace() || b";&|<>()$`\"'\\*?[]~#!{}^".contains(letter);
    match program {
        [command] if command.as_bytes().iter().any(is_for_shell) => " \"${SHELL:-/bin/sh}\" -c",
        [first, ..] if is_assignment(first.as_bytes()) => " env",
        _ => "",
    }
}

fn is_assignment(word: &[u8]) -> bool {
    let name = word.iter().take_while(|letter| letter.is_ascii_alphanumeric() || **letter == b'_').count();
    name > 0 && !word[0].is_ascii_digit() && word.get(name) == Some(&b'=')
}

/// Reads the program from standard input and installs it, if it can run on the far side.
pub fn copy(host: &str, token: &str, machine: &str) -> String {
    let (host, folder) = (plain(host), folder(token));
    in_shell(format!(
        "machine=$(uname -sm)\n\
         if [ \"$machine\" != {} ]; then \
         echo \"xqos: {host} is $machine, unlike this machine: install xqos-wire there\" >&2; exit 1; fi\n\
         cat > {folder}/xqos-wire && chmod 700 {folder}/xqos-wire && \
         if ! said=$({folder}/xqos-wire --version 2>&1); then \
         echo \"xqos: the copy does not run on {host}: $said\" >&2; exit 1; fi",
        String::from_utf8_lossy(&quoted(machine.as_bytes()))
    ))
}

/// Sends a signal to the process that [`run`] has started.
pub fn signal(token: &str, signal: i32) -> String {
    in_shell(format!("kill -{signal} \"$(cat {}/pid)\"", folder(token)))
}

pub fn clean(token: &str) -> String {
    in_shell(format!("rm -rf {}", folder(token)))
}

/// Runs a script in sh, because the user may have any login shell. csh takes neither a newline nor `!` in quotes, and
/// fish changes backslashes there, so all such characters are sent as octal numbers.
fn in_shell(script: impl AsRef<[u8]>) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" /.-_=:;,+@%&|<>()[]{}*?#~".contains(&byte);
    let encoded = |&byte: &u8| if plain(byte) { char::from(byte).to_string() } else { format!("\\0{byte:03o}") };
    let script: String = script.as_ref().iter().map(encoded).collect();
    format!("exec /bin/sh -c 'eval \"$(printf %b \"{script}\")\"'")
}

fn quoted(word: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = word.split(|&letter| letter == b'\'').collect();
    [b"'", &*parts.join(&b"'\\''"[..]), b"'"].concat()
}

/// Removes unsafe characters from a host name that a shell will print.
fn plain(host: &str) -> String {
    host.chars().filter(|letter| letter.is_ascii_alphanumeric() || "@.-_:[]%".contains(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::process::Command;

    /// Runs the far side's script here in this login shell, with `echo` in place of xqos-wire.
    fn run_in(login_shell: &str, program: &[&[u8]]) -> Vec<u8> {
        let program: Vec<OsString> = program.iter().map(|word| OsStr::from_bytes(word).to_owned()).collect();
        let token = format!("test-{}-{login_shell}", std::process::id());
        let remote = Remote {
            host: "far",
            token: &token,
            is_copied: true,
            display: Some(socket(&token)),
            options: vec!["--relaxed"],
            program: &program,
        };
        let shell = |script: &str| Command::new(login_shell).args(["-c", script]).output().unwrap();
        shell(&prepare(&token, 0));
        symlink("/bin/echo", format!("{}/xqos-wire", folder(&token))).unwrap();
        let output = shell(&run(&remote));
        shell(&clean(&token));
        assert!(!Path::new(&folder(&token)).exists());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let begin = format!("near --session {} --relaxed -- ", folder(&token));
        output.stdout.strip_prefix(begin.as_bytes()).expect("the program comes last").to_vec()
    }

    #[test]
    fn program_arguments_arrive_unchanged_through_every_login_shell() {
        for login_shell in ["sh", "bash", "tcsh"] {
            if login_shell == "tcsh" && xqos_testkit::program("tcsh").is_none() {
                continue;
            }
            for words in [
                &[&b"xterm"[..], b"-e", b"it's $HOME \"x\"; `ls` | (cd \\\\a) > b & * ~ #"][..],
                &[b"a\nb\\", b"caf\xe9 \xc3\xa9", b"hi! !! !x %s\t\x01", b"\\0101\\c"],
            ] {
                let expected = [words.join(&b' '), b"\n".to_vec()].concat();
                let arrived = run_in(login_shell, words);
                assert_eq!(arrived, expected, "{login_shell}: {}", String::from_utf8_lossy(&arrived));
            }
        }
    }

    #[test]
    fn only_assignments_and_single_commands_are_interpreted() {
        let starter = |words: &[&str]| super::starter(&words.iter().map(OsString::from).collect::<Vec<_>>());
        for command in ["cd /usr; pwd", "LC_ALL=C xterm", "~/bin/program", "true&&false"] {
            assert_eq!(starter(&[command]), " \"${SHELL:-/bin/sh}\" -c", "{command}");
        }
        assert_eq!((starter(&["LC_ALL=C", "xterm"]), starter(&["_a1=", "b=c", "xterm", "-e"])), (" env", " env"));
        for words in [&["xterm"][..], &["/usr/bin/a-b_c.d+1"], &["echo", "$HOME;"], &["./a=b", "c"], &["1a=b"], &["=a"]]
        {
            assert_eq!(starter(words), "", "{words:?}");
        }
    }

    #[test]
    fn host_names_cannot_inject_shell_code() {
        assert_eq!(plain("me@far.example"), "me@far.example");
        assert_eq!(plain("x'; rm -rf $HOME; '"), "xrm-rfHOME");
    }
}
