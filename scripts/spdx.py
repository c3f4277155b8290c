#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The line that names the licence, at the head of each source file.

    spdx.py          names the files without it
    spdx.py --add    adds it to them

Source is what people write in a programming language; data, documents and what is made by programs have none.
"""

import pathlib
import subprocess
import sys

TAG = "SPDX-License-Identifier: MIT"
COMMENTS = {
    **dict.fromkeys((".rs",), f"// {TAG}"),
    **dict.fromkeys((".c", ".h", ".js", ".css", ".map"), f"/* {TAG} */"),
    **dict.fromkeys((".html", ".xml"), f"<!-- {TAG} -->"),
    **dict.fromkeys((".py", ".sh"), f"# {TAG}"),
}
MAKEFILES = ("Makefile", "debian/rules")
# Made by `xqos bench publish`; goals and figures are data.
NOT_OURS_TO_MARK = ("docs/report/", "data/")


def comment(path):
    """How this file would say it; None where it is no source."""
    if path.startswith(NOT_OURS_TO_MARK):
        return None
    if path in MAKEFILES or pathlib.Path(path).name == "Makefile":
        return f"# {TAG}"
    known = COMMENTS.get(pathlib.Path(path).suffix)
    if known:
        return known
    with open(path, "rb") as file:
        head = file.readline()
    is_script = head.startswith(b"#!")
    return f"# {TAG}" if is_script else None


def has_it(text):
    return any(TAG in line for line in text.splitlines()[:3])


def with_it(text, line):
    """After what has to be the first line: an interpreter, a declaration of XML, a kind of document."""
    first, end, rest = text.partition("\n")
    if first.startswith("#!") or first.startswith("<?xml") or first.lower().startswith("<!doctype"):
        return f"{first}\n{line}{end}{rest}"
    return f"{line}\n{text}"


def main():
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, stdout=subprocess.PIPE, text=True).stdout
    missing = []
    for path in (path for path in listed.split("\0") if path and pathlib.Path(path).is_file()):
        line = comment(path)
        if not line:
            continue
        text = pathlib.Path(path).read_text()
        if has_it(text):
            continue
        missing.append(path)
        if sys.argv[1:] == ["--add"]:
            pathlib.Path(path).write_text(with_it(text, line))
    if sys.argv[1:] == ["--add"]:
        print(f"spdx: added to {len(missing)} files")
    elif missing:
        names = ", ".join(missing[:5]) + (" ..." if missing[5:] else "")
        sys.exit(f"spdx: {len(missing)} files do not name their licence ({names}): scripts/spdx.py --add")


if __name__ == "__main__":
    main()
