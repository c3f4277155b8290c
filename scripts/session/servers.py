# SPDX-License-Identifier: MIT
"""X servers of scripted sessions, and what runs on them."""

import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
XQOS = ROOT / "target/release/xqos"
MODULE = ROOT / "target/release/libxqos_module.so"
SIZE = "1280x800"
# Time limit for a window, a file or an end. Programs start slowly on a busy machine.
LIMIT_S = 90
XORG_CONF = """
Section "ServerFlags"
    Option "AutoAddDevices" "false"
    Option "AutoAddGPU" "false"
EndSection
Section "Files"
    ModulePath "{home}/modules"
    ModulePath "/usr/lib/xorg/modules"
EndSection
Section "Module"
    {load}
EndSection
Section "Device"
    Identifier "dummy"
    Driver "dummy"
EndSection
Section "Screen"
    Identifier "screen"
    Device "dummy"
    SubSection "Display"
        Virtual 1280 800
    EndSubSection
EndSection
"""


class Failed(Exception):
    """A step that did not do what it should."""


def eventually(what, probe):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = probe()
        if found:
            return found
        time.sleep(0.1)
    raise Failed(f"no {what} within {LIMIT_S} s")


def expect(what, found, wanted):
    if found != wanted:
        raise Failed(f"{what} is {found!r} instead of {wanted!r}")


class Session:
    """A server and what runs on it."""

    def __init__(self, name, kind, folder):
        self.name, self.kind, self.home = name, kind, folder / name
        self.home.mkdir()
        self.log = open(self.home / "log", "w+", encoding="utf-8", errors="replace")
        self.results = collections.defaultdict(collections.Counter)
        self.memory = []
        self.environment = {
            **{key: value for key, value in os.environ.items() if key not in ("WAYLAND_DISPLAY", "XAUTHORITY", "DISPLAY")},
            "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home / "run"), "NO_AT_BRIDGE": "1",
            "XDG_CONFIG_HOME": str(self.home / ".config"), "XDG_CACHE_HOME": str(self.home / ".cache"), "LC_ALL": "C.UTF-8",
        }
        (self.home / "run").mkdir(mode=0o700)
        self.parts = []
        self.server = self.start_server()
        bus = self.output("dbus-daemon", "--session", "--fork", "--print-address=1", "--print-pid=1").split()
        self.environment["DBUS_SESSION_BUS_ADDRESS"], self.bus = bus[0], int(bus[1])

    def start_server(self):
        has_xqos = self.name == "xqos"
        wrap = [str(XQOS), "server", "--"] if has_xqos else []
        if self.kind == "xorg":
            (self.home / "modules").mkdir()
            shutil.copy(MODULE, self.home / "modules/xqos.so")
            (self.home / "xorg.conf").write_text(XORG_CONF.format(home=self.home, load='Load "xqos"' if has_xqos else ""))
            command = ["/usr/lib/xorg/Xorg", "-config", f"{self.home}/xorg.conf", "-configdir", f"{self.home}/run",
                       "-logfile", f"{self.home}/xorg.log", "-novtswitch", "-sharevts"]
        else:
            command = [*wrap, "Xvfb", "-screen", "0", f"{SIZE}x24"]
        reads, writes = os.pipe()
        with os.fdopen(reads) as pipe:
            process = self.start(*command, "-displayfd", str(writes), "-noreset", "-nolisten", "tcp", pass_fds=[writes])
            os.close(writes)
            display = pipe.readline().strip()
        if not display:
            sys.exit(f"try-session: the server did not start: {(self.home / 'log').read_text()[-2000:]}")
        self.environment["DISPLAY"] = f":{display}"
        return process

    def output(self, *command, text=None):
        done = subprocess.run(command, env=self.environment, input=text, stdout=subprocess.PIPE, stderr=self.log, timeout=LIMIT_S,
                              text=True, cwd=self.home)
        return done.stdout

    def start(self, *command, **options):
        return subprocess.Popen(command, env=self.environment, cwd=self.home, stdin=subprocess.DEVNULL,
                                **{"stdout": self.log, "stderr": self.log, "start_new_session": True, **options})

    def xdotool(self, *words):
        return self.output("xdotool", *words).strip()

    def keys(self, *keys):
        for key in keys:
            self.xdotool("key", "--clearmodifiers", key)
            time.sleep(0.15)

    def window(self, pattern, by="--name"):
        return eventually(f"a window {pattern}", lambda: self.xdotool("search", "--onlyvisible", by, pattern).split())[-1]

    def focus(self, window):
        self.xdotool("windowactivate", "--sync", window)
        time.sleep(0.3)

    def measure(self):
        # `xqos server` replaces itself with the server.
        pid = self.server.pid
        rss = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
        self.memory.append((rss, len(os.listdir(f"/proc/{pid}/fd"))))

    def step(self, name, action):
        try:
            result = f"ok {action(self) or ''}".strip()
        except (Failed, subprocess.TimeoutExpired) as fault:
            result = f"failed: {fault}"
        self.results[name][result] += 1

    def close(self):
        for process in [*self.parts, self.server]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in [*self.parts, self.server]:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        os.kill(self.bus, signal.SIGTERM)
