# SPDX-License-Identifier: MIT
# Functions for the other scripts, which source this file. It is not a program.
# shellcheck shell=sh

# The same version as rust-version in Cargo.toml.
rust_needed=1.85

# rust_version PROGRAM: prints the program's version as "1.85", or nothing if the program does not run.
rust_version() {
    "$1" --version 2>/dev/null | sed -n 's/^[a-z]* \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p'
}

# new_enough VERSION: succeeds if the version is at least $rust_needed.
new_enough() {
    [ "${1%%.*}" -gt "${rust_needed%%.*}" ] ||
        { [ "${1%%.*}" -eq "${rust_needed%%.*}" ] && [ "${1#*.}" -ge "${rust_needed#*.}" ]; }
}

# find_cargo: sets $cargo to the first cargo that is new enough: the one on PATH, or that of a rustup installation. If
# there is none, fails and sets $cargo_refused to what was found instead, or to an empty string if nothing was found.
find_cargo() {
    cargo=''
    cargo_refused=''
    for candidate in "$(command -v cargo)" "${CARGO_HOME:-${HOME-}/.cargo}/bin/cargo"; do
        [ -x "$candidate" ] || continue
        rustc=${candidate%/*}/rustc
        [ -x "$rustc" ] || rustc=$(command -v rustc) || rustc=''
        for program in "$candidate" "$rustc"; do
            version=''
            [ -z "$program" ] || version=$(rust_version "$program")
            if [ -z "$version" ]; then
                refused="${program:-rustc (missing next to $candidate)}, which does not run"
            elif new_enough "$version"; then
                continue
            else
                refused="$program, version $version"
            fi
            cargo_refused=${cargo_refused:-$refused}
            continue 2
        done
        cargo=$candidate
        return 0
    done
    return 1
}

# use_cargo NAME: calls find_cargo and puts cargo's folder first on PATH. On failure, prints the reason after "NAME:".
use_cargo() {
    if ! find_cargo; then
        echo "$1: xqos needs cargo and rustc $rust_needed or later; found ${cargo_refused:-none}." >&2
        echo "$1: Run scripts/setup to install them." >&2
        return 1
    fi
    PATH=${cargo%/*}:$PATH
    export PATH
}

# can_make_roots NAME: checks that Debian installations can be created and entered here. If not, prints the reason after
# "NAME:" and exits with 77, which means that nothing was checked.
can_make_roots() {
    why=''
    unshare --mount --pid --net --fork true 2>/dev/null || why="this system does not allow new namespaces"
    command -v mmdebstrap >/dev/null || why="mmdebstrap is missing; run scripts/setup --for deb"
    [ "$(id -u)" -eq 0 ] || why="this needs root for mounts: run sudo scripts/$1"
    [ -z "$why" ] || { echo "$1: skipped: $why"; exit 77; }
}

# debian_mirror NAME: prints this system's Debian mirror. If there is none, prints an error after "NAME:" and exits.
debian_mirror() {
    # shellcheck disable=SC2016 # a format of apt's
    found=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
    [ -n "$found" ] || {
        echo "$1: skipped: this system's package sources have no Debian mirror; give one with --mirror URL" >&2
        exit 77
    }
    echo "$found"
}

# apt_options: prints how this system's apt reaches its mirrors, for example through a proxy.
apt_options() {
    apt-config dump 2>/dev/null |
        sed -n '/^Acquire::\(http\|https\|Check-Date\|Check-Valid-Until\|Retries\|ForceIPv4\)\b.*"..*";$/p'
}
