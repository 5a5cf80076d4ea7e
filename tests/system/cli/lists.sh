#!/usr/bin/env bash
# A column of lists (a|b|c) carries the signal. The hint names it; with it each model is near the true one. A further
# day with other lists changes no score, and a wrong list is refused. usage: lists.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

python3 - "$dir" >"$dir/true" <<'PY'
import math, random, sys
random.seed(3)
effect = {f'g{g}': random.gauss(0, 2) for g in range(18)}
ranked = []
def rows(name, n, header, row):
    with open(f'{sys.argv[1]}/{name}.csv', 'w') as f:
        f.write(header + '\n')
        for i in range(n):
            genres = random.sample(sorted(effect), random.choice([1, 2, 2, 3, 6]))
            p = 1 / (1 + math.exp(-2 * sum(effect[g] for g in genres) / len(genres)))
            liked = random.random() < p
            if name == 'test':
                ranked.append((p, liked))
            f.write(row('|'.join(genres), random.gauss(0, 1), random.choice('ab'), 'yes' if liked else 'no') + '\n')
rows('train', 4000, 'price,genres,liked,city', lambda g, x, c, y: f'{x:.2f},{g},{y},{c}')
rows('test', 2000, 'price,genres,liked,city', lambda g, x, c, y: f'{x:.2f},{g},{y},{c}')
rows('day', 400, 'liked,city,genres,price', lambda g, x, c, y: f'{y},{c},{g}|new|,{x:.2f}')
below = wins = 0
for p, liked in sorted(ranked):
    wins += below * liked
    below += not liked
print(wins / below / (len(ranked) - below))
PY

train() { # MODEL FLAGS...
    local model=$1
    shift
    rm -rf "$dir/A"
    expect 0 "label: liked (yes " "$downpour" run --dir "$dir/A" --model "$model" --train "$dir/train.csv" \
        --test "$dir/test.csv" --label liked --epochs 6 --batch 32 --rate 0.01 --journal-bytes 16MiB "$@"
}

above() { # LOW HIGH: the test's AUC less that of the true model is between them
    python3 -c "
import json, sys
auc = json.load(open(sys.argv[1]))['final']['test']['auc'] - $(cat "$dir/true")
sys.exit(0 if $1 < auc < $2 else f'AUC less that of the true model: {auc}')" "$dir/A/report.json" ||
        fail "$(head -1 "$dir/out")"
}

train fm:8 --ignore genres
above -1 -0.2
train fm:8
said_text "genres: most values have a '|'; --lists genres makes each a list of categories"
for model in fm:8 logistic wide-deep:8-8 dlrm:8,tables=fields deepfm:8-8; do
    train "$model" --lists genres
    said_text "lists: genres (18 values, up to 6 in a cell)"
    unsaid "most values"
    above -0.02 1
done

# The day's columns have another order; its lists have a new entry, which gets a row and a name.
scores() {
    "$downpour" predict --from "$dir/A" --data "$dir/test.csv" >"$dir/$1" || fail "predict"
}
scores before
expect 0 "Report:" "$downpour" run --dir "$dir/A" --continue --train "$dir/day.csv" --epochs 1 --rate 1e-30
said_text "lists: genres (up to 7 in a cell)"
scores after
cmp -s "$dir/before" "$dir/after" || fail "a training at rate 0 changed scores"
grep -q '^kinds,number,list,label,category$' "$dir/A/current/columns.csv" || fail "the kind of the column was not kept"
expect 0 "" "$downpour" export --from "$dir/A" --to "$dir/weights"
for name in genres=new genres=g0 genres=g17 city=a; do
    grep -q "^$name	" "$dir/weights/clicks.v.names.tsv" || fail "no row of $name"
done
expect 2 "by --lists (data.lists) column 'genres' is not a list, but it was a list" "$downpour" run \
    --dir "$dir/A" --continue --train "$dir/day.csv" --lists city --epochs 1
expect 2 "columns of lists (--lists), but the model takes numbers only: choose deepfm" "$downpour" run \
    --dir "$dir/B" --model mlp:8 --train "$dir/train.csv" --label liked --lists genres

# One cell of 100,000 entries.
python3 -c "
print('genres,y')
for i in range(200): print(f'{\"good\" if i % 2 else \"bad\"}|x{i % 5},{i % 2}')
print('|'.join(f'e{i}' for i in range(100000)) + ',1')" >"$dir/long.csv"
expect 0 "up to 100,000 in a cell" "$downpour" run --dir "$dir/C" --model deepfm:4-4 --train "$dir/long.csv" --label y \
    --lists genres --epochs 1 --journal-bytes 64MiB
