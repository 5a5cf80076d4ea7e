#!/usr/bin/env bash
# Word vectors by defaults: a subject's name is to its other name as another subject's is to its other name.
# usage: analogies.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

# Lines of one subject of 40 and one of two kinds: its name of that kind, words of the subject and of the kind, and others.
awk 'function draw(n) { r = r * 16807 % 2147483647; return int(n * r / 2147483647) }
BEGIN {
    r = 1
    for (l = 0; l < 15000; l++) {
        s = draw(40); k = draw(2); line = ""
        for (w = 0; w < 14; w++) {
            u = draw(100)
            line = line " " (u < 12 ? "n" k "s" s : u < 34 ? "s" s "w" draw(20) : u < 50 ? "k" k "w" draw(25) : "z" int(draw(3000) * draw(3000) / 3000))
        }
        print line
    }
}' >"$dir/text"
expect 0 "" "$downpour" run --dir "$dir/D" --model skipgram:32 --train "$dir/text" --epochs 4
expect 0 "" "$downpour" export --from "$dir/D" --to "$dir/vectors.txt"
right=$(awk 'NR > 1 {
    n = 0
    for (i = 2; i <= NF; i++) n += $i * $i
    n = sqrt(n)
    for (i = 2; i <= NF; i++) v[$1, i] = $i / n
    word[NR] = $1
    width = NF
}
END {
    for (a = 0; a < 40; a++) for (b = 0; b < 40; b += 8) if (a != b) {
        for (i = 2; i <= width; i++) q[i] = v["n1s" a, i] - v["n0s" a, i] + v["n0s" b, i]
        most = -9
        for (w in word) if (word[w] != "n1s" a && word[w] != "n0s" a && word[w] != "n0s" b) {
            dot = 0
            for (i = 2; i <= width; i++) dot += q[i] * v[word[w], i]
            if (dot > most) { most = dot; best = word[w] }
        }
        asked++
        good += best == "n1s" b
    }
    print good / asked
}' "$dir/vectors.txt")
# With Adam's usual epsilon and a constant rate of 0.01: 0.5
awk -v right="$right" 'BEGIN { exit !(right >= 0.75) }' || fail "right answers: $right"
