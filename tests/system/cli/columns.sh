#!/usr/bin/env bash
# What the columns of a CSV file were is kept in the run's directory: predictions do not change when the training file does, or when
# it is gone. usage: columns.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

train() { # DIR FILE [MORE FLAGS]
    local to=$1 file=$2
    shift 2
    expect 0 "Report:" "$downpour" run --dir "$to" --model logistic --train "$file" --label y --batch 4 --epochs 2 \
        --journal-bytes 16MiB "$@"
}

# same DIR WHAT: the scores are those of before, and nothing was said, but that city 8 was not trained.
same() {
    timeout 90 "$downpour" predict --from "$1" --data "$dir/test.csv" >"$dir/scores" 2>"$dir/err" || fail "predict: $2"
    cmp -s "$dir/scores" "$dir/scores.first" || fail "other scores: $2"
    [ "$(grep -vc "^downpour: 1 of the 7 weights .* were never trained" "$dir/err")" = 0 ] || fail "predict had something to say: $2"
}

refused() { # DIR TEXT
    expect 2 "$2" "$downpour" predict --from "$1" --data "$dir/test.csv"
}

# "code" has numbers, "city" has text; the test file's "city" looks like numbers.
rows() { # CITIES... of 24 rows
    echo 'y,"a, b",city,code'
    for i in $(seq 0 23); do
        local city=$((i % $# + 1))
        echo "$((i % 2)),$((i % 5)).5,${!city},$((i % 3))"
    done
}
rows Rome Oslo 7 >"$dir/train.csv"
printf 'code,"a, b",city\n1,2.5,7\n2,0.5,8\n0,1,Rome\n1,,Oslo\n' >"$dir/test.csv"
train "$dir/A" "$dir/train.csv"
expect 0 "" "$downpour" predict --from "$dir/A" --data "$dir/test.csv"
cp "$dir/out" "$dir/scores.first"
[ "$(sort -u "$dir/scores.first" | wc -l)" = 4 ] || fail "rows have equal scores"
[ "$(head -4 "$dir/A/current/columns.csv")" = 'version,3
format,csv
names,"y","a, b","city","code"
kinds,label,number,category,number' ] || fail "no kinds of columns were kept"
grep -q '^means,,2\.4[0-9]*,,[0-9.]*$' "$dir/A/current/columns.csv" || fail "no means were kept"

# The training file says something else now, and then nothing.
rows Rome Oslo 7 | sed -e '2,$s/$/x/' >"$dir/train.csv"
same "$dir/A" "another kind of one column in the training file" # (other features of the same rows, without an error)
rows 1 2 3 | sed -e '2,$s/$/x/' >"$dir/train.csv"
same "$dir/A" "other kinds of columns in the training file"
rows Rome Oslo 7 | sed -e 's/city/town/' >"$dir/train.csv"
same "$dir/A" "other names of columns in the training file"
rm "$dir/train.csv"
same "$dir/A" "no training file"
cp -a "$dir/A" "$dir/B"
mv "$dir/A" "$dir/moved"
same "$dir/B" "a copy, without the training file"
same "$dir/moved" "moved, without the training file"

# What is kept is whole and in the directory, or nothing is scored.
kept=$dir/B/current/columns.csv
bad() { # TEXT, and what is kept on standard input
    cat >"$kept"
    refused "$dir/B" "$1"
    cp -a "$dir/moved/current/columns.csv" "$kept"
}
bad "columns.csv: has no header" </dev/null
bad "ends before its last line" < <(head -4 "$dir/moved/current/columns.csv")
bad "version 4 of the file is another build's" < <(sed -e 's/^version,3/version,4/' "$dir/moved/current/columns.csv")
bad "expected number, category, label or another kind of column, found 'nuMber'" < <(sed -e 's/number/nuMber/' "$dir/moved/current/columns.csv")
bad "expected one line with the kinds of 4 columns" < <(sed -e 's/,number$//' "$dir/moved/current/columns.csv")
bad "its checksum is not that of its lines" < <(sed -e 's/^means,,2/means,,3/' "$dir/moved/current/columns.csv")
# Version 2 has no checksum, and no settings of inputs.
older() { sed -e 's/^version,3/version,2/; /^inputs/d; s/^end,.*/end/' "$@" "$dir/moved/current/columns.csv"; }
bad "has 0 labels among its columns" < <(older -e 's/^kinds,label/kinds,category/')
bad "columns of the training file are missing: 'cities' (" < <(older -e 's/city/cities/')
older >"$kept"
same "$dir/B" "a schema of version 2"
rm "$kept"
refused "$dir/B" "this file says how the training data was read: restore it"
ln -s "$dir/moved/current/columns.csv" "$kept"
refused "$dir/B" "outside of the run's directory"
rm "$kept"
sed -i -e "s|\"columns.csv\"|\"$dir/moved/current/columns.csv\"|" "$dir/B/current/cluster.conf"
refused "$dir/B" "puts the columns (data.columns) in"

# A run of an older build is refused. If nothing was kept, as in a cluster that was started manually, the
# training file says it again: the same scores, or none.
rows Rome Oslo 7 >"$dir/train.csv"
train "$dir/old" "$dir/train.csv"
expect 0 "" "$downpour" predict --from "$dir/old" --data "$dir/test.csv"
cp "$dir/out" "$dir/scores.first"
printf '"y","a, b","city","code"\nlabel,number,category,number\n' >"$dir/old/current/columns.csv"
refused "$dir/old" "version 1 of the file, without keys: an older build wrote it"
sed -i -e '/^ *columns = /d' "$dir/old/current/cluster.conf"
same "$dir/old" "no schema"
sed -e 's/by_columns = false;/by_columns = true;/' "$dir/old/current/cluster.conf" >"$dir/by.conf"
expect 2 "data.columns names no file" "$(dirname "$downpour")/downpour-worker" --cluster "$dir/by.conf" --worker 0
sed -i -e 's/standardize = true;/standardize = false;/' "$dir/old/current/cluster.conf"
refused "$dir/old" "run 1 was not trained with 'standardize 0': use the cluster file of the training"
sed -i -e 's/standardize = false;/standardize = true;/' "$dir/old/current/cluster.conf"
rows Rome Oslo 7 | sed -e '2s/,0\.5,/,0.25,/' >"$dir/train.csv"
refused "$dir/old" "another file is in its place, or it has changed: restore it"
said_text "the run kept no columns (data.columns)"
rm "$dir/train.csv"
refused "$dir/old" "$dir/train.csv: cannot open"
rows Rome Oslo 7 >"$dir/train.csv"

# What is kept is that of the first run, whether a further one is refused or trains; further.sh has more.
rows 1 2 3 >"$dir/numbers.csv"
expect 2 "" "$downpour" run --dir "$dir/moved" --model logistic --train "$dir/numbers.csv" --label y --batch 4 --epochs 2 \
    --journal-bytes 16MiB --optimizer adagrad --continue
same "$dir/moved" "a further run was refused"
cp "$dir/moved/current/columns.csv" "$dir/columns.first"
train "$dir/moved" "$dir/numbers.csv" --continue --rate 1e-30
cmp -s "$dir/moved/current/columns.csv" "$dir/columns.first" || fail "the further run has a schema of its own"
same "$dir/moved" "a further run of rate 1e-30, with numbers as categories"

# What labels mean to the weights that are trained on: other texts, or another number of class 0, are refused, and cost nothing.
labelled() { # A B: of 24 rows
    echo "y,x"
    for i in $(seq 0 11); do printf '%s,-%d\n%s,%d\n' "$1" "$i" "$2" "$i"; done
}
for pair in "ham spam spam zebra|label 'zebra': expected one of the training file's: 'ham', 'spam'|other.csv:3" \
    "1 2 0 1|label 0: expected 1 or 2|--label-base"; do
    IFS='|' read -r texts what more <<<"$pair"
    read -r a b c d <<<"$texts"
    labelled "$a" "$b" >"$dir/labelled.csv"
    train "$dir/made/with/parents" "$dir/labelled.csv" --fresh
    labelled "$b" "$a" >"$dir/labelled.csv" # in another order
    train "$dir/made/with/parents" "$dir/labelled.csv" --continue
    expect 0 "" "$downpour" predict --from "$dir/made/with/parents" --data "$dir/labelled.csv"
    cp "$dir/out" "$dir/scores.labels"
    labelled "$c" "$d" >"$dir/other.csv"
    expect 2 "$what" "$downpour" run --dir "$dir/made/with/parents" --model logistic --train "$dir/other.csv" --label y --batch 4 --epochs 2 \
        --journal-bytes 16MiB --continue
    said_text "$more"
    expect 0 "" "$downpour" predict --from "$dir/made/with/parents" --data "$dir/labelled.csv"
    cmp -s "$dir/out" "$dir/scores.labels" || fail "other scores: a further run with other labels was refused"
done
train "$dir/made/with/parents" "$dir/other.csv" --continue --label-base 0

train "$dir/moved" "$dir/train.csv" --fresh
same "$dir/moved" "afresh"
[ "$(find "$dir/moved" -name 'columns*' | wc -l)" = 1 ] || fail "--fresh left columns of an earlier run"
