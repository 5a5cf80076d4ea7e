#!/usr/bin/env bash
# What is taken out of a run: weights under the names that the training file had, neighbours of words, a user's best items. They are
# those that predict and inspect tell, from a directory that was moved, copied, made read-only or killed, or it is refused by name.
# usage: export.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

same() { # FILE FILE WHAT
    cmp "$1" "$2" >"$dir/out" 2>"$dir/err" || fail "$3: other bytes"
}

# What is in a directory, to the byte and to the nanosecond.
tree() {
    (cd "$1" && find . -printf '%y %m %s %T@ %i %P\n' | sort -k6 && find . -type f -print0 | sort -z | xargs -0 md5sum)
}

train() { # DIR FLAGS...
    local to=$1
    shift
    expect 0 "Report:" "$downpour" run --dir "$to" --journal-bytes 16MiB "$@"
}

# ---- data: a table, a text, users and items; an LCG, so that each machine has the same
awk 'function draw(n) { seed = (seed * 1103515245 + 12345) % 2147483648; return int(seed / 65536) % n }
BEGIN {
    seed = 7
    split("Rome,Paris,New York,\"a, b\"", city, ",")
    city[4] = "\"a, b\""
    table = "'"$dir"'/table.csv"; text = "'"$dir"'/text"; pairs = "'"$dir"'/pairs"
    print "age,city,label,\"odd, name\"" > table
    for (i = 0; i < 400; i++) {
        age = draw(80)
        print age / 80 "," city[1 + draw(4)] "," (age + draw(30) > 50) "," draw(1000) / 1000 > table
    }
    for (i = 0; i < 3000; i++)
        printf "%s%s", "w" int(draw(12) * draw(12) / 12), i % 17 == 16 ? "\n" : " " > text
    for (u = 0; u < 20; u++)
        for (i = 0; i < 8; i++)
            print u " " 100 + (u * 5 + i * i + draw(3)) % 30 > pairs
}'

# ---- logistic: names in the order of the columns, and the weights are those that predict by
train "$dir/L" --model logistic --label label --train "$dir/table.csv" --epochs 5 --rate 0.05 --servers 2
grep -q "downpour export --from $dir/L --to weights.txt" "$dir/out" || fail "run does not say how weights are taken out"
expect 0 "" "$downpour" export --from "$dir/L" --to "$dir/L.txt"
grep -v '^#' "$dir/L.txt" | cut -d' ' -f1 | tr '\n' ' ' >"$dir/out"
grep -qx 'age \(city=[^ ]* \)\{4\}odd,\\x20name bias ' "$dir/out" || fail "names of features: $(cat "$dir/out")"
grep -q '^city=New\\x20York ' "$dir/L.txt" && grep -q '^city=a,\\x20b ' "$dir/L.txt" || fail "names of categories"
expect 0 "" "$downpour" export --from "$dir/L" --table logistic.w --to "$dir/w.npy"
# Each named row is the stored one.
row=0
while IFS=$'\t' read -r name key; do
    "$downpour" inspect "$dir/L" --rows logistic.w --key "$key" --json >"$dir/row"
    stored=$(awk -F'[][, ]+' '/"weights"/ { getline; print $2 }' "$dir/row")
    told=$(awk -v name="${name// /\\\\x20}" '$1 == name { print $2 }' "$dir/L.txt")
    bytes=$(od -An -tf4 -j $((128 + 4 * row)) -N4 "$dir/w.npy")
    row=$((row + 1))
    awk -v a="$stored" -v b="$told" -v c="$bytes" 'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 + (a - c) ^ 2 < 1e-14) }' ||
        fail "weight of '$name': stored $stored, told $told, in bytes $bytes"
done <"$dir/w.names.tsv"
[ "$row" = 6 ] || fail "$row names of 6"

# By hand from what was exported, beside predict.
expect 0 "" "$downpour" predict --from "$dir/L" --data "$dir/table.csv" --out "$dir/L.scores"
grep -q 'standardized first.* in L.columns.csv$' "$dir/L.txt" || fail "the text does not say how values are standardized"
awk -F, '
FILENAME ~ /columns.csv$/ { if ($1 == "means") { age = $2; odd = $5 } if ($1 == "deviations") { age_by = $2; odd_by = $5 } next }
FILENAME ~ /L.txt$/ { n = split($0, word, " "); w[word[1]] = word[n]; next }
FNR > 1 { gsub(/"a, b"/, "a;b"); city = $2; sub(/;/, ",\\x20", city); gsub(/ /, "\\x20", city)
    x = w["bias"] + w["age"] * ($1 - age) / age_by + w["odd,\\x20name"] * ($4 - odd) / odd_by + w["city=" city]
    printf "%.9g\n", 1 / (1 + exp(-x)) }' "$dir/L.columns.csv" "$dir/L.txt" "$dir/table.csv" >"$dir/by.hand"
