#!/usr/bin/env bash
# The next day's data: a model that trains on with another file keeps the names of all that it was trained on.
# usage: days.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

still=(--epochs 1 --rate 1e-30) # changes no score

# expect_names DIR TABLE NAME...: of its rows, in this order
expect_names() {
    local from=$1 table=$2 found
    shift 2
    rm -rf "$dir/weights"
    expect 0 "" "$downpour" export --from "$from" --to "$dir/weights"
    found=$(cut -f1 "$dir/weights/$table.names.tsv" | xargs)
    [ "$found" = "$*" ] || fail "$table has the names $found, not $*"
}

# --- words
echo "the cat sat on the mat the cat sat" >"$dir/monday.txt"
echo "a dog sat on the rug a dog barks" >"$dir/tuesday.txt"
expect 0 "" "$downpour" run --dir "$dir/W" --model skipgram:4 --train "$dir/monday.txt" --epochs 2
expect 0 "" "$downpour" export --from "$dir/W" --table skipgram.word --to "$dir/before.txt"
expect 0 "" "$downpour" run --dir "$dir/W" --continue --train "$dir/tuesday.txt" "${still[@]}"
expect 0 "" "$downpour" export --from "$dir/W" --table skipgram.word --to "$dir/after.txt"
tail -n +2 "$dir/before.txt" >"$dir/weights" # without the numbers of rows and columns
head -n 6 "$dir/after.txt" | tail -n 5 | cmp - "$dir/weights" || fail "weights of monday's words changed"
expect_names "$dir/W" skipgram.word the cat sat on mat a dog rug barks
expect 0 "cat" "$downpour" neighbours "$dir/W" mat --top 8
expect 0 "mat" "$downpour" neighbours "$dir/W" barks --top 8

# --- categories
printf 'y,city,age\n1,Rome,3\n0,Oslo,4\n1,Rome,5\n0,Bern,6\n' >"$dir/monday.csv"
printf 'y,city,age\n1,Oslo,3\n0,Kyiv,4\n1,Rome,5\n0,Lima,6\n' >"$dir/tuesday.csv"
run=("$downpour" run --dir "$dir/C")
expect 0 "" "${run[@]}" --model logistic --train "$dir/monday.csv" --label y --standardize no --epochs 2
expect 0 "" "${run[@]}" --continue --train "$dir/tuesday.csv" "${still[@]}"
expect_names "$dir/C" logistic.w city=Rome city=Oslo city=Bern age city=Kyiv city=Lima

# --- a list that is damaged, or missing
list=$dir/C/current/names.tsv
cp "$list" "$dir/whole"
for damage in 's/city=Bern/city=Berk/' 's/run 2/run 3/' '$d'; do
    sed "$damage" "$dir/whole" >"$list"
    expect 2 "names.tsv' " "${run[@]}" --continue --train "$dir/monday.csv" "${still[@]}"
    [ "$(readlink "$dir/C/current")" = runs/2 ] || fail "a refused run took the place of the earlier one"
done
rm "$list"
expect 0 "names" "${run[@]}" --continue --train "$dir/monday.csv" "${still[@]}"
said "warning: the earlier run has no names of its keys"
