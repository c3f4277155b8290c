# SPDX-License-Identifier: MIT
"""X servers of scripted sessions, and the programs that run on them."""

import collections
import json
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
# Windows float, as in other desktops, and a program may take the focus.
SWAY_CONF = f"""
xwayland force
output HEADLESS-1 resolution {SIZE}
for_window [title=".*"] floating enable
focus_on_window_activation focus
exec echo "$DISPLAY" > "$HOME/display"
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
    """A server and the programs that run on it."""

    needs = ["Xvfb", "xfwm4"]
    parts = [["xfsettingsd", "--no-daemon"], ["xfwm4", "--compositor=on"], ["xfdesktop"], ["xfce4-panel", "--disable-wm-check"],
             ["parcellite", "-n"]]
    # Steps that are impossible on this server, with the reasons.
    impossible = {}

    def __init__(self, name, folder):
        self.name, self.home = name, folder / name
        self.home.mkdir()
        self.log = open(self.home / "log", "w+", encoding="utf-8", errors="replace")
        self.results = collections.defaultdict(collections.Counter)
        self.times = collections.defaultdict(list)
        self.memory = []
        self.environment = {
            **{key: value for key, value in os.environ.items() if key not in ("WAYLAND_DISPLAY", "XAUTHORITY", "DISPLAY")},
            "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home / "run"), "NO_AT_BRIDGE": "1",
            "XDG_CONFIG_HOME": str(self.home / ".config"), "XDG_CACHE_HOME": str(self.home / ".cache"), "LC_ALL": "C.UTF-8",
            # The browsers cannot use their sandbox as root or without user namespaces.
            "QTWEBENGINE_DISABLE_SANDBOX": "1",
        }
        (self.home / "run").mkdir(mode=0o700)
        # The server, or the compositor that starts it, and programs that run for the whole session.
        self.running, self.bus = [], None
        # Programs of the current step.
        self.programs = []

    def open(self):
        self.start_server()
        self.server = self.server_pid()
        bus = self.output("dbus-daemon", "--session", "--fork", "--print-address=1", "--print-pid=1").split()
        self.environment["DBUS_SESSION_BUS_ADDRESS"], self.bus = bus[0], int(bus[1])
        for part in self.parts:
            if shutil.which(part[0]):
                self.running.append(self.start(*part))
                time.sleep(1)

    def has_xqos(self):
        return self.name == "xqos"

    def command(self):
        """The command that starts the server."""
        wrap = [str(XQOS), "server", "--"] if self.has_xqos() else []
        return [*wrap, "Xvfb", "-screen", "0", f"{SIZE}x24"]

    def start_server(self):
        reads, writes = os.pipe()
        with os.fdopen(reads) as pipe:
            command = [*self.command(), "-displayfd", str(writes), "-noreset", "-nolisten", "tcp"]
            self.running.append(self.start(*command, pass_fds=[writes]))
            os.close(writes)
            display = pipe.readline().strip()
        self.environment["DISPLAY"] = f":{display}" if display else self.give_up()

    def server_pid(self):
        # `xqos server` replaces itself with the server.
        return self.running[0].pid

    def give_up(self):
        sys.exit(f"try-session: the server did not start: {(self.home / 'log').read_text(errors='replace')[-2000:]}")

    def output(self, *command, text=None):
        done = subprocess.run(command, env=self.environment, input=text, stdout=subprocess.PIPE, stderr=self.log, timeout=LIMIT_S,
                              text=True, cwd=self.home)
        return done.stdout

    def start(self, *command, **options):
        program = subprocess.Popen(command, env=self.environment, cwd=self.home, stdin=subprocess.DEVNULL,
                                   **{"stdout": self.log, "stderr": self.log, "start_new_session": True, **options})
        self.programs.append(program)
        return program

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

    def close_window(self, window):
        """Closes the window as its close button does."""
        self.focus(window)
        self.keys("alt+F4")

    def move_window(self, window, x, y):
        self.xdotool("windowmove", "--sync", window, str(x), str(y))
        self.xdotool("windowraise", window)

    def measure(self):
        """Checks that the server still runs, with or without xqos as at its start, and records its memory."""
        status = pathlib.Path(f"/proc/{self.server}/status")
        rss = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
        if not rss:
            raise Failed("it has ended")
        self.memory.append((int(rss[1]), len(os.listdir(f"/proc/{self.server}/fd"))))
        report = json.loads(self.output(str(XQOS), "doctor", "--json"))
        expect("served by xqos", bool(report["service"] and report["service"]["armed"]), self.has_xqos())

    def step(self, name, action):
        began, self.programs = time.monotonic(), []
        try:
            # Turn off key repeat, which xfsettingsd turns on: a busy machine may hold a key long enough to repeat it.
            self.output("xset", "r", "off")
            result = f"ok {action(self) or ''}".strip()
        except (Failed, subprocess.TimeoutExpired) as fault:
            result = f"failed: {fault}"
            for program in self.programs:
                if program.poll() is None:
                    os.killpg(program.pid, signal.SIGKILL)
                    program.wait()
        self.results[name][result] += 1
        self.times[name].append(time.monotonic() - began)
        return result

    def close(self):
        for process in reversed(self.running):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in reversed(self.running):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if self.bus:
            os.kill(self.bus, signal.SIGTERM)


class Xorg(Session):
    needs = ["/usr/lib/xorg/Xorg", "xfwm4"]

    def command(self):
        (self.home / "modules").mkdir()
        shutil.copy(MODULE, self.home / "modules/xqos.so")
        load = 'Load "xqos"' if self.has_xqos() else ""
        (self.home / "xorg.conf").write_text(XORG_CONF.format(home=self.home, load=load))
        return ["/usr/lib/xorg/Xorg", "-config", f"{self.home}/xorg.conf", "-configdir", f"{self.home}/run",
                "-logfile", f"{self.home}/xorg.log", "-novtswitch", "-sharevts"]


class Xwayland(Session):
    """Xwayland under sway, which is the window manager. Programs connect to Xwayland only."""

    needs = ["sway", "Xwayland"]
    parts = [["parcellite", "-n"]]
    impossible = {"screen recorder": "Xwayland's root window has no pixels",
                  "screen locker": "a Wayland compositor locks the screen itself"}

    def start_server(self):
        (self.home / "sway.conf").write_text(SWAY_CONF)
        self.environment |= {
            "WLR_BACKENDS": "headless", "WLR_LIBINPUT_NO_DEVICES": "1", "WLR_RENDERER": "pixman",
            "SWAYSOCK": f"{self.home}/run/sway.sock",
            "GDK_BACKEND": "x11", "QT_QPA_PLATFORM": "xcb", "_JAVA_AWT_WM_NONREPARENTING": "1",
        }
        if self.has_xqos():
            self.output(str(XQOS), "xwayland", "install", "--for", "wlroots")
            variables = (self.home / ".config/environment.d/90-xqos-xwayland.conf").read_text()
            self.environment |= dict(re.findall("^(WLR_XWAYLAND)=(.*)$", variables, re.MULTILINE))
        self.running.append(self.start("sway", "--config", f"{self.home}/sway.conf"))
        display = self.home / "display"
        while not (display.exists() and display.read_text().endswith("\n")):
            if self.running[0].poll() is not None:
                self.give_up()
            time.sleep(0.1)
        self.environment["DISPLAY"] = display.read_text().strip()

    def server_pid(self):
        # It is no child of sway, which forks twice.
        return int(self.output("pgrep", "-f", f"Xwayland {self.environment['DISPLAY']} -rootless"))

    # sway sees no keys of XTEST, and ignores positions that programs ask for.
    def close_window(self, window):
        self.output("swaymsg", f"[id={window}] kill")

    def move_window(self, window, x, y):
        self.output("swaymsg", f"[id={window}] focus, move position {x} {y}")


KINDS = {"xvfb": Session, "xorg": Xorg, "xwayland": Xwayland}
