#!/usr/bin/env bash
# A cluster file that only counts its servers: they take ports that the kernel chooses, the first one's register has
# their addresses, and clients find them there; also when one is killed in a training and comes back elsewhere with
# its store, or with another one. Each push counts once: the weights are those of a calm training.
# usage: addresses.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

programs=$(dirname "$downpour")
cd "$dir" || exit 1
unset DOWNPOUR_FIRST MASTER_ADDR SLURM_JOB_ID PBS_JOBID LSB_JOBID
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >c.conf <<END
name = "counted"; model = "mlp:64-16-10"; journal_bytes = "16MiB"; durability = "process";
servers = { count = 3; shards = 2; store = "store/%j"; };
data = { train = "$data/digits.train.libsvm.gz"; scale = 0.1; };
training = { epochs = 4; batch = 32; overlap = false; rate = 0.01; pace = "15ms"; };
END
export DOWNPOUR_FIRST=127.0.0.1:$port JOB_ID=7

declare -A server
# serve N: starts it, and waits until it says that it is ready
serve() {
    "$programs/downpour-server" --cluster c.conf --server "$1" --new 2>>"server-$1.log" &
    server[$1]=$!
}
ready() { # N TIMES
    for _ in $(seq 600); do
        [ "$(grep -c ' ready: ' "server-$1.log")" -ge "$2" ] && return
        sleep 0.05
    done
    fail "server $1 is not ready: $(tail -n 2 "server-$1.log")"
}
stop_all() {
    kill "${server[@]}"
    wait "${server[@]}"
    rm -rf store ./*.log
}
work() { # starts the worker, its log: worker.log
    "$programs/downpour-worker" --cluster c.conf --worker 0 2>worker.log &
    worker=$!
}
epoch() { # waits until it has ended epoch N
    for _ in $(seq 1200); do
        grep -q "epoch $1" worker.log && return
        kill -0 $worker 2>/dev/null || break
        sleep 0.02
    done
    fail "no epoch $1: $(tail -n 2 worker.log)"
}

# Nothing names the first server, or it is nobody's, or something else is there.
expect 2 "set DOWNPOUR_FIRST" env -u DOWNPOUR_FIRST "$programs/downpour-worker" --cluster c.conf --worker 0
expect 2 "set DOWNPOUR_FIRST" env -u DOWNPOUR_FIRST "$downpour" status --cluster c.conf
sed 's/^servers/checkpoint = { to = "."; every = 60; };\n&/' c.conf >checkpointed.conf
expect 2 "set DOWNPOUR_FIRST" env -u DOWNPOUR_FIRST "$programs/downpour-server" --cluster checkpointed.conf --server 1
expect 2 "no such address on this machine" env DOWNPOUR_FIRST=192.0.2.1 "$programs/downpour-server" --cluster c.conf --server 0 --new
expect 2 "SLURM_JOB_ID" env -u JOB_ID "$programs/downpour-server" --cluster c.conf --server 1
expect 1 "does not answer" env -u DOWNPOUR_FIRST MASTER_ADDR=127.0.0.1 "$downpour" status --cluster c.conf --timeout 1
said "MASTER_ADDR\), does not answer" # the line may be broken before it

# A calm training. The servers come in any order.
for i in 2 1 0; do serve $i; done
work
wait $worker || fail "the calm worker: $(tail -n 2 worker.log)"
expect 0 "" "$downpour" status --cluster c.conf --all
said "shard 5 of 6 at tcp://127.0.0.1:[1-9]"
expect 0 "" "$downpour" predict --cluster c.conf --data "$data/digits.test.libsvm.gz" --out calm

# One that is there already, and one with another store in its place.
expect 2 "ddress already in use" "$programs/downpour-server" --cluster c.conf --server 0
JOB_ID=8 expect 2 "the cluster has one for it" "$programs/downpour-server" --cluster c.conf --server 1
stop_all

# The same, in which each server is killed and comes back: the first one where it was, the others elsewhere.
for i in 0 1 2; do serve $i; done
work
for i in 1 2 0; do
    epoch $((i == 0 ? 3 : i))
    kill -KILL "${server[$i]}"
    wait "${server[$i]}" 2>/dev/null
    serve $i
done
wait $worker || fail "the worker of a cluster that moved: $(tail -n 2 worker.log)"
ready 1 2
[ "$(grep -o 'control port .*' server-1.log | sort -u | wc -l)" = 2 ] || fail "server 1 did not move"
expect 0 "" "$downpour" predict --cluster c.conf --data "$data/digits.test.libsvm.gz" --out moved
cmp -s calm moved || fail "other weights than those of a calm training"
stop_all
