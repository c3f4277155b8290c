#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: start-over-link END PROGRAM ROUTE RATE DELAY
# Starts a program over an emulated link, and prints figures of the start: a line `NAME NUMBER` for each. END is where X
# packets are captured: at the `program`, which shows the program's waits, or at the `server`, which shows the user's
# waits. The experiments grid and near run this script. A start ends with the silence after its first window; a start
# that takes longer than ten minutes has no figures. shellcheck disable=SC2016 # Some text is for the shells at the two
# ends.
set -u
end=$1 program=$2 route=$3 rate=$4 delay=$5
# The X server of the link has the display number of the experiment's own server, which no other server uses now.
cd "$(mktemp -d)" || exit 1
export dir="$PWD" n="${DISPLAY#:}"
trap 'rm -rf "$dir"' EXIT
export HOME="$dir" XDG_RUNTIME_DIR="$dir" DBUS_SESSION_BUS_ADDRESS="unix:path=$dir/none" NO_AT_BRIDGE=1
# GTK 4 would draw with OpenGL and send whole pictures.
export LC_ALL=C.UTF-8 GSK_RENDERER=cairo
unset XAUTHORITY WAYLAND_DISPLAY XDG_CACHE_HOME XDG_CONFIG_HOME

# A silence is longer than a round trip and four full packets. A session pauses between its programs.
case $rate in 0.01mbit) silence=7s ;; *) silence=2700ms ;; esac
text='The quick brown fox jumps over the lazy dog. 0123456789 THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG'
needs=Xvfb
case $route in *ssh*) needs='Xvfb /usr/sbin/sshd' ;; nx*) needs='Xvfb nxproxy' ;; esac
# A program with a blinking cursor is never quiet. In UTF-8, a clock with core fonts loads fonts for many scripts.
case $program in
xterm) set -- xterm -e sleep 1000 ;;
emacs) set -- emacs -Q --eval '(blink-cursor-mode 0)' ;;
chromium) set -- chromium --no-sandbox --no-first-run --app=about:blank ;;
pcmanfm) set -- pcmanfm --no-desktop ;;
session)
    set -- dbus-run-session xfce4-session && silence=9s needs="$needs xfce4-session"
    # Programs of other packages that start with a session may never be quiet, such as clipboard managers.
    mkdir -p .config/autostart
    for name in /etc/xdg/autostart/*; do printf '[Desktop Entry]\nHidden=true\n' >".config/autostart/${name##*/}"; done
    ;;
core_text) set -- xclock -digital -update 3600 -strftime "$text" -norender -fn fixed && export LC_ALL=C ;;
client_text) set -- xclock -digital -update 3600 -strftime "$text" -render -face Monospace-10 && export LC_ALL=C ;;
background) set -- xqos-bench act '"background"' ;;
*) set -- "$program" ;;
esac
for name in "$1" $needs; do
    command -v "$name" >/dev/null || { echo "$name" >&2; exit 127; }
done

# The clock starts with the command at the program's end: near, or the program if its proxy is already connected.
cat >begin <<'END'
#!/bin/sh
date +%s.%N >"$dir/began"
exec "$@"
END
{ printf '#!/bin/sh\nexec'; printf " '%s'" "$@"; } >run
# xqos ssh finds near at the program's end under this name.
printf '#!/bin/sh\nexec "$dir/begin" "%s" "$@"\n' "$(command -v xqos-wire)" >xqos-wire
chmod +x begin run xqos-wire

# The commands at the program's end (near) and at the server's end (far). `$measured` runs until the capture is over.
near='' far='' interface=link0
measured='"$dir/begin" "$dir/run"'
local_display="127.0.0.1:$n"
case $route in
*strict) measured='"$dir/xqos-wire" near --report -- "$@"' ;;
*relaxed) measured='"$dir/xqos-wire" near --report --relaxed -- "$@"' ;;
*ssh*)
    interface=lo
    mkdir -p /run/sshd
    for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$key"; done
    printf '%s\n' 'Port 2222' 'ListenAddress 10.0.0.2' "HostKey $dir/host" "AuthorizedKeysFile $dir/user.pub" \
        'AddressFamily inet' 'PidFile none' 'StrictModes no' 'PermitRootLogin yes' 'X11Forwarding yes' "SetEnv HOME=$dir dir=$dir \
PATH=$dir:$PATH XDG_RUNTIME_DIR=$dir LC_ALL=$LC_ALL GSK_RENDERER=cairo NO_AT_BRIDGE=1 \
DBUS_SESSION_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS" >sshd_config
    near='/usr/sbin/sshd -D -e -f "$dir/sshd_config" 2>sshd.errors &'
    ssh="-F none -p 2222 -i $dir/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=$dir/known \
-o IdentitiesOnly=yes -o LogLevel=ERROR -o ConnectionAttempts=60"
    case $route in
    ssh) measured="ssh $ssh -Y -T 10.0.0.2 $dir/begin $dir/run" ;;
    ssh_c) measured="ssh $ssh -C -Y -T 10.0.0.2 $dir/begin $dir/run" ;;
    through_ssh) measured="xqos ssh --report $ssh 10.0.0.2 $dir/run" ;;
    esac
    ;;
