#!/usr/bin/env bash
# Ctrl-Z suspends a run's servers and workers with it, and however long that was, nobody has timed out when it goes on.
# usage: suspend.sh PATH/TO/downpour
set -u
downpour=$(realpath "$1")
dir=$(mktemp -d "${TMPDIR:-/tmp}/dp_suspend_XXXXXX")
failures=0 run=0
trap '[ "$run" = 0 ] || { kill -CONT "$run"; kill "$run"; wait "$run"; }; rm -rf "$dir"
      [ "$failures" = 0 ] || echo "$failures checks failed"; exit $((failures > 0))' EXIT

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    tail -n 20 "$dir/out" | sed 's/^/    /'
}

# until_true SECONDS COMMAND...: true before the deadline
until_true() {
    local left=$(($1 * 5))
    shift
    until "$@"; do
        [ $((left -= 1)) -gt 0 ] || return 1
        sleep 0.2
    done
}
trains() { grep -q "epoch 2 of" "$dir/run/log/worker-0.log" 2>/dev/null; }
states() { ps -o stat= -p "$run" --ppid "$run" | cut -c1 | sort | uniq -c | tr -s ' \n' ' '; }
all_rest() { [ "$(states)" = " 5 T " ]; }
none_rests() { [[ "$(states)" != *T* ]]; }
has_ended() { ! kill -0 "$run" 2>/dev/null; }

"$downpour" generate clicks --rows 20000 --seed 1 --out "$dir/train.tsv" >/dev/null
"$downpour" run --dir "$dir/run" --servers 2 --workers 2 --model logistic --train "$dir/train.tsv" --test "$dir/train.tsv" \
    --epochs 40 --timeout 2 --journal-bytes 16MiB >"$dir/out" 2>&1 &
run=$!
until_true 60 trains || fail "no training within 60 s"
for i in 1 2 3; do
    has_ended && break
    kill -TSTP "$run"
    until_true 20 all_rest || fail "not all of the run rest 20 s after SIGTSTP: $(states)"
    sleep 3 # longer than --timeout
    kill -CONT "$run"
    until_true 20 none_rests || fail "not all of the run go on 20 s after SIGCONT: $(states)"
done
until_true 120 has_ended || fail "the run did not end within 120 s"
if has_ended; then
    wait "$run" || fail "the run ended with $?"
    run=0
fi
grep -q "^Report:" "$dir/out" || fail "no result"
