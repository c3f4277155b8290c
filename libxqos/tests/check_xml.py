#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare proto/xqos.xml, as xcbgen computes it, with the prose proto/xqosproto.md.

The two say the same protocol twice: the XML for programs, the prose for people. Both are read here, the prose by its
lists of "offset name TYPE" in backticks and its table, and every difference of offset, name, type or size is printed.

usage: check_xml.py [path of proto/]      exit: 0 same, 1 different, 77 no xcbgen here
"""

import contextlib
import io
import pathlib
import re
import shutil
import subprocess
import sys

# xcbgen takes its output callbacks from the main module, at import.
output = {kind: (lambda *_: None) for kind in
          ("open", "close", "simple", "enum", "struct", "union", "request", "eventstruct", "event", "error")}

# Debian keeps it with its own python3, which need not be the first one on the path.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    from xcbgen.state import Module
    from xcbgen import xtypes
except ImportError:
    print("check_xml: skipped, xcbgen is not here (Debian: python3-xcbgen)")
    sys.exit(77)

PROTO = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "proto")
XCB_DIR = "/usr/share/xcb"

SIZES = {"CARD8": 1, "CARD16": 2, "CARD32": 4, "INT32": 4, "CARD64": 8, "INT64": 8, "CHAR": 1, "STRING8": 1}
WORDS = {"uint8_t": "CARD8", "uint16_t": "CARD16", "uint32_t": "CARD32", "int32_t": "INT32", "uint64_t": "CARD64",
         "int64_t": "INT64", "char": "CHAR"}
# Bits and numbers: the enum in the XML, and the words of the prose that hold "number meaning" pairs for it.
NUMBERS = {
    "Policy": (r"\| POLICY \| CARD8: (.*?) \|", "value"),
    "ClientFlag": (r"\| 24 \| flags CARD32 \| (.*?) \|", "bit"),
    "PolicyMask": (r"Mask bits say which values count: (.*?) \(0:", "bit"),
    "EventMask": (r"\*\*10 SelectEvents\*\* `.*?` \(8 bytes\): (.*?);", "bit"),
    "NotifyKind": (r"Kinds: (.*?)\. Kinds", "value"),
    "ReservationFlag": (r"16 flags CARD32 \((1 hard, 2 held back, 4 soft paper)\)", "bit"),
}

faults = []


def fault(where, text):
    faults.append(f"{where}: {text}")


# ---- the XML ---------------------------------------------------------------------------------------------------

def xml_module():
    """The module with its imports found: xcbgen looks for them beside the file."""
    found = subprocess.run(["pkg-config", "--variable=xcbincludedir", "xcb-proto"], capture_output=True, text=True,
                           check=False).stdout.strip() if shutil.which("pkg-config") else ""
    module = Module(str(PROTO / "xqos.xml"), output)
    module.namespace.dir = found or XCB_DIR
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        module.register()
        module.resolve()
    # xcbgen only prints what is wrong with an alignment.
    if said.getvalue():
        fault("xcbgen", said.getvalue().strip())
    return module


def xml_fields(item):
    """(offset, name, type, count) of every field that is not padding, and the fixed size."""
    fields, offset = [], 0
    for field in item.fields:
        kind = field.type
        # A descriptor travels beside the bytes.
        if getattr(field, "isfd", False):
            continue
        if kind.is_pad:
            offset += kind.nmemb if kind.align <= 1 else 0
            continue
        if kind.is_list:
            count = kind.nmemb
            fields.append((offset, field.field_name, word(kind.member), count if kind.fixed_size() else "..."))
            offset += kind.member.size * count if kind.fixed_size() else 0
        else:
            fields.append((offset, field.field_name, word(kind), 1))
            offset += kind.size
    return fields, offset


def word(kind):
    if isinstance(kind, xtypes.Struct):
        return "STRUCT"
    return WORDS[kind.name[-1] if kind.name[-1] in WORDS else base_of(kind)]


def base_of(kind):
    """A named type such as TIMESTAMP stands for an unsigned number of its size."""
    return {1: "uint8_t", 2: "uint16_t", 4: "uint32_t"}[kind.size]


# ---- the prose -------------------------------------------------------------------------------------------------

def prose_fields(text):
    """(offset, name, type, count) from a list such as "4 client CLIENT, 8 budget_us, 44 pad"."""
    text = re.sub(r"\([^)]*\)", "", text)
    fields = []
    for part in text.split(","):
        words = re.match(r"\s*(\d+) (\w+)(\[\d+\])?(?: (\w+))?(?:\[(\w+)\])?", part)
        if not words or words[2] == "pad":
            continue
        kind = words[4] or kind_of(words[2])
        kind = {"CLIENT": "CARD32", "POLICY": "CARD8"}.get(kind, kind)
        count = 1 if words[5] is None else int(words[5]) if words[5].isdigit() else "..."
        fields.append((int(words[1]), words[2], {"STRING8": "CHAR"}.get(kind, kind), count))
    return fields


def kind_of(name):
    """The unit at the end of a name is its type, as the prose's first table says."""
    return "CARD64" if name.endswith("_ns") else "CARD32" if name.endswith(("_us", "_ppm")) else "CARD8"


