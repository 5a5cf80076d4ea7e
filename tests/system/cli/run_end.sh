#!/usr/bin/env bash
# How the servers of a run end (downpour-server --until-done): which workers have left and which servers have closed stays
# known when the first server is killed; a first server that is lost for good ends the others.
# usage: run_end.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

programs=$(dirname "$downpour")
cd "$dir" || exit 1
servers=""
for i in 0 1 2; do
    servers="$servers${servers:+, }{ host = \"ipc://$dir/s\"; port = ${i}1; store = \"store/$i\"; }"
done
cat >c.conf <<END
name = "end"; model = "mlp:64-10"; journal_bytes = "16MiB"; servers = ( $servers );
data = { train = "$data/digits.train.libsvm.gz"; };
training = { workers = 1; batch = 64; epochs = 1; rate = 0.01; };
END
server=()
# serve I [FLAG...]: server I of $conf in the background, until it is ready
conf=$dir/c.conf
serve() {
    local i=$1
    shift
    "$programs/downpour-server" --cluster "$conf" --server "$i" "$@" 2>"server-$i.log" &
    server[i]=$!
    wait_until 60 grep -qs "ready: " "server-$i.log" || fail "server $i is not ready: $(tail -n 3 "server-$i.log")"
}
# ends I CODE
ends() {
    local got
    wait_until 30 has_ended "${server[$1]}" || fail "server $1 does not end: $(tail -n 3 "server-$1.log")"
    wait "${server[$1]}"
    got=$?
    [ $got = "$2" ] || fail "server $1 ended with $got, not $2: $(tail -n 3 "server-$1.log")"
}
ends_killed() {
    kill -KILL "${server[$1]}"
    wait "${server[$1]}" 2>/dev/null
}
kept() {
    wait_until 30 grep -qsaF -e "$1" store/0/register || fail "the register does not have $1"
}

# ---- the first server is killed after the worker left, and after another server closed
serve 0 --new --until-done --start a1
serve 1 --until-done
serve 2 # started manually: it does not close by itself
"$programs/downpour-worker" --cluster "$conf" --worker 0 2>worker.log || fail "worker: $(tail -n 3 worker.log)"
kept '"left":[0]'
ends 1 0
kept '"closed":[1]'
ends_killed 0
serve 0 --until-done --start a1
kill -TERM "${server[2]}"
ends 2 0
serve 2 --until-done
ends 2 0
ends 0 0
# The next start of the cluster knows nothing of it, nor does a server that is restarted before it had the register.
serve 0 --until-done --start a2
grep -qa '"left"' store/0/register && fail "a further start knows the end of the last one"
expect 2 "--start goes with --until-done" "$programs/downpour-server" --cluster "$conf" --server 0 --start a1
expect 2 "--start is 'x'" "$programs/downpour-server" --cluster "$conf" --server 0 --until-done --start x

# ---- it is lost for good
conf=$dir/short.conf
sed 's/workers = 1;/workers = 1; timeout_ms = 100;/' c.conf >"$conf"
serve 1 --until-done
ends_killed 0
ends 1 3
grep -q "server 0 has not answered for 4 s" server-1.log || fail "server 1 does not say why it ends"
