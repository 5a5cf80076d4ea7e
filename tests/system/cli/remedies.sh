#!/usr/bin/env bash
# What a message says is to be done after a loss or an interrupted restore: the message names it, and it works.
# usage: remedies.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

digest() {
    "$downpour" inspect "$1" --digest 2>/dev/null | grep "^digest .* of all"
}
{
    echo y,city,code
    for i in $(seq 0 23); do
        echo "$([ $((i % 2)) = 0 ] && echo no || echo yes),$([ $((i % 3)) = 0 ] && echo Rome || echo Oslo),$((i % 5))"
    done
} >"$dir/train.csv"
train=(--model logistic --train "$dir/train.csv" --label y --batch 4 --journal-bytes 16MiB)
expect 0 "Report:" "$downpour" run --dir "$dir/R" "${train[@]}" --epochs 2
"${downpour%/*}/downpour-server" --cluster "$dir/R/cluster.conf" --server 0 2>"$dir/server.log" &
server=$!
wait_until 30 "$downpour" status --dir "$dir/R" >"$dir/out" 2>"$dir/err" || fail "a server does not serve"
expect 0 "of run 1, epoch 2" "$downpour" checkpoint --cluster "$dir/R/cluster.conf" --to "$dir/C"
kill "$server"
wait "$server"
rows=$(digest "$dir/R")
[ -n "$rows" ] || fail "no rows"
expect 0 "" "$downpour" export --from "$dir/R" --to "$dir/names"
at=$dir/C/checkpoint-000001

# ---- a restore brings back all that the checkpoint has of what lay next to the lost stores
rm -rf "$dir/R/runs/1/store"
expect 0 "restored checkpoint 1" "$downpour" restore --from "$dir/C" --dir "$dir/R"
cmp "$at/names.tsv" "$dir/R/current/names.tsv" || fail "the names are not restored"
cmp "$at/columns.csv" "$dir/R/current/columns.csv" || fail "the columns are not restored"
grep -q '"finished": false' "$dir/R/current/run.json" || fail "a restored run is not an unfinished one"
expect 0 "" "$downpour" export --from "$dir/R" --to "$dir/names.back/"
diff -r -x manifest.json "$dir/names" "$dir/names.back" >"$dir/out" || fail "an export of what was restored differs"
expect 2 "is not finished" "$downpour" run --dir "$dir/R" "${train[@]}" --epochs 2
expect 0 "Report:" "$downpour" run --dir "$dir/R" --resume
[ "$(digest "$dir/R")" = "$rows" ] || fail "other rows"
# What labels meant goes with the weights.
sed 's/^no,/off,/; s/^yes,/on,/' "$dir/train.csv" >"$dir/labels.csv"
expect 2 "label 'off': expected one of the training file's: 'no', 'yes'" "$downpour" run --from "$dir/C" --dir "$dir/L" \
    --continue --train "$dir/labels.csv"
# The message then names what works.
said_text "nothing was trained: correct the cause above and repeat the command"
[ -e "$dir/L/store" ] && fail "a store that nobody trained on was kept"
expect 0 "this is run " "$downpour" run --from "$dir/C" --dir "$dir/L" --continue --train "$dir/train.csv"

# ---- a store of another training: it stays, and so does what lies next to it
expect 0 "Report:" "$downpour" run --dir "$dir/O" "${train[@]}" --epochs 1
other=$(digest "$dir/O")
expect 2 "downpour run --dir NEW --from $at" "$downpour" restore --from "$dir/C" --dir "$dir/O" --overwrite
unsaid "remove"
expect 2 "downpour run --from CHECKPOINT --dir NEW" "$downpour" restore --from "$dir/C" --cluster "$dir/O/cluster.conf" --overwrite
unsaid "remove"
# The cluster file may be the checkpoint's, and name the directory of another cluster's store.
sed "s/^id = .*/$(grep '^id = ' "$dir/R/cluster.conf")/" "$dir/O/cluster.conf" >"$dir/O/mixed.conf"
expect 2 "is of another cluster" "$downpour" restore --from "$dir/C" --cluster "$dir/O/mixed.conf" --overwrite
rm "$dir/O/mixed.conf"
[ "$(digest "$dir/O")" = "$other" ] || fail "a refusal took the store that was there"
rm -rf "$dir/O/runs/1/store"
expect 2 "downpour run --dir NEW --from $at" "$downpour" restore --from "$dir/C" --dir "$dir/O"
expect 0 "Report:" "$downpour" run --dir "$dir/N" --from "$at"
[ "$(digest "$dir/N")" = "$rows" ] || fail "other rows in a new directory"

