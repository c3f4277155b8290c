# SPDX-License-Identifier: MIT
"""Steps of a scripted session: each starts a program, operates it, checks it and ends it."""

import os
import signal
import struct
import subprocess
import time
import zlib

from .servers import LIMIT_S, Failed, eventually, expect

SWING = """
import javax.swing.*;
public class Field {
    public static void main(String[] arguments) {
        SwingUtilities.invokeLater(() -> {
            JFrame frame = new JFrame("Swing field");
            JTextField field = new JTextField(30);
            field.addActionListener(event -> { System.out.println(field.getText()); System.exit(0); });
            frame.add(field);
            frame.pack();
            frame.setVisible(true);
        });
    }
}
"""
PAGE = """<title>page</title><body style="background:#468"><input autofocus oninput="document.title='page ' + value">"""


def ended(process):
    """Waits until the program exits by itself, and returns its exit status."""
    try:
        return process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise Failed("it did not end") from None


def picture(session, window):
    """A checksum of the window's pixels, without the header, which contains the position."""
    # xwd asks about all windows of the server, and fails if one of another client disappears meanwhile.
    for _ in range(5):
        done = subprocess.run(["xwd", "-silent", "-id", window], env=session.environment, stdout=subprocess.PIPE, timeout=LIMIT_S)
        if done.returncode == 0:
            break
    else:
        raise Failed("xwd cannot read the window")
    size, colours = struct.unpack_from(">I", done.stdout)[0], struct.unpack_from(">I", done.stdout, 76)[0]
    return f"picture {zlib.crc32(done.stdout[size + 12 * colours:]):08x}"


def terminal(session):
    typed = session.home / "typed"
    typed.unlink(missing_ok=True)
    program = session.start("xterm", "-T", "typing", "-e", f"read -r line; echo \"$line\" > {typed}")
    session.focus(session.window("^typing$"))
    session.xdotool("type", "--delay", "20", "hello 42, a longer line of text")
    session.keys("Return")
    status = ended(program)
    expect("the line", typed.read_text(), "hello 42, a longer line of text\n")
    return f"exit {status}"


def editor(command, title, save, leave):
    def run(session):
        file = session.home / "note.txt"
        file.write_text("")
        program = session.start(*command, str(file))
        session.focus(session.window(title))
        session.xdotool("type", "--delay", "20", "saved by keys")
        session.keys(*save)
        eventually("saved file", lambda: file.read_text().strip() == "saved by keys")
        session.keys(*leave)
        return f"exit {ended(program)}"
    return run


def plain_program(command, title, keys):
    """A program that is operated and closed by its window's close button."""
    def run(session):
        program = session.start(*command)
        window = session.window(title)
        session.focus(window)
        session.keys(*keys)
        session.close_window(window)
        return f"exit {ended(program)}"
    return run


CHROMIUM = ["chromium", "--no-sandbox", "--no-first-run", "--disable-gpu", "--password-store=basic", "--ozone-platform=x11",
            "--user-data-dir={home}/browser", "--app={page}"]
FALKON = ["falkon", "--private-browsing", "--no-extensions", "{page}"]


def browser(command, title, leave):
    """A browser with a page that copies typed text into its title."""
    def run(session):
        page = session.home / "page.html"
        page.write_text(PAGE)
        program = session.start(*(word.format(home=session.home, page=f"file://{page}") for word in command))
        session.focus(session.window(f"^page{title}"))
        session.xdotool("type", "--delay", "30", "typed")
        session.window(f"^page typed{title}")
        session.keys(leave)
        return f"exit {ended(program)}"
    return run


def spreadsheet(session):
    sheet = session.home / "sheet.gnumeric"
    session.output("ssconvert", "fd://0", str(sheet), text="1,2\n")
    program = session.start("gnumeric", "--no-splash", str(sheet))
    session.focus(session.window("sheet.gnumeric"))
    session.keys("ctrl+Home", "Down")
    session.xdotool("type", "--delay", "30", "=A1+B1")
    session.keys("Return", "ctrl+s")
    time.sleep(2)
    session.keys("ctrl+q")
    status = ended(program)
    expect("the sheet", session.output("ssconvert", str(sheet), "fd://1", "-T", "Gnumeric_stf:stf_csv"), "1,2\n3,\n")
    return f"exit {status}"


