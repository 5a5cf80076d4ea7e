#!/usr/bin/env bash
# A model's columns, categories and classes come from the training file: the same weights as with the model in full.
# usage: shapes.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

digest() { # DIR
    timeout 60 "$downpour" inspect "$1" --digest 2>&1 | grep -E '^digest|of all' || fail "no digest of $1"
}

# becomes SHORT FULL FLAGS...: the model is shown and kept in full
becomes() {
    local short=$1 full=$2
    shift 2
    rm -rf "$dir/a"
    expect 0 "Training $full: " "$downpour" run --dir "$dir/a" --model "$short" --epochs 1 --no-overlap --journal-bytes 16MiB "$@"
    grep -qF "\"$full\"" "$dir/a/cluster.conf" || fail "$short is not kept in full"
}

# alike SHORT FULL FLAGS...: both train the same, too, bit for bit
alike() {
    local short=$1 full=$2
    becomes "$@"
    shift 2
    rm -rf "$dir/b"
    expect 0 "Training $full: " "$downpour" run --dir "$dir/b" --model "$full" --epochs 1 --no-overlap --journal-bytes 16MiB "$@"
    [ "$(digest "$dir/a")" = "$(digest "$dir/b")" ] || fail "$short and $full train other weights"
}

# Classes that are texts, numbers from 1, numbers from 0; numbers and categories; clicks.
python3 - "$dir" <<'PY'
import random, sys
random.seed(1)
g = random.gauss
def write(name, head, row):
    with open(f'{sys.argv[1]}/{name}.csv', 'w') as f:
        f.write(head + ',y\n')
        for i in range(150):
            f.write(','.join(str(c) for c in row(i)) + '\n')
write('iris', 'a,b,c,d', lambda i: [f'{g(i % 3, 1):.1f}' for _ in range(4)] + ['setosa versicolor virginica'.split()[i % 3]])
write('wine', ','.join(f'x{j}' for j in range(13)), lambda i: [f'{g(i % 3, 1):.2f}' for _ in range(13)] + [i % 3 + 1])
write('adult', 'age,work,hours,land', lambda i: [f'{g(40, 9):.0f}', f'work{i % 4}', f'{g(40, 9):.0f}', f'land{i % 7}', ['<=50K', '>50K'][i % 5 == 0]])
PY
csv=(--label y --train)
alike mlp:16-8 mlp:4-16-8-3 "${csv[@]}" "$dir/iris.csv"
becomes mlp:16,activation=tanh mlp:13-16-3,activation=tanh "${csv[@]}" "$dir/wine.csv"
becomes mlp:8,loss=squared mlp:13-8-1,loss=squared "${csv[@]}" "$dir/wine.csv"
becomes mlp:16-8 mlp:64-16-8-10 --train "$data/digits.train.libsvm.gz"
alike deepfm:4-8 deepfm:4-8,columns=2,fields=2 "${csv[@]}" "$dir/adult.csv"
becomes wide-deep:4-8 wide-deep:4-8,columns=2,fields=2 "${csv[@]}" "$dir/adult.csv"
becomes dlrm:4 dlrm:4,columns=2,fields=2,bottom=64-32,top=64-32 "${csv[@]}" "$dir/adult.csv"
becomes dlrm:4,fields=2,top=8 dlrm:4,fields=2,top=8,columns=2,bottom=64-32 "${csv[@]}" "$dir/adult.csv"
cut -d, -f2,4,5 "$dir/adult.csv" >"$dir/lands.csv"
expect 2 "the training file has no column of numbers, but dlrm takes 1 at least: add one, or take deepfm" \
    "$downpour" run --dir "$dir/bad" --model dlrm:4 "${csv[@]}" "$dir/lands.csv"
expect 0 "" "$downpour" generate clicks --rows 300 --seed 1 --out "$dir/clicks.tsv"
becomes deepfm:4-8 deepfm:4-8 --train "$dir/clicks.tsv"

# The run there has the model in full: a second run, predictions and exports use it, whatever its file has by then.
run() { # CODE TEXT MODEL FILE [MORE FLAGS]
    local code=$1 text=$2 model=$3 file=$4
    shift 4
    expect "$code" "$text" "$downpour" run --dir "$dir/run" --model "$model" --label y --train "$file" --epochs 1 "$@"
}
run 0 "" mlp:16-8 "$dir/iris.csv"
run 0 "Training mlp:4-16-8-3: " mlp:16-8 "$dir/iris.csv"
expect 0 "Training mlp:4-16-8-3: " "$downpour" run --dir "$dir/run" --continue --epochs 1
expect 0 "" "$downpour" predict --from "$dir/run" --data "$dir/iris.csv"
[ "$(wc -l <"$dir/out")" = 150 ] || fail "predictions of a short model"
expect 0 "mlp.w3.npy" "$downpour" export --from "$dir/run" --to "$dir/export"

# One end is the file's and the other is not: both models to type are named.
run 2 "write mlp:4-16-3, or mlp:4-5-16-3-3 if 5-16-3 are hidden layers" mlp:5-16-3 "$dir/iris.csv" --fresh
run 2 "write mlp:4-16-3, or mlp:4-4-16-2-3 if 4-16-2 are hidden layers" mlp:4-16-2 "$dir/iris.csv" --fresh
run 2 "write mlp:13-16-1, or mlp:13-12-16-1-1 if" mlp:12-16-1,loss=squared "$dir/wine.csv" --fresh
awk 'BEGIN { print "a,b,y"; for (i = 1; i < 40; i++) print i "," i * i % 17 "," 200000 + 7 * i }' >"$dir/price.csv"
run 2 "would need 200273 classes: if they are values to predict, write mlp:8-4,loss=squared" mlp:8-4 "$dir/price.csv" --fresh
run 0 "Training mlp:2-8-4-1,loss=squared" mlp:8-4,loss=squared "$dir/price.csv" --fresh
run 2 "add columns=2,fields=2 to the model" deepfm:4-8,columns=3,fields=2 "$dir/adult.csv" --fresh
run 2 "the file has 2 columns of categories, but the model takes numbers only" mlp:16 "$dir/adult.csv" --fresh
run 2 "write the model in full" mlp:16 <(cat "$dir/iris.csv") --fresh
expect 2 "mlp:16a" "$downpour" run --dir "$dir/none" --model mlp:16a --label y --train "$dir/iris.csv"
