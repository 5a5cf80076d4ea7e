#!/usr/bin/env bash
# A training that diverges: its report says so, and the commands that the message names work as they stand.
# usage: diverged.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

# Least squares without an optimizer that bounds the step: above a rate of 0.0001 each step doubles the error.
train=("$downpour" run --model mlp:64-1,loss=squared --optimizer sgd --batch 16 --train "$data/digits.train.libsvm.gz"
    --test "$data/digits.test.libsvm.gz" --journal-bytes 16MiB --cache-bytes 64MiB)

# report DIR KEY...: the value under these keys of its report
report() {
    python3 - "$@" <<'END'
import json
import sys
value = json.load(open(sys.argv[1] + "/report.json"))
for key in sys.argv[2:]:
    value = (value or {}).get(key)
print(value)
END
}

# advised PATTERN: the command in the messages that is like the pattern, ready to run
advised() {
    grep -hoE "^downpour:   downpour run .*$1.*   " "$dir/err" "$dir/run.err" 2>/dev/null | sed "s|^downpour:   downpour|$downpour|"
}

# works COMMAND CODE
works() {
    [ -n "$1" ] || fail "no command was named"
    expect "$2" "" bash -c "$1"
}

# --- at once; of several workers another one may diverge before worker 0, which writes the report, has begun
printf '3 10:1\n4 10:2\n5 20:3e38 30:3e38 40:3e38 50:3e38\n' >"$dir/large"
for workers in 1 4; do
    expect 2 "has diverged in epoch 1 at --rate 0.01" "${train[@]}" --dir "$dir/$workers" --workers "$workers" --rate 0.01 --epochs 3
    unsaid "To finish it"
    said_text "downpour run --dir $dir/$workers --fresh --rate 0.001 "
    if [ "$workers" = 1 ]; then unsaid "--consistency"; else said_text "--fresh --consistency sync    (if stale gradients of 4 workers"; fi
    unsaid "--from"
    if [ "$workers" = 1 ] || [ -e "$dir/$workers/report.json" ]; then
        [ "$(report "$dir/$workers" diverged why)" = not_finite ] || fail "the report does not say that it diverged"
        [ "$(report "$dir/$workers" diverged epoch) $(report "$dir/$workers" ended)" = "1 failed" ] || fail "nor when"
        [[ $(report "$dir/$workers" error) == "training has diverged in epoch 1"* ]] || fail "nor why it failed"
    fi
    # Nor do they become better with more training.
    for again in "$downpour run --dir $dir/$workers --resume" "$downpour run --dir $dir/$workers --continue" \
        "${train[*]} --dir $dir/$workers --workers $workers --rate 0.01 --epochs 3"; do
        expect 2 "nothing was started" bash -c "$again"
        said_text "downpour run --dir $dir/$workers --fresh --rate 0.001 "
        unsaid "To finish it|^Resuming|^Training"
    done
    # The run's directory knows it without the report, too, which is missing where another worker diverged before worker 0 began.
    rm -f "$dir/$workers/report.json"
    expect 2 "nothing was started" "$downpour" run --dir "$dir/$workers" --resume
    # Scores that are no numbers are none.
    expect 2 "the score of row 3 of '$dir/large' is " "$downpour" predict --from "$dir/$workers" --data "$dir/large" --out "$dir/scores"
    said_text "has diverged in epoch 1: these are the weights that did"
    said_text "--fresh --rate 0.001; it was 0.01"
    [ -e "$dir/scores" ] && fail "scores that are no numbers were written"
done

# --- where staleness was measured, it is named as a cause; the workers of ssp begin together
expect 2 "a likely cause is asynchrony" "${train[@]}" --dir "$dir/stale" --workers 4 --consistency ssp:2 --rate 0.01 --epochs 3
said "changed by [0-9.]+ pushes between a pull and its push: --rate-by-staleness, --consistency sync\):"

# --- a tenth of a rate out of all proportion would diverge, too
advised=$("${train[@]}" --dir "$dir/far" --rate 1e5 --epochs 1 2>&1 | grep -o -e "--fresh --rate [0-9.e+]*")
[ "$advised" = "--fresh --rate 0.1" ] || fail "advised: $advised"

# --- its tenth is still too much, as is said again; a tenth of that is not
works "$downpour run --dir $dir/1 --fresh --rate 0.001" 2
works "$(advised "--dir $dir/1 --fresh --rate 0.0001 ")" 0
[ "$(report "$dir/1" diverged)" = None ] || fail "a training that did not diverge is said to have"
[ "$(report "$dir/1" settings epochs) $(report "$dir/1" first_epoch) $(report "$dir/1" settings rate)" = "3 0 0.0001" ] ||
    fail "--fresh alone is not the same run from its start"
