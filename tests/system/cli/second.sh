#!/usr/bin/env bash
# A second run in a directory: trained on, resumed, refused with what differs, started anew; and whether a run is finished.
# usage: second.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

digest() {
    "$downpour" inspect "$1" --digest | grep "^digest .* of all"
}

# interrupted SIGNAL|ALL COMMAND...: a run that trains until it is ended
interrupted() {
    local signal=$1
    shift
    begin "$@"
    sleep 0.5
    if [ "$signal" = ALL ]; then left | xargs -r kill -KILL; else kill -"$signal" "$pid"; fi
    wait "$pid" 2>/dev/null
    gone
}

cp "$data/digits.train.libsvm.gz" "$dir/train.gz"
run=("$downpour" run --dir "$dir/run" --journal-bytes 16MiB --cache-bytes 64MiB)
same=("${run[@]}" --model mlp:64-32-10 --train "$dir/train.gz")
train=("${same[@]}" --batch 32 --rate 0.005)
predict=("$downpour" predict --from "$dir/run" --data "$data/digits.test.libsvm.gz" --out "$dir/scores")

# --- flags that do not go together, and directories without a run
expect 2 "--resume and --fresh: give one of them" "${train[@]}" --resume --fresh
expect 2 "there is no run to resume in '$dir/run'" "${run[@]}" --resume
[ -e "$dir/run" ] && fail "--resume made a directory"
expect 2 "there is no run to continue in '$dir/run'" "${train[@]}" --continue
[ -e "$dir/run" ] && fail "--continue made a directory"
mkdir "$dir/run"
echo 'name = "mine";' >"$dir/run/cluster.conf"
expect 2 "to use its settings give --cluster" "${train[@]}"
expect 2 "to use its settings give --cluster" "${train[@]}" --fresh
[ "$(cat "$dir/run/cluster.conf")" = 'name = "mine";' ] || fail "a cluster file of the user's was written over"
rm -rf "$dir/run"

# --- with ftrl the rate is a part of the weights
printf '1 1:1\n0 2:1\n%.0s' {1..50} >"$dir/two.svm"
expect 0 "" "$downpour" run --dir "$dir/ftrl" --model logistic --train "$dir/two.svm" --optimizer ftrl --rate 0.1 --epochs 1 \
    --journal-bytes 16MiB --cache-bytes 64MiB
expect 2 "by a factor of up to 0.1. Leave --rate out" "$downpour" run --dir "$dir/ftrl" --continue --rate 0.01
expect 0 "" "$downpour" run --dir "$dir/ftrl" --continue --rate 0.1 --epochs 1
rm -rf "$dir/ftrl"

