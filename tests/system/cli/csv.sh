#!/usr/bin/env bash
# CSV files as people have them, from end to end: numbers of any size, other machines' directories.
# usage: csv.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

train() { # DIR FILE [MORE FLAGS]
    local to=$1 file=$2
    shift 2
    expect 0 "Report:" "$downpour" run --dir "$to" --model logistic --train "$file" --label income --batch 32 --rate 0.01 \
        --journal-bytes 16MiB "$@"
}

# holds DIR EXPRESSION: of the report r
holds() {
    python3 -c "import json, sys; r = json.load(open(sys.argv[1] + '/report.json')); sys.exit(not ($2))" "$1" ||
        fail "$1/report.json: not $2"
}

digest() { # DIR
    timeout 60 "$downpour" inspect "$1" --digest 2>&1 | grep -E '^digest|of all' || fail "no digest of $1"
}

# Like "Adult": numbers around 40, 1,000 and 100,000, one that never changes, a category, missing cells. All of them matter.
python3 - "$dir" <<'PY'
import math, random, sys
random.seed(5)
for name, rows in (('train', 4000), ('test', 2000)):
    with open(f'{sys.argv[1]}/{name}.csv', 'w') as f:
        f.write('age,capital,ratio,zero,work,wealth,income\n')
        for i in range(rows):
            age, capital, wealth, ratio = random.gauss(40, 12), random.gauss(1000, 400), random.gauss(1e5, 4e4), random.random()
            work = random.choice(['gov', 'private', 'self'])
            z = (age - 40) / 12 + (capital - 1000) / 400 + 1.3 * (wealth - 1e5) / 4e4 + 3 * (ratio - .5) - 0.8
            z += {'gov': -.5, 'private': 0, 'self': .6}[work]
            y = int(random.random() < 1 / (1 + math.exp(-z)))
            wealth = 'NA' if i % 50 == 0 else f'{wealth:.0f}'
            f.write(f'{age:.0f},{capital:.2f},{ratio:.4f},0.0,{work},{wealth},{y}\n')
PY

# The figures of the true model are a loss of 0.44 and an AUC of 0.88; as they are, the numbers end far above a constant's 0.65.
train "$dir/yes" "$dir/train.csv" --test "$dir/test.csv"
holds "$dir/yes" "r['final']['test']['loss'] < 0.48 and r['final']['test']['auc'] > 0.86"
train "$dir/no" "$dir/train.csv" --test "$dir/test.csv" --standardize no
holds "$dir/no" "r['final']['test']['loss'] > 1"
# Twice the same, out of the cache too; two workers, of which each reads the file by itself, agree.
train "$dir/one" "$dir/train.csv" --no-overlap --epochs 2
first=$(digest "$dir/one")
train "$dir/one" "$dir/train.csv" --no-overlap --epochs 2 --fresh
[ "$(digest "$dir/one")" = "$first" ] || fail "out of the cache, other weights"
train "$dir/two" "$dir/train.csv" --workers 2 --epochs 2 --validation share=0.2
cmp -s "$dir/two/current/columns.csv" "$dir/yes/current/columns.csv" || fail "another schema, by two workers and with a share held out"

# One cell that is no number in a column of numbers: said on the console, with what to do, also out of the cache.
sed '59s/^[0-9]*/4o/' "$dir/train.csv" >"$dir/typo.csv"
for _ in 1 2; do
    train "$dir/typo" "$dir/typo.csv" --epochs 2 --fresh
    grep -qF "Note:      $dir/typo.csv:59: '4o' is no number, so column 'age' became categories" "$dir/out" || fail "a typo was not said"
done
grep -qF "warn worker 0: $dir/typo.csv:59:" "$dir/typo/log/worker-0.log" || fail "a typo is not in the log"

