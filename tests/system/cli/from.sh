#!/usr/bin/env bash
# `downpour run --from CHECKPOINT`: a run goes on in another directory, on other servers and shards, and ends with the bits of the one that
# was never stopped; with --continue it trains further with other settings. What cannot be meant is refused before anything is restored.
# usage: from.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

root=$PWD

digest() {
    "$downpour" inspect "$1" --digest 2>/dev/null | grep "^digest .* of all"
}
train=(--journal-bytes 16MiB --model mlp:64-33-10 --train "$data/digits.train.libsvm.gz" --no-overlap)

# A checkpoint of the middle, while the run goes on to its end.
begin "$downpour" run --dir "$dir/R" "${train[@]}" --test "$data/digits.test.libsvm.gz" --epochs 40 --servers 2
until_trained
expect 0 "checkpoint 1 of run 1" "$downpour" checkpoint --dir "$dir/R" --to "$dir/C"
wait "$pid" || fail "the run that was checkpointed failed"
(cd "$dir/C" && find . -type f -print0 | sort -z | xargs -0 md5sum) >"$dir/before"

expect 0 "Run 1 goes on from checkpoint 1 (run 1, epoch " "$downpour" run --from "$dir/C" --dir "$dir/F" --servers 3 --shards 2
# The checkpoint's epochs are told in one line, and not shown again as they were.
epoch=$("$downpour" inspect "$dir/C" | awk '$1 == 1 { print $4 }')
[ "$epoch" -lt 3 ] || said_text "Epochs 1-$((epoch - 1)) are the checkpoint's."
[ "$(awk '/train loss/ && ++n > 1 { exit } /^ +[0-9]+ / { print $1; exit }' "$dir/out")" = "$epoch" ] || fail "the first epoch that is shown is not $epoch"
[ -n "$(digest "$dir/R")" ] && [ "$(digest "$dir/F")" = "$(digest "$dir/R")" ] || fail "another end than that of the run that was never stopped"
grep -q "continues at epoch" "$dir/F/log/worker-0.log" || fail "the run began anew"
grep -q '"finished": true' "$dir/F/current/run.json" || fail "the run is not finished"
[ -e "$dir/F/current/restoring.conf" ] && fail "restoring.conf is left"
# It is a run's directory as any other.
expect 0 "" "$downpour" predict --from "$dir/F" --data "$data/digits.test.libsvm.gz" --out "$dir/scores"
[ "$(wc -l <"$dir/scores")" = 360 ] || fail "no scores"
expect 2 "is finished, so there is nothing to resume" "$downpour" run --dir "$dir/F" --resume

# Restored in its own place it stands where the checkpoint stood, whatever a worker's log tells of the lost rest.
epoch=$("$downpour" inspect "$dir/C" | awk '$1 == 1 { print $4 }')
cp -a "$dir/R" "$dir/back"
expect 0 "restored checkpoint 1 (run 1, epoch $epoch, " "$downpour" restore --from "$dir/C" --dir "$dir/back" --overwrite
cp "$dir/R/current/steps-0.log" "$dir/back/current/steps-0.log"
# Without a table: not one that the run needs, and not one that is not there. Other hosts get the list.
table=$(sed -n '/"tables"/,$s/.*"name": "\(.*\)",/\1/p' "$dir/C/checkpoint-000001/manifest.json" | head -1)
expect 2 "needs table '$table' for its model, mlp:64-33-10" "$downpour" restore --from "$dir/C" --dir "$dir/back" --overwrite --without "$table"
expect 2 "has no table '${table}x' (did you mean '$table'?)" "$downpour" restore --from "$dir/C" --dir "$dir/back" --overwrite --without "${table}x"
sed "s|127.0.0.1|192.0.2.7|; s|store = \"|&$dir/there-|" "$dir/C/checkpoint-000001/cluster.conf" >"$dir/there.conf"
expect 0 "without 1 of " "$downpour" restore --from "$dir/C" --cluster "$dir/there.conf" --without "$table"
[ "$(grep -c "^    downpour-server .* --without $table" "$dir/out")" = 3 ] || fail "the commands for other hosts lack the list"
# A store that is lost before it was opened: the register does not know it, and yet its rows are lost.
cp -a "$dir/back" "$dir/lost"
rm -r "$dir/lost/store/server-1"
expect 0 "shard 1 begins anew, as --replace-store says; its rows are lost" "$downpour" run --dir "$dir/lost" --continue --replace-store --epochs 1
expect 0 "is not finished: in epoch $epoch of 40" "$downpour" export --from "$dir/back" --to "$dir/back.safetensors"
"$downpour" status --dir "$dir/back" | grep -q "is not finished (in epoch $epoch of 40" || fail "status tells another epoch than $epoch"
# A file of the data may have been moved.
cp "$data/digits.test.libsvm.gz" "$dir/moved.gz"
sed -i "s|$data/digits.test.libsvm.gz|$dir/was.gz|" "$dir/back/current/cluster.conf"
expect 2 "(if it was moved, give its present place with --test)" "$downpour" run --dir "$dir/back" --resume
expect 2 "omit what would change it (--test)" "$downpour" run --dir "$dir/back" --resume --test "$data/digits.train.libsvm.gz"
expect 0 "Resuming run 1 there, in epoch $epoch of 40" "$downpour" run --dir "$dir/back" --resume --test "$dir/moved.gz"
[ "$(digest "$dir/back")" = "$(digest "$dir/R")" ] || fail "another end than that of the run that was never stopped"
"$downpour" status --dir "$dir/back" | grep -q "is finished" || fail "the run is not finished"