# --- a finished run, and others behind it
expect 0 "Report:" "${train[@]}" --epochs 2
expect 1 "Run 1 in $dir/run is finished" "$downpour" status --dir "$dir/run"
said "downpour predict --from $dir/run --data FILE"
unsaid "down: no answer"
expect 1 '"run":1,"finished":true' "$downpour" status --dir "$dir/run" --json
grep -q '"run": 1,' "$dir/run/report.json" && grep -q '"first_epoch": 0,' "$dir/run/report.json" || fail "the report has no number of the run"
expect 0 "" "${predict[@]}"
unsaid "not finished"
expect 2 "run 1 in '$dir/run' is finished, so there is nothing to resume" "${run[@]}" --resume
before=$(digest "$dir/run")
expect 2 "add --continue; to replace it, add --fresh" "${same[@]}" --rate 0.1 --batch 16 --optimizer sgd
said "--rate +0.005 then, 0.1 now"
said "--batch +32 then, 16 now"
said "--optimizer +adam then, sgd now"
gzip -dc "$dir/train.gz" | head -n 1000 | gzip >"$dir/other.gz"
expect 2 "another training" "${run[@]}" --model mlp:64-32-10 --train "$dir/other.gz" --batch 32 --rate 0.005
said "--train +$dir/train.gz then, $dir/other.gz now"
expect 2 "holds the store of model" "${run[@]}" --model mlp:64-16-10 --train "$dir/train.gz" --continue
[ "$(digest "$dir/run")" = "$before" ] || fail "a refused run changed the weights"
# The same contents under another name are the same data; other contents under the same name are not.
cp "$dir/train.gz" "$dir/copy.gz"
expect 0 "its first epoch is epoch 3" "${run[@]}" --model mlp:64-32-10 --train "$dir/copy.gz" --batch 32 --rate 0.005 --epochs 3
said "^ +3 .*"
grep -q '"first_epoch": 2,' "$dir/run/report.json" && grep -q '"epoch": 5,' "$dir/run/report.json" || fail "epochs did not go on counting"
cp "$dir/other.gz" "$dir/copy.gz"
expect 2 "another training" "${run[@]}" --model mlp:64-32-10 --train "$dir/copy.gz" --batch 32 --rate 0.005
said "--train +$dir/copy.gz of [0-9]+ bytes then, $dir/copy.gz of [0-9]+ bytes now"
expect 0 "this is run 3, its first epoch is epoch 6" "${same[@]}" --batch 32 --rate 0.001 --continue --epochs 1
# Runs on one store stay, each with its report; what `current` leads to is the last.
[ "$(cd "$dir/run/runs" && echo *)" = "1 2 3" ] && [ "$(readlink "$dir/run/current")" = runs/3 ] || fail "other runs: $(ls "$dir/run/runs")"
[ "$(readlink "$dir/run/runs/3/store")" = ../1/store ] && grep -q '"run": 1,' "$dir/run/runs/1/report.json" || fail "the first run's report or store is not its own"

# What is not given is that run's: only the names of what replaces it are needed.
expect 2 "--model MODEL is required; or, to take it from the run in '$dir/run': --continue" "${run[@]}"
expect 0 "this is run 4, its first epoch is epoch 7" "${run[@]}" --continue
unsaid "Other than in run"
grep -q "run = 4;" "$dir/run/cluster.conf" && grep -q '"rate": 0.001,' "$dir/run/report.json" &&
    grep -q '"batch": 32,' "$dir/run/report.json" || fail "--continue forgot settings of the run"
expect 2 "sgd was asked for" "${run[@]}" --continue --optimizer sgd
said "nothing was trained: $dir/run still holds run 4 as it was. To train further .*add --fresh"
[ "$(readlink "$dir/run/current")" = runs/4 ] && [ ! -e "$dir/run/runs/5/cluster.conf" ] || fail "a run that trained nothing is left"
# Another mode is no other training, but is said.
expect 0 "Validation set: " "${run[@]}" --continue --validation "$data/digits.test.libsvm.gz" --consistency ssp:2
said "^Other than in run 4: --consistency ssp:2 \(async then\)\. It trains on"
unsaid "held out now"
# Rows that were trained on are no validation set; run 1 has seen them for good.
expect 0 "Validation set: " "${run[@]}" --continue --validation share=0.2 --consistency async
said "^Other than in run [0-9]+: --consistency async \(ssp:2 then\)\. "
said_text "warning: run 1 trained on rows that are held out now (--validation share)"
expect 0 "Report:" "${run[@]}" --continue --epochs 1 --work leased --workers 3 --threads 2
said_text "warning: run 1 trained on rows that are held out now (--validation share)"
said "^Other than in run [0-9]+: --work leased \(fixed then\), --workers 3 \([0-9] then\), --threads 2 \(1 then\)\. It trains on"
expect 0 "Report:" "${run[@]}" --continue --epochs 1 --work fixed --workers 1 --threads 1

