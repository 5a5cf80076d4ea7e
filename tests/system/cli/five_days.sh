#!/usr/bin/env bash
# Five days, one run each, with new users, items and words each day: as good as one run on all of it.
# Without a break means one run on the files of all days together, with the same flags. Both choose their epochs.
# usage: five_days.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

# Users and items are of 6 kinds. Each day has 6 items of a kind, of which 3 are new; a user meets 3 of its kind. One of
# a first day is not in the file, but in test.csv.
awk -v dir="$dir" 'BEGIN {
    for (d = 1; d <= 5; d++) for (u = 0; u < 120; u++) for (t = n = 0; t < 6 && n < 3 && u % 5 < d; t++) {
        k = 3 * (d - 1) + (u + t * 5) % 6
        if ((u, k) in met) continue
        met[u, k] = 1
        n++
        file = d == 1 + u % 5 && n == 2 && d < 5 ? "test" : "day" d
        print "u" u ",i" k * 6 + u % 6 >dir "/" file ".csv"
        if (file != "test") print "u" u ",i" k * 6 + u % 6 >dir "/all.csv"
    }
    for (d = 1; d <= 5; d++) for (s = 0; s < 150; s++) {
        line = ""
        for (w = 0; w < 8; w++) { r = (r * 1103515245 + 12345) % 2147483648; line = line " k" s % 6 "w" int(r / 65536) % (4 * d) }
        print line >dir "/day" d ".txt"
        print line >dir "/all.txt"
    }
}'

# days DIR ENDING FLAG...: a run on the first day, and one more for each further day
days() {
    local to=$1 ending=$2 d
    shift 2
    expect 0 "" "$downpour" run --dir "$to" --train "$dir/day1.$ending" "$@"
    for d in 2 3 4 5; do expect 0 "" "$downpour" run --dir "$to" --continue --train "$dir/day$d.$ending" "$@"; done
}

# within_a_hundredth WHAT DAYS WHOLE: two shares
within_a_hundredth() {
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(b > 0.8 && a >= b - 0.01) }' || fail "$1: $2 after five days, $3 in one run"
}

# recall DIR: of the test pairs, one a user: HR@10; by a run that changes no score
recall() {
    "$downpour" run --dir "$1" --continue --test "$dir/test.csv" --epochs 1 --rate 1e-30 >"$dir/out" 2>"$dir/err"
    awk -F: '/"recall@10"/ { r = $2 + 0 } END { print r }' "$1/current/report.json"
}

flags=(--model mf:8)
days "$dir/D" csv "${flags[@]}"
expect 0 "" "$downpour" run --dir "$dir/A" --train "$dir/all.csv" "${flags[@]}"
within_a_hundredth HR@10 "$(recall "$dir/D")" "$(recall "$dir/A")"

# purity DIR: how many of the 5 nearest words of each word are of its kind
purity() {
    sort -u <(tr ' ' '\n' <"$dir/all.txt" | grep .) | xargs "$downpour" neighbours "$1" --top 5 |
        awk '/:$/ { kind = substr($1, 1, 2); next } NF { n++; good += substr($1, 1, 2) == kind } END { print n == 600 ? good / n : n " lines" }'
}

flags=(--model skipgram:8 --epochs 20 --batch 64 --rate 0.02)
days "$dir/W" txt "${flags[@]}"
expect 0 "" "$downpour" run --dir "$dir/T" --train "$dir/all.txt" "${flags[@]}"
within_a_hundredth purity "$(purity "$dir/W")" "$(purity "$dir/T")"
