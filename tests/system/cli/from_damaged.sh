#!/usr/bin/env bash
# A checkpoint whose small files are damaged, cut or missing, and one of another model: nothing of it is taken without a word, and what
# was there stays. (Rows, ids and register: tests/unit/server/restore.) usage: from_damaged.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

digest() {
    "$downpour" inspect "$1" --digest 2>/dev/null | grep "^digest .* of all"
}
{
    echo y,city,code
    for i in $(seq 0 23); do
        echo "$((i % 2)),$([ $((i % 3)) = 0 ] && echo Rome || echo Oslo),$((i % 5))"
    done
} >"$dir/train.csv"
expect 0 "Report:" "$downpour" run --dir "$dir/R" --model logistic --train "$dir/train.csv" --label y --batch 4 --epochs 2 \
    --journal-bytes 16MiB
"${downpour%/*}/downpour-server" --cluster "$dir/R/cluster.conf" --server 0 2>"$dir/server.log" &
server=$!
wait_until 30 "$downpour" status --dir "$dir/R" >"$dir/out" 2>"$dir/err" || fail "a server does not serve"
expect 0 "of run 1, epoch 2" "$downpour" checkpoint --cluster "$dir/R/cluster.conf" --to "$dir/C"
for _ in 1 2 3; do
    expect 0 "" "$downpour" checkpoint --cluster "$dir/R/cluster.conf" --to "$dir/P"
done
kill "$server"
wait "$server"
before=$(digest "$dir/R")
[ -n "$before" ] || fail "no rows"
expect 0 "logistic.w.npy" "$downpour" export --from "$dir/C" --to "$dir/whole"
[ -s "$dir/whole/columns.csv" ] && grep -q Rome "$dir"/whole/*.names.tsv || fail "a whole checkpoint gives no names or columns"

at=checkpoint-000001
# copy: $dir/D, a copy of the checkpoint
copy() {
    rm -rf "$dir/D"
    cp -a "$dir/C" "$dir/D"
}

# refused FILE: nobody takes it; the message names it
refused() {
    expect 2 "$1" "$downpour" export --from "$dir/D" --to "$dir/X"
    [ -e "$dir/X" ] && fail "something was written of a damaged $1" && rm -rf "$dir/X"
}

# not_restored FILE
not_restored() {
    expect 2 "$1" "$downpour" run --from "$dir/D" --dir "$dir/Y"
    [ -e "$dir/Y/cluster.conf" ] && fail "a run is left of a damaged $1"
    expect 2 "$1" "$downpour" restore --from "$dir/D" --dir "$dir/R" --overwrite
    [ "$(digest "$dir/R")" = "$before" ] || fail "a damaged $1 took the store that was there"
}

# What the keys and columns are called: an export would name the weights wrongly.
for file in names.tsv columns.csv; do
    copy
    sed -i 's/Rome/Bome/; s/city/cite/' "$dir/D/$at/$file"
    cmp -s "$dir/C/$at/$file" "$dir/D/$at/$file" && fail "$file is not changed"
    refused "$file"
    said_text "does not have the checksum that the checkpoint's manifest says: the checkpoint is damaged; use another one"
    not_restored "$file"
    truncate -s -1 "$dir/D/$at/$file"
    refused "$file"
    rm "$dir/D/$at/$file"
    refused "$file"
    not_restored "$file"
done

# The settings: a training would go on with others.
copy
sed -i 's/batch = 4;/batch = 6;/' "$dir/D/$at/cluster.conf"
cmp -s "$dir/C/$at/cluster.conf" "$dir/D/$at/cluster.conf" && fail "cluster.conf is not changed"
refused cluster.conf
not_restored cluster.conf
sed -i 's/model/mobel/' "$dir/D/$at/cluster.conf"
refused cluster.conf
said_text "the checkpoint is damaged; use another one"
unsaid "unknown"
rm "$dir/D/$at/cluster.conf"
refused cluster.conf
not_restored cluster.conf

# The manifest: which checkpoint it is, and what to do.
copy
sed -i 's/"number"/"nunber"/' "$dir/D/$at/manifest.json"
refused manifest.json
said_text "checkpoint 1 is damaged; use another one ('downpour inspect $dir/D' lists them)"
not_restored manifest.json

# What was looked at is said, and what is damaged by its checkpoint.
copy
truncate -s -1 "$dir/D/$at/register"
expect 2 "Only the sizes of files were compared: 'downpour inspect $dir/D --verify' reads all bytes." "$downpour" inspect "$dir/D"
expect 2 "1 damaged checkpoint: restore from another one, and make a new one" "$downpour" inspect "$dir/D" --verify
said "^checkpoint 1 is damaged:$"
said_text "checkpoint 1 has 1 damaged place: $dir/D/$at/register"

# A prune says what it did not count.
truncate -s -1 "$dir/P/checkpoint-000003/register"
expect 0 "1 checkpoint removed, " "$downpour" checkpoint --to "$dir/P" --prune 1
said_text "damaged, so kept and not counted: 1 (the first is checkpoint 3; 'downpour inspect $dir/P/checkpoint-000003 --verify' names the damage)"
[ -e "$dir/P/checkpoint-000002/manifest.json" ] || fail "the last good checkpoint is removed"

# Rows of tables that the workers of this cluster file do not have, over rows that they do.
sed 's/model = "logistic"/model = "fm:4"/' "$dir/R/cluster.conf" >"$dir/R/other.conf"
expect 2 "is of model 'logistic', and the cluster file is of model 'fm:4'" "$downpour" restore --from "$dir/C" --cluster "$dir/R/other.conf" --overwrite
expect 2 "is of model 'logistic', and the cluster file is of model 'fm:4'" "${downpour%/*}/downpour-server" --cluster "$dir/R/other.conf" \
    --server 0 --restore "$dir/C" --overwrite
[ "$(digest "$dir/R")" = "$before" ] || fail "a checkpoint of another model took the store that was there"

# The worker's step log: the losses of before. Rows do not depend on it, so it is a warning.
for damage in flipped cut missing; do
    copy
    case $damage in
    flipped) printf '\377' | dd of="$dir/D/$at/step-log-0000" bs=1 seek=60 conv=notrunc 2>/dev/null ;;
    cut) truncate -s -1 "$dir/D/$at/step-log-0000" ;;
    missing) rm "$dir/D/$at/step-log-0000" ;;
    esac
    expect 0 "step-log-0000" "$downpour" run --from "$dir/D" --dir "$dir/log-$damage"
    said_text "; the report will lack its figures"
    [ "$(digest "$dir/log-$damage")" = "$before" ] || fail "other rows with a step log that is $damage"
    rm -rf "$dir/R.log"
    cp -a "$dir/R" "$dir/R.log"
    expect 0 "step-log-0000" "$downpour" restore --from "$dir/D" --dir "$dir/R.log" --overwrite
    said_text "; the report will lack its figures"
done
expect 0 "" "$downpour" run --from "$dir/C" --dir "$dir/again"
unsaid "will lack"
