#!/usr/bin/env bash
# Weights of rows and of classes: a rare class is found, a weight is as many rows, and which files need the column.
# usage: weights.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

run() { # DIR FILE [MORE FLAGS]
    local to=$1 file=$2
    shift 2
    expect 0 "Report:" "$downpour" run --dir "$to" --model logistic --train "$file" --label late --journal-bytes 16MiB "$@"
}

refused() { # TEXT FLAGS...
    local text=$1
    shift
    expect 2 "$text" "$downpour" run --dir "$dir/bad" --journal-bytes 16MiB "$@"
    rm -rf "$dir/bad"
}

# One row in 20 is late. `copies.csv` has each row of `weighted.csv` as often as its weight says.
python3 - "$dir" <<'PY'
import math, random, sys
random.seed(3)
def rows(n):
    for _ in range(n):
        a, b = random.gauss(0, 1), random.gauss(0, 1)
        yield f'{a:.3f},{b:.3f},{random.choice("xyz")}', 'yes' if random.random() < 1 / (1 + math.exp(4.5 - 2 * a - b)) else 'no'
for name, n in (('train', 3000), ('test', 2000)):
    with open(f'{sys.argv[1]}/{name}.csv', 'w') as f:
        f.write('a,b,c,late\n' + ''.join(f'{x},{y}\n' for x, y in rows(n)))
with open(sys.argv[1] + '/weighted.csv', 'w') as w, open(sys.argv[1] + '/copies.csv', 'w') as c:
    w.write('a,b,c,w,late\n')
    c.write('a,b,c,late\n')
    for x, y in rows(300):
        n = random.choice([0, 1, 2, 7])
        w.write(f'{x},{n},{y}\n')
        c.write(f'{x},{y}\n' * n)
PY

# Without weights few late rows get a score above 0.5; balanced, most do. The metrics of the test set have no weights.
recall() { # DIR: in percent
    expect 0 "" "$downpour" predict --from "$1" --data "$dir/test.csv"
    paste -d, <(tail -n +2 "$dir/test.csv") "$dir/out" | awk -F, '$4 == "yes" { n++; k += $5 > 0.5 } END { print int(100 * k / n) }'
}
run "$dir/plain" "$dir/train.csv" --test "$dir/test.csv" --rate 0.02 --epochs 15
plain=$(recall "$dir/plain")
run "$dir/balanced" "$dir/train.csv" --test "$dir/test.csv" --rate 0.02 --epochs 15 --class-weight balanced --workers 2 --consistency sync \
    --validation share=0.2
said 'class weights: no 0\.5[0-9]*, yes [0-9]'
said "^Validation set, without weights: "
said "^Test set, without weights: "
# The constant is that of the weighted training.
said "A constant would reach, on the test set: accuracy 0\.[0-9]*, AUC 0\.50000, loss 0\.[67]"
balanced=$(recall "$dir/balanced")
[ "$balanced" -gt $((plain + 25)) ] || fail "a recall of $balanced% with balanced classes, $plain% without"
python3 - "$dir" <<'PY' || fail "the ranking of the test set is not as before"
import json, sys
auc = [json.load(open(f'{sys.argv[1]}/{name}/report.json'))['final']['test']['auc'] for name in ('plain', 'balanced')]
sys.exit(abs(auc[0] - auc[1]) > 0.02)
PY

# A weight is as many rows: each step of both takes all rows, so the scores agree (without weights they are 0.11 apart).
# The l2 replaces the prior of a rare label, which goes by rows: weights are relative.
full=(--standardize no --optimizer sgd,l2=1e-9 --rate 1 --batch 4096 --epochs 30 --no-overlap)
run "$dir/weighted" "$dir/weighted.csv" --weight w "${full[@]}"
said_text "weight: w (0 to 7)"
run "$dir/copies" "$dir/copies.csv" "${full[@]}"
expect 0 "" "$downpour" predict --from "$dir/copies" --data "$dir/test.csv"
cp "$dir/out" "$dir/scores.copies"
expect 0 "" "$downpour" predict --from "$dir/weighted" --data "$dir/test.csv"
cp "$dir/out" "$dir/scores"
paste "$dir/scores" "$dir/scores.copies" | awk '{ d = $1 - $2; if (d > 0.01 || d < -0.01) n++ } END { exit n > 0 || NR < 2000 }' ||
    fail "other scores with weights than with as many rows"
# Files to be scored need no weights, and theirs are not looked at. The next day's file needs them, wherever they are.
sed '1s/$/,w/; 2,$s/$/,none/' "$dir/test.csv" >"$dir/more.csv"
expect 0 "" "$downpour" predict --from "$dir/weighted" --data "$dir/more.csv"
cmp -s "$dir/out" "$dir/scores" || fail "other scores of rows with weights"
expect 2 "the column 'w' of weights (--weight, data.weight) is missing" "$downpour" run --dir "$dir/weighted" --continue --train "$dir/copies.csv"
awk -F, -v OFS=, '{ print $4, $5, $3, $2, $1 }' "$dir/weighted.csv" >"$dir/further.csv"
expect 0 "weight: w (0 to 7)" "$downpour" run --dir "$dir/weighted" --continue --train "$dir/further.csv" --test "$dir/test.csv" --epochs 1

# What makes no sense is refused by name.
sed '3s/,[0-9]*,\([a-z]*\)$/,-1,\1/' "$dir/weighted.csv" >"$dir/negative.csv"
refused "negative.csv:3: column 'w': expected a weight (a number of 0 or more), found '-1'" --model logistic --train "$dir/negative.csv" \
    --label late --weight w
refused "label 'maybe': expected one of the training file's: 'no', 'yes'" --model logistic --train "$dir/train.csv" --label late \
    --class-weight maybe=2
printf '%s\n' 'ann x' 'ann y' 'bob x' >"$dir/pairs"
refused "'data.weight' (--weight) weighs rows with a label, but model mf:4 takes pairs of user and item: leave it out" --model mf:4 \
    --train "$dir/pairs" --weight 3
refused "'data.class_weight' (--class-weight) weighs classes, but model fm:2,loss=squared predicts numbers" --model fm:2,loss=squared \
    --train "$dir/weighted.csv" --label a --class-weight balanced