expect 0 "Test set: " "$downpour" run --from "$dir/C" --dir "$dir/moved" --test "$dir/moved.gz"
[ "$(digest "$dir/moved")" = "$(digest "$dir/R")" ] || fail "another end with a test file that was moved"

# Trained further, on the same number of shards; a restore that was cut short there gives way.
mkdir -p "$dir/G/runs/1/store/server-0/shard-0000" "$dir/G/runs/1/store/server-1.restoring"
touch "$dir/G/runs/1/restoring.conf"
expect 0 "this is run 2" "$downpour" run --from "$dir/C/checkpoint-000001" --dir "$dir/G" --continue --epochs 2 --workers 2 --shards 1 --durability none
said "^ +[0-9]+ +[0-9.]+ "
[ "$(ls "$dir/G/runs")" = 2 ] || fail "what a restore left that was cut short is there"

# The run's end is in the checkpoint, with its figures, and nothing else is left to do.
expect 0 "" "$downpour" run --dir "$dir/E" "${train[@]}" --epochs 2
"${downpour%/*}/downpour-server" --cluster "$dir/E/cluster.conf" --server 0 2>"$dir/server.log" &
server=$!
wait_until 30 "$downpour" status --dir "$dir/E" >"$dir/out" 2>"$dir/err" || fail "a server does not serve"
expect 0 "of run 1, epoch 2" "$downpour" checkpoint --cluster "$dir/E/cluster.conf" --to "$dir/C.end"
# By a cluster file whose paths are relative to where processes start, with a cache that is another's.
cp "$data/digits.train.libsvm.gz" "$dir/E/current/train.gz"
mkdir "$dir/stranger"
sed -e '/relative_to/d' -e 's|train = ".*"|train = "train.gz"|' -e "s|cache = \".*\"|cache = \"$dir/stranger\"|" "$dir/E/cluster.conf" >"$dir/E/current/start.conf"
kill "$server"
wait "$server"
cd "$dir/E/current" || exit 1
"${downpour%/*}/downpour-server" --cluster start.conf --server 0 2>"$dir/server.log" &
server=$!
wait_until 30 "$downpour" status --cluster start.conf >"$dir/out" 2>"$dir/err" || fail "a server does not serve"
expect 0 "of run 1, epoch 2" "$downpour" checkpoint --cluster start.conf --to "$dir/C.start"
cd "$root" || exit 1
grep -q 'train = "train.gz"' "$dir/C.start/checkpoint-000001/cluster.conf" || fail "no relative path to test with"
kill "$server"
wait "$server"
expect 0 "Throughput:" "$downpour" run --from "$dir/C.end" --dir "$dir/E.again"
[ "$(digest "$dir/E.again")" = "$(digest "$dir/E")" ] || fail "other rows than at the end"
expect 0 "its first epoch is epoch 3" "$downpour" run --dir "$dir/E.again" --continue --epochs 1

expect 2 "run 1 in $dir/R is not running" "$downpour" checkpoint --dir "$dir/R" --to "$dir/C"
expect 2 "R is the run's own" "$downpour" checkpoint --dir "$dir/R" --to "$dir/R"
expect 2 "R/store is the run's own" "$downpour" checkpoint --dir "$dir/R/" --to "$dir/R/store"

