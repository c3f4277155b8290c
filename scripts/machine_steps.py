# SPDX-License-Identifier: MIT
"""Steps of scripts/try-machine: what a person does with a desktop, and what has to be seen afterwards.

A step gets a `Trial`, the machine with its screen, keyboard and pointer. It raises `Failed`, or returns a few words
that have to be the same with the stock server and with xqos. Each step starts and ends on the desktop without windows.
"""
import contextlib
import re
import shlex

STEPS = {}
BUSY = "for client in $(seq 12); do x11perf -repeat 1000 -time 60 -ellipse100 >/dev/null 2>&1 & done; wait"
DESKTOP = "for program in xfwm4 xfce4-panel xfdesktop; do pgrep -u user -x $program || exit; done; " \
    "xdotool search --onlyvisible --name '^Desktop$' && xdotool search --onlyvisible --class xfce4-panel"
GREETER = "XAUTHORITY=/run/lightdm/root/:0 DISPLAY=:0 xdotool search --onlyvisible --class lightdm-gtk-greeter"
# The driver refuses OpenGL in software unless the configuration has a second graphics card, which need not exist.
GLAMOR = """Section "Device"
    Identifier "first"
    Driver "modesetting"
EndSection
Section "Device"
    Identifier "absent"
    Driver "modesetting"
    BusID "PCI:31:0:0"
EndSection
Section "Screen"
    Identifier "screen"
    Device "first"
    GPUDevice "absent"
EndSection
"""
RULE = """version = 1
[[rule]]
id = "terminals"
match = { class = "xterm" }
set = { weight = 3 }
"""


class Failed(Exception):
    """What was seen instead of what the step expects."""


def step(name, limit=240, only_xqos=False, is_still=True):
    """Declares a step: its limit in seconds, and whether the screen is the plain desktop at its end."""
    def declare(action):
        STEPS[name] = (limit, only_xqos, is_still, action)
        return action
    return declare


def expect(what, found, wanted):
    if found != wanted:
        raise Failed(f"{what}: {found!r} instead of {wanted!r}")


def contains(what, text, *patterns):
    for pattern in patterns:
        if not re.search(pattern, text, re.MULTILINE):
            raise Failed(f"{what} lacks {pattern!r}: {text}")


def restart(m):
    """Starts a new server, whose session begins by itself."""
    before = m.run("pgrep -x Xorg || true")
    m.run("systemctl restart lightdm")
    m.wait("new server", f"pid=$(pgrep -x Xorg) && test \"$pid\" != '{before}'")
    wait_for_desktop(m)


def wait_for_desktop(m):
    m.wait("desktop", DESKTOP, "user")
    m.still_picture()


@contextlib.contextmanager
def busy(m):
    """Twelve clients that draw all the time, at the top left of the screen."""
    drawing = m.begin(BUSY, "user")
    try:
        m.wait("twelve windows of x11perf", "test $(xwininfo -root -children | grep -c ' 600x600+') -ge 12", "user")
        yield
    finally:
        m.run("pkill x11perf || true", "user")
        drawing.wait(60)


@contextlib.contextmanager
def terminal(m, name, place):
    """A terminal that writes one line of input to a file and ends; for its block, a function that returns the line."""
    file = f"/tmp/{name}.typed"
    m.run(f"rm -f {file}")
    read = f"read -r line; printf %s \"$line\" >{file}.new; mv {file}.new {file}"
    running = m.begin(f"xterm -T {name} -geometry 50x8{place} -e sh -c {shlex.quote(read)}", "user")
    try:
        m.wait(f"window {name}", f"xdotool getactivewindow getwindowname | grep -x {name}", "user")
        yield lambda: m.wait(f"line typed into {name}", f"cat {file}")
    finally:
        m.run(f"pkill -f '[x]term -T {name}' || true", "user")
        running.wait(60)


