#!/usr/bin/env bash
# What a run prints where: a table once, nothing with --quiet, one line with --json; flags from a file; a dry run. usage: terminal.sh DOWNPOUR
. "$(dirname "$0")/lib.sh"

seq 400 | awk '{print $1%2, ($1%9+1)":1", ($1%2+10)":0.5"}' >"$dir/t,1.svm"
run=("$downpour" run --model logistic --train "$dir/t,1.svm" --batch 32 --journal-bytes 16MiB --cache-bytes 64MiB)

# json KEY...: the value in the one line that standard output has
json() {
    python3 - "$dir/out" "$@" <<'END'
import json
import sys
lines = open(sys.argv[1]).read().split("\n")
assert len(lines) == 2 and not lines[1], lines
value = json.loads(lines[0])
for key in sys.argv[2:]:
    value = value[key]
print(value)
END
}

# ---- each epoch has one line, however many there are
expect 0 "Report:" "${run[@]}" --dir "$dir/A" --epochs 25
[ "$(grep -cE "^ +[0-9]+ +0\." "$dir/out")" = 25 ] || fail "not one line for each epoch"
grep -qE "^epoch [0-9]|^Training" "$dir/out" && fail "progress on standard output"
unsaid "Staleness|Overlap" # of one worker

# ---- quiet, and for programs
expect 0 "" "${run[@]}" --dir "$dir/A" --epochs 2 --fresh --quiet
[ -s "$dir/out" ] || [ -s "$dir/err" ] && fail "--quiet was not quiet"
awk 'BEGIN { print "a,y"; for (i = 0; i < 90; i++) print i % 5 "," (i % 7 < 3) }' >"$dir/codes.csv"
# A hint, and a warning.
flags=(--model logistic --train "$dir/codes.csv" --label y --epochs 2 --rate 50 --dir "$dir/codes")
expect 0 "whole values: if they are codes" "$downpour" run "${flags[@]}"
expect 0 "The training blew up: " "$downpour" run "${flags[@]}" --fresh --quiet
[ "$(cat "$dir/out" "$dir/err" | wc -l)" = 1 ] || fail "--quiet printed a hint"
expect 0 "" "${run[@]}" --dir "$dir/A" --epochs 3 --fresh --json
[ "$(json finished) $(json exit) $(json epochs) $(json dir)" = "True 0 3 $dir/A" ] || fail "not the result"
grep -q "\"train_loss\": $(json train_loss)" "$dir/A/report.json" || fail "another loss"
grep -q "^Report:" "$dir/err" || fail "the summary is missing on standard error"
expect 2 "" "${run[@]}" --dir "$dir/A" --model nonsense --json --quiet
expect 2 "" "${run[@]}" --dir "$dir/A" --epoch 3 --json
[ "$(json finished) $(json exit)" = "False 2" ] || fail "no line after a failure"
[[ $(json error) == "unknown flag '--epoch' (did you mean"* ]] || fail "another error: $(json error)"
printf '1 1:1\n2 x\n' >"$dir/bad"
expect 2 "" "$downpour" run --model logistic --train "$dir/bad" --dir "$dir/B" --json --quiet
[[ $(json error) == *"$dir/bad"*2* ]] || fail "not what a worker says: $(json error)"
grep -q "downpour: worker 0: " "$dir/err" || fail "--quiet hid an error"
expect 2 "each needs standard output" "${run[@]}" --dir "$dir/A" --json --report -

# ---- flags from a file
some=(--rate 0.01,decay=cosine --optimizer adam:beta1=0.8 --normalize --no-overlap --dir "$dir/q\"u\\o te" --epochs 1)
expect 0 "" "${run[@]}" "${some[@]}" --print-config
cp "$dir/out" "$dir/conf"
[ -e "$dir/q\"u\\o te" ] && fail "--print-config made a directory"
expect 0 "" "$downpour" run --config "$dir/conf" --print-config
cmp "$dir/out" "$dir/conf" || fail "not the same flags"
expect 0 "" "${run[@]}" "${some[@]}" --fresh
cp "$dir/q\"u\\o te/cluster.conf" "$dir/one"
expect 0 "" "$downpour" run --config "$dir/conf" --fresh
settings() {
    grep -vE "id =|port|run =|runs/" "$1"
}
diff <(settings "$dir/one") <(settings "$dir/q\"u\\o te/cluster.conf") >"$dir/out" || fail "not the same run"
expect 0 "" "$downpour" run --config "$dir/conf" --epochs 7 --rate 0.5 --print-config
said_text 'epochs = "7"'
said_text 'rate = "0.5,decay=cosine"'
printf 'epochs = 3;\nlr = 0.00005;\nnormalize = true; no-overlap = false;\n' >"$dir/conf"
expect 0 "" "$downpour" run --config "$dir/conf" --print-config
said_text 'epochs = "3"'
said_text 'rate = "5e-05"'
unsaid overlap
while IFS='|' read -r line text; do
    printf 'epochs = 3;\n%s\n' "$line" >"$dir/conf"
    expect 2 "$text" "$downpour" run --config "$dir/conf" --print-config
