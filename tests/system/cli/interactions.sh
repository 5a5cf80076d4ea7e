#!/usr/bin/env bash
# Files of interactions as people have them, from end to end: quotes, headers in any order, ratings. And shares in predict.
# usage: interactions.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

train() { # DIR FILE [MORE FLAGS]
    local to=$1 file=$2
    shift 2
    expect 0 "Report:" "$downpour" run --dir "$to" --model mf:4 --train "$file" --epochs 1 --journal-bytes 16MiB "$@"
}

# Titles with doubled quotes and commas are 25 items, with their names.
python3 - >"$dir/titles.csv" <<'PY'
print('user,item')
for u in range(20):
    for i in (u % 5, 5 + u):
        print(f'u{u},"Movie ""{i}"", or so"')
PY
train "$dir/titles" "$dir/titles.csv"
said_text "columns: user: 'user' (column 1), item: 'item' (column 2)"
expect 0 "" "$downpour" export --from "$dir/titles" --to "$dir/titles.out/"
[ "$(cut -f1 "$dir/titles.out/mf.item.names.tsv" | grep -c '^Movie "[0-9]*", or so$')" = 25 ] || fail "not 25 items"

# The header decides, and the terminal says how; a test file may have another order.
python3 - "$dir" <<'PY'
import sys
rows = [(u, i) for u in range(12) for i in range(9) if (u * 7 + i * 5) % 3]
with open(sys.argv[1] + '/order.csv', 'w') as f:
    f.write('when,item_id,user_id,stars\n' + ''.join(f'2020-01-01,i{i},u{u},{(u + i) % 5 + 1}\n' for u, i in rows if (u + i) % 4))
with open(sys.argv[1] + '/test.csv', 'w') as f:
    f.write('user_id,item_id\n' + ''.join(f'u{u},i{i}\n' for u, i in rows if not (u + i) % 4))
PY
train "$dir/order" "$dir/order.csv" --test "$dir/test.csv"
said_text "columns: user: 'user_id' (column 3), item: 'item_id' (column 2), rating: 'stars' (column 4); 1 other"
said "Note: .*order.csv: column 4 \(stars, 1 .. 5\) is not used: each line counts as an interaction"
said "recall@20"
expect 0 "u1"$'\t'"i" "$downpour" predict --from "$dir/order" --top 1 --user u1
train "$dir/named" "$dir/order.csv" --user user_id --item=2 --time stars
said_text "user: 'user_id' (column 3), item: 'item_id' (column 2), time: 'stars' (column 4)"
unsaid "is not used"
# Pairs that were trained on are in no test set: none of them looks too good.
expect 2 "were trained on" "$downpour" run --dir "$dir/named" --continue --train "$dir/order.csv" --validation share=0.2 --epochs 1
unsaid "held out now"
train "$dir/part" "$dir/order.csv,user=3,item=item_id"
said_text "user: 'user_id' (column 3), item: 'item_id' (column 2)"
expect 2 "order.csv:1: --user (data.user) is 'uid', which is no column of this file: expected a name of its first line (when, item_id, user_id, stars)" \
    "$downpour" run --dir "$dir/bad" --model mf:4 --train "$dir/order.csv" --user uid
expect 2 "'data.label' (--label) names the label of a CSV file, but model mf:4 takes users and items" \
    "$downpour" run --dir "$dir/bad" --model mf:4 --train "$dir/order.csv" --label stars
printf '{"user":1,"item":2}\n{"user":2,"item":3}\n' >"$dir/lines.json"
expect 2 "lines.json:1: expected 'user,item', not JSON: write a CSV first" \
    "$downpour" run --dir "$dir/bad" --model mf:4 --train "$dir/lines.json"

# Ratings are predicted: noise of 0.3 stays, of a deviation of 1; users and items are those of the header.
python3 - >"$dir/rated.csv" <<'PY'
import random
random.seed(4)
users, items = [random.gauss(0, .8) for _ in range(80)], [random.gauss(0, .6) for _ in range(60)]
print('rating;item;user')
for u, a in enumerate(users):
    for i, b in enumerate(items):
        print(f'{3.5 + a + b + random.gauss(0, .3):.2f};i{i};u{u}')
PY
expect 0 "Report:" "$downpour" run --dir "$dir/rated" --model mf:2,loss=squared --train "$dir/rated.csv" --holdout 0.2 --rate 0.02 \
    --epochs 12 --stop-at rmse:0.2 --journal-bytes 16MiB
unsaid "is not used"
python3 -c "import json, sys; f = json.load(open(sys.argv[1]))['final']['test']; sys.exit(not f['rmse'] < 0.5)" "$dir/rated/report.json" ||
    fail "ratings are not predicted"
printf 'user;item\nu3;i4\n' >"$dir/asked.csv"
expect 0 "" "$downpour" predict --from "$dir/rated" --data "$dir/asked.csv"
near=$(awk -F';' '$2 == "i4" && $3 == "u3" {print $1}' "$dir/rated.csv")
awk -v got="$(cat "$dir/out")" -v near="$near" 'BEGIN {exit !((got - near) ^ 2 < 2)}' || fail "u3 rates i4 as $(cat "$dir/out"), not $near"
mv "$dir/rated/current/columns.csv" "$dir/columns.away"
expect 2 "the scale of the ratings is not known" "$downpour" predict --from "$dir/rated" --top 3 --users <(echo u3)
mv "$dir/columns.away" "$dir/rated/current/columns.csv"
expect 2 "ratings are not ranked: leave out the file of negatives" "$downpour" run --dir "$dir/bad" --model mf:2,loss=squared \
    --train "$dir/rated.csv" --test "$dir/rated.csv,negatives=$dir/rated.csv"

# Nearly all features are new: a share that is not all is never 100%, nor a power of ten.
seq 50 | awk '{print $1%2, $1":1"}' >"$dir/few"
seq 2000 | awk '{print $1%2, (40+$1)":1", (9999+$1)":1", (99999+$1)":1"}' >"$dir/many"
expect 0 "" "$downpour" run --dir "$dir/few.run" --model logistic --train "$dir/few" --epochs 1 --journal-bytes 16MiB
expect 0 "weights that were looked up (99.8%) were never trained" "$downpour" predict --from "$dir/few.run" --data "$dir/many"
