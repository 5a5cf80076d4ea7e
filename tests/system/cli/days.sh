#!/usr/bin/env bash
# The next day's data: a model that trains on with another file keeps the names and interactions of all days.
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
expect 0 "" "$downpour" run --dir "$dir/W" --model skipgram:4 --train "$dir/monday.txt" --min-count 1 --epochs 2
expect 2 "'data.label' (--label) names the label of a CSV file, but model skipgram:4 takes text" \
    "$downpour" run --dir "$dir/L" --model skipgram:4 --train "$dir/monday.txt" --min-count 1 --label x
expect 0 "" "$downpour" export --from "$dir/W" --table skipgram.word --to "$dir/before.txt"
expect 0 "" "$downpour" run --dir "$dir/W" --continue --train "$dir/tuesday.txt" "${still[@]}"
expect 0 "" "$downpour" export --from "$dir/W" --table skipgram.word --to "$dir/after.txt"
tail -n +2 "$dir/before.txt" >"$dir/weights" # without the numbers of rows and columns
head -n 6 "$dir/after.txt" | tail -n 5 | cmp - "$dir/weights" || fail "weights of monday's words changed"
expect 2 "change their meaning. Give what it was, or train with --fresh" "$downpour" run --dir "$dir/W" --continue --words plain "${still[@]}"
expect 0 "Test set: loss 0." "$downpour" run --dir "$dir/W" --continue --test "$dir/monday.txt" --words simple "${still[@]}"
expect_names "$dir/W" skipgram.word the cat sat on mat a dog rug barks
expect 0 "cat" "$downpour" neighbours "$dir/W" mat --top 8
expect 0 "mat" "$downpour" neighbours "$dir/W" barks --top 8

# --- categories
printf 'y,city,age\n1,Rome,3\n0,Oslo,4\n1,Rome,5\n0,Bern,6\n' >"$dir/monday.csv"
printf 'y,city,age\n1,Oslo,3\n0,Kyiv,4\n1,Rome,5\n0,Lima,6\n' >"$dir/tuesday.csv"
run=("$downpour" run --dir "$dir/L")
expect 0 "" "${run[@]}" --model logistic --train "$dir/monday.csv" --label y --standardize no --epochs 2
expect 0 "" "${run[@]}" --continue --train "$dir/tuesday.csv" "${still[@]}"
expect_names "$dir/L" logistic.w city=Rome city=Oslo city=Bern age city=Kyiv city=Lima

# --- users and items: users 1 to 8 meet 4 of items 0 to 11 on monday, users 5 to 12 meet 3 of items 8 to 19 on tuesday
pairs='BEGIN { for (u = from; u < from + 8; u++) for (k = 0; k < n; k++) print "u" u ",i" first + (u + k * 5) % 12 }'
awk -v from=1 -v first=0 -v n=4 "$pairs" >"$dir/monday.csv"
awk -v from=5 -v first=8 -v n=3 "$pairs" >"$dir/tuesday.csv"
cat "$dir/monday.csv" "$dir/tuesday.csv" >"$dir/both.csv"

# expect_unmet DIR USER: --with-seen gives all items, --top those that the user has met on no day
expect_unmet() {
    expect 0 "" "$downpour" predict --from "$1" --top 99 --user "$2" --with-seen
    cut -f2 "$dir/out" | sort >"$dir/items"
    [ "$1" = "$dir/H" ] || [ "$(wc -l <"$dir/items")" = 20 ] || fail "not all items of $2"
    grep "^$2," "$dir/both.csv" | cut -d, -f2 | sort -u | comm -23 "$dir/items" - >"$dir/unmet"
    expect 0 "" "$downpour" predict --from "$1" --top 99 --user "$2"
    cut -f2 "$dir/out" | sort | cmp -s - "$dir/unmet" || fail "items of $2: $(cut -f2 "$dir/out" | sort | xargs)"
}

