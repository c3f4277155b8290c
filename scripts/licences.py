#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists or checks the licences of the crates that are linked into a program.

    licences.py gather PROGRAM FILE    names, versions, licences and their texts
    licences.py check                  each crate of the workspace against deny.toml

Both run cargo (the variable CARGO, or scripts/cargo). The check covers licences and sources as
cargo-deny does; scripts/check-licences prefers cargo-deny if it is installed.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

NAMES = re.compile(r"(?i)^(licen[cs]e|copying|notice|unlicense|copyright)")


def cargo():
    """The command, with options that precede subcommands, such as the folder of vendored crates."""
    return shlex.split(os.environ.get("CARGO", "scripts/cargo"))


def packages():
    output = subprocess.run([*cargo(), "version", "--verbose"], check=True, stdout=subprocess.PIPE, text=True).stdout
    platform = re.search(r"^host: (.*)$", output, re.M).group(1)
    command = [*cargo(), "metadata", "--format-version=1", "--locked", "--filter-platform", platform]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return sorted(metadata["packages"], key=lambda package: (package["name"], package["version"]))


def linked(program):
    """Name and version of each package linked into a program, without those used only in builds, macros and tests."""
    # The package of the program xqos also contains the module for X servers.
    crates = {"xqos": ["xqos", "xqos-server"], "xqos-wire": ["xqos-wire-program"]}.get(program, [program])
    named = [word for crate in crates for word in ("--package", crate)]
    edges = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    command = [*cargo(), "tree", "--locked", *named, *edges]
    tree = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    words = [line.split() for line in tree.splitlines() if line]
    return {(name, version.removeprefix("v")) for name, version, *_ in words}


def texts(package):
    """The licence files of a crate, and of a C library that it includes."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [*folder.iterdir(), *(file for inner in folder.iterdir() if inner.is_dir() for file in inner.iterdir())]
    files = [file for file in files if file.is_file() and NAMES.match(file.name) and file.suffix not in (".rs", ".h")]
    expression = package["license"] or ""
    # If a crate offers a choice of licences, the text of the chosen licence suffices.
    if re.search(r"\bMIT\b", expression) and not re.search(r"\bAND\b", expression):
        chosen = [file for file in files if "mit" in file.name.lower() or file.parent != folder]
        files = chosen or files
    return [(file.relative_to(folder), file.read_text(errors="replace").strip()) for file in sorted(files)]


def gather(program, out):
    wanted = linked(program)
    # Packages without a source are those of xqos.
    crates = [one for one in packages() if one["source"] and (one["name"], one["version"]) in wanted]
    lines = [
        f"{program} is linked with {len(crates)} crates from crates.io and the standard",
        "library of Rust (https://www.rust-lang.org, licence MIT OR Apache-2.0, copyright The Rust Project Developers).",
        "A text that several crates share is printed once.",
        "",
    ]
    by_text = {}
    for crate in crates:
        lines.append(f"  {crate['name']} {crate['version']}: {crate['license']}")
        for name, text in texts(crate):
            by_text.setdefault(text, []).append(f"{crate['name']} {crate['version']} ({name})")
    for text, of in by_text.items():
        lines += ["", "-" * 80, *of, "", text]
    out = pathlib.Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines) + "\n")


def permitted(expression, allowed):
    """Whether the allowed licences satisfy an SPDX expression: OR needs one side, AND both."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def alternatives():
        met = together()
        while words and words[0] == "OR":
            words.pop(0)
            met = together() or met
        return met

    def together():
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one():
        word = words.pop(0)
        if word == "(":
            met = alternatives()
            words.pop(0)
            return met
        if words and words[0] == "WITH":
            word = " ".join([word, words.pop(0), words.pop(0)])
        return word in allowed

    return alternatives()


def check():
    import tomllib

    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)
    allowed = set(rules["licenses"]["allow"])
    wrong = []
    all_of_them = packages()
    for package in all_of_them:
        name = f"{package['name']} {package['version']}"
        if not package["license"] or not permitted(package["license"], allowed):
            wrong.append(f"{name} has the licence {package['license']}, which deny.toml does not allow")
        if package["source"] not in (None, "registry+https://github.com/rust-lang/crates.io-index"):
            wrong.append(f"{name} comes from {package['source']}")
    if wrong:
        sys.exit("\n".join(f"licences: {line}" for line in wrong))
    print(f"licences: {len(all_of_them)} crates comply with deny.toml; install cargo-deny to check for duplicates, too")


def main():
    match sys.argv[1:]:
        case ["gather", program, out]:
            gather(program, out)
        case ["check"]:
            check()
        case _:
            sys.exit(__doc__.strip())


if __name__ == "__main__":
    main()
