#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The dynamic priorities of a server's clients, while some of them are always busy.

    priorities.py Xvfb 1 2 3 12      how many busy clients, one run each

Starts the server, which has to export `clients` as Debian's Xvfb 21.1 does, and x11perf -ellipse100; then reads
`smart_priority` of each client from the server's memory, twenty times in two seconds.
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import time

# In ClientRec of X.Org 21.1, 64 bits.
SMART_PRIORITY = 57


def address_of_clients(pid):
    program = os.readlink(f"/proc/{pid}/exe")
    symbols = subprocess.run(["nm", "-D", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    offset = int(re.search(r"^([0-9a-f]+) [BD] clients$", symbols, re.M).group(1), 16)
    with open(f"/proc/{pid}/maps") as maps:
        first = next(line for line in maps if line.rstrip().endswith(program))
    return int(first.split("-")[0], 16) + offset


def priorities(pid):
    at = address_of_clients(pid)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:

        def read(address, count):
            memory.seek(address)
            return memory.read(count)

        # The first is the server itself.
        clients = struct.unpack("<63Q", read(at + 8, 63 * 8))
        return [struct.unpack("<b", read(client + SMART_PRIORITY, 1))[0] for client in clients if client]


def run(server, busy):
    ours, its = os.pipe()
    command = [server, "-displayfd", str(its), "-nolisten", "tcp", "-noreset", "-screen", "0", "1280x1024x24"]
    process = subprocess.Popen(command, pass_fds=[its], stderr=subprocess.DEVNULL)
    os.close(its)
    with os.fdopen(ours) as told:
        environment = {**os.environ, "DISPLAY": ":" + told.readline().strip()}
    load = ["x11perf", "-repeat", "1", "-time", "60", "-ellipse100"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    clients = [subprocess.Popen(load, env=environment, **quiet) for _ in range(busy)]
    try:
        time.sleep(5)
        seen = []
        for _ in range(20):
            seen += priorities(process.pid)
            time.sleep(0.1)
    finally:
        for one in [*clients, process]:
            one.kill()
            one.wait()
    print(f"{busy} busy: from {min(seen)} to {max(seen)}, mean {sum(seen) / len(seen):.1f}", flush=True)


def main():
    server = shutil.which(sys.argv[1]) if sys.argv[2:] else None
    if not server:
        sys.exit(__doc__.strip())
    for busy in sys.argv[2:]:
        run(server, int(busy))


if __name__ == "__main__":
    main()