# --- an unfinished run: Ctrl-C, kill -9 of all, SIGTERM of one of its processes
for how in INT ALL; do
    interrupted $how "${train[@]}" --epochs 100000 --continue
    expect 1 "--resume" "$downpour" status --dir "$dir/run"
    said "Run [0-9]+ in $dir/run is not finished \(in epoch .*\), and nothing is running"
    expect 1 '"finished":false' "$downpour" status --dir "$dir/run" --json
    expect 2 "is not finished (in epoch" "${train[@]}"
    said "'downpour run --dir $dir/run --resume' finishes it"
    expect 0 "" "${predict[@]}"
    said "run [0-9]+ in '$dir/run' is not finished: in epoch [0-9]+ of [0-9]+, .*% of the training done; these are its weights so far"
    expect 2 "omit what would change it (--rate)" "${run[@]}" --resume --rate 0.2
    said "--rate +0.005 then, 0.2 now"
    expect 2 "omit what would change it (--epochs)" "${run[@]}" --resume --epochs 2
    expect 2 "omit what would change it (--batch)" "${run[@]}" --resume --batch 0
    said "--batch +32 then, by size now"
    expect 2 "the run that is there, of model 'mlp:64-32-10', not 'mlp:64-16-10': omit --model" "${run[@]}" --resume --model mlp:64-16-10
done
expect 2 "omit what would change it (--threads)" "${run[@]}" --resume --threads 2
begin "${run[@]}" --resume --blas-threads 2 --timeout 20 --restarts 0
left downpour-worker | xargs -r kill -TERM
wait "$pid"
[ $? = 2 ] || fail "a worker that was asked to end did not end the run with 2"
gone
mv "$dir/run.out" "$dir/out"
mv "$dir/run.err" "$dir/err"
said "Resuming run [0-9]+ there, in epoch"
said "worker 0: .*stopped by a signal"
said "To finish it: downpour run --dir $dir/run --resume$"
# Resumed with data that changed meanwhile.
cp "$dir/train.gz" "$dir/keep.gz"
cp "$dir/other.gz" "$dir/train.gz"
expect 2 "--resume finishes the run that is there" "${run[@]}" --resume
cp "$dir/keep.gz" "$dir/train.gz"

# A switch by what it is, and a pipe by what is known of it.
expect 2 "" "${run[@]}" --resume --no-overlap
said "--no-overlap +not given then, given now"
expect 2 "" "${run[@]}" --model mlp:64-32-10 --batch 32 --rate 0.005 --train - < <(gzip -dc "$dir/train.gz")
said "--train .* now"

# --- --fresh takes the place of a run only when the new one trains
before=$(digest "$dir/run") was=$(readlink "$dir/run/current")
expect 2 "the earlier run, which --fresh was to replace, is still in $dir/run" "${run[@]}" --model mlp:64-32-10 --train "$0" --fresh
[ "$(digest "$dir/run")" = "$before" ] && [ "$(readlink "$dir/run/current")" = "$was" ] || fail "--fresh cost a trained store"
expect 2 "is not finished (in epoch" "${train[@]}"
# Killed at each step: before the new run's files are there, before `current` is renamed, after that, and while the earlier run is removed.
n=$(($(ls "$dir/run/runs" | sort -n | tail -n 1) + 1))
expect 0 "Report:" "$downpour" run --dir "$dir/other" "${train[@]:4}" --epochs 1
trained=$(digest "$dir/other")
for killed in made written linked renamed removing; do
    cp -a "$dir/run" "$dir/killed"
    mkdir -p "$dir/killed/runs/$n"
    case $killed in
    made) mkdir "$dir/killed/runs/$n/log" "$dir/killed/runs/$n/store" ;;
    *)
        cp -a "$dir/other/runs/1/." "$dir/killed/runs/$n"
        sed -i "s/run = 1;/run = $n;/" "$dir/killed/runs/$n/cluster.conf"
        ;;
    esac
    case $killed in
    linked) ln -s "runs/$n" "$dir/killed/current.new" ;;
    renamed) ln -sfn "runs/$n" "$dir/killed/current" ;;
    removing)
        ln -sfn "runs/$n" "$dir/killed/current"
        rm -rf "$dir/killed/runs/1/store/server-0"
        ;;
    esac
    at=$before
    [ $killed = renamed ] || [ $killed = removing ] && at=$trained
    [ "$(digest "$dir/killed")" = "$at" ] || fail "inspect after it was killed ($killed)"
    expect 0 "" "$downpour" predict --from "$dir/killed" --data "$data/digits.test.libsvm.gz" --out "$dir/scores"
    expect 0 "this is run " "$downpour" run --dir "$dir/killed" --continue --epochs 1
    [ "$(ls "$dir/killed/current.new" 2>/dev/null)" = "" ] || fail "a link is left ($killed)"
    case $at in
    "$trained") [ "$(ls "$dir/killed/runs" | sort -n | xargs)" = "$n $((n + 1))" ] || fail "left ($killed): $(ls "$dir/killed/runs")" ;;
    *) [ ! -e "$dir/killed/runs/$n" ] || fail "a run that nobody trained is left ($killed)" ;;
    esac
    rm -rf "$dir/killed"
