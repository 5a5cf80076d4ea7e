#!/usr/bin/env bash
# A second run in a directory: trained on, resumed, refused with what differs, started anew; and whether a run is finished.
# usage: second.sh PATH/TO/downpour
set -u
downpour=$(realpath "$1")
data=$PWD/tests/data
dir=$(mktemp -d "${TMPDIR:-/tmp}/dp_second_XXXXXX")
failures=0
echo "$dir/" >"$dir/pattern"

left() {
    (cd "$dir" && grep -lzF -f pattern /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | grep -vx $$)
}

finish() {
    left | xargs -r kill -KILL 2>/dev/null
    rm -rf "$dir"
    [ "$failures" = 0 ] || echo "$failures checks failed"
    exit $((failures > 0))
}
trap finish EXIT

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    tail -n 30 "$dir"/{out,err} 2>/dev/null | sed 's/^/    /'
}

# expect CODE TEXT COMMAND...: exit code, and text on standard output or error
expect() {
    local code=$1 text=$2 got
    shift 2
    timeout 120 "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ "$got" = "$code" ] || fail "exit code $got, not $code: $*"
    [ -z "$text" ] || cat "$dir/out" "$dir/err" | grep -qF -e "$text" || fail "no '$text' from: $*"
}

unsaid() {
    cat "$dir/out" "$dir/err" | grep -qE -e "$1" && fail "'$1' was said"
}

said() {
    cat "$dir/out" "$dir/err" | grep -qE -e "$1" || fail "'$1' was not said"
}

digest() {
    "$downpour" inspect "$1" --digest | grep "^digest .* of all"
}

gone() {
    local i
    for i in $(seq 1 300); do
        [ -z "$(left)" ] && return
        sleep 0.1
    done
    fail "processes are left"
}

# A run that trains until it is ended: how.
interrupted() {
    local signal=$1 pid
    shift
    "$@" >"$dir/out" 2>"$dir/err" &
    pid=$!
    for _ in $(seq 1 600); do
        grep -q "^epoch" "$dir/err" && break
        sleep 0.1
    done
    sleep 0.5
    if [ "$signal" = ALL ]; then left | xargs -r kill -KILL; else kill -"$signal" $pid; fi
    wait $pid 2>/dev/null
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
expect 2 "--continue: there is no earlier run" "${train[@]}" --continue
rm -rf "$dir/run"
mkdir "$dir/run"
echo 'name = "mine";' >"$dir/run/cluster.conf"
expect 2 "to train by it give --cluster" "${train[@]}"
expect 2 "to train by it give --cluster" "${train[@]}" --fresh
[ "$(cat "$dir/run/cluster.conf")" = 'name = "mine";' ] || fail "a cluster file of the user's was written over"
rm -rf "$dir/run"

# --- a finished run, and others behind it
expect 0 "Report:" "${train[@]}" --epochs 2
grep -q '"run": 1,' "$dir/run/report.json" && grep -q '"first_epoch": 0,' "$dir/run/report.json" || fail "the report has no number of the run"
expect 0 "" "${predict[@]}"
unsaid "not finished"
expect 2 "run 1 in '$dir/run' is finished, there is nothing to resume" "${run[@]}" --resume
before=$(digest "$dir/run")
expect 2 "--continue this run trains on from" "${same[@]}" --rate 0.1 --batch 16 --optimizer sgd
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
[ -z "$(ls "$dir/run/store" | grep -v -e "-3[-.]" -e server-0)" ] || fail "files of earlier runs are left: $(ls "$dir/run/store")"

# --- an unfinished run: Ctrl-C, kill -9 of all, SIGTERM of one of its processes
for how in INT ALL; do
    interrupted $how "${train[@]}" --epochs 100000 --continue
    expect 2 "is not finished (in epoch" "${train[@]}"
    said "'downpour run --dir $dir/run --resume' finishes it"
    expect 0 "" "${predict[@]}"
    said "run [0-9]+ in '$dir/run' is not finished: in epoch [0-9]+ of [0-9]+, .*% of the training done; this is of its weights so far"
    expect 2 "leave out what makes it another (--rate)" "${run[@]}" --resume --rate 0.2
    said "--rate +0.005 then, 0.2 now"
    expect 2 "leave out what makes it another (--epochs)" "${run[@]}" --resume --epochs 2
done
"${run[@]}" --resume --threads 2 --timeout 20 --restarts 0 >"$dir/out" 2>"$dir/err" &
pid=$!
for _ in $(seq 1 600); do grep -q "^epoch" "$dir/err" && break; sleep 0.1; done
said "Resuming run [0-9]+ there, in epoch"
for p in $(left); do grep -qz -e downpour-worker "/proc/$p/cmdline" 2>/dev/null && kill -TERM "$p"; done
wait $pid
[ $? = 2 ] || fail "a worker that was asked to end did not end the run with 2"
said "worker 0 was asked to end by somebody's SIGTERM"
said "To finish it: downpour run --dir $dir/run --resume$"
gone
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
expect 2 "the earlier run in $dir/run, whose place this one was to take, is as it was" "${run[@]}" --model mlp:64-32-10 --train "$0" --fresh
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
[ "$(ls "$dir/run" | tr '\n' ' ')" = "cache cluster.conf lock log report.json run store " ] || fail "left: $(ls "$dir/run")"
grep -q "run = 1;" "$dir/run/cluster.conf" || fail "--fresh did not start anew"
[ "$(digest "$dir/run")" = "$before" ] && fail "--fresh kept the weights"
# A store that lies elsewhere, behind a link, cannot be set aside: refused before anything is moved.
before=$(digest "$dir/run")
mv "$dir/run/store" "$dir/behind"
ln -s "$dir/behind" "$dir/run/store"
expect 2 "'$dir/run/store' is a link" "${train[@]}" --fresh --epochs 1
[ -L "$dir/run/store" ] && [ "$(digest "$dir/run")" = "$before" ] || fail "--fresh cost a store behind a link"
[ "$(ls "$dir/run" | tr '\n' ' ')" = "cache cluster.conf lock log report.json run store " ] || fail "left: $(ls "$dir/run")"
expect 0 "Report:" "${train[@]}" --continue --epochs 1
true