paste "$dir/by.hand" "$dir/L.scores" | awk '($1 - $2) ^ 2 > 1e-12 { bad = 1 } END { exit bad || NR != 400 }' || fail "scores by hand: $(paste "$dir/by.hand" "$dir/L.scores" | head -3)"
same "$dir/L.columns.csv" "$dir/L/current/columns.csv" "the columns beside the weights"

# ---- the directory, wherever it lies
digest() {
    "$downpour" inspect "$1" --digest 2>/dev/null | grep "of all"
}
expect 0 "" "$downpour" export --from "$dir/L" --to "$dir/all"
cp -a "$dir/L" "$dir/copy"
tree "$dir/copy" >"$dir/before"
expect 0 "" "$downpour" export --from "$dir/copy" --to "$dir/all.copy/"
chmod -R a-w "$dir/copy"
expect 0 "" "$downpour" export --from "$dir/copy" --to "$dir/all.readonly/"
chmod -R u+w "$dir/copy"
cp -a "$dir/copy" "$dir/other place" && rm -rf "$dir/copy"
expect 0 "" "$downpour" export --from "$dir/other place" --to "$dir/all.moved/"
mv "$dir/other place" "$dir/copy"
for kind in copy readonly moved; do
    for file in "$dir"/all/*; do
        same "$file" "$dir/all.$kind/${file##*/}" "$kind: ${file##*/}"
    done
done
cp -a "$dir/copy" "$dir/watched"
mkdir "$dir/elsewhere"
tree "$dir/watched" >"$dir/before"
expect 0 "" "$downpour" export --from "$dir/watched" --to "$dir/elsewhere/L.txt"
tree "$dir/watched" >"$dir/after"
diff "$dir/before" "$dir/after" >"$dir/out" || fail "the directory was changed"
same "$dir/L.txt" "$dir/elsewhere/L.txt" "text of a copy"
same "$dir/all/columns.csv" "$dir/L/current/columns.csv" "the columns in a directory"
grep -q '"columns": "columns.csv"' "$dir/all/manifest.json" && grep -q '"shape": \[' "$dir/all/manifest.json" || fail "no manifest"
expect 0 "" "$downpour" export --from "$dir/L" --to "$dir/all" # again, over its own
echo x >"$dir/mine"
mkdir "$dir/full" && echo x >"$dir/full/mine"
expect 2 "has other files" "$downpour" export --from "$dir/L" --to "$dir/full"
[ "$(ls "$dir/full")" = mine ] || fail "something was written beside other files"
expect 2 "lies in the run's store" "$downpour" export --from "$dir/L" --to "$dir/L/store/w.txt"
expect 2 "is a file of the run" "$downpour" export --from "$dir/L" --to "$dir/table.csv" --table logistic.w --format npy
for to in "w.csv" "w.csv --format text" "w.pt --table logistic.w"; do
    # shellcheck disable=SC2086
    expect 2 "end its name with a slash" "$downpour" export --from "$dir/L" --to "$dir/"$to
done
[ -e "$dir/w.csv" ] || [ -e "$dir/w.pt" ] && fail "a file or directory with an ending that is not known was made"
expect 0 "" "$downpour" export --from "$dir/L" --to "$dir/v1.2" # a version, no ending
expect 2 "it has logistic.w, logistic.b" "$downpour" export --from "$dir/L" --table w --to "$dir/x.npy"
expect 2 "--from DIR, the directory of a run or a checkpoint, is required" "$downpour" export --to "$dir/x.npy"
expect 2 "--to FILE is required" "$downpour" export --from "$dir/L"
expect 2 "is not the directory of a run" "$downpour" export --from "$dir/full" --to "$dir/x.npy"
[ -e "$dir/x.npy" ] && fail "a file of what was refused"

# What is missing, damaged or another's is refused by name.
names=$dir/L/current/names.tsv
cp -a "$dir/L" "$dir/gone" && rm "$dir/gone/current/${names##*/}"
expect 2 "${names##*/}" "$downpour" export --from "$dir/gone" --to "$dir/x.txt"
expect 2 "--no-names" "$downpour" export --from "$dir/gone" --to "$dir/x.txt"
expect 0 "" "$downpour" export --from "$dir/gone" --to "$dir/x.txt" --no-names
[ "$(grep -c '^[0-9]* [-0-9.e]*$' "$dir/x.txt")" = 6 ] || fail "weights without names"
cp -a "$dir/L" "$dir/damaged"
sed -i 's/city=Rome/city=Roma/' "$dir/damaged/current/${names##*/}"
expect 2 "is damaged" "$downpour" export --from "$dir/damaged" --to "$dir/x.npy"
sed 's/run 1/run 2/' "$names" >"$dir/damaged/current/${names##*/}"
expect 2 "${names##*/}" "$downpour" export --from "$dir/damaged" --to "$dir/x.npy"
cp -a "$dir/L" "$dir/partial" && rm -rf "$dir/partial/store/server-1"
expect 2 "server-1" "$downpour" export --from "$dir/partial" --to "$dir/x.npy"
[ -e "$dir/x.npy" ] && fail "a file of what was refused"

# Categories that share a key: one row under the first name, the others behind it.
train "$dir/H" --model logistic --label label --train "$dir/table.csv" --epochs 1 --hash-bits 1
expect 0 "" "$downpour" export --from "$dir/H" --table logistic.w --to "$dir/h.npy"
[ "$(cut -f2 "$dir/h.names.tsv" | sort | tr '\n' ' ')" = "0 1 " ] || fail "keys of one bit: $(cat "$dir/h.names.tsv")"
[ "$(tr '\t' '\n' <"$dir/h.names.tsv" | grep -c '^age$\|^odd, name$\|^city=')" = 6 ] || fail "names that share a key"
[ "$(stat -c %s "$dir/h.npy")" = 136 ] || fail "two rows"

# Layers have their shape, without what fills their last block; the rows of the first are the columns.
sed 's/,[^,"]*,\([01]\),/,\1,/; s/,"[^"]*",\([01]\),/,\1,/; s/,city//' "$dir/table.csv" >"$dir/numbers.csv"
train "$dir/M" --model mlp:2-150-1,loss=logistic --label label --train "$dir/numbers.csv" --epochs 1
expect 0 "" "$downpour" export --from "$dir/M" --to "$dir/layers"
[ "$(stat -c %s "$dir/layers/mlp.w1.npy")" = $((128 + 4 * 300)) ] || fail "size of mlp.w1"
printf 'age\t0\nodd, name\t1\n' | cmp -s - "$dir/layers/mlp.w1.names.tsv" || fail "names of the first layer's rows"
[ -e "$dir/layers/mlp.w2.names.tsv" ] && fail "names of a hidden layer's rows"
expect 0 "" "$downpour" export --from "$dir/M" --table mlp.w2 --to -
[ "$(wc -l <"$dir/out")" = 150 ] || fail "rows of mlp.w2"
awk '{ print $2 }' "$dir/out" >"$dir/w2"
od -An -v -tf4 -w4 -j128 "$dir/layers/mlp.w2.npy" | paste - "$dir/w2" | awk '($1 - $2) ^ 2 > 1e-14 { bad = 1 } END { exit bad || NR != 150 }' || fail "mlp.w2 as text and as bytes"

# ---- text as words
train "$dir/S" --model skipgram:6 --train "$dir/text" --min-count 1 --epochs 2 --batch 64
grep -q "downpour neighbours $dir/S WORD" "$dir/out" || fail "run does not say what words can be asked"
expect 0 "" "$downpour" export --from "$dir/S" --to "$dir/S.txt"
tr -s ' \n' '\n' <"$dir/text" | grep . | awk '!($0 in first) { first[$0] = NR } { n[$0]++ } END { for (w in n) print n[w], first[w], w }' |
    sort -k1,1nr -k2,2n | awk '{ print $3 }' >"$dir/words"
[ "$(head -1 "$dir/S.txt")" = "$(wc -l <"$dir/words") 6" ] || fail "first line of word2vec's form: $(head -1 "$dir/S.txt")"
tail -n +2 "$dir/S.txt" | cut -d' ' -f1 | cmp -s - "$dir/words" || fail "words by how often they occur"
expect 0 "" "$downpour" export --from "$dir/S" --to -
cp "$dir/out" "$dir/S.out"
same "$dir/S.out" "$dir/S.txt" "standard output"
# By brute force from the vectors.
awk 'NR > 1 { for (i = 2; i <= NF; i++) v[$1, i] = $i; w[++n] = $1; d = NF }
END { for (k = 1; k <= n; k++) { if (w[k] == "w1") continue
        s = a = b = 0
        for (i = 2; i <= d; i++) { s += v["w1", i] * v[w[k], i]; a += v["w1", i] ^ 2; b += v[w[k], i] ^ 2 }
        printf "%s %.6f\n", w[k], s / sqrt(a * b) } }' "$dir/S.txt" | sort -k2,2gr | head -4 >"$dir/brute"
expect 0 "" "$downpour" neighbours "$dir/S" w1 --top 4
paste -d' ' "$dir/out" "$dir/brute" | awk '$1 != $3 || ($2 - $4) ^ 2 > 1e-11 { bad = 1 } END { exit bad || NR != 4 }' || fail "neighbours of w1"
expect 0 "w1:" "$downpour" neighbours "$dir/S" w1 w2
expect 2 "there is 'w1'" "$downpour" neighbours "$dir/S" w1a
expect 0 "" "$downpour" neighbours "$dir/S" --top 4 w1
cp "$dir/out" "$dir/w1"
expect 0 "" "$downpour" neighbours "$dir/S" --top 4 '"W1",' # it is cut as the text was
cp "$dir/out" "$dir/W1"
same "$dir/W1" "$dir/w1" "neighbours of a word in capitals"
expect 2 "is not in the training file" "$downpour" neighbours "$dir/S" elephant
expect 2 "has no words or items" "$downpour" neighbours "$dir/L" age
rm "$dir/text" # what was kept is enough
expect 0 "" "$downpour" export --from "$dir/S" --table skipgram.near --to "$dir/near.npy"
[ "$(stat -c %s "$dir/near.npy")" = $((128 + 24 * $(wc -l <"$dir/words"))) ] || fail "size of near.npy"
cut -f1 "$dir/near.names.tsv" | cmp -s - "$dir/words" || fail "names of the second table"

# ---- a user's best items, by brute force from the exported weights: user . item and the biases
sed 's/^\([0-9]*\) /user \1,/; 1i someone,something' "$dir/pairs" >"$dir/named"
train "$dir/R" --model mf:4 --train "$dir/named" --epochs 4 --rate 0.05 --batch 16 --servers 2
expect 0 "" "$downpour" export --from "$dir/R" --to "$dir/R.text/" --format text
awk -v wanted='user\\x203' '
FILENAME ~ /pairs$/ { if ($1 == 3) seen[$2] = 1; next }
FILENAME ~ /mf.user.txt/ && $1 == wanted { for (i = 2; i <= 5; i++) p[i] = $i }
FILENAME ~ /mf.user_bias/ && $1 == wanted { b = b + $2 }
FILENAME ~ /mf.bias/ { b = b + $2 }
FILENAME ~ /mf.item.txt/ { for (i = 2; i <= 5; i++) q[$1] += p[i] * $i }
FILENAME ~ /mf.item_bias/ { q[$1] += $2 }
END { for (k in q) { x = 1 / (1 + exp(-(q[k] + b))); printf "%s %.9g %s\n", k, x, (k in seen) ? "seen" : "new" } }' \
    "$dir/pairs" "$dir"/R.text/mf.{user,user_bias,bias,item,item_bias}.txt | sort -k2,2gr >"$dir/brute"
agrees() { # WHAT: "USER ITEM SCORE" in out, "ITEM SCORE" in brute
    awk '{ print $1 "\t" $2 }' "$dir/brute.top" | paste "$dir/out" - |
        awk -F'\t' '$1 != "user 3" || $2 != $4 || ($3 - $5) ^ 2 > 1e-12 { bad = 1 } END { exit bad || NR != 5 }' || fail "$1"
}
grep new "$dir/brute" | head -5 >"$dir/brute.top"
expect 0 "" "$downpour" predict --from "$dir/R" --top 5 --user "user 3"
agrees "best items of user 3"
head -5 "$dir/brute" >"$dir/brute.top"
grep -q seen "$dir/brute.top" || fail "the test is of no use: user 3 has met none of the best"
expect 0 "" "$downpour" predict --from "$dir/R" --top 5 --user "user 3" --with-seen
agrees "best items of user 3, seen ones too"
printf 'user 3\r\n\nuser 19\n' >"$dir/users"
expect 0 "" "$downpour" predict --from "$dir/R" --top 2 --users "$dir/users" --out "$dir/top"
[ "$(cut -f1 "$dir/top" | tr '\n' ' ')" = 'user 3 user 3 user 19 user 19 ' ] || fail "users of a file: $(cat "$dir/top")"
tail -2 "$dir/top" >"$dir/top.19"
expect 0 "" "$downpour" predict --from "$dir/R" --top 2 --user "user 19"
cmp -s "$dir/out" "$dir/top.19" || fail "a user alone and behind another: other items"
expect 2 "similar: 'user 1'" "$downpour" predict --from "$dir/R" --top 2 --user "User 1"
expect 2 "is not a model of users and items" "$downpour" predict --from "$dir/L" --top 2 --user 1
expect 2 "--top takes users" "$downpour" predict --from "$dir/R" --top 2 --data "$dir/pairs" --user 1
expect 2 "needs --user ID" "$downpour" predict --from "$dir/R" --top 2
expect 2 "go with --top N" "$downpour" predict --from "$dir/R" --data "$dir/pairs" --user 1
expect 2 "unexpected argument 'more'" "$downpour" predict --from "$dir/R" --top 2 --user 1 more
# Any model: its scores are those of predict for the pairs.
train "$dir/N" --model neumf:4-8-4 --train "$dir/pairs" --epochs 2
expect 0 "" "$downpour" predict --from "$dir/N" --top 30 --user 7 --with-seen --out "$dir/top"
[ "$(wc -l <"$dir/top")" = 30 ] || fail "not all items of user 7"
cut -f1,2 "$dir/top" >"$dir/asked"
expect 0 "" "$downpour" predict --from "$dir/N" --data "$dir/asked"
cut -f3 "$dir/top" | paste -d' ' - "$dir/out" | awk '($1 - $2) ^ 2 > 1e-14 { bad = 1 } END { exit bad || NR != 30 }' || fail "scores of neumf"
sort -gr -c <(cut -f3 "$dir/top") 2>/dev/null || fail "neumf's best are not in order"
train "$dir/B" --model mf:4,loss=bpr --train "$dir/pairs" --epochs 1
expect 0 "" "$downpour" predict --from "$dir/B" --top 1 --user 7
rm "$dir/named"
expect 0 "" "$downpour" predict --from "$dir/R" --top 1 --user "user 3"
rm "$dir/R/current/interactions.bin" # a run of an older build has none
expect 2 "restore it, or rank all items with --with-seen" "$downpour" predict --from "$dir/R" --top 1 --user "user 3"
expect 0 "" "$downpour" predict --from "$dir/R" --top 1 --user "user 3" --with-seen
expect 0 "" "$downpour" neighbours "$dir/R" 105 --top 3

# A prediction that fails for the data's sake says why, and leaves nothing behind; one of words says what is wanted instead.
echo "age,city" >"$dir/bad.csv"
expect 2 "bad.csv:1: columns of the training file are missing: 'odd, name'" "$downpour" predict --from "$dir/L" --data "$dir/bad.csv"
grep -q "log\|status" "$dir/err" && fail "more than the cause"
echo "w1 w2 w3" >"$dir/text"
expect 0 "downpour neighbours $dir/S WORD" "$downpour" predict --from "$dir/S" --data "$dir/text"

# ---- killed in the middle: the journal's pushes count, and what a clean stop leaves is the same
begin "$downpour" run --dir "$dir/K" --journal-bytes 16MiB --model mf:4 --train "$dir/pairs" --epochs 100000 --batch 4 \
    --servers 2 --restarts 0
expect 2 "is in use by another downpour command" "$downpour" export --from "$dir/K" --to "$dir/x.npy"
until_trained
left | xargs -r kill -STOP # at once: a server whose parent dies first would close
left | xargs -r kill -KILL
wait "$pid" 2>/dev/null
gone
expect 0 "open-journaled" "$downpour" inspect "$dir/K"
expect 0 "" "$downpour" export --from "$dir/K" --to "$dir/killed"
expect 0 "" "$downpour" export --from "$dir/K" --to "$dir/killed/numbers.npy" --table mf.item --no-names
for server in 0 1; do
    "${downpour%/*}/downpour-server" --cluster "$dir/K/cluster.conf" --server $server >"$dir/server.$server" 2>&1 &
    pids[server]=$!
done
wait_until 60 "$downpour" status --cluster "$dir/K/cluster.conf" >"$dir/out" 2>&1 || fail "the servers do not serve"
kill "${pids[@]}" && wait "${pids[@]}"
expect 0 "" "$downpour" export --from "$dir/K" --to "$dir/closed"
expect 0 "" "$downpour" export --from "$dir/K" --to "$dir/closed/numbers.npy" --table mf.item --no-names
for file in "$dir"/killed/*; do
    same "$file" "$dir/closed/${file##*/}" "killed and recovered: ${file##*/}"
done

rest=$(ls "$TMPDIR")
[ -z "$rest" ] || fail "left in TMPDIR: $rest"
