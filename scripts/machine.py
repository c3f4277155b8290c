# SPDX-License-Identifier: MIT
"""Debian in QEMU, for scripts/machine and scripts/try-machine.

`Desktop` is a machine with a disk, a screen, a keyboard and a pointer: Xorg with the kernel's mode setting, libinput,
lightdm, Xfce. `exact` runs one command on a machine whose clock counts instructions: one nanosecond is one instruction,
and time in which the processor is idle takes none. That machine has no disk, no network and no input: everything
that it reads is in memory when it starts. Nothing from outside reaches it, so the same files give the same run, to the
last instruction, however busy the host is.

Images are built once for each suite from the distribution's packages and kept in target/machine.
"""
import ctypes
import fcntl
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "target/machine"
SUITES = "bookworm", "trixie"
EXACT_PACKAGES = """linux-image-amd64 kmod mount procps iproute2 psmisc python3-minimal xvfb xserver-xephyr x11-apps
 x11-utils x11-xserver-utils x11-xkb-utils xauth xterm xfonts-base twm openbox xfwm4 picom weston xwayland
 tigervnc-standalone-server dbus fontconfig chromium mpv libpcap0.8"""
DESKTOP_PACKAGES = """linux-image-amd64 systemd-sysv udev kmod dbus dbus-user-session libpam-systemd polkitd
 openssh-server procps iproute2 psmisc kbd curl python3-minimal xserver-xorg-core xserver-xorg-input-libinput
 xserver-xorg-legacy xinit x11-apps x11-utils x11-xserver-utils x11-xkb-utils xauth xdotool xinput xterm xfonts-base
 lightdm lightdm-gtk-greeter xfce4-session xfwm4 xfce4-panel xfce4-terminal xfdesktop4 xfce4-settings i3lock
 libgl1-mesa-dri libegl1 libgbm1 fonts-dejavu-core adwaita-icon-theme libpcap0.8 xvfb xrdp xorgxrdp
 bookworm:freerdp2-x11 trixie:freerdp3-x11"""
# Not needed to run an experiment, and half of the image. The kernel has all drivers of the exact machine built in.
LEFT_OUT = "boot", "lib/modules", "usr/lib/modules", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt"
# The archive of the exact machine has times in seconds, and fontconfig's cache is valid only if they are the same.
PREPARE_EXACT = "find /usr/share/fonts -type d -exec touch -d @1700000000 {} + && fc-cache -f"
# Runs as root of the new installation, before it becomes an image.
PREPARE_DESKTOP = r"""set -e
useradd -m -s /bin/bash -G video,input,audio user
printf 'user:user\nroot:root\n' | chpasswd
for home in /root /home/user; do mkdir -p $home/.ssh; cp /authorized_keys $home/.ssh; done
chown -R user: /home/user; rm /authorized_keys
echo desk >/etc/hostname; echo '127.0.0.1 localhost desk' >/etc/hosts; : >/etc/machine-id
echo '/dev/vda / ext4 defaults,noatime 0 1' >/etc/fstab
mkdir -p /etc/systemd/network /etc/lightdm/lightdm.conf.d
printf '[Match]\nName=e*\n[Network]\nAddress=10.0.2.15/24\n' >/etc/systemd/network/e.network
echo /usr/sbin/lightdm >/etc/X11/default-display-manager
printf '[Seat:*]\nautologin-user=user\nautologin-user-timeout=0\nuser-session=xfce\n' >/etc/lightdm/lightdm.conf.d/50-auto.conf
printf 'virtio_pci\nvirtio_blk\next4\n' >/etc/initramfs-tools/modules; echo MODULES=list >/etc/initramfs-tools/conf.d/small
systemctl --quiet enable systemd-networkd ssh lightdm; systemctl --quiet disable xrdp xrdp-sesman
systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer systemd-networkd-wait-online e2scrub_all.timer fstrim.timer
update-initramfs -u >/dev/null
"""
# The first process of the exact machine: runs /machine/command, and sends its output to one serial port and the folder
# /machine/results with the exit status to another.
INIT = r"""#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/pts /dev/shm /machine/results
mount -t devpts pts /dev/pts; mount -t tmpfs shm /dev/shm; mount -t tmpfs run /run; mount -t cgroup2 none /sys/fs/cgroup
export PATH=/machine/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C XQOS_EXACT=1
ip link set lo up; hostname exact; mkdir -p /run/user/0 /tmp/.X11-unix; chmod 1777 /tmp /tmp/.X11-unix
for port in 1 2; do stty -F /dev/ttyS$port raw -echo; done
mkfifo /machine/output; cat /machine/output >/dev/ttyS1 &
cd /root; sh /machine/command >/machine/output 2>&1 </dev/null; echo $? >/machine/status
# What is left of the output arrives, also if a program that was left behind still holds the pipe.
sleep 0.5; tar czf - --hard-dereference -C /machine status results | cat >/dev/ttyS2
sync; echo o >/proc/sysrq-trigger; sleep 60
"""
QEMU = ["qemu-system-x86_64", "-machine", "q35", "-nodefaults", "-display", "none"]
EXACT = ["-accel", "tcg,thread=single,tb-size=1024", "-icount", "shift=0,sleep=off,align=off", "-smp", "1",
         "-cpu", "max,la57=off", "-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", "1"]