def prose_requests(text):
    """For each opcode: name, request fields, request bytes, data byte?, reply fields, reply bytes or None."""
    pieces = re.split(r"\n\*\*(\d+) (\w+)\*\*", text.split("## Event")[0])[1:]
    for opcode, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3]):
        asked, _, answered = body.partition("→")
        listed = re.match(r"\s*`([^`]*)`", asked)
        size = re.search(r"\((\d+) bytes\)", asked) or re.search(r"\((\d+) bytes\)", body)
        reply = re.search(r"`(8 [^`]*)`", answered, re.S)
        reply_size = re.search(r"`\s*\((\d+) bytes\)", answered)
        yield (int(opcode), name, prose_fields(listed[1]) if listed else [], int(size[1]), "data byte" in answered,
               prose_fields(reply[1].replace("\n", " ")) if reply else None, int(reply_size[1]) if reply_size else None)


def prose_entry(text):
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", text, re.M)
    return prose_fields(", ".join(f"{offset} {field}" for offset, field in rows))


# ---- the comparison --------------------------------------------------------------------------------------------

def same_fields(where, xml, prose, header):
    """Both lists from the end of the header on; names and types where the prose gives them."""
    xml = [field for field in xml if field[0] >= header]
    for ours, theirs in zip(xml, prose):
        if ours != theirs:
            fault(where, f"the XML has {ours}, the prose {theirs}")
    for field in xml[len(prose):]:
        fault(where, f"only the XML has {field}")
    for field in prose[len(xml):]:
        fault(where, f"only the prose has {field}")


def check_request(requests, opcode, name, fields, size, data_byte, reply, reply_size):
    item = requests.get(opcode)
    if item is None or item.name[-1] != name:
        return fault(name, f"the XML has {item.name[-1] if item else 'nothing'} at opcode {opcode}")
    ours, ours_size = xml_fields(item)
    same_fields(name, ours, fields, 4)
    if ours_size != size:
        fault(name, f"the XML makes {ours_size} bytes, the prose {size}")
    if bool(item.reply) != (reply is not None):
        return fault(name, "only one of the two has a reply")
    if not item.reply:
        return None
    ours, ours_size = xml_fields(item.reply)
    lists = [field for field in ours if field[2] == "STRUCT"]
    same_fields(f"{name} reply", [field for field in ours if field not in lists], reply, 8)
    if any(field[0] == 1 for field in ours) != data_byte:
        fault(f"{name} reply", "only one of the two uses the data byte")
    if reply_size and ours_size != reply_size:
        fault(f"{name} reply", f"the XML makes {ours_size} bytes, the prose {reply_size}")
    return None