# Taken out of a checkpoint: what the run itself gives, and the checkpoint needs no run beside it.
expect 0 "18 tensors" "$downpour" export --from "$dir/E" --to "$dir/run.safetensors" --slots
expect 0 "18 tensors" "$downpour" export --from "$dir/C.end" --to "$dir/end.safetensors" --slots
cmp "$dir/run.safetensors" "$dir/end.safetensors" || fail "other tensors out of the checkpoint than out of the run"
expect 0 "18 tensors" "$downpour" export --from "$dir/C.start" --to "$dir/start.safetensors" --slots
cmp "$dir/run.safetensors" "$dir/start.safetensors" || fail "other tensors out of the checkpoint of a cluster file with relative paths"
# Going on needs the data: from where the paths are meant.
expect 2 "train.gz" "$downpour" run --from "$dir/C.start" --dir "$dir/X"
[ -e "$dir/X" ] && fail "a refusal left a directory"
cd "$dir/E/current" || exit 1
expect 0 "Throughput:" "$downpour" run --from "$dir/C.start" --dir "$dir/S"
cd "$root" || exit 1
[ "$(digest "$dir/S")" = "$(digest "$dir/E")" ] || fail "other rows than at the end"
grep -q 'cache = "cache"' "$dir/S/cluster.conf" && [ -z "$(ls "$dir/stranger")" ] || fail "the cache is another's"
expect 0 "Throughput:" "$downpour" run --dir "$dir/S" --continue --epochs 1
[ -n "$(ls "$dir/S/cache")" ] && [ -z "$(ls "$dir/stranger")" ] || fail "the cache is another's"
expect 0 "4 tensors" "$downpour" export --from "$dir/C/checkpoint-000001" --to "$dir/middle.safetensors"
expect 0 "" "$downpour" export --from "$dir/C" --to "$dir/middle"
expect 0 "" "$downpour" export --from "$dir/R" --to "$dir/whole"
[ -s "$dir/whole/mlp.w1.names.tsv" ] && cmp "$dir/whole/mlp.w1.names.tsv" "$dir/middle/mlp.w1.names.tsv" || fail "other names out of the checkpoint"
[ "$(tail -c 40 "$dir/middle/mlp.b2.npy" | od -tx1 -An)" = "$(tail -c 40 "$dir/middle.safetensors" | od -tx1 -An)" ] ||
    fail "other weights as .npy"
mkdir "$dir/empty"
expect 2 "is not the directory of a run" "$downpour" export --from "$dir/empty" --to "$dir/x.npy"

# What is refused, and what a refusal leaves: nothing, or the run that was there.
before=$(digest "$dir/E")
expect 2 "--from begins a directory of its own, and '$dir/E' has a run" "$downpour" run --from "$dir/C" --dir "$dir/E"
expect 2 "omit what would change it (--epochs)" "$downpour" run --from "$dir/C" --dir "$dir/E" --fresh --epochs 3
[ "$(digest "$dir/E")" = "$before" ] || fail "a refusal took the run that was there"
expect 2 "omit --resume" "$downpour" run --from "$dir/C" --dir "$dir/X" --resume
expect 2 "omit --cluster" "$downpour" run --from "$dir/C" --dir "$dir/X" --cluster "$dir/E/cluster.conf"
expect 2 "cannot read '$dir/none'" "$downpour" run --from "$dir/C" --dir "$dir/X" --train "$dir/none"
expect 2 "cannot read '$dir/none'" "$downpour" run --from "$dir/C" --dir "$dir/X" --test "$dir/none"
expect 2 "has no checkpoint" "$downpour" run --from "$dir/E" --dir "$dir/X"
[ -e "$dir/X" ] && fail "a refusal left a directory"
# Of a checkpoint that is damaged nothing is left, and the directory is free.
cp -a "$dir/C" "$dir/C.bad"
file=$(find "$dir/C.bad/files" -name '*.sst-*' | sort | head -1)
with=x # another byte than is there
[ "$(dd if="$file" bs=1 skip=100 count=1 2>/dev/null | tr -d '\0')" != x ] || with=y
printf %s "$with" | dd of="$file" bs=1 seek=100 conv=notrunc 2>/dev/null
expect 2 "$(basename "$file")" "$downpour" run --from "$dir/C.bad" --dir "$dir/Y"
tail -n 1 "$dir/err" | grep -qF "the checkpoint is damaged; use another one" || fail "the last line does not say why"
[ -e "$dir/Y/cluster.conf" ] || [ -e "$dir/Y/runs/1/store" ] && fail "a run is left of a damaged checkpoint"
expect 0 "Throughput:" "$downpour" run --from "$dir/C.end" --dir "$dir/Y" --train "$data/digits.train.libsvm.gz"
expect 0 "Throughput:" "$downpour" run --from "$dir/C.end" --dir "$dir/Y" --fresh

# Its number is its own: two that were moved over each other would restore the older one as the later.
cp -a "$dir/C.end" "$dir/C.two"
mv "$dir/C.two/checkpoint-000001" "$dir/C.two/checkpoint-000002"
moved="$dir/C.two/checkpoint-000002 is checkpoint 1 by its manifest"
expect 2 "$moved" "$downpour" run --from "$dir/C.two" --dir "$dir/X"
said_text "Give it its name back (checkpoint-000001)"
[ -e "$dir/X" ] && fail "a refusal left a directory"
expect 2 "$moved" "$downpour" restore --from "$dir/C.two" --dir "$dir/E" --overwrite
expect 2 "$moved" "${downpour%/*}/downpour-server" --cluster "$dir/E/cluster.conf" --server 0 --restore "$dir/C.two" --overwrite
expect 2 "$moved" "$downpour" export --from "$dir/C.two/checkpoint-000002" --to "$dir/x.safetensors"
[ "$(digest "$dir/E")" = "$before" ] || fail "a refusal took the store that was there"

(cd "$dir/C" && find . -type f -print0 | sort -z | xargs -0 md5sum) >"$dir/after"
cmp "$dir/before" "$dir/after" || fail "the checkpoint was written into"
rest=$(ls "$TMPDIR")
[ -z "$rest" ] || fail "left in TMPDIR: $rest"