expect 0 "" "$downpour" predict --from "$dir/1" --data "$data/digits.test.libsvm.gz" --out "$dir/scores"

# --- a further run that diverges: where its weights came from is not kept
cp -a "$dir/1" "$dir/further"
expect 2 "The weights that it continued from are not kept" "$downpour" run --dir "$dir/further" --continue --rate 0.1 --epochs 1

# --- weights that are finite, and of no use: a command to train again, which does not diverge
awk 'BEGIN { srand(1); for (n = 0; n < 4000; n++) { t = ""; s = rand() - 0.5
    for (i = 1; i <= 20; i++) { x = 2 * rand() - 1; s += i <= 5 ? x : 0; t = t " " i ":" x }
    print (s > 0) t } }' >"$dir/two"
expect 0 "downpour run --dir $dir/poor --fresh --rate 0.001" "$downpour" run --dir "$dir/poor" --model logistic --train "$dir/two" \
    --workers 4 --rate 50 --epochs 5 --journal-bytes 16MiB --cache-bytes 64MiB
said "--rate 0.001, the default \(it was 50\)"
cp -a "$dir/poor" "$dir/poorer"
expect 0 "and this run starts from its weights" "$downpour" run --dir "$dir/poorer" --continue --rate 1e-9 --epochs 1
expect 0 "$dir/poor' has diverged in epoch " "$downpour" predict --from "$dir/poor" --data "$dir/two" --out "$dir/scores"
said "\\(training loss [0-9.e+]+ at the end\\): its weights are of little use"
said_text "To train again: downpour run --dir $dir/poor --fresh --rate 0.001"
expect 0 "" "$downpour" run --dir "$dir/poor" --fresh --rate 0.001
unsaid "at a lower rate|likely cause"
expect 0 "" "$downpour" predict --from "$dir/poor" --data "$dir/two" --out "$dir/scores"
unsaid diverged
[ "$(report "$dir/poor" diverged)" = None ] || fail "the rate that is advised is too high as well"

# --- the checkpoint of the best epoch, where there is one, is what such a run leaves
for mode in sync async; do
    expect 2 "are in the checkpoint $dir/kept/best" "${train[@]}" --dir "$dir/kept" --validation share=0.2 --patience 10 --workers 2 \
        --consistency "$mode" --fresh --rate 0.01,warmup=20000 --epochs 15
done
best=$(grep -o "Those of epoch [0-9]*, the best one" "$dir/err" | grep -o "[0-9]*")
on=$(advised --from)
expect 0 "" "$downpour" predict --from "$dir/kept/best" --data "$data/digits.test.libsvm.gz" --out "$dir/scores"
unsaid "diverged|not finished"
expect 2 "nothing was started" "$downpour" run --dir "$dir/kept" --continue --rate 0.0001
said_text "downpour run --from $dir/kept/best"
works "$on" 0
[ "$(report "$dir/kept-rate-0.001" first_epoch)" = "$((best - 1))" ] || fail "it did not go on from epoch $best"

# --- later: a checkpoint from before is named
begin "${train[@]}" --dir "$dir/later" --rate 0.01,warmup=20000 --epochs 12 --inject pace=5ms
worker=$(left --worker)
kill -STOP "$worker"
expect 0 "" "$downpour" checkpoint --dir "$dir/later" --to "$dir/C"
kill -CONT "$worker"
wait "$pid"
[ $? = 2 ] || fail "it did not diverge"
: >"$dir/err"
from=$(advised --from) fresh=$(advised --fresh)
works "$from" 0
[ "$(report "$dir/later-rate-0.001" settings rate)" = 0.001 ] || fail "it did not go on from the checkpoint"
# Restored, they are not those that diverged.
expect 0 "restored checkpoint 1" "$downpour" restore --from "$dir/C" --dir "$dir/later" --overwrite
expect 0 "is not finished: in epoch" "$downpour" predict --from "$dir/later" --data "$data/digits.test.libsvm.gz" --out "$dir/scores"
unsaid "has diverged"
# Killed while it trains on: the report of the weights that were replaced is not this training's.
begin "$downpour" run --dir "$dir/later" --resume
for _ in $(seq 600); do
    grep -q restored_epoch "$dir/later/current/run.json" || break
    sleep 0.05
done
left | xargs -r kill -KILL
wait "$pid"
gone "kill -9" # its servers hold the directory until they have ended
expect 0 "is not finished: in epoch" "$downpour" predict --from "$dir/later" --data "$data/digits.test.libsvm.gz" --out "$dir/scores"
unsaid "has diverged"
expect 0 "this is run 2" "$downpour" run --dir "$dir/later" --continue --rate 0.0001 --epochs 1
works "$fresh" 0
gone