def check_entry(item, text):
    ours, size = xml_fields(item)
    same_fields("ClientEntry", ours, prose_entry(text), 0)
    said = int(re.search(r"entry_bytes CARD32 \((\d+)\)", text)[1])
    if size != said:
        fault("ClientEntry", f"the XML makes {size} bytes, the prose {said}")


def check_event(item, text):
    listed = re.search(r"## Event.*?`0 type, 1 kind(.*?)`", text, re.S)[1]
    prose = [field for field in prose_fields("1 kind" + listed.replace("\n", " ")) if field[1] != "sequence"]
    ours, size = xml_fields(item)
    same_fields("XqosNotify", [field for field in ours if field[1] not in ("response_type", "sequence")], prose, 0)
    if size != 32:
        fault("XqosNotify", f"the XML makes {size} bytes")


def check_numbers(name, item, text):
    pattern, kind = NUMBERS[name]
    prose = {words.split(" (")[0].strip(): int(number) for number, words in
             re.findall(r"(\d+) ([a-z ()]+)", re.search(pattern, text, re.S)[1].replace("\n", " "))}
    pairs = item.bits if kind == "bit" else item.values
    ours = {re.sub(r"(?<!^)([A-Z])", r" \1", word_).lower(): (1 << int(number)) if kind == "bit" else int(number)
            for word_, number in pairs}
    # The prose names some of them by a phrase; the numbers must be the same and the first words must meet.
    for (ours_name, number), (prose_name, prose_number) in zip(ours.items(), prose.items()):
        if number != prose_number or ours_name.split()[-1][:5] not in prose_name:
            fault(name, f"the XML has {number} {ours_name!r}, the prose {prose_number} {prose_name!r}")
    if len(ours) != len(prose):
        fault(name, f"the XML has {len(ours)} items, the prose {len(prose)}")


def check_header(module, own, text):
    """The name, the version and the first numbers, which the prose gives in passing."""
    space = module.namespace
    if f"Extension name: `{space.ext_xname}`" not in text:
        fault("header", f"the prose does not name {space.ext_xname}")
    if f"version {space.major_version}.{space.minor_version}" not in text.splitlines()[0]:
        fault("header", "the versions differ")
    if int(own["Notify"].opcodes[own["Notify"].name]) != 0 or "first event of the extension" not in text:
        fault("XqosNotify", "not the first event in both")
    if int(own["Admission"].opcodes[own["Admission"].name]) != 0 or "first error of the extension" not in text:
        fault("Admission", "not the first error in both")


def validate_schema():
    """The schema of xcb-proto, where xmllint is here."""
    schema = pathlib.Path(XCB_DIR) / "xcb.xsd"
    if not shutil.which("xmllint") or not schema.exists():
        return "no xmllint, schema not checked"
    run = subprocess.run(["xmllint", "--noout", "--schema", str(schema), str(PROTO / "xqos.xml")],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        fault("schema", run.stderr.strip())
    return "schema checked"


def main():
    text = (PROTO / "xqosproto.md").read_text(encoding="utf-8")
    schema = validate_schema()
    module = xml_module()
    own = {name[-1]: item for name, item in module.all}
    requests = {int(item.opcode): item for item in own.values() if isinstance(item, xtypes.Request)}
    for number, item in requests.items():
        item.name = next(name for name, other in module.all if other is item)
    check_header(module, own, text)
    prose = list(prose_requests(text))
    for request in prose:
        check_request(requests, *request)
    for opcode in requests.keys() - {request[0] for request in prose}:
        fault("requests", f"only the XML has opcode {opcode}")
    check_entry(own["ClientEntry"], text)
    check_event(own["Notify"], text)
    for name in NUMBERS:
        check_numbers(name, own[name], text)
    for line in faults:
        print("check_xml:", line)
    print(f"check_xml: {len(prose)} requests, 1 struct, 1 event, {len(NUMBERS)} enums, {schema}, "
          f"{len(faults)} difference{'s' * (len(faults) != 1)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