nx*)
    # Without type=proxy, nxproxy assumes an nxagent session and ignores taint. It delays the first program by 5 s.
    interface=lo
    case $rate in 0.01mbit) kind=modem ;; 0.1mbit) kind=isdn ;; 1mbit) kind=wan ;; *) kind=lan ;; esac
    case $route in nx_taint) taint=1 ;; *) taint=0 ;; esac
    files() { echo "root=$dir/$1,session=$dir/$1/session,errors=$dir/$1/errors,stats=$dir/$1/stats,cleanup=0"; }
    mkdir near far
    near="DISPLAY=$local_display nxproxy -C nx/nx,listen=4063,type=proxy,link=$kind,taint=$taint,$(files near):63 &
        sleep 10"
    far="sleep 1; DISPLAY=$local_display nxproxy -S nx/nx,connect=10.0.0.2,port=4063,retry=20,$(files far):$n"
    measured='DISPLAY=127.0.0.1:63 "$dir/begin" "$dir/run"'
    ;;
esac
measured="$measured 2>report & pid=\$!
    while [ ! -e ended ] && kill -0 \$pid; do sleep 0.1; done; sleep 1; kill \$pid; wait \$pid; touch reported"
case $route in *ssh*) far="DISPLAY=$local_display; export DISPLAY; $measured" ;; *) near="$near
    $measured" ;; esac
capture="timeout 600 xqos cap -i $interface -o start.pcapng --start-on window --before 10min --stop-on quiet=$silence \
    2>capture && touch quiet; touch ended"
captured='until grep -q capturing capture || [ -e ended ]; do sleep 0.1; done'
case $end in server) far="($capture) & $captured; $far" ;; *) near="($capture) & $captured; $near" ;; esac

# Starts the program over a link of this rate and delay.
start() {
    link="--rate $1 --delay $2"
    shift 2
    rm -f began ended reported quiet start.pcapng queue.log
    touch capture report
    # Disable MIT-SHM: both ends are on one machine, and pixels would bypass the link. $link is two options. shellcheck
    # disable=SC2086
    xqos link --quiet $link --log queue.log --display ":$n" \
        --server "exec Xvfb :$n -ac -nolock -noreset -listen tcp -nolisten unix -nolisten local \
            -screen 0 1280x1024x24 -extension MIT-SHM" --server "$far" \
        -- sh -c "$captured_at_server $near
            until [ -e reported ] || { [ -e ended ] && [ ! -e began ]; }; do sleep 0.1; done" sh "$@" >log 2>&1
}
case $end in server) captured_at_server="$captured;" ;; *) captured_at_server='' ;; esac
case $route in
# Near learns a program's queries from its first start, which may use any link.
strict | relaxed | through_ssh) start 100mbit 0.1ms "$@" && start "$rate" "$delay" "$@" ;;
predicted) start 100mbit 0.1ms "$@" ;;
*) start "$rate" "$delay" "$@" ;;
esac
[ -e quiet ] || exit 0

if [ "$route" = predicted ]; then
    for proxy in lbx strict relaxed batch; do
        xqos analyse --json --predict "rate=$rate,delay=$delay" --proxy "$proxy" start.pcapng | python3 -c '
import json, sys
report = json.load(sys.stdin)
prediction, proxy = report["predictions"][0], sys.argv[1]
print(proxy + "_left", report["session"]["proxy"]["left"])
print(proxy + "_delay", prediction["proxy"]["network_delay_s"])
if proxy == "lbx":
    print("predicted", prediction["seconds"])
    print("network_delay", prediction["network_delay_s"])' "$proxy"
    done
    exit 0
fi
xqos analyse --json start.pcapng | python3 -c '
import json, sys
report = json.load(sys.stdin)
session, end, route = report["session"], sys.argv[1], sys.argv[2]
ended = session["began_s"] + session["seconds"]
opened = sorted(connection["began_s"] for connection in report["connections"])
# The first connection at the server belongs to near.
is_near = end == "server" and route.endswith(("strict", "relaxed", "through_ssh"))
began = opened[min(is_near, len(opened) - 1)]
print("elapsed", ended - began)
print("from_command", ended - float(open("began").read()))
print("network_delay", session["network_delay_s"])
print("reply_wait", session["reply_wait_s"])
print("round_trips", session["round_trips"])
print("bytes", session["bytes"])
# The link may still send data that a proxy holds.
packets = [line.split() for line in open("queue.log") if line.startswith("packet")]
sent = [(int(one[3]), int(one[6]) / 1e9) for one in packets if one[6] != "-" and int(one[4]) / 1e9 >= opened[0]]
print("link_bytes", sum(size for size, _ in sent))
print("effective_kbit", session["bytes"] * 8 / 1e3 / (max([ended] + [at for _, at in sent]) - opened[0]))
waits = {wait["name"]: wait for wait in session["waits"]}
metrics = ["QueryFont", "ListFonts", "ListFontsWithInfo", "QueryTextExtents"]
for group, names in {
    "atom": ["InternAtom"],
    "extension": ["QueryExtension"],
    "colour": ["AllocColor", "AllocNamedColor", "LookupColor", "QueryColors"],
    "property": ["GetProperty"],
    "metric": metrics,
    "glyph": ["RENDER::AddGlyphs", "RENDER::AddGlyphsFromPicture"],
}.items():
    sums = [session[kind][name] for kind in ("requests", "replies") for name in names if name in session[kind]]
    print(group + "_requests", sum(session["requests"][name]["count"] for name in names if name in session["requests"]))
    print(group + "_bytes", sum(one["bytes"] for one in sums))
    print(group + "_waits", sum(waits[name]["count"] for name in names if name in waits))' "$end" "$route"
if [ "$end-$route" = program-raw ]; then
    xqos-bench act '"agreement"'
fi
sed -n 's/.*; \([0-9]*\) round trips left, \([0-9]*\) saved.*/left \1\nsaved \2/p' report
