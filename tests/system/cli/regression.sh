#!/usr/bin/env bash
# Regressions, with the defaults of everything but the model: labels of any size are standardized inside, and metrics and
# predictions are in their unit.
# usage: regression.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

run() { # DIR MODEL FILE [MORE FLAGS]
    local to=$1 model=$2 file=$3
    shift 3
    expect 0 "Report:" "$downpour" run --dir "$to" --model "$model" --train "$file" --label price --journal-bytes 16MiB "$@"
}

# holds DIR EXPRESSION: of the report r, its RMSE on the test set t, and the RMSE of the true model, n, on this one
holds() {
    python3 -c "
import json, sys
r = json.load(open(sys.argv[1] + '/report.json')); t = r['final'].get('test', {}).get('rmse'); n = json.load(open('$dir/true.json'))
sys.exit(print(t, n) or not ($2))" "$1" || fail "$1/report.json: not $2"
}

# A price around 4,000: numbers and categories add up, with a noise of 250. A measure around 150 with ten numbers and a noise
# of 50, as of the patients of scikit-learn's diabetes set. Diamonds: numbers and categories multiply.
python3 - "$dir" <<'PY'
import json, math, random, sys
random.seed(3)
true = {}
def write(name, head, rows, draw):
    squares = 0
    for part, n in (('train', rows), ('test', 1500)):
        with open(f'{sys.argv[1]}/{name}.{part}.csv', 'w') as f:
            f.write(head + ',price\n')
            for _ in range(n):
                cells, mean, price = draw()
                f.write(','.join(str(c) for c in cells) + f',{price:.6g}\n')
                squares += (price - mean) ** 2 if part == 'test' else 0
    true[name] = math.sqrt(squares / 1500)
g = random.gauss
towns, weights = [g(0, 600) for _ in range(20)], [g(0, 1) for _ in range(10)]
def price():
    area, age, town = g(80, 25), g(20, 9), random.randrange(20)
    mean = 4000 + 18 * (area - 80) - 20 * (age - 20) + towns[town]
    return (f'{area:.1f}', f'{age:.1f}', f'town{town}'), mean, mean + g(0, 250)
def measure():
    x = [g(0, 1) for _ in range(10)]
    mean = 150 + 18 * sum(w * v for w, v in zip(weights, x))
    return [f'{v:.4f}' for v in x], mean, mean + g(0, 50)
def diamond():
    carat, cut, color = math.exp(g(-.4, .58)), random.randrange(5), random.randrange(7)
    mean = math.exp(8.3 + 1.8 * math.log(carat) + .03 * cut - .07 * color)
    return (f'{carat:.2f}', f'{g(61, 1.4):.1f}', 'cut%d' % cut, 'color%d' % color), mean, mean * math.exp(g(0, .1))
write('homes', 'area,age,town', 2500, price)
write('patients', ','.join(f'x{i}' for i in range(10)), 330, measure)
write('diamonds', 'carat,depth,cut,color', 6000, diamond)
json.dump(true, open(f'{sys.argv[1]}/true.json', 'w'))
with open(f'{sys.argv[1]}/homes.libsvm', 'w') as f:
    for line in open(f'{sys.argv[1]}/patients.train.csv').read().split()[1:]:
        *x, y = line.split(',')
        f.write(y + ''.join(f' {i + 1}:{v}' for i, v in enumerate(x)) + '\n')
PY

# A straight line (fm's start) and networks, beside the best that there is; a constant has 700 to 4,000 there.
run "$dir/fm" fm:8,loss=squared "$dir/homes.train.csv" --test "$dir/homes.test.csv"
holds "$dir/fm" "t < 1.05 * n['homes'] and r['final']['test']['loss'] > 240 ** 2"
holds "$dir/fm" "200 ** 2 < r['epochs'][-1]['train_loss'] < 300 ** 2"
said "Labels: +standardized by their mean 39[0-9.]+|Labels: +standardized by their mean 40"
run "$dir/dlrm" dlrm:8,loss=squared "$dir/homes.train.csv" --test "$dir/homes.test.csv"
holds "$dir/dlrm" "t < 1.06 * n['homes']"
for model in fm:8 mlp:10-64-32-1; do
    run "$dir/patients-${model%%:*}" "$model,loss=squared" "$dir/patients.train.csv" --test "$dir/patients.test.csv"
    holds "$dir/patients-${model%%:*}" "t < 1.15 * n['patients']"
done
run "$dir/diamonds" deepfm:16-64-32,columns=2,fields=2,loss=squared "$dir/diamonds.train.csv" --test "$dir/diamonds.test.csv"
holds "$dir/diamonds" "t < 1.4 * n['diamonds']"

