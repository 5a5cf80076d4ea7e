#!/usr/bin/env bash
# Five days, one run each, with new users, items and words each day: as good as one run on all of it.
# Without a break means one run on the files of all days together, with the same flags. Both choose their epochs.
# usage: five_days.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

# Users and items are of 6 kinds. Each day has 30 more items, few of them met often, and 200 more users. A user
# meets 8 items, 2 of 3 of its kind. Two of these are in test.csv instead: 6,000, so that 0.01 is over the noise.
awk -v dir="$dir" 'function draw() { r = (r * 1103515245 + 12345) % 2147483648; return r / 2147483648 }
BEGIN {
    r = 1
    for (d = 1; d <= 5; d++) for (u = 0; u < 1000; u++) for (n = 0; n < 8 && u % 5 < d; ) {
        k = int(30 * (d + 1) * draw() * draw())
        if (draw() < 0.6) k = k - k % 6 + u % 6
        if ((u, k) in met) continue
        met[u, k] = 1
        n++
        file = n % 4 == 0 ? "test" : "day" d
        print "u" u ",i" k >dir "/" file ".csv"
        if (file != "test") print "u" u ",i" k >dir "/all.csv"
    }
    r = 2 # each word occurs often enough
    for (d = 1; d <= 5; d++) for (s = 0; s < 150; s++) {
        line = ""
        for (w = 0; w < 8; w++) line = line " k" s % 6 "w" int(draw() * 32768) % (4 * d)
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

# within OFF LEAST WHAT DAYS ALL: two shares
within() {
    awk -v off="$1" -v least="$2" -v a="$4" -v b="$5" 'BEGIN { exit !(b > least && a >= b - off) }' ||
        fail "$3: $4 after five days, $5 in one run"
}

# recall DIR: of the test pairs among all items; by a run that changes no score
recall() {
    "$downpour" run --dir "$1" --continue --test "$dir/test.csv" --epochs 1 --rate 1e-30 >"$dir/out" 2>"$dir/err"
    awk -F: '/"recall@10"/ { r = $2 + 0 } END { print r }' "$1/current/report.json"
}

flags=(--model mf:16)
days "$dir/D" csv "${flags[@]}"
grep -q '"rate": 0.005,' "$dir/D/current/report.json" || fail "a further day has another rate than 0.005"
expect 0 "" "$downpour" run --dir "$dir/A" --train "$dir/all.csv" "${flags[@]}"
# here 0.416 and 0.400; with l2=0.007 and the full rate on each day 0.373 and 0.370
within 0.01 0.385 recall@10 "$(recall "$dir/D")" "$(recall "$dir/A")"

# purity DIR: how many of the 5 nearest words of each word are of its kind
purity() {
    sort -u <(tr ' ' '\n' <"$dir/all.txt" | grep .) | xargs "$downpour" neighbours "$1" --top 5 |
        awk '/:$/ { kind = substr($1, 1, 2); next } NF { n++; good += substr($1, 1, 2) == kind } END { print n == 600 ? good / n : n " lines" }'
}

flags=(--model skipgram:8 --epochs 20 --batch 64 --rate 0.02)
days "$dir/W" txt "${flags[@]}"
expect 0 "" "$downpour" run --dir "$dir/T" --train "$dir/all.txt" "${flags[@]}"
within 0.01 0.8 purity "$(purity "$dir/W")" "$(purity "$dir/T")"
