#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that each source file names its licence in an SPDX line.

    spdx.py          lists the files without the line
    spdx.py --add    adds the line to them

Data, documents and generated files have no such line.
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
# `xqos bench publish` generates docs/report/; the files in data/ are not source code.
NOT_OURS_TO_MARK = ("docs/report/", "data/")


def comment(path):
    """The SPDX line for this file; None if the file is not source code."""
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
    """Inserts the line, after a first line that must stay first: #!, an XML declaration or a doctype."""
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
        sys.exit(f"spdx: {len(missing)} files do not name their licence ({names}): run scripts/spdx.py --add")


if __name__ == "__main__":
    main()