# Predictions are in the label's unit: their RMSE is that of the report. Two workers, and a share held out, have the same scale.
rmse() { # FILE.csv: of the predictions in $dir/out
    python3 -c "
import sys
y = [float(l.split(',')[-1]) for l in open(sys.argv[1]).read().split()[1:]]; p = [float(l) for l in open(sys.argv[2])]
print((sum((a - b) ** 2 for a, b in zip(y, p, strict=True)) / len(y)) ** .5)" "$1" "$dir/out"
}
expect 0 "" "$downpour" predict --from "$dir/fm" --data "$dir/homes.test.csv"
holds "$dir/fm" "abs(t / $(rmse "$dir/homes.test.csv") - 1) < 1e-5"
run "$dir/two" fm:8,loss=squared "$dir/homes.train.csv" --workers 2 --epochs 2 --validation share=0.2
cmp -s "$dir/two/current/columns.csv" "$dir/fm/current/columns.csv" || fail "another schema, by two workers and with a share held out"
expect 0 "" "$downpour" run --dir "$dir/libsvm" --model mlp:10-32-1,loss=squared --train "$dir/homes.libsvm" --test "$dir/homes.libsvm"
expect 0 "" "$downpour" predict --from "$dir/libsvm" --data "$dir/homes.libsvm"
holds "$dir/libsvm" "abs(t / $(rmse "$dir/patients.train.csv") - 1) < 1e-5 and t < 70"
# The unit of a further run is in its columns.csv alone: its own file has another mean.
tail -n 100 "$dir/homes.libsvm" >"$dir/homes2.libsvm"
expect 0 "Report:" "$downpour" run --dir "$dir/libsvm" --continue --train "$dir/homes2.libsvm" --epochs 1
mv "$dir/libsvm/current/columns.csv" "$dir/columns.away"
expect 2 "was read: restore it" "$downpour" predict --from "$dir/libsvm" --data "$dir/homes.libsvm"
expect 2 "the unit of its outputs is not known" "$downpour" export --from "$dir/libsvm" --to "$dir/x.safetensors"
expect 2 "is not known (restore the file)" "$downpour" run --dir "$dir/libsvm" --continue --epochs 1

# The next file has other prices: outputs keep their unit, so at a rate of almost 0 predictions stay.
expect 0 "" "$downpour" predict --from "$dir/fm" --data "$dir/homes.test.csv"
cp "$dir/out" "$dir/before"
grep '^label_scale' "$dir/fm/current/columns.csv" >"$dir/scale" || fail "no label_scale in columns.csv"
awk -F, -v OFS=, 'NR > 1 { $NF += 5000 } { print }' "$dir/homes.train.csv" >"$dir/dear.csv"
expect 0 "Report:" "$downpour" run --dir "$dir/fm" --continue --train "$dir/dear.csv" --epochs 1 --rate 1e-30
grep '^label_scale' "$dir/fm/current/columns.csv" | cmp -s - "$dir/scale" || fail "the next file changed the scale of labels"
expect 0 "" "$downpour" predict --from "$dir/fm" --data "$dir/homes.test.csv"
python3 -c "
a, b = ([float(l) for l in open(f)] for f in ('$dir/before', '$dir/out'))
exit(max(abs(x / y - 1) for x, y in zip(a, b, strict=True)) > 1e-6)" || fail "other predictions after a run at rate 0"
# A training of an older build, whose file of columns says nothing of labels, goes on with labels as they are.
sed -i 's/^version,3/version,2/; /^inputs/d; /^label_scale/d; s/^end,.*/end/' "$dir/two/current/columns.csv"
expect 0 "Report:" "$downpour" run --dir "$dir/two" --continue --epochs 1
grep -q '^label_scale' "$dir/two/current/columns.csv" && fail "an older training has another unit now"

# An export says what its weights mean.
expect 0 "" "$downpour" export --from "$dir/patients-mlp" --to "$dir/export"
python3 -c "
import json
m = json.load(open('$dir/export/manifest.json')); s = [l for l in open('$dir/patients-mlp/current/columns.csv') if l.startswith('label_scale')]
exit(s[0].split(',')[1:] != ['%.17g' % m['label']['mean'], '%.17g\n' % m['label']['deviation']])" || fail "the manifest has another scale of labels"
expect 0 "" "$downpour" export --from "$dir/patients-mlp" --to "$dir/w.safetensors"
grep -aq '"label_deviation":"' "$dir/w.safetensors" || fail "the tensors do not say what outputs mean"

# Labels of one value, of one example, almost all equal, and far from 1.
predicted() { # DIR EXPRESSION: of the predictions p for $dir/bad.csv
    expect 0 "" "$downpour" predict --from "$1" --data "$dir/bad.csv"
    python3 -c "import sys; p = [float(l) for l in open('$dir/out')]; sys.exit(not ($2))" || fail "$1: $2"
}
bad() { # EXPRESSION: the label of row i; then 200 rows
    python3 -c "
import random
random.seed(2)
print('a,b,price')
for i in range($1):
    a, b = random.gauss(0, 1), random.gauss(0, 1)
    print(f'{a:.3f},{b:.3f},{$2}')" >"$dir/bad.csv"
}
bad 200 4000.5
run "$dir/constant" mlp:2-8-1,loss=squared "$dir/bad.csv" --epochs 3
said "Labels: +4000.5 in every example: the model predicts this value"
predicted "$dir/constant" "all(abs(x - 4000.5) < .05 for x in p)"
bad 1 -7
run "$dir/single" mlp:2-8-1,loss=squared "$dir/bad.csv"
predicted "$dir/single" "abs(p[0] + 7) < 1e-4"
bad 200 '1e6 if i == 17 else 0'
run "$dir/mostly" fm:4,loss=squared "$dir/bad.csv" --epochs 10
predicted "$dir/mostly" "sum(abs(x) < 1e5 for x in p) > 190"
bad 400 '(3 * a - b) * 1e30'
run "$dir/huge" mlp:2-8-1,loss=squared "$dir/bad.csv" --epochs 40 --rate 0.01 --test "$dir/bad.csv"
holds "$dir/huge" "t < 3e29"
