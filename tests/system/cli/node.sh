#!/usr/bin/env bash
# A cluster under a launcher: `downpour node`, started once for each server and worker, runs a training to its end, also over
# killed processes. Its exit codes are 0 done, 2 would fail again, 3 try again. The launcher is this script.
# usage: node.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

unset DOWNPOUR_RANK SLURM_PROCID OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK JOB_COMPLETION_INDEX RANK
# cluster EPOCHS [TRAINING]: the cluster file
cluster() {
    cat >"$dir/c.conf" <<END
name = "nodes"; model = "mlp:64-16-10"; relative_to = "file"; journal_bytes = "16MiB"; log = "log"; dir = "kept";
servers = ( { host = "ipc://$dir/s"; port = 1; store = "store/0"; }, { host = "ipc://$dir/s"; port = 11; store = "store/1"; } );
data = { train = "$data/digits.train.libsvm.gz"; test = "$data/digits.test.libsvm.gz"; };
training = { workers = 2; batch = 16; epochs = $1; rate = 0.01; timeout_ms = 2000; ${2:-} };
END
}
# launch RANK [FLAG...]: one node in the background, ${node[RANK]}
node=()
launch() {
    local rank=$1
    shift
    : >"$dir/node-$rank" # now: what it said before is not to be taken for what it says
    DOWNPOUR_RANK=$rank "$downpour" node "${conf:-$dir/c.conf}" --new "$@" >"$dir/node-$rank" 2>&1 &
    node[rank]=$!
}
launch_all() {
    local rank
    rm -f "$dir"/node-*
    for rank in 0 1 2 3; do launch $rank; done
}
# ends CODE [RANK...]
ends() {
    local code=$1 rank got
    shift
    [ $# -gt 0 ] || set -- 0 1 2 3
    for rank in "$@"; do
        wait_until 60 has_ended "${node[rank]}" || { fail "node $rank does not end"; continue; }
        wait "${node[rank]}"
        got=$?
        [ $got = "$code" ] || fail "node $rank ended with $got, not $code: $(tail -n 5 "$dir/node-$rank")"
    done
}
# child RANK: the process of a node
child() {
    left "downpour-$([ $1 -lt 2 ] && echo "server .*--server $1" || echo "worker .*--worker $(($1 - 2))")"
}
has_child() {
    [ -n "$(child "$1")" ]
}
no_child() {
    [ -z "$(child "$1")" ]
}
# shows RANK PATTERN
shows() {
    wait_until 60 grep -qsE -e "$2" "$dir/node-$1" || fail "node $1 does not show '$2': $(tail -n 5 "$dir/node-$1")"
}

# ---- ranks
cluster 2
expect 2 "there is no rank" "$downpour" node "$dir/c.conf"
SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=1 expect 2 "SLURM_PROCID is 0 and OMPI_COMM_WORLD_RANK is 1" "$downpour" node "$dir/c.conf"
DOWNPOUR_RANK=4 expect 2 "DOWNPOUR_RANK is 4" "$downpour" node "$dir/c.conf"
said "start 4 processes, of ranks 0 to 3"
PMI_RANK=0 PMI_SIZE=3 expect 2 "PMI_SIZE is 3" "$downpour" node "$dir/c.conf"
expect 2 "--number goes with --role" "$downpour" node "$dir/c.conf" --number 1
expect 2 "the cluster file has 2 workers" "$downpour" node "$dir/c.conf" --role worker --number 2
expect 2 "give one cluster file" "$downpour" node

# ---- to the end, and once more: the next run
launch_all
ends 0
gone "a run"
grep -q '"finished": true' "$dir/kept/report.json" || fail "no report"
grep -q "closed cleanly" "$dir/log/server-1.log" || fail "server 1 has no log in a file"
grep -q "closed cleanly" "$dir/node-1" || fail "server 1 has no log on standard error"
# Workers that were killed before the servers were there begin the next run, too; they do not finish the last one.
rm "$dir"/node-*
for rank in 2 3; do
    launch $rank
    wait_until 30 has_child $rank || fail "node $rank starts no worker"
    child $rank | xargs kill -KILL
    shows $rank "killed by signal 9 .*started again"
done
launch 0
launch 1
ends 0
grep -q "run 2, a new one" "$dir/node-2" "$dir/node-3" || fail "the second run is no run of its own"

# ---- servers that are only counted
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed 's|^servers.*|servers = { count = 2; store = "counted/%n"; port = 0; };|; s|"kept"|"counted"|' "$dir/c.conf" >"$dir/counted.conf"
cp "$dir/counted.conf" "$dir/c.conf"
expect 2 "nothing names the first one" "$downpour" node "$dir/c.conf" --rank 0
rm -f "$dir"/node-*
for rank in 0 1 2 3; do launch $rank --first "127.0.0.1:$port"; done
ends 0

# ---- killed processes are started again, and the run ends
cluster 30 'pace = "4ms";'
launch_all
for rank in 3 1 0 2; do
    shows 2 "epoch [0-9]+ of"
    child $rank | xargs kill -KILL
    shows $rank "was killed by signal 9 .*started again"
    echo >"$dir/node-2" # an epoch that it shows from here on is a new one
done
ends 0
gone "killed processes"

# ---- a node that is killed takes its worker along; a second one of a rank replaces the first
cluster 5000
launch_all
shows 2 "epoch [0-9]+ of"
kill -KILL "${node[3]}"
wait "${node[3]}" 2>/dev/null
wait_until 10 no_child 3 || fail "a worker outlives its node"
launch 3
shows 3 "epoch [0-9]+ of"
mv "$dir/node-3" "$dir/node-9"
node[9]=${node[3]}
launch 3
ends 2 9
[ "$(grep -c "another process joined .*worker 1" "$dir/node-9")" = 1 ] || fail "a replaced node does not say why it ends"
shows 3 "epoch [0-9]+ of"

# ---- SIGTERM to all at once, and a launcher that is killed
since=$SECONDS
kill -TERM "${node[@]:0:4}"
ends 3
[ $((SECONDS - since)) -le 20 ] || fail "all ended $((SECONDS - since)) s after SIGTERM"
gone "SIGTERM"
cat >"$dir/launcher" <<'END'
for r in 0 1 2 3; do DOWNPOUR_RANK=$r "$1" node "$2/c.conf" --new >"$2/node-$r" 2>&1 & done
wait
END
rm "$dir"/node-*
bash "$dir/launcher" "$downpour" "$dir" &
launcher=$!
shows 2 "epoch [0-9]+ of"
kill -KILL $launcher
wait $launcher 2>/dev/null
gone "a launcher"
grep -q "the process that started it has ended" "$dir/node-0" || fail "a node does not miss its launcher"

# ---- a first server whose store is lost does not begin a new cluster: --new was for its first start
launch 0
shows 0 "ready: "
kill -STOP "${node[0]}"
child 0 | xargs kill -KILL
mv "$dir/store/0" "$dir/store/lost"
kill -CONT "${node[0]}"
ends 2 0
shows 0 "there is no store in .*store/0"
mv "$dir/store/lost" "$dir/store/0"
# Another one that is lost is replaced where that is said.
mv "$dir/store/1" "$dir/store/lost"
launch 0
launch 1
ends 2 1
shows 1 "there is no store in .*store/1"
launch 1 --replace-store
shows 1 "ready: "
kill -TERM "${node[0]}" "${node[1]}"
ends 3 0 1

# ---- bad data of one worker ends all with 2, at once, over a kill of the first server; with the right file they go on
cluster 2
rm -rf "$dir/store" "$dir/kept" # the last run is not complete, and has other epochs
sed 's/digits.train/digits.none/' "$dir/c.conf" >"$dir/bad.conf"
rm -f "$dir"/node-*
for rank in 0 1 2; do launch $rank; done
conf=$dir/bad.conf launch 3
wait_until 60 grep -qsaF '"why":' "$dir/store/0/register" || fail "no failure is recorded"
child 0 | xargs -r kill -KILL
ends 2
[ "$(grep -c "digits.none" "$dir/node-3")" = 1 ] || fail "bad data is tried again"
for rank in 0 1 2; do shows $rank "error .*: worker 1 ended run [0-9]+ for all: .*digits.none"; done
launch_all
ends 0
# Servers that are missing are waited for by --give-up only as long as the timeout.
launch 2 --give-up
ends 3 2
