#!/usr/bin/env bash
# Ctrl-Z suspends a run's servers and workers with it, and however long that was, nobody has timed out when it goes on. A worker
# that is suspended alone, while its server dies and comes back, goes on, too.
# usage: suspend.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

trains() { grep -q "epoch 2 of" "$dir/run/log/worker-0.log" 2>/dev/null; }
states() { ps -o stat= -p "$pid" --ppid "$pid" | cut -c1 | sort | uniq -c | tr -s ' \n' ' '; }
all_rest() { [ "$(states)" = " 5 T " ]; }
none_rests() { [[ "$(states)" != *T* ]]; }

# begin_run SERVERS WORKERS: a run, which trains
begin_run() {
    rm -rf "$dir/run"
    "$downpour" run --dir "$dir/run" --servers "$1" --workers "$2" --model logistic --train "$dir/train.tsv" \
        --test "$dir/train.tsv" --epochs 40 --timeout 2 --journal-bytes 16MiB >"$dir/out" 2>&1 &
    pid=$!
    wait_until 60 trains || fail "no training within 60 s"
}
# end_run WHICH
end_run() {
    wait_until 120 has_ended "$pid" || fail "$1: the run did not end within 120 s"
    if has_ended "$pid"; then
        wait "$pid" || fail "$1: the run ended with $?"
    fi
    grep -q "^Report:" "$dir/out" || fail "$1: no result"
}

"$downpour" generate clicks --rows 20000 --seed 1 --out "$dir/train.tsv" >/dev/null
begin_run 2 2
for _ in 1 2 3; do
    has_ended "$pid" && break
    kill -TSTP "$pid"
    wait_until 20 all_rest || fail "not all of the run rest 20 s after SIGTSTP: $(states)"
    sleep 3 # longer than --timeout
    kill -CONT "$pid"
    wait_until 20 none_rests || fail "not all of the run go on 20 s after SIGCONT: $(states)"
done
end_run "Ctrl-Z"

begin_run 1 1
for _ in 1 2; do
    has_ended "$pid" && break
    worker=$(left downpour-worker)
    kill -STOP "$worker"
    kill -KILL "$(left downpour-server)"
    sleep 3
    kill -CONT "$worker"
    sleep 1 # it trains
done
end_run "a worker suspended alone"