done <<END
epoch = 3;|$dir/conf:2: unknown flag '--epoch' (did you mean '--epochs'?)
epochs = 4;|$dir/conf:2: duplicate setting name
batch = |$dir/conf:3: syntax error
batch = [1, 2];|$dir/conf:2: 'batch' must be a text, a number, or true
normalize = "yes";|$dir/conf:2: flag '--normalize' takes no value
config = "other";|$dir/conf:2: a file of flags has no 'config'
rate = "0.1,ende=3";|$dir/conf:2: --rate has no suboption 'ende'
END
expect 2 "cannot read '$dir/missing'" "$downpour" run --config "$dir/missing"

# ---- a dry run says what would be trained, and leaves nothing
(cd "$dir" && find A -type f -exec cksum {} + | sort) >"$dir/before"
expect 0 "Time:      about " "${run[@]}" --dir "$dir/A" --epochs 40 --inject pace=2ms --dry-run
said "Data: .*: 400 examples to train on"
said "Epochs:    40, each of 13 minibatches of 32"
said "Weights:   1 in dense layers; logistic.w: 1 for each key, 28 bytes on a server$"
said "an estimate for this machine: a trial trained "
(cd "$dir" && find A -type f -exec cksum {} + | sort) | cmp - "$dir/before" || fail "a dry run changed the directory"
expect 0 "" "${run[@]}" --dir "$dir/none" --epochs 2 --dry-run --json --quiet
[ "$(json dry_run) $(json examples) $(json epochs) $(json batch)" = "True 400 2 32" ] || fail "not what would be trained"
[ -e "$dir/none" ] && fail "a dry run made its directory"
sed "s|^id = .*||; 1i checkpoint = { to = \"$dir/C\"; every = 1; keep = 0; };" "$dir/A/cluster.conf" >"$dir/base.conf"
sed -i "s|cache = .*|cache = \"$dir/kept\";|" "$dir/base.conf"
expect 0 "Time:      " "$downpour" run --cluster "$dir/base.conf" --train "$dir/t,1.svm" --epochs 2 --dry-run
[ -e "$dir/C" ] || [ -e "$dir/kept" ] && fail "a dry run wrote where the cluster file says"
expect 2 "$dir/bad" "$downpour" run --model logistic --train "$dir/bad" --dry-run
unsaid "its log is"
# The next day's file is read by the model's schema, with new weights.
awk 'BEGIN { print "a,b,late"; for (i = 0; i < 60; i++) print i % 7 ",s" i % 3 "," (i % 2 ? "yes" : "no") }' >"$dir/day1.csv"
awk -F, '{ print $3 "," $1 "," NR }' "$dir/day1.csv" >"$dir/day2.csv"
# Its numbers and categories are keys: a, and s0 to s2 of b.
expect 0 "" "$downpour" run --model logistic --train "$dir/day1.csv" --label late --epochs 1 --dry-run
said "Weights:   1 in dense layers; logistic.w: 1 for each of 4 keys, 28 bytes on a server; 140 bytes in all"
expect 0 "" "$downpour" run --dir "$dir/D" --model logistic --train "$dir/day1.csv" --label late --epochs 1
(cd "$dir" && find D -type f -exec cksum {} + | sort) >"$dir/before"
expect 2 "columns of the training file are missing: 'b'" "$downpour" run --dir "$dir/D" --continue --train "$dir/day2.csv" --dry-run
expect 0 "60 examples to train on" "$downpour" run --dir "$dir/D" --continue --train "$dir/day2.csv" --dry-run \
    --missing-columns empty --new-columns ignore
said_text "numbers: a"
said_text "taken as empty, as the file has no such column: 'b'"
# Its epochs are those of the run that it is a trial of.
expect 0 "" "$downpour" run --dir "$dir/E" --model deepfm:2-2 --train "$dir/day1.csv" --label late --batch 1
sed 's/^0,/1,/' "$dir/day1.csv" >"$dir/day3.csv"
expect 0 "Epochs:    7 (chosen by size)" "$downpour" run --dir "$dir/E" --continue --train "$dir/day3.csv" --dry-run
expect 2 "has the model 'logistic', not 'fm:4'" "$downpour" run --dir "$dir/D" --continue --model fm:4 --dry-run
expect 2 "'downpour status' shows how far it is" "$downpour" run --dir "$dir/D" --resume --dry-run
(cd "$dir" && find D -type f -exec cksum {} + | sort) | cmp - "$dir/before" || fail "a dry run changed the directory"
expect 2 "can be read only once" "$downpour" run --model logistic --train - --dry-run
[ -z "$(ls "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"
