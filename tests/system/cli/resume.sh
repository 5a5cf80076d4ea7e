#!/usr/bin/env bash
# A run that is stopped (Ctrl-C) and killed (kill -9 of all its processes), in turns, at random moments, and resumed each time by
# the command that it names: its store and its report's figures are those of the run that nobody disturbed.
# usage: resume.sh PATH/TO/downpour    DP_SEED: of the moments; DP_LONG: more of them
. "$(dirname "$0")/lib.sh"
seed=${DP_SEED:-$((RANDOM * 32768 + RANDOM))}
stops=5
[ -z "${DP_LONG:-}" ] || stops=25
RANDOM=$((seed % 32768))
echo "seed $seed"

figures() {
    grep -E '^ *"(epoch|train_loss|loss|accuracy|auc|rmse|examples|why|text|best|best_epoch|value|run|first_epoch)":' "$1/report.json"
}

digest() {
    "$downpour" inspect "$1" --digest | grep "^digest"
}

# stopped N NAME ARGS...: the run, stopped N times; what it prints at last lies in out
stopped() {
    local n=$1 run=$2 i pid code told before
    shift 2
    local command=("$downpour" run --dir "$run" "$@")
    for i in $(seq 1 "$n"); do
        before=$(stat -c %s%Y "$run"/current/steps-0.log 2>/dev/null)
        timeout 120 "${command[@]}" >"$dir/out" 2>"$dir/err" &
        pid=$!
        for _ in $(seq 1 600); do
            [ "$(stat -c %s%Y "$run"/current/steps-0.log 2>/dev/null)" != "$before" ] && break
            kill -0 $pid 2>/dev/null || break
            sleep 0.05
        done
        sleep "0.$((100 + RANDOM % 300))"
        kill -0 $pid 2>/dev/null || { wait $pid; return; } # it was faster
        if [ $((i % 2)) = 1 ]; then
            kill -INT "$(pgrep -P $pid)" # (timeout's child)
            wait $pid
            code=$?
            if [ $code = 130 ]; then
                told=$(sed -n 's/^downpour: run 1 is not finished: .*To finish it: downpour \(.*\)$/\1/p' "$dir/err")
                [ "$told" = "run --dir $run --resume" ] || fail "Ctrl-C did not say how to go on, but '$told'"
                [ -f "$run/report.json" ] && grep -q '"finished": true' "$run/report.json" && fail "a report says that it is finished"
            else
                [ $code = 0 ] || fail "exit code $code after Ctrl-C"
                return
            fi
        else
            left | xargs -r kill -KILL
            wait $pid 2>/dev/null
        fi
        gone
        count=$((count + 1))
        command=("$downpour" run --dir "$run" --resume)
    done
    timeout 240 "${command[@]}" >"$dir/out" 2>"$dir/err" || fail "the resumed run failed"
}

# try NAME ARGS...: against the undisturbed run
try() {
    local name=$1
    shift
    count=0
    timeout 240 "$downpour" run --dir "$dir/whole" "$@" >"$dir/out" 2>"$dir/err" || fail "$name: the undisturbed run failed"
    stopped "$stops" "$dir/run" "$@"
    [ "$count" -ge 3 ] || fail "$name: only $count stops, the run is too short"
    cmp <(digest "$dir/whole") <(digest "$dir/run") || fail "$name: other weights than the undisturbed run's"
    cmp <(figures "$dir/whole") <(figures "$dir/run") || { fail "$name: other figures"; diff <(figures "$dir/whole") <(figures "$dir/run"); }
    grep -q '"finished": true' "$dir/run/current/run.json" || fail "$name: it does not say that it is finished"
    timeout 60 "$downpour" run --dir "$dir/run" --resume >"$dir/out" 2>"$dir/err"
    [ $? = 2 ] && grep -q "is finished, so there is nothing to resume" "$dir/err" || fail "$name: a finished run was resumed"
    echo "$name: $count stops"
    rm -rf "$dir/whole" "$dir/run"
}

digits=(--model mlp:64-32-10 --train "$data/digits.train.libsvm.gz" --batch 8 --no-overlap --journal-bytes 16MiB --cache-bytes 64MiB)
try "test set" "${digits[@]}" --rate 0.002 --test "$data/digits.test.libsvm.gz" --epochs 30
try "validation, patience" "${digits[@]}" --test "$data/digits.test.libsvm.gz" --validation share=0.2 --rate 0.0005 --patience 5 --epochs 200

# Two workers, asynchronous: every push counts once, and the figures are of all of them.
count=0
two=("${digits[@]}" --rate 0.002 --test "$data/digits.test.libsvm.gz" --epochs 30 --workers 2 --servers 2)
stopped "$stops" "$dir/run" "${two[@]}"
[ "$count" -ge 3 ] || fail "two workers: only $count stops, the run is too short"
"$downpour" inspect "$dir/run" --all | awk '$2 == "training" { n++; bad = bad || $3 != 180 || $5 != 0 } END { exit bad || n == 0 }' || fail "two workers: a push is missing, or one too many"
[ "$(grep -c '"train_loss":' "$dir/run/report.json")" = 30 ] && [ "$(grep -c '"accuracy":' "$dir/run/report.json")" -ge 31 ] ||
    fail "two workers: figures are missing"
[ "$(grep '"examples":' "$dir/run/report.json" | grep -c -e ' 21600,$' -e ' 21510,$')" = 2 ] || fail "two workers: not all examples in the report"
grep -h "losses of" "$dir"/run/log/worker-*.log && fail "two workers: losses went"
echo "two workers: $count stops"