run=("$downpour" run --dir "$dir/P")
expect 0 "" "${run[@]}" --model mf:4 --train "$dir/monday.csv" --epochs 9 --rate 0.1
cp -a "$dir/P" "$dir/H" # for another second day
expect 0 "" "$downpour" predict --from "$dir/P" --data "$dir/monday.csv" --out "$dir/before"
expect 0 "" "${run[@]}" --continue --train "$dir/tuesday.csv" "${still[@]}"
expect 0 "" "$downpour" predict --from "$dir/P" --data "$dir/monday.csv" --out "$dir/after"
cmp "$dir/before" "$dir/after" || fail "scores of monday's pairs changed"
mv "$dir/monday.csv" "$dir/monday" # the training files are not needed
mv "$dir/tuesday.csv" "$dir/tuesday"
for user in u1 u6 u12; do expect_unmet "$dir/P" $user; done
expect 2 "similar: 'u" "$downpour" predict --from "$dir/P" --top 1 --user u99
mv "$dir/tuesday" "$dir/tuesday.csv"

# A third day, from a checkpoint. All of its items are ones that its user has met before.
expect 0 "" "$downpour" export --from "$dir/P" --to "$dir/P.safetensors" --slots
expect 0 "" "$downpour" import --from "$dir/P.safetensors" --to "$dir/C" --like "$dir/P"
printf 'u1,i1\nu13,i3\n' >"$dir/wednesday.csv"
expect 0 "" "$downpour" run --from "$dir/C" --dir "$dir/F" --continue --train "$dir/wednesday.csv" "${still[@]}"
cat "$dir/wednesday.csv" >>"$dir/both.csv"
for user in u1 u6 u13; do expect_unmet "$dir/F" $user; done

# What is held out of a day was met, too. A second run on the same file holds out the same.
held=(--continue --train "$dir/tuesday.csv" --epochs 6 --rate 0.3 --holdout leave-one-out --validation share=0.3)
for _ in once again; do expect 0 "HR@10" "$downpour" run --dir "$dir/H" "${held[@]}"; done
for user in u2 u6; do expect_unmet "$dir/H" $user; done
expect 0 "" "$downpour" export --from "$dir/H/best/" --to "$dir/best"
cut -f2 "$dir/best/mf.user.names.tsv" | sort -u >"$dir/keys"
[ "$(wc -l <"$dir/keys")" = 12 ] && grep -q u2 "$dir/best/mf.user.names.tsv" || fail "users of the best epoch"

at=$dir/P/current/interactions.bin
printf '\377' | dd of="$at" bs=1 seek=99 conv=notrunc 2>/dev/null
expect 2 "interactions.bin'" "$downpour" predict --from "$dir/P" --top 1 --user u1
expect 2 "interactions.bin'" "${run[@]}" --continue --train "$dir/tuesday.csv" "${still[@]}"
[ "$(readlink "$dir/P/current")" = runs/2 ] || fail "a refused run took the place of the earlier one"

# --- a list that is damaged, or missing
printf 'y,city,age\n1,Rome,3\n0,Oslo,4\n' >"$dir/monday.csv"
run=("$downpour" run --dir "$dir/N")
expect 0 "" "${run[@]}" --model logistic --train "$dir/monday.csv" --label y --epochs 1
list=$dir/N/current/names.tsv
cp "$list" "$dir/whole"
for damage in 's/city=Oslo/city=Osla/' 's/run 1/run 3/' '$d'; do
    sed "$damage" "$dir/whole" >"$list"
    expect 2 "names.tsv' " "${run[@]}" --continue --train "$dir/monday.csv" "${still[@]}"
    [ "$(readlink "$dir/N/current")" = runs/1 ] || fail "a refused run took the place of the earlier one"
done
rm "$list"
expect 0 "names" "${run[@]}" --continue --train "$dir/monday.csv" "${still[@]}"
said "warning: the earlier run has no names of its keys"

# --- a file of another kind
printf '1 1:2\n0 2:3\n' >"$dir/monday.libsvm"
run=("$downpour" run --dir "$dir/K")
expect 0 "" "${run[@]}" --model logistic --train "$dir/monday.libsvm" --epochs 1
expect 2 "is a file of format csv" "${run[@]}" --continue --train "$dir/monday.csv" --label y "${still[@]}"
[ "$(readlink "$dir/K/current")" = runs/1 ] || fail "a refused run took the place of the earlier one"