# ---- `run --from` that was killed while it restored: nothing can be resumed, and the command can be repeated
fake=$dir/fake
mkdir "$fake"
cp "$downpour" "$fake/downpour"
# shellcheck disable=SC2016
printf '#!/bin/sh\nkill -KILL $PPID\n' >"$fake/downpour-server"
chmod +x "$fake"/*
expect 137 "" "$fake/downpour" run --from "$dir/C" --dir "$dir/K"
rm -rf "$TMPDIR"/* # it could not do that
[ -e "$dir/K/runs/1/restoring.conf" ] || fail "it was not killed while it restored"
for how in --resume --continue; do
    expect 2 "there is no run to ${how#--} in '$dir/K'" "$downpour" run --dir "$dir/K" $how
done
mkdir -p "$dir/K/runs/1/store/server-0" # as it is killed between the stores and cluster.conf
expect 0 "Report:" "$downpour" run --from "$dir/C" --dir "$dir/K"
[ "$(digest "$dir/K")" = "$rows" ] || fail "other rows after a second try"

# ---- a server that dies while it restores: the last line says how, and its log stays
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "no luck" >&2\nkill -KILL $$\n' >"$fake/downpour-server"
expect 2 "    no luck" "$fake/downpour" restore --from "$dir/C" --dir "$dir/R" --overwrite
tail -n 1 "$dir/err" | grep -qF "server 0 was killed by signal 9 (Killed); no store is replaced" || fail "the last line does not say why"
log=$(sed -n 's/.*its log, \(.*\), ends with:/\1/p' "$dir/err")
grep -q "no luck" "$log" || fail "the log that is named is not there"
rm -r "${log%/log/*}"

# ---- a restore that was interrupted before it replaced a store: the command that finds it says so
mkdir "$dir/R/store/server-0.restoring"
expect 0 "a restore was interrupted before it replaced '$dir/R/runs/1/store/server-0': the store of before is used" "$downpour" run --dir "$dir/R" --continue --epochs 1

# ---- a report of before says nothing of a run whose workers wrote none: another run's, and that of weights which a restore has replaced
cp "${downpour%/*}/downpour-server" "$fake"
# shellcheck disable=SC2016
printf '#!/bin/sh\ntrap "exit 143" TERM\nkill -INT $PPID\nwhile :; do sleep 0.05; done\n' >"$fake/downpour-worker"
chmod +x "$fake/downpour-worker"
expect 0 "Report:" "$downpour" run --dir "$dir/A" "${train[@]}" --epochs 2 --report "$dir/r.json"
expect 130 "stopping, as signal 2 asks" "$fake/downpour" run --dir "$dir/B" "${train[@]}" --epochs 2 --report "$dir/r.json"
rm -rf "$dir/O"
expect 0 "Report:" "$downpour" run --from "$dir/C" --dir "$dir/O"
expect 0 "restored checkpoint 1" "$downpour" restore --from "$dir/C" --dir "$dir/O" --overwrite
expect 130 "is not finished" "$fake/downpour" run --dir "$dir/O" --resume
grep -q '"finished": false' "$dir/O/current/run.json" || fail "it counts as finished"

rest=$(ls "$TMPDIR")
[ -z "$rest" ] || fail "left in TMPDIR: $rest"