# Labels of two texts: which one is positive is said, and meant by test and predict. The weights are those of 0 and 1.
text() { # FILE WORD WORD
    sed -e "2,\$s/,0\$/,$2/" -e "2,\$s/,1\$/,$3/" "$1"
}
text "$dir/train.csv" '<=50K' '>50K' >"$dir/text.csv"
text "$dir/test.csv" '<=50K' '>50K' >"$dir/text.test.csv"
train "$dir/text" "$dir/text.csv" --test "$dir/text.test.csv" --no-overlap --epochs 2
grep -qF "Labels:    '<=50K' is 0, '>50K' is 1 (positive)" "$dir/out" || fail "the summary does not say what labels are"
grep -qF "labels: '<=50K' is 0, '>50K' is 1 (positive)" "$dir/text/log/worker-0.log" || fail "the log does not say what labels are"
holds "$dir/text" "r['data']['labels'].startswith(\"'<=50K' is 0\")"
[ "$(digest "$dir/text")" = "$first" ] || fail "other weights with labels that are texts"
expect 0 "" "$downpour" predict --from "$dir/text" --data "$dir/text.test.csv"
cp "$dir/out" "$dir/scores"
unsaid "never trained"
# A category that the training did not see has a score, and is counted: once, though in two rows.
head -n 5 "$dir/text.test.csv" | sed '2,3s/gov\|private\|self/retired/' >"$dir/new.csv"
expect 0 "downpour: 1 of the " "$downpour" predict --from "$dir/text" --data "$dir/new.csv"
said "were never trained: users, items, categories and features that are new to the training"
text "$dir/test.csv" no yes >"$dir/other.csv"
expect 0 "" "$downpour" predict --from "$dir/text" --data "$dir/other.csv" # its labels are not looked at
cmp -s "$dir/out" "$dir/scores" || fail "other scores where labels are other texts"
expect 2 "other.csv:2: column 'income': label 'no': expected one of the training file's: '<=50K', '>50K'" \
    "$downpour" run --dir "$dir/other" --model logistic --train "$dir/text.csv" --test "$dir/other.csv" --label income
# Columns that are left out change no weight; the scores of further data have the ids, where it has that column.
awk -F, -v OFS=, 'NR == 1 { print "key", $0, "note" } NR > 1 { sub("NA", "?"); print "r" NR, $0, NR % 7 }' "$dir/text.csv" >"$dir/ids.csv"
awk -F, -v OFS=, 'NR == 1 { print $0, "key" } NR > 1 { print $0, "row " NR }' "$dir/text.test.csv" >"$dir/ids.test.csv"
train "$dir/ids" "$dir/ids.csv" --test "$dir/text.test.csv" --no-overlap --epochs 2 --ignore note --id key --missing '?,-'
for line in "ids.csv: csv, 4,000 examples" "numbers: age (76 values), capital, ratio, zero (1 value), wealth" "categories: work (3)" "ignored: note; id: key" \
    "label: income (>50K " "zero: one value, or none, in all rows, which teaches nothing; to leave it out: --ignore zero"; do
    said_text "$line"
done
[ "$(digest "$dir/ids")" = "$first" ] || fail "other weights with columns that are left out"
expect 0 "" "$downpour" predict --from "$dir/ids" --data "$dir/text.test.csv"
cmp -s "$dir/out" "$dir/scores" || fail "other scores with columns that were left out"
expect 0 "" "$downpour" predict --from "$dir/ids" --data "$dir/ids.test.csv"
awk '{ print "row " NR + 1 "\t" $0 }' "$dir/scores" | cmp -s "$dir/out" - || fail "scores without their ids"
expect 2 "column 'income' is the label and cannot be ignored too" "$downpour" run --dir "$dir/bad" --model logistic \
    --train "$dir/ids.csv" --label income --ignore note,income
# Several, and numbers from 1, as classes.
python3 - "$dir" <<'PY'
import random, sys
random.seed(1)
names = ['virginica', 'setosa', 'versicolor']
with open(sys.argv[1] + '/iris.csv', 'w') as csv, open(sys.argv[1] + '/iris.svm', 'w') as svm:
    csv.write('length,width,species\n')
    for i in range(300):
        c = i % 3
        x, y = random.gauss((c == 1) * 4, 1), random.gauss((c == 2) * 4, 1)
        csv.write(f'{x:.2f},{y:.2f},{names[c]}\n')
        svm.write(f'{c + 1} 1:{x:.2f} 2:{y:.2f}\n')
PY
for data in iris.csv iris.svm; do
    flags=() && [ $data = iris.svm ] || flags=(--label species)
    expect 0 "Labels:  " "$downpour" run --dir "$dir/$data.run" --model mlp:2-8-3 --train "$dir/$data" --test "$dir/$data" \
        "${flags[@]}" --batch 16 --epochs 10 --rate 0.02 --journal-bytes 16MiB
    holds "$dir/$data.run" "r['final']['test']['accuracy'] > 0.93"
    expect 0 "" "$downpour" predict --from "$dir/$data.run" --data "$dir/$data"
    # Row 2 is a setosa, which is class 0 of texts and class 1 of numbers from 1.
    python3 - "$dir/out" $data <<'PY' || fail "$data: row 2 is not the class that it should be"