def java(session):
    (session.home / "Field.java").write_text(SWING)
    program = session.start("java", str(session.home / "Field.java"), stdout=subprocess.PIPE, text=True)
    session.focus(session.window("^Swing field$"))
    session.xdotool("type", "--delay", "30", "from java")
    session.keys("Return")
    status = ended(program)
    expect("the output", program.stdout.read(), "from java\n")
    return f"exit {status}"


def recorder(session):
    film = session.home / "film.mkv"
    program = session.start("ffmpeg", "-loglevel", "error", "-y", "-f", "x11grab", "-framerate", "10", "-video_size", "640x480",
                            "-i", session.environment["DISPLAY"], "-t", "3", "-c:v", "ffv1", str(film))
    status = ended(program)
    if film.stat().st_size < 10_000:
        raise Failed("the film is empty")
    return f"exit {status}"


def clipboard(session):
    (session.home / "copied").write_text("copied text")
    # A clipboard manager may miss an owner that ends soon on a busy machine.
    owner = session.start("xclip", "-quiet", "-selection", "clipboard", "-i", "copied")
    time.sleep(4)
    owner.terminate()
    owner.wait()
    time.sleep(2)
    expect("the clipboard", session.output("xclip", "-selection", "clipboard", "-o"), "copied text")


def locker(session):
    program = session.start("i3lock", "-n", "-c", "203040")
    window = session.window("i3lock")
    time.sleep(1)
    locked = picture(session, window)
    program.terminate()
    return f"{locked}, exit {ended(program)}"


def moved_windows(session):
    programs = [session.start("xcalc", "-title", f"calc {number}") for number in range(3)]
    for number in range(3):
        window = session.window(f"^calc {number}$")
        session.move_window(window, 100 + 200 * number, 120)
    window = session.window("^calc 1$")
    session.focus(window)
    session.keys("7", "asterisk", "6", "equal")
    time.sleep(0.5)
    result = picture(session, window)
    for program in programs:
        program.terminate()
        program.wait()
    return result


# Each step, the programs that it needs, and what it does.
STEPS = [
    ("terminal", ["xterm"], terminal),
    ("Qt editor", ["featherpad"], editor(["featherpad", "--standalone"], "note.txt", ["ctrl+s"], ["ctrl+q"])),
    ("emacs", ["emacs"], editor(["emacs", "-Q"], "emacs@|note.txt", ["ctrl+x", "ctrl+s"], ["ctrl+x", "ctrl+c"])),
    ("GTK 3", ["gtk3-widget-factory"], plain_program(["gtk3-widget-factory"], "^gtk3-widget-factory$", ["Tab", "Tab", "Down", "F10", "Escape"])),
    ("GTK 4", ["gtk4-widget-factory"], plain_program(["gtk4-widget-factory"], "Widget Factory", ["Tab", "Tab", "Down"])),
    ("Qt 6", ["qt6ct"], plain_program(["qt6ct"], "Qt6", ["Tab", "Down", "Tab"])),
    ("file manager", ["thunar"], plain_program(["thunar", "/usr/share"], "share", ["Down", "Right", "F5"])),
    ("spreadsheet", ["gnumeric", "ssconvert"], spreadsheet),
    ("browser", ["chromium"], browser(CHROMIUM, "$", "ctrl+w")),
    ("embedded Chromium", ["falkon"], browser(FALKON, " - ", "ctrl+q")),
    ("Java", ["java"], java),
    ("screen recorder", ["ffmpeg"], recorder),
    ("clipboard manager", ["xclip", "parcellite"], clipboard),
    ("screen locker", ["i3lock"], locker),
    ("moved windows", ["xcalc", "xwd"], moved_windows),
]
