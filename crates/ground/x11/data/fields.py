#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates fields.txt, a table of the fields of each X message, from the protocol description (Debian: xcb-proto).

    crates/ground/x11/data/fields.py /usr/share/xcb > crates/ground/x11/data/fields.txt

Each line describes a message, separated by tabs: q (request), r (reply), e (event), g (generic event), x (error) or s
(fields that all messages of a kind share), the number (a reply has that of its request), the name, and the fields as
NAME@OFFSET:TYPE. A type is u, i, x (hexadecimal) or b (boolean) with a number of bytes; s is text. *N is an array of N
elements, *NAME an array with the length in another field, %NAME the bits of each element in another field, and * an
array up to the end. Offsets are bytes from the start of the message. Fields after one of variable length are omitted.
Unused bytes of requests are fields of type p without a name.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

SIMPLE = {
    "CARD8": "u1", "BYTE": "u1", "INT8": "i1", "BOOL": "b1", "char": "s1", "void": "u1",
    "CARD16": "u2", "INT16": "i2", "CARD32": "u4", "INT32": "i4", "CARD64": "u8", "INT64": "i8",
}
# Identifiers that are shown in decimal. Others are hexadecimal, as most programs print them.
DECIMAL = {"ATOM", "TIMESTAMP", "VISUALID", "KEYSYM"}


# The reply to a connection setup, and errors, which all have the same fields.
SAME = [
    "s 0 SetupReply protocol_major@2:u2 protocol_minor@4:u2 release_number@8:u4 resource_id_base@12:x4 "
    "resource_id_mask@16:x4 maximum_request_length@26:u2",
    "s 0 Error code@1:u1 bad_value@4:x4 minor_opcode@8:u2 major_opcode@10:u1 sequence@2:u2",
]
# Messages that the description in Debian 12 (1.15) lacks.
NEWER = [
    "q 8 DPMS::SelectInput event_mask@4:x4",
    "g 0 DPMS::InfoNotify timestamp@12:u4 power_level@16:u2 state@18:b1",
    "q 10 DRI3::ImportSyncobj syncobj@4:x4 drawable@8:x4",
    "q 11 DRI3::FreeSyncobj syncobj@4:x4",
    "q 5 Present::PixmapSynced window@4:x4 pixmap@8:x4 serial@12:u4 valid@16:x4 update@20:x4 x_off@24:i2 y_off@26:i2 "
    "target_crtc@28:x4 acquire_syncobj@32:x4 release_syncobj@36:x4 acquire_point@40:u8 release_point@48:u8 "
    "options@56:u4 target_msc@64:u8 divisor@72:u8 remainder@80:u8",
]


class Variable(Exception):
    """The offsets of all following fields depend on the message."""


class Types:
    def __init__(self, roots):
        self.by_file = {}
        for root in roots:
            names = {}
            for node in root:
                if node.tag in ("xidtype", "xidunion"):
                    names[node.get("name")] = "u4" if node.get("name") in DECIMAL else "x4"
                elif node.tag == "typedef":
                    names[node.get("newname")] = node.get("oldname")
                elif node.tag in ("struct", "union"):
                    names[node.get("name")] = node
            self.by_file[root.get("header")] = (names, [i.text for i in root.findall("import")])

    def find(self, name, header):
        """The simple type or structure with this name."""
        name = name.split(":")[-1]
        if name in ("ATOM", "TIMESTAMP", "VISUALID", "KEYSYM", "KEYSYM32"):
            return "u4"
        if name in SIMPLE:
            return SIMPLE[name]
        names, imports = self.by_file[header]
        for place in [header, *imports, "xproto"]:
            found = self.by_file[place][0].get(name)
            if isinstance(found, str) and found[:1] not in "uix":
                return self.find(found, place)
            if found is not None:
                return found
        raise Variable


def size(kind):
    return int(kind[1:])