import sys
row = [float(x) for x in open(sys.argv[1]).readlines()[1].split()]
sys.exit(row.index(max(row)) != (0 if sys.argv[2] == 'iris.csv' else 1))
PY
done
grep -qF "'setosa' is 0, 'versicolor' is 1, 'virginica' is 2" "$dir/iris.csv.run/log/worker-0.log" || fail "classes are not said"
grep -qF "labels: 1 .. 3 are classes 0 .. 2" "$dir/iris.svm.run/log/worker-0.log" || fail "the base of classes is not said"
expect 2 "label 1: expected a class from 2 to 4; --label-base (data.label_base)" "$downpour" run --dir "$dir/base" \
    --model mlp:2-8-3 --train "$dir/iris.svm" --label-base 2

# Semicolons and xz, tabs and bzip2, zip: the same weights. A zip of two files is refused. A decimal comma is refused, and a label's name asked for.
tr , ';' <"$dir/train.csv" | python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read()))' >"$dir/semicolon"
tr , '\t' <"$dir/train.csv" | python3 -c 'import bz2, sys; sys.stdout.buffer.write(bz2.compress(sys.stdin.buffer.read()))' >"$dir/tab"
python3 - "$dir" <<'PY'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/zip", "w", zipfile.ZIP_DEFLATED) as file:
    file.mkdir("data") if hasattr(file, "mkdir") else file.writestr("data/", "")
    file.write(sys.argv[1] + "/train.csv", "data/Träin.csv")
with zipfile.ZipFile(sys.argv[1] + "/zip2", "w", zipfile.ZIP_DEFLATED) as file:
    file.write(sys.argv[1] + "/train.csv", "train.csv")
    file.write(sys.argv[1] + "/train.csv", "test.csv")
PY
for data in semicolon tab zip; do
    train "$dir/$data.run" "$dir/$data" --no-overlap --epochs 2
    [ "$(digest "$dir/$data.run")" = "$first" ] || fail "other weights from $data"
done
head -c 20000 "$dir/semicolon" >"$dir/cut"
expect 2 "$dir/cut: is truncated" "$downpour" run --dir "$dir/bad" --model logistic --train "$dir/cut" --label income
expect 2 "$dir/zip2: is a zip of several files: unpack it" "$downpour" run --dir "$dir/bad" --model logistic --train "$dir/zip2" --label income
tr ',.' ';,' <"$dir/train.csv" >"$dir/comma.csv"
expect 2 "is a number with a comma: write a point" "$downpour" run --dir "$dir/bad" --model logistic --train "$dir/comma.csv" --label income
expect 2 "--label NAME (data.label); its header is: age,capital" "$downpour" run --dir "$dir/bad" --model logistic --train "$dir/train.csv"

# Text that is no UTF-8 is refused by line, or read by its encoding: the same weights, names that are UTF-8, the same scores of both files.
sed '2,$s/private/privé/' "$dir/train.csv" >"$dir/utf8.csv"
iconv -f utf-8 -t latin1 "$dir/utf8.csv" >"$dir/latin1.csv"
line=$(grep -n -m 1 privé "$dir/utf8.csv" | cut -d: -f1)
expect 2 "latin1.csv:$line: byte 0xe9 is no UTF-8: name the text's encoding (--encoding latin1" \
    "$downpour" run --dir "$dir/bad" --model logistic --train "$dir/latin1.csv" --label income
expect 2 "--encoding 'latn1' is no encoding" "$downpour" run --dir "$dir/bad" --model logistic --train "$dir/latin1.csv" --label income \
    --encoding latn1
train "$dir/utf8.run" "$dir/utf8.csv" --no-overlap --epochs 1
train "$dir/latin1.run" "$dir/latin1.csv" --no-overlap --epochs 1 --encoding latin1
[ "$(digest "$dir/latin1.run")" = "$(digest "$dir/utf8.run")" ] || fail "other weights from Latin-1"
grep -q 'work=privé' "$dir/latin1.run/current/names.tsv" || fail "a name from Latin-1 is no UTF-8"
expect 0 "" "$downpour" predict --from "$dir/latin1.run" --data "$dir/latin1.csv"
cp "$dir/out" "$dir/scores"
unsaid "never trained"
expect 0 "" "$downpour" predict --from "$dir/latin1.run" --data "$dir/utf8.csv" --encoding utf-8
cmp -s "$dir/out" "$dir/scores" || fail "other scores of the file in UTF-8"

