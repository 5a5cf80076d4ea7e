#!/usr/bin/env bash
# Users that the training did not have, by their items: 30 of 240 users with a taste for one of 6 kinds of film. Half of each user's
# films are hidden. Those of the new users are found about as well as by a model that was trained with them; no weight changes; unknown
# films are named and counted.
# usage: fold_in.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

awk -v dir="$dir" '
    function draw() { state = state * 16807 % 2147483647; return state / 2147483647 }
    BEGIN {
        state = 12345
        for (u = 0; u < 240; u++)
            for (i = 0; i < 120; i++) {
                if (draw() >= (i % 6 == u % 6 ? 0.7 : 0.03))
                    continue
                pair = "user " u "\tfilm " i
                if (draw() < 0.5)
                    print pair >(dir "/hidden")
                else {
                    print pair >(dir "/all")
                    print pair >(dir (u % 8 ? "/part" : "/new"))
                }
            }
        for (u = 0; u < 240; u += 8)
            print "user " u >(dir "/users")
    }'

found() { # FILE: the share of the new users hidden films that its lines have
    awk -F '\t' 'NR == FNR { hidden[$1, $2]; split($1, id, " "); all += id[2] % 8 == 0; next } ($1, $2) in hidden { hits++ }
        END { printf "%d", 1000 * hits / all }' "$dir/hidden" "$1"
}

for loss in logistic bpr; do
    for set in part all; do
        expect 0 "Report:" "$downpour" run --dir "$dir/run-$set" --fresh --model mf:8,loss=$loss --train "$dir/$set" --epochs 40 \
            --journal-bytes 16MiB --durability none
    done
    "$downpour" inspect "$dir/run-part" --digest >"$dir/before"
    expect 0 "" "$downpour" predict --from "$dir/run-part" --top 10 --history "$dir/new"
    mv "$dir/out" "$dir/folded"
    "$downpour" inspect "$dir/run-part" --digest >"$dir/after"
    cmp "$dir/before" "$dir/after" || fail "$loss: weights have changed"
    expect 0 "" "$downpour" predict --from "$dir/run-all" --top 10 --users "$dir/users"
    mv "$dir/out" "$dir/trained"
    [ "$(wc -l <"$dir/folded")" = 300 ] || fail "$loss: not 10 films of each of 30 users"
    awk -F '\t' 'NR == FNR { own[$1, $2]; next } ($1, $2) in own { exit 1 }' "$dir/new" "$dir/folded" || fail "$loss: a film of the history"
    folded=$(found "$dir/folded") trained=$(found "$dir/trained")
    echo "$loss: of 1,000 hidden films $folded by items, $trained trained with them"
    [ "$trained" -gt 400 ] && [ "$folded" -ge $((trained * 85 / 100)) ] || fail "$loss: $folded of 1,000, and $trained"
done

expect 0 "are scored as new ones, by these items only: 30;" "$downpour" predict --from "$dir/run-all" --top 10 --history "$dir/new"
# One user, on the command line; the films that are unknown.
expect 0 "are left out: 2 ('film x', ''Z'')" "$downpour" predict --from "$dir/run-part" --top 3 --items "film 0,film x,film 6,'Z',"
[ "$(cut -f 1 "$dir/out" | sort -u)" = new ] && [ "$(wc -l <"$dir/out")" = 3 ] || fail "not 3 films for one user"
expect 2 "--items or --history: no item of it is in the training file: 'film x'" "$downpour" predict --from "$dir/run-part" --top 3 --items "film x"
expect 2 "expected ids of items, separated by commas" "$downpour" predict --from "$dir/run-part" --top 3 --items ","
expect 2 "give one of them" "$downpour" predict --from "$dir/run-part" --top 3 --items "film 0" --user "user 1"
expect 2 "go with --top" "$downpour" predict --from "$dir/run-part" --items "film 0" --data "$dir/new"

# Lists are detected by their lines, whatever the training file has; the answers are the same.
sed 's/user //; s/film //' "$dir/part" >"$dir/numbers"
sed 's/user //; s/film //' "$dir/new" | sort -n >"$dir/pairs"
awk '{ l[$1] = l[$1] " " $2 } END { for (u in l) print u l[u] }' "$dir/pairs" | sort -n >"$dir/lists"
expect 0 "Report:" "$downpour" run --dir "$dir/numbered" --model mf:4 --train "$dir/numbers" --epochs 2 --journal-bytes 16MiB
for form in pairs lists; do
    expect 0 "" "$downpour" predict --from "$dir/numbered" --top 3 --history "$dir/$form"
    sort "$dir/out" >"$dir/by-$form"
done
[ "$(wc -l <"$dir/by-lists")" = 90 ] && cmp "$dir/by-pairs" "$dir/by-lists" || fail "lists are not read as their pairs"
expect 2 "--history: cannot read" "$downpour" predict --from "$dir/run-part" --top 3 --history "$dir/none"
expect 0 "Report:" "$downpour" run --dir "$dir/neumf" --model neumf:4-8-4-2 --train "$dir/part" --epochs 1 --journal-bytes 16MiB
expect 2 "for mf with loss=logistic or bpr, not for neumf" "$downpour" predict --from "$dir/neumf" --top 3 --items "film 0"