ACCELERATORS = ("kvm", "host"), ("tcg,thread=multi,tb-size=1024", "max,la57=off")
# Without these the kernel can wait for ever in its calibration of clocks.
EXACT_KERNEL = "mitigations=off nokaslr norandmaps tsc=reliable no_timer_check lpj=1000000"


class Failure(Exception):
    """What went wrong, in a line that says what to do."""


def need(*programs):
    missing = [program for program in programs if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if missing:
        raise Failure(f"missing: {' '.join(missing)}; run scripts/setup --for machine")


def own_suite():
    """The suite of this system, so that programs built here run in the machine; the oldest for other systems."""
    text = pathlib.Path("/etc/os-release").read_text()
    return next((suite for suite in SUITES if f"VERSION_CODENAME={suite}" in text), SUITES[0])


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def library(function):
    """What a function of scripts/lib.sh prints."""
    command = ["sh", "-c", f". scripts/lib.sh; {function}"]
    return subprocess.run(command, cwd=FOLDER.parent.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def install(suite, packages, target, mirror, *options):
    need("mmdebstrap")
    mirror = mirror or library("debian_mirror machine").strip()
    if not mirror:
        raise Failure("this system's package sources have no Debian mirror; give one with --mirror URL")
    (FOLDER / "apt.conf").write_text(library("apt_options"))
    names = [name.removeprefix(suite + ":") for name in packages.split()]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--aptopt={FOLDER}/apt.conf", '--aptopt=APT::Install-Recommends "false"', *options,
               "--include=" + ",".join(name for name in names if ":" not in name), suite, target, mirror]
    print(f"machine: installing {suite} from {mirror}; this takes some minutes", file=sys.stderr, flush=True)
    with open(FOLDER / f"{suite}.log", "w") as log:
        if subprocess.run([str(word) for word in command], stdout=log, stderr=log).returncode:
            raise Failure(f"installation failed; the log is {log.name}")


def image(suite, kind, mirror=None):
    """Returns the path of an image without its ending; builds it if there is none of today's packages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    content = {"exact": [EXACT_PACKAGES, str(LEFT_OUT), PREPARE_EXACT], "desktop": [DESKTOP_PACKAGES, PREPARE_DESKTOP]}[kind]
    name = f"{suite}-{kind}-{hashlib.sha256(''.join(content).encode()).hexdigest()[:8]}"
    with open(FOLDER / "lock", "w") as lock:
        # Another run may be building the same image.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (FOLDER / f"{name}.vmlinuz").exists():
            build(suite, kind, name, mirror)
    return FOLDER / name


def build(suite, kind, name, mirror):
    for old in FOLDER.glob(f"{suite}-{kind}-*"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="building-", dir=FOLDER) as building:
        (build_exact if kind == "exact" else build_desktop)(suite, pathlib.Path(building), mirror)
        # The kernel comes last: an image without one is not complete.
        for made in sorted(pathlib.Path(building).iterdir(), key=lambda path: path.name == "vmlinuz"):
            made.rename(FOLDER / f"{name}.{made.name}")


def build_exact(suite, building, mirror):
    tar = building / "tar"
    hook = f"""--customize-hook=chroot "$1" sh -c '{PREPARE_EXACT}'"""
    install(suite, EXACT_PACKAGES, tar, mirror, "--format=tar", hook)
    with tarfile.open(tar) as files, open(building / "cpio", "wb") as cpio:
        archive = Cpio(cpio)
        for member in files:
            name = member.name.removeprefix("./")
            if name.startswith("boot/vmlinuz-"):
                (building / "vmlinuz").write_bytes(files.extractfile(member).read())
            if not any(name == left or name.startswith(left + "/") for left in LEFT_OUT):
                archive.add_member(files, member, name)
        archive.end()
    tar.unlink()


def build_desktop(suite, building, mirror):
    need("genext2fs", "resize2fs", "e2fsck", "qemu-img", "ssh-keygen")
    key, disk = FOLDER / "key", building / "disk"
    if not key.exists():
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    hooks = ["--customize-hook=upload " + f"{key}.pub /authorized_keys",
             '--customize-hook=chroot "$1" sh -c ' + "'" + PREPARE_DESKTOP.replace("'", "'\\''") + "'",
             '--customize-hook=chroot "$1" sh -c "cp /boot/vmlinuz-* /vmlinuz.made; cp /boot/initrd.img-* /initrd.made"',
             f"--customize-hook=download /vmlinuz.made {building}/vmlinuz", f"--customize-hook=download /initrd.made {building}/initrd",
             '--customize-hook=rm "$1/vmlinuz.made" "$1/initrd.made"']
    install(suite, DESKTOP_PACKAGES, disk, mirror, "--format=ext2", *hooks)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["e2fsck", "-fy", disk], **quiet)
    run("truncate", "-s", "6G", disk)
    run("resize2fs", disk, **quiet)
    run("qemu-img", "convert", "-c", "-O", "qcow2", disk, building / "qcow2")
    disk.unlink()


class Cpio:
    """Writes the archive from which a kernel fills its first file system (cpio, format newc)."""

    def __init__(self, file):
        self.file, self.numbers = file, {}

    def add(self, name, mode, data=b"", owner=(0, 0), changed=0, device=(0, 0), link=None):
        """Adds a file. A hard link has no data: it has the number of the file to which it links."""
        number = self.numbers.setdefault(link or name, len(self.numbers) + 1)
        name = name.encode() + b"\0"
        fields = number, mode, *owner, 2 if mode & 0o100000 else 1, changed, len(data), 0, 0, *device, len(name), 0
        self.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        self.write(data)

    def write(self, data):
        self.file.write(data + b"\0" * (-len(data) % 4))

    def add_member(self, tar, member, name):
        kinds = {tarfile.DIRTYPE: 0o040000, tarfile.SYMTYPE: 0o120000, tarfile.CHRTYPE: 0o020000,
                 tarfile.BLKTYPE: 0o060000, tarfile.FIFOTYPE: 0o010000}
        kind = kinds.get(member.type, 0o100000)
        data = member.linkname.encode() if member.issym() else tar.extractfile(member).read() if member.isreg() else b""
        link = member.linkname.removeprefix("./") if member.islnk() else None
        # Caches, such as fontconfig's, are valid only with the time of the last change.
        owner, device = (member.uid, member.gid), (member.devmajor, member.devminor)
        self.add(name or ".", kind | member.mode, data, owner, int(member.mtime), device, link)

    def end(self):
        self.add("TRAILER!!!", 0)


def in_machine(name):
    """The path of a put file in the archive. Some folders of the machine are links."""
    name = name.strip("/")
    if name in ("init", "machine/command"):
        raise Failure(f"--put: /{name} belongs to the machine; choose another name")
    return "usr/" + name if name.split("/")[0] in ("bin", "sbin", "lib", "lib64") else name


def end_with_parent():
    """In a new process: makes it end when this program ends, for whatever reason."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def packages_of(folder):
    """The packages to install; those for development need headers, which the machine lacks."""
    return sorted(path for path in folder.glob("*.deb") if "-dev_" not in path.name and "-dbgsym_" not in path.name)


def exact(suite, files, command, results, mirror=None):
    """Runs a shell command on the exact machine, prints its output as it comes, and returns its exit status.

    `files` maps paths in the machine to files here. What the command leaves in /machine/results is copied to `results`.
    """
    need(QEMU[0])
    if results and os.path.exists(results) and not (os.path.isdir(results) and os.access(results, os.W_OK | os.X_OK)):
        raise Failure(f"{results} is not a folder in which files can be created")
    base = image(suite, "exact", mirror)
    with tempfile.TemporaryDirectory(prefix="run-", dir=FOLDER) as folder:
        folder = pathlib.Path(folder)
        with open(folder / "initrd", "wb") as initrd:
            with open(f"{base}.cpio", "rb") as cpio:
                shutil.copyfileobj(cpio, initrd)
            own = {"init": (0o755, INIT.encode()), "machine/command": (0o644, command.encode())}
            own |= {in_machine(name): (os.stat(path).st_mode & 0o777, pathlib.Path(path).read_bytes()) for name, path in files.items()}
            archive = Cpio(initrd)
            for parent in sorted({str(parent) for name in own for parent in pathlib.PurePath(name).parents}):
                archive.add(parent, 0o040755)
            for name, (mode, data) in sorted(own.items()):
                archive.add(name, 0o100000 | mode, data)
            archive.end()
        ports = [part for port in ("kernel", "output", "files") for part in ("-serial", f"file:{folder / port}")]
        machine = subprocess.Popen([*QEMU, *EXACT, "-m", "4096", "-no-reboot", "-kernel", f"{base}.vmlinuz", "-initrd", folder / "initrd",
                                    "-append", f"console=ttyS0 panic=-1 rootfstype=ramfs {EXACT_KERNEL}", *ports], stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)
        try:
            follow(machine, folder / "output")
        finally:
            machine.kill()
            machine.wait()
        try:
            with tarfile.open(folder / "files") as tar:
                status = int(tar.extractfile("status").read())
                extract(tar, results)
        except (OSError, tarfile.TarError, KeyError, ValueError):
            tail = (folder / "kernel").read_text(errors="replace").splitlines()[-8:]
            raise Failure("the machine ended without a result:\n" + "\n".join(tail)) from None
    return status


def follow(process, path):
    """Prints what arrives in a file until the process ends."""
    while not path.exists() and process.poll() is None:
        time.sleep(0.05)
    with open(path, "rb") as file:
        while True:
            ended = process.poll() is not None
            if data := file.read():
                sys.stdout.buffer.write(data)
                sys.stdout.flush()
            elif ended:
                return
            else:
                time.sleep(0.1)


def extract(tar, results):
    """Copies the folder `results` of the archive to a folder here."""
    for member in tar:
        name = pathlib.PurePath(member.name)
        if results and member.isfile() and name.parts[0] == "results" and ".." not in name.parts:
            to = pathlib.Path(results).joinpath(*name.parts[1:])
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(tar.extractfile(member).read())


class Desktop:
    """A running machine. Commands go over ssh on the loopback; keys, the pointer and pictures over QMP."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.facts = json.loads((self.folder / "facts").read_text())
        self.sockets = pathlib.Path(self.facts["sockets"])
        self.ssh = ["-q", "-i", str(FOLDER / "key"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                    "-o", "ConnectTimeout=60", "-o", "ServerAliveInterval=20", "-o", "ControlMaster=auto",
                    "-o", f"ControlPath={self.sockets}/%r", "-o", "ControlPersist=600"]
        self.qmp = None

    @classmethod
    def start(cls, folder, suite, is_exact=False, processors=2, mirror=None):
        """Boots a desktop whose changes to the disk are kept in `folder` only, and returns when it answers."""
        need(QEMU[0], "qemu-img", "ssh", "scp")
        base, folder = image(suite, "desktop", mirror), pathlib.Path(folder)
        folder.mkdir(parents=True)
        sockets = tempfile.mkdtemp(prefix="xqos-machine-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", f"{base}.qcow2", folder / "disk")
        kernel = f"root=/dev/vda rw console=tty0 console=ttyS0 quiet {EXACT_KERNEL if is_exact else 'mitigations=off tsc=reliable'}"
        devices = ["-m", "3072", "-daemonize", "-pidfile", folder / "pid", "-kernel", f"{base}.vmlinuz", "-initrd", f"{base}.initrd",
                   "-append", kernel, "-drive", f"file={folder / 'disk'},if=virtio,cache=unsafe", "-device", "virtio-vga",
                   "-device", "qemu-xhci", "-device", "usb-tablet", "-device", "usb-kbd,id=keyboard",
                   "-netdev", f"user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22", "-device", "virtio-net-pci,netdev=n",
                   "-serial", f"file:{folder / 'kernel'}", "-qmp", f"unix:{sockets}/qmp,server,nowait"]
        clocks = [EXACT] if is_exact else [["-accel", name, "-cpu", cpu, "-smp", str(processors)] for name, cpu in ACCELERATORS]
        # KVM may be there and not work, for example in a virtual machine.
        if not any(subprocess.run([str(word) for word in [*QEMU, *clock, *devices]], stderr=subprocess.DEVNULL).returncode == 0 for clock in clocks):
            raise Failure("QEMU does not start; run the command again with more memory free (3 GB)")
        (folder / "facts").write_text(json.dumps({"suite": suite, "exact": is_exact, "port": port, "sockets": sockets}))
        machine = cls(folder)
        if not machine.wait("echo up", limit=1200):
            machine.stop()
            raise Failure(f"{suite} does not answer; its kernel's messages are in {folder}/kernel")
        return machine

    def pid(self):
        """The process of the machine, or None if it has ended."""
        try:
            pid = int((self.folder / "pid").read_text())
            return pid if b"qemu" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() else None
        except (OSError, ValueError):
            return None

    def stop(self):
        """Ends the machine as a power cut does, and removes its disk."""
        if self.pid():
            self.ask("quit")
            # QEMU removes its file of the process when it ends.
            while self.pid():
                time.sleep(0.05)
        for user in "root", "user":
            subprocess.run(["ssh", *self.ssh, "-O", "exit", f"{user}@127.0.0.1"], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.sockets, ignore_errors=True)
        shutil.rmtree(self.folder)

    def ask(self, command, **arguments):
        if not self.qmp:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(f"{self.sockets}/qmp")
            self.qmp = connection.makefile("rw")
            self.qmp.readline()
            self.ask("qmp_capabilities")
        self.qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.qmp.flush()
        while line := self.qmp.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise Failure(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        return None

    def send(self, *events):
        self.ask("input-send-event", events=list(events))
        time.sleep(0.05)

    def press(self, *keys):
        """Presses keys one after the other; a key with dashes, such as ctrl-alt-f2, is several keys together."""
        for names in (key.split("-") for key in keys):
            for down, order in (True, names), (False, names[::-1]):
                for name in order:
                    self.send({"type": "key", "data": {"down": down, "key": {"type": "qcode", "data": name}}})

    def type(self, text):
        names = {" ": "spc", "\n": "ret", ".": "dot", ",": "comma", "/": "slash", "-": "minus", "=": "equal", ";": "semicolon"}
        for letter in text:
            name = names.get(letter, letter.lower())
            if not (letter in names or letter.isascii() and letter.isalnum()):
                raise Failure(f"cannot type {letter!r}")
            self.press(f"shift-{name}" if letter.isupper() else name)

    def point(self, x, y, button=None):
        """Moves the pointer to fractions of the screen's width and height, and presses a button there."""
        self.send(*({"type": "abs", "data": {"axis": axis, "value": int(at * 32767)}} for axis, at in (("x", x), ("y", y))))
        for down in (True, False) if button else ():
            self.send({"type": "btn", "data": {"down": down, "button": button}})

    def picture(self, path):
        self.ask("screendump", filename=str(pathlib.Path(path).resolve()), format="png")

    def begin(self, command, user="root"):
        """Starts a shell command. That of `user` runs in the session of the desktop."""
        session = ""
        if user != "root":
            session = "export DISPLAY=:0 XAUTHORITY=/home/user/.Xauthority XDG_RUNTIME_DIR=/run/user/1000; " \
                "export DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus; "
        return subprocess.Popen(["ssh", *self.ssh, "-p", str(self.facts["port"]), f"{user}@127.0.0.1", session + command],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, command, user="root", limit=300):
        """Returns the exit status and what the command prints; the status is None if it takes longer than `limit` s."""
        process = self.begin(command, user)
        try:
            text = process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return None, process.communicate()[0].strip()
        return process.returncode, text.strip()

    def wait(self, command, user="root", limit=300):
        """Repeats a command until it succeeds, and returns its output; None after `limit` s."""
        end = time.monotonic() + limit
        while time.monotonic() < end and self.pid():
            status, text = self.run(command, user, 90)
            if status == 0:
                return text or "yes"
            time.sleep(1)
        return None

    def put(self, to, *files):
        run("scp", *self.ssh, "-r", "-P", self.facts["port"], *files, f"root@127.0.0.1:{to}")

    def get(self, name, to):
        run("scp", *self.ssh, "-r", "-P", self.facts["port"], f"root@127.0.0.1:{name}", to)