# To be scored, libsvm text needs no labels; a file of another format than the training's is no data of this model.
cut -d' ' -f2- "$dir/iris.svm" >"$dir/unlabelled.svm"
expect 0 "" "$downpour" predict --from "$dir/iris.svm.run" --data "$dir/iris.svm"
cp "$dir/out" "$dir/scores"
expect 0 "" "$downpour" predict --from "$dir/iris.svm.run" --data "$dir/unlabelled.svm"
cmp -s "$dir/out" "$dir/scores" || fail "other scores without labels"
expect 2 "iris.csv: is a file of format csv" "$downpour" predict --from "$dir/iris.svm.run" --data "$dir/iris.csv"
expect 0 "" "$downpour" generate clicks --rows 200 --seed 1 --out "$dir/clicks.tsv"
expect 0 "" "$downpour" run --dir "$dir/clicks" --model logistic --train "$dir/clicks.tsv" --epochs 1
expect 2 "is a file of format libsvm (lines of 'label index:value ...'), but the training file is of format criteo" \
    "$downpour" predict --from "$dir/clicks" --data "$dir/iris.svm"
expect 2 "but the training file is of format criteo" "$downpour" run --dir "$dir/bad" --model logistic --train "$dir/clicks.tsv" \
    --test "$dir/iris.svm"

# From pipes, which workers cannot read several times: both of two workers, the same weights, the same scores.
expect 0 "from standard input are in $dir/pipe/runs/1/cache/train-" bash -c "cat '$dir/train.csv' | '$downpour' run --dir '$dir/pipe' \
    --model logistic --train - --test <(cat '$dir/test.csv') --label income --batch 32 --rate 0.01 --no-overlap --epochs 2"
[ "$(digest "$dir/pipe")" = "$first" ] || fail "other weights from standard input"
mkfifo "$dir/fifo"
cat "$dir/train.csv" >"$dir/fifo" &
expect 0 "$(stat -c %s "$dir/train.csv") bytes from $dir/fifo are in" "$downpour" run --dir "$dir/two.pipe" --model logistic \
    --train "$dir/fifo" --label income --workers 2 --epochs 1
expect 0 "" bash -c "cat '$dir/test.csv' | '$downpour' predict --from '$dir/pipe' --data - 2>/dev/null"
cp "$dir/out" "$dir/scores"
expect 0 "" "$downpour" predict --from "$dir/pipe" --data "$dir/test.csv"
cmp -s "$dir/out" "$dir/scores" || fail "other scores from standard input"
expect 0 "" bash -c "'$downpour' predict --from '$dir/pipe' --data /dev/stdin <'$dir/test.csv' 2>/dev/null"
cmp -s "$dir/out" "$dir/scores" || fail "other scores from /dev/stdin"
[ -z "$(ls "$TMPDIR")" ] || fail "predictions left something in $TMPDIR"
expect 2 "--train and --test are both read from" "$downpour" run --dir "$dir/bad" --model logistic --train - --test /dev/stdin \
    --label income
expect 2 "--train: nothing came from '-'" "$downpour" run --dir "$dir/bad" --model logistic --train - --label income </dev/null
if mkdir "$dir/small" && mount -t tmpfs -o size=64k none "$dir/small" 2>/dev/null; then
    expect 2 "--train: cannot write '$dir/small/train-" bash -c "cat '$dir/train.csv' | '$downpour' run --dir '$dir/bad' \
        --cache '$dir/small' --model logistic --train - --label income"
    [ -z "$(ls "$dir/small")" ] || fail "a spool that found no room was left"
    umount "$dir/small"
fi

# The scores are those of the evaluation, wherever the directory lies, and however the training file is now.
rm "$dir/train.csv"
mv "$dir/yes" "$dir/moved"
expect 0 "" "$downpour" predict --from "$dir/moved" --data "$dir/test.csv"
cp "$dir/out" "$dir/scores"
python3 - "$dir" <<'PY' || fail "the scores are not those of the evaluation"
import json, math, sys
rows = [line.rsplit(',', 1)[1] for line in open(sys.argv[1] + '/test.csv')][1:]
scores = [float(line) for line in open(sys.argv[1] + '/scores')]
loss = -sum(math.log(p if int(y) else 1 - p) for p, y in zip(scores, rows)) / len(rows)
sys.exit(not abs(loss - json.load(open(sys.argv[1] + '/moved/report.json'))['final']['test']['loss']) < 1e-4)
PY
