#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generate Rust, C, names and documentation of the XQOS messages from proto/xqos.xml, their only definition.

usage: generate.py            writes crates/qos/abi/src/protocol.rs, crates/qos/core/src/setting.rs, libxqos/xqosproto.h,
                              crates/ground/x11/data/xqos.txt, and the table of settings and the end of proto/xqosproto.md
       generate.py --check    compares them; exit status 0: same, 1: different

A comment on the line of a field, an item or a structure describes it, and is copied. Fields follow each other without gaps.
"""

import contextlib
import decimal
import importlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as tree

PROTO = pathlib.Path(__file__).resolve().parent
XCB_DIR = pathlib.Path("/usr/share/xcb")
MADE = "Generated from proto/xqos.xml by proto/generate.py: edit that file instead."
# xcbgen imports its output callbacks from the main module.
output = {kind: (lambda *_: None) for kind in
          ("open", "close", "simple", "enum", "struct", "union", "request", "eventstruct", "event", "error")}
UNITS = {"us": "Micros", "ppm": "Millionths", "percent": "Percent", "hundredths": "Hundredths", "": "Whole"}
LAYOUT = "## The messages, byte by byte\n"
TABLE = re.compile(r"(?<=^\| setting \| of \| value \| initial value \|\n\|---\|---\|---\|---\|\n)(\|.*\n)*", re.MULTILINE)

SIZES = {"CARD8": 1, "BOOL": 1, "CARD16": 2, "CARD32": 4, "INT32": 4, "CLIENT": 4, "BOOL32": 4, "TIMESTAMP": 4, "CARD64": 8,
         "INT64": 8, "char": 1}
RUST = {"CARD32": "u32", "INT32": "i32", "CLIENT": "u32", "BOOL32": "bool", "BOOL": "bool", "TIMESTAMP": "u32",
        "CARD64": "u64", "INT64": "i64", "CARD8": "u32", "Policy": "PolicyKind", "TraceLevel": "Level"}
C = {"INT32": "int32_t", "CARD64": "uint64_t", "INT64": "int64_t"}
# Enumerations to generate in Rust, as a type or as a module of bits; the others are hand-written or made by a macro.
WORDS = ["Grouping", "Paced", "NotifyKind"]
BITS = ["ReservationFlag", "EntryFlag", "EventMask"]
ENTRIES = ["ClientEntry", "LongRequest"]
PREFIXES = {"Policy": "POLICY", "Grouping": "GROUPING", "Paced": "PACING", "NotifyKind": "EVENT", "EntryFlag": "CLIENT",
            "ReservationFlag": "RESERVATION", "PolicyMask": "SET", "EventMask": "EVENTS", "SubjectKind": "SUBJECT",
            "SettingKind": "SETTING"}
# Structures of libxqos, and the number of bytes before the wire format: for a reply, its header.
STRUCTS = {"ServerInfo": ("server_info", 8), "ReservationReport": ("reservation", 8), "AdmissionReport": ("admission", 8),
           "GroupsReport": ("groups", 8), "ClientEntry": ("client", 8), "PolicyChange": ("policy_change", 4),
           "Notify": ("event", 4)}


class Field:
    """A field, with its offset, size and description."""

    def __init__(self, element, at, sizes):
        self.tag, self.name, self.doc = element.tag, element.get("name"), ""
        self.type = element.get("enum") or element.get("type")
        value = element.find("value")
        self.is_tail = element.find("fieldref") is not None
        self.count = int(value.text) if value is not None else None
        if element.tag == "pad":
            self.size = int(element.get("bytes"))
        else:
            self.size = 0 if self.is_tail or element.tag == "fd" else sizes[element.get("type")] * (self.count or 1)
        self.at, self.word = at, element.get("type")
        if self.is_tail:
            self.entry_bytes = sizes[self.type]

    def rust(self):
        if self.count:
            return "String" if self.type == "char" else f"[{RUST[self.type]}; {self.count}]"
        return RUST.get(self.type, self.type)

    def c(self):
        kind = "char" if self.type in ("char", "Label") else C.get(self.word, "uint32_t")
        count = 32 if self.type == "Label" else self.count
        return f"{kind} {self.name}{f'[{count}]' if count else ''};"

    def layout(self):
        count = f"[{self.count}]" if self.count else "[count]" if self.is_tail else ""
        return f"{self.at} {self.name} {self.type}{count}"


class Number(int):
    """A value of a setting in its unit, which it prints as on the command line; {least:us} selects another unit."""

    def __new__(cls, value, unit):
        self = super().__new__(cls, value)
        self.unit = unit
        return self

    def __format__(self, spec):
        if spec:
            return f"{int(self)}{spec}"
        if self.unit == "us":
            return f"{self // 1000000}s" if self and self % 1000000 == 0 else f"{decimal.Decimal(self) / 1000:f}ms"
        divisor = {"ppm": 1000000, "percent": 10000, "hundredths": 100}.get(self.unit, 1)
        return f"{decimal.Decimal(self) / divisor:f}"

    def rust(self):
        return f"{int(self):_}" if self >= 10000 else str(int(self))


class Setting:
    """A setting: of what, its values, and the help of its option."""

    def __init__(self, text):
        get = tree.fromstring(f"<{text}/>").get
        self.name, self.initial, self.unit = get("name"), get("initial"), get("unit")
        self.subjects = [subject.capitalize() for subject in (get("of") or "").split(", ") if subject]
        self.words, self.numbers = [], {}
        if self.unit is not None:
            initial = "0" if self.initial == "off" else self.initial
            least, most = get("least"), get("most")
            values = {"least": least, "most": most, "typed": get("typed", least), "initial": initial}
            self.shown = get("as", self.unit)
            self.numbers = {key: Number(value, self.shown) for key, value in values.items()}
            pairs = [pair.split("=") for pair in get("words", "").format(initial=initial).split()]
            self.words = [(word, Number(value, self.shown)) for word, value in pairs]
            self.range = f"{least} to {most}"
        fits = {"range": f"{self.range} {self.unit}".strip()} if self.numbers else {}
        self.value = get("value", "").format(**fits)
        self.texts = {key: " ".join(get(key).format(**self.numbers, **dict(self.words)).split())
                      for key in ("finer", "wanted", "help") if get(key)}

    def constant(self):
        return snake(self.name).upper()


class Message:
    """Anything with fields: a structure, a request, a reply, an event."""

    def __init__(self, element, at, sizes):
        self.name, self.doc, self.fields = element.get("name"), "", []
        last = self
        for child in element:
            if child.tag is tree.Comment:
                if child.tail and "\n" in child.tail and last is not None:
                    last.doc, last = child.text.strip(), None
            elif child.tag in ("field", "list", "pad", "fd"):
                last = Field(child, at, sizes)
                self.fields.append(last)
                at += last.size
                # The first byte of a reply or an event follows its type.
                if element.tag in ("reply", "event") and len(self.fields) == 1:
                    last.at, at = 1, 8 if element.tag == "reply" else 4
        self.size = at

    def real(self):
        return [field for field in self.fields if field.tag not in ("pad", "fd")]


class Protocol:
    def __init__(self):
        parser = tree.XMLParser(target=tree.TreeBuilder(insert_comments=True, insert_pis=True))
        self.root = tree.parse(PROTO / "xqos.xml", parser).getroot()
        self.settings = [Setting(element.text) for element in self.root if element.tag is tree.PI]
        ranges = {setting.name: setting for setting in self.settings if setting.numbers}
        for element in self.root.iterfind(".//field/.."):
            for comment in element.iter(tree.Comment):
                comment.text = re.sub(r"\{(\w+)\}", lambda name: ranges[name.group(1)].range, comment.text)
        self.enums, self.messages, self.requests = {}, {}, []
        sizes = dict(SIZES)
        for element in self.root:
            if element.tag == "enum":
                self.enums[element.get("name")] = self.items(element)
            elif element.tag in ("struct", "union"):
                message = self.messages[element.get("name")] = Message(element, 0, sizes)
                largest = max(field.size for field in message.fields)
                sizes[message.name] = largest if element.tag == "union" else message.size
            elif element.tag == "request":
                self.request(element, sizes)
            elif element.tag == "event":
                self.messages["Notify"] = Message(element, 4, sizes)

    def items(self, element):
        """The comment of the enumeration, and (name, number, comment) of each item."""
        items, doc = [], ""
        for child in element:
            if child.tag is tree.Comment and items:
                items[-1][2] = child.text.strip()
            elif child.tag is tree.Comment:
                doc = child.text.strip()
            else:
                number = child[0]
                items.append([child.get("name"), int(number.text) if number.tag == "value" else 1 << int(number.text), ""])
        return doc, items

    def request(self, element, sizes):
        request = Message(element, 4, sizes)
        reply = element.find("reply")
        request.reply = None
        if reply is not None:
            request.reply = Message(reply, 8, sizes)
            request.reply.name = request.reply.doc or None
            request.reply.doc = f"Reply to {request.name}."
            if request.reply.name:
                self.messages[request.reply.name] = request.reply
        self.requests.append(request)


def snake(name):
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


# ---- Rust ------------------------------------------------------------------------------------------------------

def documented(doc, line):
    doc = doc and doc[0].upper() + doc[1:] + ("" if doc.endswith(".") else ".")
    return [f"    /// {doc}"] * bool(doc) + [f"    {line}"]


def wrapped(words):
    """The words between braces, wrapped into lines."""
    return textwrap.wrap(", ".join(words), 120, initial_indent=" " * 8, subsequent_indent=" " * 8)


def rust_fields(fields):
    for before, field in zip(fields, fields[1:]):
        assert field.at == before.at + before.size, f"a gap before {field.name}, which readers do not skip"
    return wrapped(f"{field.name}:\xa0{field.rust()}\xa0[{field.size}]".replace("; ", ";\xa0") for field in fields)


def rust_reply(message):
    fields = message.real()
    data = [field for field in fields if field.at == 1]
    tail = [field for field in fields if field.is_tail]
    # A list begins with the number of its entries and their size.
    body = [field for field in fields if field.at > 1 and field not in tail and not (tail and field.at < 16)]
    yield f"    /// {message.doc}"
    if not tail and all(field.rust() != "String" for field in body):
        yield "    #[derive(Copy)]"
    beside = f" ({data[0].name}: {data[0].rust()})" if data else ""
    yield f"    {message.name} [{message.size}]{beside} {{"
    yield from rust_fields(body)
    yield "    }" + (f" [{tail[0].name}: {tail[0].type} {tail[0].entry_bytes}]" if tail else "")


def initial_of(setting, kind):
    if setting.numbers and setting.initial != "off" or setting.initial.isdigit():
        return Number(setting.initial, "").rust()
    if setting.initial in ("none", "off", "empty"):
        return "NO_RESERVATION" if kind == "Reservation" else f"{kind}::default()"
    return f"{kind}::{setting.initial}"


def quoted(text):
    return '"' + " \\\n         ".join(textwrap.wrap(text.replace('"', '\\"'), 100)) + '"'


def ranges(protocol):
    lines = ["// SPDX-License-Identifier: MIT", f"//! The values and the help of the settings. {MADE}", "",
             "use crate::range::{Range, Unit};", "", "ranges! {"]
    for setting in protocol.settings:
        if setting.numbers:
            least, most, typed, initial = (setting.numbers[key].rust() for key in ("least", "most", "typed", "initial"))
            words = ", ".join(f'("{word}", {value.rust()})' for word, value in setting.words)
            kind = "i32" if setting.numbers["least"] < 0 else "u32"
            lines += [f"    {setting.constant()} {UNITS[setting.shown]}: {kind} = {least}..={most}, {typed}, {initial}, [{words}]"]
            lines += [f"        {key} {quoted(text)}" for key, text in setting.texts.items()]
            lines[-1] += ";"
    lines += ["}", ""]
    lines += [f"/// The help of the option for the setting {setting.name}.\npub const {setting.constant()}_HELP: &str =\n    \"{setting.texts['help']}\";"
              for setting in protocol.settings if setting.texts and not setting.numbers]
    return "\n".join([*lines, ""])


def rust(protocol):
    lines = ["// SPDX-License-Identifier: MIT", f"//! The messages of XQOS. {MADE}", "",
             "use crate::bytes::{ByteReader, ByteWriter, Malformed};", "use crate::label::Label;",
             "use crate::trace::Level;", "use crate::values::{NO_RESERVATION, PolicyChange, Subject};", "use crate::wire::{WireField, Word};",
             "use xqos_core::{Pacing, PolicyKind, Reservation};", "use xqos_x11::ByteOrder;", "", "bits! {"]
    for name in BITS:
        doc, items = protocol.enums[name]
        lines += documented(doc, f"{snake(name)} {{")
        lines += [*wrapped(f"{snake(item).upper()}\xa0=\xa0{number}" for item, number, _ in items), "    }"]
    lines += ["}", "", "words! {"]
    for name in WORDS:
        doc, items = protocol.enums[name]
        lines += documented(doc, f"{name} {{")
        lines += [*wrapped(f"{item}\xa0=\xa0{number}" for item, number, _ in items), "    }"]
    lines += ["}", "", "settings! {"]
    for (name, code, said), value in zip(protocol.enums["SettingKind"][1], protocol.messages["SettingValue"].fields):
        assert name == value.name, f"SettingKind has {name} where SettingValue has {value.name}"
        initial = ", ".join(f"{subject}: {initial_of(one, value.rust())}" for one in protocol.settings
                            for subject in one.subjects if one.name == name)
        lines += documented(said, f"{code} {name}({value.rust()} [{value.size}]) {{ {initial} }};")
    lines += ["}", "", "requests! {"]
    for minor, request in enumerate(protocol.requests):
        fields = ", ".join(f"{field.name}: {field.rust()} [{field.size}]" for field in request.real())
        replies = "true" if request.reply else "false"
        line = f"{minor} {request.name}{f' {{ {fields} }}' if fields else ''} {replies};"
        lines += documented(request.doc, line)
    lines += ["}", "", "entries! {"]
    for name in ENTRIES:
        message = protocol.messages[name]
        lines += documented(message.doc, f"{name} [{message.size}] {{")
        lines += [*rust_fields(message.real()), "    }"]
    lines += ["}", "", "replies! {"]
    for request in protocol.requests:
        if request.reply and request.reply.name:
            lines += rust_reply(request.reply)
    notify = protocol.messages["Notify"]
    lines += ["}", "", "event! {", "    /// The event XqosNotify.", "    Notify (kind: NotifyKind) {"]
    lines += [*rust_fields(notify.real()[1:]), "    }", "}", ""]
    return "\n".join(lines).replace("\xa0", " ")


# ---- C ---------------------------------------------------------------------------------------------------------

def commented(code, doc):
    return f"    {code}" + (f" /* {doc} */" if doc else "")


def c_struct(message, name, before):
    yield f"struct xqos_{name} {{"
    yield commented("uint32_t size;", "set by the caller")
    fields = message.real()
    if before == 4 and fields[0].at == 1:
        yield from ("    uint8_t response_type;", "    uint8_t kind; /* XQOS_EVENT_*, or a number of a later version: ignore it */",
                    "    uint16_t sequence; /* the last request that the server had read from this client */")
        fields = fields[1:]
    elif before == 8 and fields[0].at != 1:
        yield "    uint32_t unused;"
    for field in fields:
        yield commented(field.c(), field.doc)
    # In wire order, each field at its natural alignment: if the last offset is right, all are.
    at = fields[-1].at + (0 if message.fields[0].at == 1 and before == 8 else before)
    yield from ("};", f'_Static_assert(offsetof(struct xqos_{name}, {fields[-1].name}) == {at}, "as on the wire");', "")


def c(protocol):
    lines = ["/* SPDX-License-Identifier: MIT */", "/* xqosproto.h: constants and structures of XQOS; a structure begins with its size, set by the caller.", f" * {MADE}", " *",
             " * SPDX-License-Identifier: MIT", " */", "#ifndef XQOSPROTO_H", "#define XQOSPROTO_H", "", "#include <stddef.h>", "#include <stdint.h>", "",
             f"#define XQOS_MAJOR_VERSION {protocol.root.get('major-version')}",
             f"#define XQOS_MINOR_VERSION {protocol.root.get('minor-version')}", "", "enum xqos_request {"]
    lines += [f"    XQOS_REQUEST_{snake(request.name).upper()} = {minor}," for minor, request in enumerate(protocol.requests)]
    lines += ["};", ""]
    for name, prefix in PREFIXES.items():
        doc, items = protocol.enums[name]
        lines += [f"/* {doc} */"] * bool(doc) + [f"enum xqos_{snake(name)} {{"]
        lines += [commented(f"XQOS_{prefix}_{snake(item).upper()} = {number},", said) for item, number, said in items]
        lines += ["};", ""]
    lines += ["/* The ranges of the settings. 0 is also valid where it has a special meaning. */"]
    for setting in protocol.settings:
        for key, value in setting.numbers.items():
            if key in ("least", "most"):
                name = f"XQOS_{setting.constant()}_{'MIN' if key == 'least' else 'MAX'}"
                number = f"({int(value)})" if value < 0 else f"{int(value)}{'u' * (value >= 1 << 31)}"
                lines += [commented(f"#define {name} {number}", setting.unit).strip()]
    lines += [""]
    for name, (ours, before) in STRUCTS.items():
        lines += c_struct(protocol.messages[name], ours, before)
    return "\n".join([*lines, "#endif", ""])


# ---- the names ---------------------------------------------------------------------------------------------------

def names(protocol):
    """A line for each message: the letter of its kind, its number and its name, as in crates/ground/x11/data/fields.txt."""
    extension = protocol.root.get("extension-xname")
    kinds = [("e", protocol.root.findall("event")), ("x", protocol.root.findall("error"))]
    lines = [f"{letter}\t{one.get('number')}\t{extension}::{one.get('name')}" for letter, found in kinds for one in found]
    for minor, request in enumerate(protocol.requests):
        lines += [f"{letter}\t{minor}\t{extension}::{request.name}" for letter in ("qr" if request.reply else "q")]
    return "\n".join([*lines, ""])


# ---- the prose -------------------------------------------------------------------------------------------------

def fields_of(message):
    return ", ".join(field.layout() for field in message.real())


def prose(protocol):
    text = (PROTO / "xqosproto.md").read_text(encoding="utf-8").split(LAYOUT)[0]
    rows = [f"| {setting.name} | {', '.join(setting.subjects).lower()} | {setting.value} | {setting.initial} |\n"
            for setting in protocol.settings if setting.subjects]
    text = TABLE.sub("".join(rows), text, count=1)
    lines = [LAYOUT, MADE, "Offsets are in bytes from the start. The X11 header (major opcode, minor opcode, length; or 1, a data byte, sequence",
             "number, length) is left out.", "", "| | bytes | fields |", "|---|---|---|"]
    for minor, request in enumerate(protocol.requests):
        lines += [f"| **{minor} {request.name}** | {request.size} | {fields_of(request)} |"]
        if request.reply:
            size = max(request.reply.size, 32)
            fields = "table ServerInfo below" if request.reply.name == "ServerInfo" else fields_of(request.reply)
            lines += [f"| its reply | {size} | {fields} |"]
    for name in ("Subject", "Setting", "Reservation", "Pacing", "PolicyChange", "Label", "LongRequest"):
        lines += [f"| {name} | {protocol.messages[name].size} | {fields_of(protocol.messages[name])} |"]
    lines += [f"| XqosNotify | 32 | {fields_of(protocol.messages['Notify'])} |"]
    for name in ("ClientEntry", "ServerInfo"):
        message = protocol.messages[name]
        lines += ["", f"| {name}, {message.size} bytes | type | |", "|---|---|---|"]
        lines += [f"| {field.at} {field.name} | {field.type}{f'[{field.count}]' if field.count else ''} | {field.doc} |"
                  for field in message.real()]
    lines += ["", "| numbers | |", "|---|---|"]
    for name, (doc, items) in protocol.enums.items():
        lines += [f"| **{name}** | {doc} |"] + [f"| {number} {item} | {said} |" for item, number, said in items]
    return text + "\n".join([*lines, ""])


def check_form():
    """Validates the XML against the schema of xcb-proto, if it is installed."""
    schema = XCB_DIR / "xcb.xsd"
    if not shutil.which("xmllint") or not schema.exists():
        return 0
    wrong = subprocess.run(["xmllint", "--noout", "--schema", str(schema), str(PROTO / "xqos.xml")], stderr=subprocess.PIPE,
                           check=False).returncode
    return wrong or xcbgen_errors()


def xcbgen_errors():
    """Parses the XML with the generator of xcb, if it is installed. It only prints errors, so any output is one."""
    # Debian installs it for its own python3, which may not be the first one in PATH.
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        module = importlib.import_module("xcbgen.state").Module(str(PROTO / "xqos.xml"), output)
    except ImportError:
        return 0
    module.namespace.dir = str(XCB_DIR)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        module.register()
        module.resolve()
    sys.stderr.write(said.getvalue())
    return bool(said.getvalue())


def main():
    protocol = Protocol()
    wrong = check_form()
    for path, text in [("crates/qos/abi/src/protocol.rs", rust(protocol)), ("crates/qos/core/src/setting.rs", ranges(protocol)), ("libxqos/xqosproto.h", c(protocol)),
                       ("crates/ground/x11/data/xqos.txt", names(protocol)), ("proto/xqosproto.md", prose(protocol))]:
        path = PROTO.parent / path
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path} differs from what proto/xqos.xml generates: run proto/generate.py")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