def click(m, name):
    """Clicks on a window, and waits until it has the focus."""
    window = f"xdotool search --onlyvisible --name '^{name}$'"
    # A search fails if a window of another program disappears meanwhile.
    text = m.wait(f"place of {name}", "xdotool getdisplaygeometry && "
                  f"xdotool getwindowgeometry --shell $({window})", "user")
    width, height = map(int, text.split()[:2])
    at = dict(line.split("=") for line in text.split() if "=" in line)
    place = (int(at["X"]) + int(at["WIDTH"]) // 2) / width, (int(at["Y"]) + int(at["HEIGHT"]) // 2) / height
    # The kernel does not report a position twice, and a new server does not know the last one: move elsewhere first.
    for x, y in (0.5, 0.95), place:
        m.point(x, y)
        column, row = ("|".join(str(int(at) + more) for more in (-1, 0, 1)) for at in (x * width, y * height))
        m.wait("pointer there", f"xdotool getmouselocation | grep -E 'x:({column}) y:({row}) '", "user")
    m.point(*place, "left")
    m.wait(f"focus on {name}", f"xdotool getactivewindow getwindowname | grep -x {name}", "user")


def type_into_terminal(m, text="The quick brown fox jumps over the lazy dog, 0123456789"):
    with terminal(m, "typing", "-40-120") as typed:
        click(m, "typing")
        m.type(text + "\n")
        expect("typed text", typed(), text)


def log_in(m):
    """Types the password at the greeter, until it is taken: the greeter shows before it listens."""
    m.wait("greeter", GREETER)
    m.still_picture()
    while m.left() > 0:
        m.type("user\n")
        if m.desktop.wait("pgrep -u user -x xfce4-session", limit=min(20, m.left())):
            break
    wait_for_desktop(m)


def switch(m, keys, terminal):
    m.press(keys)
    m.wait(terminal, f"grep -x {terminal} /sys/class/tty/tty0/active")


@step("install", limit=600, only_xqos=True)
def install(m):
    m.run("find /usr /etc/xdg /etc/X11 /etc/systemd /var/lib/systemd | sort >/root/before")
    m.install(m.first_packages)
    # Until its next start, the server is the stock server.
    m.has_xqos = False
    before = m.status("xqos doctor", "user")[1]
    contains("doctor before the new login", before, "served +no", "log out and in again")


@step("login", limit=400)
def login(m):
    # On a busy host, a key would be released so late that it repeats.
    m.write("/etc/lightdm/lightdm.conf.d/60-keys.conf", "[Seat:*]\nxserver-command=X -r\n")
    restart(m)
    m.has_xqos = m.kind == "xqos"
    m.run("xset s off -dpms", "user")
    return "desktop"


@step("drivers")
def drivers(m):
    log = m.run("cat /var/log/Xorg.0.log")
    for_device = "Using input driver 'libinput' for 'QEMU QEMU USB "
    contains("log of Xorg", log, r"modeset\(0\): using drv", for_device + "Keyboard", for_device + "Tablet")
    devices = len(re.findall("Using input driver 'libinput'", log))
    drawing = "glamor" if "glamor X acceleration enabled" in log else "ShadowFB"
    return f"modesetting, {drawing}, {devices} libinput devices"


@step("commands", only_xqos=True)
def commands(m):
    """What the commands print, for the user and for root without a cookie."""
    served = r"^served +yes: XQOS", r"^through +the server's own functions \(host dix\)"
    contains("doctor", m.run("xqos doctor", "user"), *served)
    contains("doctor without a cookie", m.run("XAUTHORITY=/nonexistent xqos --display :0 doctor"), *served)
    contains("list", m.run("xqos list", "user"), "xfwm4", "xfce4-panel", "xfdesktop")
    with busy(m):
        contains("top", m.run("xqos top --once", "user"), "x11perf")
        contains("why", m.run("cd $(mktemp --directory) && xqos why --time 5s && rm -r xqos-why-*", "user"), "x11perf")


@step("keys", limit=400)
def keys(m):
    """Typed text arrives in the terminal that was clicked on, while twelve clients draw."""
    with busy(m), terminal(m, "left", "-340-120") as left, terminal(m, "right", "-20-120") as right:
        click(m, "left")
        m.type("to the left window\n")
        click(m, "right")
        m.picture()
        m.type("To the Right, 0123456789 = a/b; c-d.\n")
        expect("text typed on the left", left(), "to the left window")
        expect("text typed on the right", right(), "To the Right, 0123456789 = a/b; c-d.")
    return "text and focus"


@step("vt")
def vt(m):
    switch(m, "ctrl-alt-f2", "tty2")
    m.run("xdpyinfo", "user")
    m.check_served()
    switch(m, "alt-f7", "tty7")
    type_into_terminal(m)
    return "away and back"


@step("vt-load", limit=400)
def vt_under_load(m):
    with busy(m):
        vt(m)
        m.picture()
    return "away and back"


@step("dpms")
def dpms(m):
    m.run("xset +dpms; xset dpms force off", "user")
    m.wait("screen off", "xset q | grep 'Monitor is Off'", "user")
    m.press("shift")
    m.wait("screen on", "xset q | grep 'Monitor is On'", "user")
    m.run("xset -dpms", "user")
    return "off and on"


@step("locker")
def locker(m):
    m.run("i3lock --color 203040 >/dev/null 2>&1", "user")
    m.picture(True)
    expect("colours of the locked screen", m.colours(), {bytes.fromhex("203040")})
    m.type("wrong\n")
    m.wait("refused password", "journalctl --boot | grep 'i3lock.*authentication failure'")
    m.wait("running locker", "pgrep -x i3lock")
    m.type("user\n")
    m.wait("unlocked screen", "! pgrep -x i3lock")
    return "locked and unlocked"


@step("mode", limit=400)
def mode(m):
    """Changes the mode of the screen and back, while twelve clients draw."""
    output = m.run("xrandr | sed -n 's/ connected.*//p'", "user")
    with busy(m):
        for size in "1024x768", "1280x800":
            m.run(f"xrandr --output {output} --mode {size}", "user")
            m.wait(f"size {size}", f"xdotool getdisplaygeometry | grep -x '{size.replace('x', ' ')}'", "user")
            m.wait("panel of this width",
                   f"xwininfo -name xfce4-panel | grep 'Width: {size.split('x')[0]}'", "user")
            m.picture()
            expect("size of the picture", m.size(), size)
    type_into_terminal(m)
    return "1024x768 and back"


@step("keyboard")
def keyboard(m):
    listed = "xinput list --name-only | grep 'QEMU USB Keyboard'"
    m.ask("device_del", id="keyboard")
    m.wait("keyboard unplugged", f"! {listed}", "user")
    m.ask("device_add", driver="usb-kbd", id="keyboard")
    m.wait("keyboard plugged in", listed, "user")
    type_into_terminal(m)
    return "unplugged and plugged in"


@step("logout", limit=500)
def logout(m):
    before = m.run("pgrep -x Xorg")
    # The session ends before its answer comes.
    m.status("xfce4-session-logout --logout --fast", "user")
    m.wait("end of the session", "! pgrep -u user -x xfce4-session")
    log_in(m)
    type_into_terminal(m)
    return "same server" if m.run("pgrep -x Xorg") == before else "new server"


@step("crash", limit=500)
def crash(m):
    before = m.run("pgrep -x Xorg")
    m.run(f"kill -SEGV {before}")
    m.wait("new server", f"pid=$(pgrep -x Xorg) && test $pid != {before}")
    contains("log of the old server", m.run("cat /var/log/Xorg.0.log.old"), "Segmentation fault", "Server aborting")
    m.wait("greeter", GREETER)
    m.check_served()
    log_in(m)
    type_into_terminal(m)
    return "new server"


def with_rule(m):
    """Waits until the rule for terminals gives a terminal its weight."""
    with terminal(m, "ruled", "-40-120"):
        m.wait("weight 3 of xterm", "xqos list --json | python3 -c '"
               "import json, sys; sys.exit(not any(client[\"program\"] == \"xterm\" and client[\"weight\"] == 3 "
               "for client in json.load(sys.stdin)[\"clients\"]))'", "user")


@step("autostart", only_xqos=True)
def autostart(m):
    m.write("/etc/xqos/rules.d/99-try.toml", RULE)
    contains("rules", m.wait("rules", "xqos rules status", "user"), "rules apply on", "99-try.toml")
    with_rule(m)


@step("unit", only_xqos=True)
def unit(m):
    m.run("xqos rules off", "user")
    # This desktop does not start graphical-session.target.
    m.run("systemctl --user enable xqos-rules", "user")
    restart(m)
    m.wait("active unit", "systemctl --user is-active xqos-rules", "user")
    with_rule(m)
    m.run("systemctl --user disable --now xqos-rules; rm -r /home/user/.config/systemd", "user")
    expect("rules daemons", m.status("pgrep -u user -x xqos")[1], "")


@step("exporter", only_xqos=True)
def exporter(m):
    m.run("systemctl start xqos-exporter")
    metrics = m.wait("metrics", "curl --silent --fail --max-time 60 http://127.0.0.1:9767/metrics")
    contains("metrics", metrics, r'^xqos_display_served\{display=":0"\} 1$',
             r'^xqos_client_connections\{.*program="xfwm4"')
    m.run("systemctl stop xqos-exporter")


def second_server(m, user, display, vt):
    """Starts a second server as that user on another virtual terminal, and types into its terminal.

    logind starts a login on each of the first six terminals, which would end the server.
    """
    home = "/root" if user == "root" else "/home/user"
    file = f"/tmp/second-{user}.typed"
    read = f"read -r line; printf %s \"$line\" >{file}"
    m.write("/usr/local/bin/read-line", f"#!/bin/sh\nexec xterm -e '{read}'\n", "755")
    properties = "PAMName=login", f"User={user}", f"TTYPath=/dev/tty{vt}", "StandardInput=tty-force"
    options = " ".join(f"--property {word}" for word in (*properties, f"WorkingDirectory={home}"))
    m.run(f"chvt {vt}; systemd-run --quiet --collect --unit second {options}"
          f" startx /usr/local/bin/read-line -- :{display} vt{vt} -keeptty -r")
    try:
        there = f"export XAUTHORITY={home}/.Xauthority; "
        m.wait("terminal", f"{there} DISPLAY=:{display} xdotool search --onlyvisible --class xterm")
        expect("user of the server", m.run(f"ps -o user= -p $(pgrep -f '[X]org :{display}')"), user)
        m.check_served(f":{display}")
        for number in 7, vt:
            m.run(f"chvt {number}")
            m.wait(f"tty{number}", f"grep -x tty{number} /sys/class/tty/tty0/active")
        m.point(0.1, 0.1)
        m.picture()
        m.type("on another server\n")
        expect("typed text", m.wait("typed line", f"cat {file}"), "on another server")
        m.wait("end of the server", f"! pgrep -f '[X]org :{display}'")
    finally:
        m.run("systemctl stop second || true; chvt 7; rm /usr/local/bin/read-line")
    m.wait("tty7", "grep -x tty7 /sys/class/tty/tty0/active")
    type_into_terminal(m)
    return f"as {user}"


@step("rootless", limit=400)
def rootless(m):
    return second_server(m, "user", 6, 9)


@step("root", limit=400)
def as_root(m):
    return second_server(m, "root", 5, 10)


@step("xrdp", limit=600)
def xrdp(m):
    """A desktop of another user over RDP, in a real client on an Xvfb of the machine."""
    settings = "/etc/X11/xrdp/xorg.conf"
    m.run("id guest || { useradd --create-home --shell /bin/bash guest && echo guest:guest | chpasswd; }")
    m.run(f"cp {settings} /root/xrdp.conf")
    if m.has_xqos:
        # As `xqos doctor` advises: the module section of this file replaces the one that loads xqos.
        m.run("load=$(grep Load /usr/share/X11/xorg.conf.d/20-xqos.conf) && "
              f"sed -i \"/^Section \\\"Module\\\"/a $load\" {settings} && grep xqos {settings}")
    m.run("systemctl start xrdp-sesman xrdp")
    m.run("systemd-run --quiet --collect --unit screen Xvfb :90 -screen 0 1024x768x24")
    m.wait("Xvfb", "DISPLAY=:90 xdpyinfo")
    m.wait("listening xrdp", "ss --listening --tcp --numeric | grep 3389")
    try:
        m.run("systemd-run --quiet --collect --unit viewer --setenv DISPLAY=:90 --setenv HOME=/root "
              "$(command -v xfreerdp xfreerdp3 | head -n 1) /v:127.0.0.1 /u:guest /p:guest /cert:ignore /size:1024x768")
        guest = "runuser -u guest -- env HOME=/home/guest DISPLAY=:10 "
        m.wait("desktop over RDP", f"{guest} xdotool search --onlyvisible --name '^Desktop$'")
        if m.has_xqos:
            contains("doctor", m.run(f"{guest} xqos doctor"), "^served +yes")
            contains("list", m.run(f"{guest} xqos list"), "xfdesktop")
        m.run("rm -f /tmp/rdp.typed")
        read = "read -r line; printf %s \"$line\" >/tmp/rdp.new; mv /tmp/rdp.new /tmp/rdp.typed"
        m.run("systemd-run --quiet --collect --unit rdp-typing --uid guest --setenv HOME=/home/guest "
              f"--setenv DISPLAY=:10 xterm -T rdp-typing -e sh -c {shlex.quote(read)}")
        m.wait("active terminal over RDP", f"{guest} xdotool getactivewindow getwindowname | grep -x rdp-typing")
        m.run("DISPLAY=:90 xdotool type --delay 50 'typed over RDP'; DISPLAY=:90 xwd -silent -root -out /root/rdp.xwd; "
              "DISPLAY=:90 xdotool key Return")
        m.save_window_dump("/root/rdp.xwd")
        expect("text typed over RDP", m.wait("line typed over RDP", "cat /tmp/rdp.typed"), "typed over RDP")
    finally:
        m.status("systemctl stop viewer rdp-typing screen xrdp xrdp-sesman; loginctl terminate-user guest; "
                 f"pkill -KILL -u guest; mv /root/xrdp.conf {settings}")
    m.wait("end of the session", "! pgrep -u guest")
    return "desktop over RDP"


@step("glamor", limit=600)
def glamor(m):
    m.write("/etc/X11/xorg.conf.d/90-glamor.conf", GLAMOR)
    # Nothing is drawn: Debian 12's server soon crashes in Mesa, and Debian 13's may show no desktop at all, both also
    # without xqos.
    until, m.until = m.until, m.until - 360
    try:
        restart(m)
        found = drivers(m)
    except Failed:
        found = "no desktop"
    else:
        m.check_served()
    finally:
        m.until = until
        m.picture()
        m.status("rm /etc/X11/xorg.conf.d/90-glamor.conf")
    restart(m)
    return found


@step("upgrade", limit=500, only_xqos=True)
def upgrade(m):
    """Another version of the packages is installed while the server runs under load; then that version is served."""
    before = m.run("pgrep -x Xorg")
    with busy(m):
        m.install(m.next_packages)
        m.check_served()
        contains("list", m.run("xqos list", "user"), "x11perf")
        type_into_terminal(m)
    expect("server after the upgrade", m.run("pgrep -x Xorg"), before)
    restart(m)


@step("purge", limit=500)
def purge(m):
    """The stock server is back and no file of xqos is left; the running server is not disturbed."""
    if m.has_xqos:
        m.run("rm -rf /etc/xqos /root/packages")
        m.run("apt-get -y purge $(dpkg-query --show --showformat '${Package} ' '*xqos*')")
        type_into_terminal(m)
        m.has_xqos = False
    restart(m)
    expect("files with the name xqos", m.run("find / -xdev -name '*xqos*' ! -path '/proc/*'"), "")
    expect("lines of xqos in the server's log", m.status("grep xqos /var/log/Xorg.0.log")[1], "")
    expect("new and missing files", m.status("test ! -e /root/before || find /usr /etc/xdg /etc/X11 /etc/systemd "
                                             "/var/lib/systemd | sort | diff /root/before -")[1], "")
    type_into_terminal(m)
    return "stock server"