class Message:
    def __init__(self, types, header, shows_unused=False):
        self.types, self.header, self.shows_unused = types, header, shows_unused
        self.fields, self.at = [], 0

    def add(self, name, kind, count=""):
        self.fields.append(f"{name}@{self.at}:{kind}{count}")

    def aligned(self, kind):
        if kind is None or self.at % min(size(kind), 4):
            raise Variable

    def fixed(self, nodes, prefix=""):
        for node in nodes:
            self.one(node, prefix)

    def one(self, node, prefix):
        if node.tag == "pad":
            count = -self.at % int(node.get("align")) if node.get("align") else int(node.get("bytes"))
            if self.shows_unused and count:
                self.add("", f"p{count}")
            self.at += count
        elif node.tag in ("field", "exprfield"):
            self.field(node, prefix)
        elif node.tag == "list":
            self.list(node, prefix)
        elif node.tag in ("switch", "valueparam"):
            # Values selected by a mask: 32-bit values up to the end.
            self.add(prefix + (node.get("name") or node.get("value-list-name")), "x4", "*")
            raise Variable
        elif node.tag in ("reply", "doc", "required_start_align"):
            pass
        else:
            raise Variable

    def field(self, node, prefix):
        name = prefix + node.get("name")
        kind = self.types.find(node.get("type"), self.header)
        if not isinstance(kind, str):
            if kind.tag == "union":
                raise Variable
            return self.fixed(kind, name + ".")
        if node.get("mask") or node.get("altmask"):
            kind = "x" + kind[1:]
        self.add(name, kind)
        self.at += size(kind)

    def list(self, node, prefix):
        name = prefix + node.get("name")
        kind = self.types.find(node.get("type"), self.header)
        if not isinstance(kind, str):
            raise Variable
        length = list(node)
        if length and length[0].tag == "value":
            self.add(name, kind, "*" + length[0].text)
            self.at += size(kind) * int(length[0].text)
            return
        if length and length[0].tag == "fieldref":
            self.add(name, kind, "*" + prefix + length[0].text)
        else:
            names = [one.text for one in node.iter("fieldref")]
            # A property's format is the number of bits per value. Other arrays extend to the end, including padding.
            is_property = len(names) == 2 and names[1] == "format"
            self.add(name, kind, f"*{names[0]}%format" if is_property else "*")
        raise Variable


def write(letter, number, name, message, nodes, second_byte):
    """The first element of one byte is in the second byte of the header, if that is free."""
    nodes = [node for node in nodes if node.tag not in ("doc", "reply", "required_start_align")]
    try:
        if second_byte and not nodes and message.shows_unused:
            message.fields.append("@1:p1")
        if second_byte and nodes:
            message.at, behind = 1, message.at
            message.one(nodes[0], "")
            nodes, message.at = nodes[1:], behind
        message.fixed(nodes)
    except Variable:
        pass
    yield "\t".join([letter, number, name, *message.fields])


def messages(root, types):
    header, extension = root.get("header"), root.get("extension-xname")
    own = lambda name: f"{extension}::{name}" if extension else name
    events = {}
    for node in root:
        name = own(node.get("name"))
        if node.tag == "request":
            message = Message(types, header, shows_unused=True)
            message.at = 4
            yield from write("q", node.get("opcode"), name, message, list(node), second_byte=not extension)
            reply = node.find("reply")
            if reply is not None:
                message = Message(types, header)
                message.at = 8
                yield from write("r", node.get("opcode"), name, message, list(reply), second_byte=True)
        elif node.tag in ("event", "eventcopy"):
            source = events.get(node.get("ref"), node)
            events[node.get("name")] = source
            message = Message(types, header)
            message.at = 10 if source.get("xge") else 1 if source.get("no-sequence-number") else 4
            bare = source.get("xge") or source.get("no-sequence-number")
            letter = "g" if source.get("xge") else "e"
            yield from write(letter, node.get("number"), name, message, list(source), second_byte=not bare)
        elif node.tag in ("error", "errorcopy"):
            yield "\t".join(["x", node.get("number"), name])


def main(folder):
    roots = [ElementTree.parse(path).getroot() for path in sorted(Path(folder).glob("*.xml"))]
    types = Types(roots)
    lines = [line for root in roots for line in messages(root, types)]
    known = {tuple(line.split("\t")[:3]) for line in lines}
    newer = ["\t".join(line.split()) for line in SAME + NEWER]
    print("\n".join(lines + [line for line in newer if tuple(line.split("\t")[:3]) not in known]))


if __name__ == "__main__":
    main(sys.argv[1])