done
# Until it trains, `status` is of the run that is under way, and all else of the earlier one.
mkdir "$dir/fake"
cp "$downpour" "${downpour%/*}/downpour-server" "$dir/fake"
printf '#!/bin/sh\nexec sleep 1000\n' >"$dir/fake/downpour-worker"
chmod +x "$dir/fake/downpour-worker"
"$dir/fake/downpour" "${train[@]:1}" --fresh >"$dir/run.out" 2>"$dir/run.err" &
pid=$!
wait_until 60 "$downpour" status --dir "$dir/run" >"$dir/out" 2>"$dir/err" || fail "status is not of the run that is under way"
[ "$(readlink "$dir/run/current")" = "$was" ] || fail "a run that has not trained is the current one"
kill -INT "$pid"
wait "$pid"
gone
[ "$(digest "$dir/run")" = "$before" ] || fail "--fresh cost a trained store"
# kill -9 of all of it while it begins, at some moments: the earlier run or the new one.
for delay in 0.05 0.2 0.4; do
    "${train[@]}" --fresh --epochs 100000 >"$dir/run.out" 2>"$dir/run.err" &
    pid=$!
    sleep "$delay"
    left | xargs -r kill -KILL
    wait "$pid" 2>/dev/null
    gone
    expect 0 "is not finished" "$downpour" predict --from "$dir/run" --data "$data/digits.test.libsvm.gz" --out "$dir/scores"
done
expect 2 "use --servers 1" "${train[@]}" --servers 2
said "earlier run there is not finished .*: 'downpour run --dir $dir/run --resume' finishes it"
expect 0 "Report:" "${train[@]}" --fresh --epochs 1
[ "$(cd "$dir/run" && echo *)" = "cache cluster.conf current lock log report.json runs store" ] || fail "left: $(ls "$dir/run")"
[ "$(ls "$dir/run/runs" | wc -l)" = 1 ] && grep -q "first_epoch = 0;" "$dir/run/cluster.conf" || fail "--fresh did not start anew"
[ "$(digest "$dir/run")" = "$before" ] && fail "--fresh kept the weights"
# A store that lies elsewhere, behind a link, is not removed.
store=$(realpath "$dir/run/store")
mv "$store" "$dir/behind"
ln -s "$dir/behind" "$store"
expect 0 "Report:" "${train[@]}" --continue --epochs 1
expect 0 "Report:" "${train[@]}" --fresh --epochs 1
[ -d "$dir/behind/server-0" ] || fail "--fresh removed what is behind a link"

# --- a switch of the run there, which no flag takes back, gives way to a mode that it does not go with
switched=("$downpour" run --dir "$dir/switched")
expect 0 "Report:" "${switched[@]}" "${train[@]:4}" --epochs 1 --workers 2
expect 2 "has no stale pushes, but --rate-by-staleness is true" "${switched[@]}" --fresh --consistency sync --rate-by-staleness
for way in --continue --fresh; do
    expect 0 "Report:" "${switched[@]}" --fresh --consistency async --rate-by-staleness
    expect 0 "--rate-by-staleness of the earlier run is dropped" "${switched[@]}" $way --consistency sync
done
expect 2 "did you mean 'sync'?" "${switched[@]}" --fresh --consistency synch
true
