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

# --- a finished run, and others behind it
expect 0 "Report:" "${train[@]}" --epochs 2
expect 1 "Run 1 in $dir/run is finished" "$downpour" status --dir "$dir/run"
said "downpour predict --from $dir/run --data FILE"
unsaid "down: no answer"
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
[ -z "$(find "$dir/run/store" -mindepth 1 -maxdepth 1 ! -name '*-3[-.]*' ! -name server-0)" ] || fail "files of earlier runs are left: $(ls "$dir/run/store")"

# What is not given is that run's: only the names of what replaces it are needed.
expect 2 "--model MODEL is required; or, to take it from the run in '$dir/run': --continue" "${run[@]}"
expect 0 "this is run 4, its first epoch is epoch 7" "${run[@]}" --continue
unsaid "Other than in run"
grep -q "run = 4;" "$dir/run/cluster.conf" && grep -q '"rate": 0.001,' "$dir/run/report.json" &&
    grep -q '"batch": 32,' "$dir/run/report.json" || fail "--continue forgot settings of the run"
expect 2 "sgd was asked for" "${run[@]}" --continue --optimizer sgd
said "nothing was trained: $dir/run still holds run 4 as it was. To train further .*add --fresh"
# Another mode is no other training, but is said.
expect 0 "Validation set: " "${run[@]}" --continue --validation "$data/digits.test.libsvm.gz" --consistency ssp:2
said "^Other than in run 4: --consistency ssp:2 \(async then\)\. It trains on"
expect 0 "Validation set: " "${run[@]}" --continue --validation-share 0.2 --consistency async
said "^Other than in run [0-9]+: --consistency async \(ssp:2 then\)\. "
expect 0 "Report:" "${run[@]}" --continue --epochs 1 --work leased --workers 3 --threads 2
said "^Other than in run [0-9]+: --work leased \(fixed then\), --workers 3 \([0-9] then\), --threads 2 \(1 then\)\. It trains on"
expect 0 "Report:" "${run[@]}" --continue --epochs 1 --work fixed --workers 1 --threads 1

# --- an unfinished run: Ctrl-C, kill -9 of all, SIGTERM of one of its processes
for how in INT ALL; do
    interrupted $how "${train[@]}" --epochs 100000 --continue
    expect 1 "--resume" "$downpour" status --dir "$dir/run"
    said "Run [0-9]+ in $dir/run is not finished \(in epoch .*\), and nothing is running"
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
said "worker 0 was asked to end by somebody's SIGTERM"
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
before=$(digest "$dir/run")
echo mine >"$dir/run/store/mine"
expect 2 "the earlier run, which --fresh was to replace, is still in $dir/run" "${run[@]}" --model mlp:64-32-10 --train "$0" --fresh
[ "$(digest "$dir/run")" = "$before" ] || fail "--fresh cost a trained store"
[ -e "$dir/run/before-fresh" ] && fail "before-fresh is left"
expect 2 "is not finished (in epoch" "${train[@]}"
# Killed before it had trained: at every step of it.
mkdir "$dir/run/before-fresh"
for part in store report.json run cluster.conf; do
    mv "$dir/run/$part" "$dir/run/before-fresh/"
    cp -r "$dir/run" "$dir/killed"
    [ -e "$dir/killed/store" ] || mkdir -p "$dir/killed/store/server-0"
    [ $part = cluster.conf ] && echo nonsense >"$dir/killed/cluster.conf"
    expect 2 "is not finished (in epoch" "$downpour" run --dir "$dir/killed" "${train[@]:4}"
    [ "$(digest "$dir/killed")" = "$before" ] || fail "a command that was killed after it had moved $part cost a trained store"
    [ -e "$dir/killed/store/mine" ] || fail "a file of somebody's went"
    [ -e "$dir/killed/before-fresh" ] && fail "before-fresh is left"
    [ $part = cluster.conf ] && expect 0 "is not finished" "$downpour" predict --from "$dir/run" --data "$data/digits.test.libsvm.gz" --out "$dir/scores"
    rm -rf "$dir/killed"
done
expect 0 "Report:" "${train[@]}" --fresh --epochs 1
[ -e "$dir/run/store/mine" ] || fail "--fresh removed what was not its own"
[ "$(cd "$dir/run" && echo *)" = "cache cluster.conf lock log report.json run store" ] || fail "left: $(ls "$dir/run")"
grep -q "run = 1;" "$dir/run/cluster.conf" || fail "--fresh did not start anew"
[ "$(digest "$dir/run")" = "$before" ] && fail "--fresh kept the weights"
# A store that lies elsewhere, behind a link, cannot be set aside: refused before anything is moved.
before=$(digest "$dir/run")
mv "$dir/run/store" "$dir/behind"
ln -s "$dir/behind" "$dir/run/store"
expect 2 "'$dir/run/store' is a link" "${train[@]}" --fresh --epochs 1
[ -L "$dir/run/store" ] && [ "$(digest "$dir/run")" = "$before" ] || fail "--fresh cost a store behind a link"
[ "$(cd "$dir/run" && echo *)" = "cache cluster.conf lock log report.json run store" ] || fail "left: $(ls "$dir/run")"
expect 0 "Report:" "${train[@]}" --continue --epochs 1

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
