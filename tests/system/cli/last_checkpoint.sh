#!/usr/bin/env bash
# The last checkpoint (`checkpoint` in the cluster file): the first server makes one when it is stopped and
# at the end of a run, unless no push came since the one before. The other servers answer until it is made.
# usage: last_checkpoint.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

programs=$(dirname "$downpour")
cd "$dir" || exit 1
mkdir ck
cat >c.conf <<END
name = "last"; model = "mlp:64-10"; journal_bytes = "16MiB"; checkpoint = { to = "ck"; every = 3600; };
servers = ( { host = "ipc://$dir/s"; port = 1; store = "store/0"; },
            { host = "ipc://$dir/s"; port = 11; store = "store/1"; } );
data = { train = "$data/digits.train.libsvm.gz"; };
training = { workers = 1; batch = 64; epochs = 1; rate = 0.01; };
END
server=()
# serve I: server I in the background
serve() {
    "$programs/downpour-server" --cluster "$dir/c.conf" --server "$1" 2>"server-$1.log" &
    server[$1]=$!
}
serve_all() {
    serve 0
    serve 1
    ready 0
    ready 1
}
ready() {
    wait_until 60 grep -qs "ready: " "server-$1.log" || fail "server $1 is not ready"
}
# work: a run to its end
work() {
    "$programs/downpour-worker" --cluster "$dir/c.conf" --worker 0 2>worker.log ||
        fail "worker: $(tail -n 3 worker.log)"
}
# has N: so many checkpoints are listed, and nothing is left of another one
has() {
    [ "$(find ck -maxdepth 1 -name 'checkpoint-*' | wc -l)" = "$1" ] || fail "not $1 checkpoints: $(ls ck)"
    [ -z "$(find ck -maxdepth 1 -name 'making-*')" ] || fail "half a checkpoint: $(ls ck)"
}
# stopped I: it has ended well
stopped() {
    wait_until 60 has_ended "${server[$1]}" || fail "server $1 does not end"
    wait "${server[$1]}" || fail "server $1: $(tail -n 3 "server-$1.log")"
}

# ---- SIGTERM to all, the others first; twice, as from a launcher that signals all processes and node that passes it on
serve_all
work
kill -TERM "${server[1]}" "${server[0]}"
kill -TERM "${server[1]}" "${server[0]}"
stopped 0
stopped 1
has 1
expect 0 "" "$downpour" inspect ck --verify
# No push: none.
serve_all
kill -TERM "${server[0]}" "${server[1]}"
stopped 0
stopped 1
has 1
grep -q "no push came since checkpoint 1" server-0.log || fail "an equal checkpoint"
# But where the one before lacks a file, that is put in its place.
rm "$(find ck/files -type f | head -n 1)"
serve_all
kill -TERM "${server[0]}" "${server[1]}"
stopped 0
stopped 1
has 2
expect 0 "" "$downpour" inspect ck --verify
rm -r ck/checkpoint-000002

# ---- a launcher signals each process: once itself, and once by way of `downpour node`
serve_all
work
kill -STOP "${server[1]}"
kill -TERM "${server[0]}"
wait_until 30 grep -q "a last checkpoint is made" server-0.log || fail "no last checkpoint: $(tail -n 4 server-0.log)"
kill -TERM "${server[0]}"
sleep 0.2
kill -CONT "${server[1]}"
stopped 0
kill -TERM "${server[1]}"
stopped 1
has 2
rm -r ck/checkpoint-000002

# ---- another server alone; one that does not answer: given up, at once at a further signal
serve_all
work
kill -TERM "${server[1]}"
stopped 1
has 1
serve 1
ready 1
kill -STOP "${server[1]}"
again() {
    kill -TERM "${server[0]}" 2>/dev/null
    has_ended "${server[0]}"
}
wait_until 30 again || fail "server 0 does not end"
stopped 0
has 1
# The first server is killed while it makes one.
kill -CONT "${server[1]}"
serve 0
ready 0
kill -STOP "${server[1]}"
kill -TERM "${server[0]}"
wait_until 30 grep -q "a last checkpoint is made" server-0.log || fail "no last checkpoint: $(tail -n 4 server-0.log)"
kill -KILL "${server[0]}"
wait "${server[0]}" 2>/dev/null
kill -CONT "${server[1]}"
serve 0
ready 0
has 1
# The other one is killed.
kill -KILL "${server[1]}"
wait "${server[1]}" 2>/dev/null
wait_until 30 again || fail "a server that was killed is waited for"
stopped 0
has 1

# ---- the end of a run
rm -r store ck
mkdir ck
node=()
for rank in 0 1 2; do
    DOWNPOUR_RANK=$rank "$downpour" node "$dir/c.conf" 2>"node-$rank" &
    node[rank]=$!
done
for rank in 0 1 2; do
    wait_until 60 has_ended "${node[rank]}" || fail "node $rank does not end"
    wait "${node[rank]}" || fail "node $rank: $(tail -n 3 "node-$rank")"
done
has 1
