#!/usr/bin/env bash
# What servers serve over HTTP, over a kill and a restart, as a scraper sees it: no number of a shard falls without a new start
# time. And `downpour top`: on a terminal, which it leaves as it was, and without one.
# usage: metrics.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

programs=$(dirname "$downpour")
cd "$dir" || exit 1
cluster() { # PORT
    cat >c.conf <<END
name = "seen"; model = "mlp:64-16-10"; metrics = "$1"; journal_bytes = "64MiB";
servers = ( { host = "ipc://$dir/s"; port = 1; shards = 2; store = "store/0"; }, { host = "ipc://$dir/s"; port = 11; store = "store/1"; } );
data = { train = "$data/digits.train.libsvm.gz"; };
training = { workers = 1; epochs = 100000; consistency = "ssp:1"; };
END
}
start() { # NUMBER [FLAG]: its process is server[NUMBER]
    "$programs/downpour-server" --cluster c.conf --server "$@" 2>"server-$1.log" &
    server[$1]=$!
}
# get PORT PATH: the answer in ./got, its body in ./body
get() {
    exec 9<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: x\r\n\r\n' "$2" >&9
    timeout 10 cat <&9 >got
    exec 9>&- 9<&-
    sed '1,/^\r*$/d' got >body
    grep -q "^HTTP/1.1 200" got
}
port_of() { # NUMBER
    sed -n 's,.*metrics at http://127.0.0.1:\([0-9]*\)/metrics.*,\1,p' "server-$1.log"
}
ready() { # NUMBER
    [ -n "$(port_of "$1")" ] && get "$(port_of "$1")" /readyz 2>/dev/null
}
value() { # SERIES
    awk -v series="$1" '$1 == series { print $2 }' body
}
pushes() { # AT_LEAST
    get "$port" /metrics 2>/dev/null && [ "$(value 'downpour_shard_pushes_total{shard="1"}')" -ge "$1" ] 2>/dev/null
}

# Servers on one host take ports one after the other; here the kernel chooses them.
cluster 127.0.0.1:0
start 0 --new
start 1 --new
wait_until 20 ready 0 || fail "server 0 is not ready"
wait_until 20 ready 1 || fail "server 1 is not ready"
port=$(port_of 0)
[ "$port" != "$(port_of 1)" ] || fail "one port for two servers"
get "$(port_of 1)" /healthz || fail "server 1 is not healthy"
[ "$(cat body)" = ok ] || fail "not ok: $(cat body)"
"$programs/downpour-worker" --cluster c.conf --worker 0 2>worker.log &
worker=$!
wait_until 20 pushes 50 || fail "no pushes"
for series in 'downpour_shard_serving{shard="0"}' 'downpour_shard_refusals_total{shard="0",cause="disk"}' \
    'downpour_shard_push_staleness_count{shard="0"}' 'downpour_shard_start_time_seconds{shard="1"}'; do
    [ -n "$(value "$series")" ] || fail "no $series"
done
grep -q 'shard="2"' body && fail "a shard of server 1 at server 0"
works() {
    get "$port" /metrics 2>/dev/null && [ "$(value 'downpour_worker_step{run="1",worker="0"}')" -gt 0 ] 2>/dev/null && [ -n "$(value 'downpour_worker_phase_seconds_total{run="1",worker="0",phase="compute"}')" ]
}
wait_until 10 works || fail "no series of the worker: $(grep worker body | head)"
if command -v promtool >/dev/null; then
    promtool check metrics <body >lint 2>&1 && [ ! -s lint ] || fail "promtool: $(cat lint)"
else
    echo "not looked at: promtool (package prometheus)"
fi
get "$port" / && grep -q "<h2>Workers</h2>" body || fail "no page"

# A port that another process has ends the start, with the remedy.
sed -e "s/127.0.0.1:0/127.0.0.1:$port/" -e "s,//$dir/s,//$dir/other,; s,store/,other/,g" c.conf >taken.conf
expect 2 "metrics cannot be served at 127.0.0.1:$port: Address already in use" \
    "$programs/downpour-server" --cluster taken.conf --server 0 --new

# ---- killed and started again, on the same port, under a scraper
cluster "127.0.0.1:$port"
: >scrapes
scrape() {
    get "$port" /metrics 2>/dev/null && grep -E '^downpour_shard_(start_time_seconds|pushes_total|serving)' body >>scrapes
}
scrape
before=$(value 'downpour_shard_start_time_seconds{shard="1"}')
sleep 1.1 # start times are seconds
kill -KILL "${server[0]}"
wait "${server[0]}" 2>/dev/null
scrape
start 0
again() {
    scrape
    [ "$(value 'downpour_shard_start_time_seconds{shard="1"}')" -gt "$before" ] 2>/dev/null && pushes 50
}
wait_until 30 again || fail "no pushes after the restart: $(tail -n 3 server-0.log worker.log)"
awk '
    /start_time/ { split($1, name, "\""); if (start[name[2]] != $2) { start[name[2]] = $2; most[name[2]] = 0 } }
    /pushes/ { split($1, name, "\""); if ($2 + 0 < most[name[2]]) print "shard " name[2] " fell from " most[name[2]] " to " $2; most[name[2]] = $2 + 0 }
' scrapes >fell
[ -s fell ] && fail "$(cat fell)"

# ---- top
timeout 3 "$downpour" top --cluster c.conf --every 1 >plain 2>&1 & # ended by SIGTERM
cat >watch.py <<'END'
import fcntl, os, pty, select, signal, struct, sys, termios, time
end = sys.argv[1]
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
before = termios.tcgetattr(terminal)[3]
seen, deadline = b"", time.time() + 20
def until(text):
    global seen
    at = len(seen)
    while text not in seen[at:] and time.time() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
    assert text in seen[at:], (text, seen)
until(b"worker  state")
lines = seen.replace(b"\033[2K", b"").split(b"\r\n")
assert all(len(l) <= 100 for l in lines), lines
assert seen.startswith(b"\033[?1049h"), seen[:40]
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 80, 0, 0))
os.kill(child, signal.SIGWINCH)
until(b"more lines: make the window higher")
if end == "q":
    os.write(terminal, b"q")
elif end == "ctrl-c":
    os.write(terminal, b"\x03")
else:
    os.kill(child, signal.SIGTERM)
until(b"\033[?1049l")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert termios.tcgetattr(terminal)[3] == before
END
for end in q ctrl-c term; do
    python3 watch.py $end "$downpour" top --cluster c.conf --every 1 2>err || fail "top, ended by $end: $(tail -n 3 err)"
done
wait %+ 2>/dev/null
grep -q "^worker  state" plain || fail "no plain lines: $(cat plain)"
grep -q "$(printf '\033')" plain && fail "escapes without a terminal"
awk 'length > 80 { exit 1 }' plain || fail "over 80 columns: $(cat plain)"
expect 2 "give either --cluster FILE or --dir DIR" "$downpour" top
kill -TERM "$worker" "${server[@]}"
wait
