#!/usr/bin/env bash
# Tables that no command takes in one portion (65,536 rows, 8 MiB, 4,096 keys): 70,000 items with 33 weights each, and their biases. Every
# form of export has the rows that inspect shows, an import brings them back, and the best of all items are found in every portion.
# usage: portions.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "no python3: nothing is read"; exit 77; }

rows() { # WHAT...
    python3 "$(dirname "$0")/portions.py" "$dir" "$@" >"$dir/out" 2>"$dir/err" || fail "portions.py $*"
}

awk 'BEGIN { for (u = 0; u < 700; u++) for (i = 0; i < 100; i++) print u " " 100000 + 7 * (100 * u + i) }' >"$dir/pairs"
expect 0 "Report:" "$downpour" run --dir "$dir/R" --journal-bytes 16MiB --model mf:33 --train "$dir/pairs" --epochs 1 --batch 1000 \
    --optimizer adagrad --rate 0.05
for table in mf.item mf.item_bias mf.user; do
    expect 0 "" "$downpour" inspect "$dir/R" --rows $table --limit 1000000
    mv "$dir/out" "$dir/$table.rows"
done
[ "$(grep -c ^key "$dir/mf.item.rows")" = 70000 ] || fail "the test is of no use: not 70,000 rows"

expect 0 "" "$downpour" export --from "$dir/R" --to "$dir/npy" --slots
expect 0 "" "$downpour" export --from "$dir/R" --to "$dir/text" --format text
expect 0 "" "$downpour" export --from "$dir/R" --to "$dir/all.safetensors" --slots
for table in mf.item mf.item_bias; do
    expect 0 "" "$downpour" export --from "$dir/R" --to "$dir/$table.npy" --table $table
    rows forms $table
done

# The last item is in the last portion, and so are some of the best.
for item in 100000 589993; do
    expect 0 "" "$downpour" neighbours "$dir/R" $item --top 20
    mv "$dir/out" "$dir/neighbours.$item"
done
expect 0 "" "$downpour" predict --from "$dir/R" --top 20 --user 5 --with-seen
mv "$dir/out" "$dir/best.5"
rows best

for form in npy all.safetensors; do
    expect 0 "slots included" "$downpour" import --from "$dir/$form" --to "$dir/C.$form" --like "$dir/R"
    expect 0 "" "$downpour" export --from "$dir/C.$form" --to "$dir/again.safetensors" --slots
    cmp "$dir/all.safetensors" "$dir/again.safetensors" || fail "$form: another export of what was imported"
done
