#!/usr/bin/env bash
# The next day's file: `run --continue` reads it by the model's schema, so a training of rate 1e-30 changes no score;
# what cannot be mapped is refused by name and changes nothing. Days that are trained one after the other are as good as
# all of them at once. usage: further.sh PATH/TO/downpour      DP_LONG=1: all models in each part, five days
. "$(dirname "$0")/lib.sh"

# day NUMBER ROWS COLUMNS: a table whose columns stand in this order. Each day has shops of its own next to common ones,
# and another mean of b. Day 0 has rows of all days.
day() {
    awk -v day="$1" -v rows="$2" -v order="$3" '
        function draw() { seed = seed * 16807 % 2147483647; return seed / 2147483647 }
        BEGIN {
            seed = 1000 * day + 7
            n = split(order, column, ",")
            for (i = 1; i <= n; i++) printf "%s%s", column[i], i < n ? "," : "\n"
            for (r = 0; r < rows; r++) {
                d = day ? day : 1 + int(5 * draw())
                v["a"] = draw() + draw() + draw() - 1.5
                v["b"] = draw() * 10 + d / 5
                v["c"] = draw() - 0.5
                k = int(4 * draw()); s = int(3 * draw()); e = draw() < 0.5 ? 0 : d
                v["shop"] = "shop" e "_" k
                v["size"] = substr("SML", s + 1, 1)
                z = 2 * v["a"] + 0.3 * (v["b"] - 5.6) + 0.5 * (s - 1) + v["c"] + ((e * 7 + k * 5) % 9 - 4) / 2
                v["late"] = draw() < 1 / (1 + exp(-2 * z)) ? "yes" : "no"
                for (i = 1; i <= n; i++) printf "%s%s", v[column[i]], i < n ? "," : "\n"
            }
        }'
}

numbers=c,late,a,b all=shop,c,late,size,a,b
# train DIR FLAGS...
train() {
    expect 0 "Report:" "$downpour" run --dir "$@" --journal-bytes 16MiB
}

scores() { # DIR FILE: into $dir/scores
    timeout 90 "$downpour" predict --from "$1" --data "$2" >"$dir/scores" 2>"$dir/err" || fail "predict from $1"
}

# keeps DIR FILE FLAGS...: a further run of rate 1e-30 changes no score of FILE
keeps() {
    local to=$1 file=$2
    shift 2
    scores "$to" "$file"
    mv "$dir/scores" "$dir/scores.before"
    train "$to" --continue --epochs 1 --rate 1e-30 "$@"
    cp "$dir/err" "$dir/err.trained"
    scores "$to" "$file"
    cmp -s "$dir/scores" "$dir/scores.before" || fail "other scores after a training of rate 1e-30: $to $*"
}

# ---- a training of rate 1e-30 changes no score, whatever the file's order, means and categories
day 1 200 $numbers >"$dir/numbers1.csv"
day 2 200 b,a,c,late >"$dir/numbers2.csv"
day 1 200 $all >"$dir/all1.csv"
day 2 200 late,b,size,shop,c,a >"$dir/all2.csv"
day 0 50 b,shop,size,a,c >"$dir/probe.csv" # without labels
day 0 50 b,a,c >"$dir/probe_numbers.csv"
some=(logistic mlp:3-8-1,loss=logistic deepfm:4-8,columns=3,fields=2)
[ -z "${DP_LONG:-}" ] || some+=(fm:4 wide-deep:4-8,columns=3,fields=2 dlrm:4,columns=3,fields=2)
for model in "${some[@]}"; do
    form=all probe=$dir/probe.csv name=${model%%:*}
    [ "$name" != mlp ] || form=numbers probe=$dir/probe_numbers.csv
    train "$dir/$name" --model "$model" --train "$dir/${form}1.csv" --label late --epochs 2 --rate 0.01
    keeps "$dir/$name" "$probe" --train "$dir/${form}2.csv" --workers 2
done

# Features, images and clicks: their settings are kept, too.
gzip -dc "$data/digits.train.libsvm.gz" | head -n 300 >"$dir/digits"
gzip -dc "$data/digits.train.libsvm.gz" | tail -n 200 >"$dir/digits2"
train "$dir/F" --model mlp:64-8-10 --train "$dir/digits" --scale 0.1 --index-base 1 --epochs 1
keeps "$dir/F" "$dir/digits2" --train "$dir/digits2" --scale 0.1
"$downpour" generate clicks --rows 300 --seed 1 --out "$dir/clicks" >/dev/null
"$downpour" generate clicks --rows 200 --first 300 --seed 1 --out "$dir/clicks2" >/dev/null
train "$dir/K" --model fm:4 --train "$dir/clicks" --hash-bits 16 --epochs 1
keeps "$dir/K" "$dir/clicks2" --train "$dir/clicks2" --hash-bits 16

# The rate's schedule is said, and goes on if that is wanted.
train "$dir/K" --continue --train "$dir/clicks2" --rate 1e-30,decay=linear --epochs 1
said_text "The decay of the rate starts again (--schedule continue: it continues)."
train "$dir/K" --continue --epochs 1 --schedule continue
said_text "The decay of the rate continues after the earlier epochs."

# In another order the same training gives the same bits.
day 2 200 shop,c,late,size,a,b >"$dir/all3.csv"
for order in 2 3; do
    train "$dir/order$order" --model deepfm:4-8,columns=3,fields=2 --train "$dir/all1.csv" --label late --epochs 1 --no-overlap
    train "$dir/order$order" --continue --train "$dir/all$order.csv" --rate 0.1
    scores "$dir/order$order" "$dir/probe.csv"
    mv "$dir/scores" "$dir/scores.$order"
done
cmp -s "$dir/scores.2" "$dir/scores.3" || fail "another order of columns gives other weights"

# ---- what is refused is named, and changes nothing
refused() { # TEXT DIR FLAGS...
    local text=$1 to=$2
    shift 2
    expect 2 "$text" "$downpour" run --dir "$to" --continue --epochs 1 "$@"
}
L=$dir/logistic
scores "$L" "$dir/probe.csv"
mv "$dir/scores" "$dir/scores.kept"
cp "$L/current/columns.csv" "$dir/columns.kept"
refused "columns of the training file are missing: 'shop' (--missing-columns" "$L" --train <(day 2 9 late,size,a,b,c)
refused "columns are not in the training file: 'd' (--new-columns" "$L" --train <(day 2 9 $all,d)
refused "the label's column 'late' is missing" "$L" --train <(day 2 9 shop,c,size,a,b)
refused "label '1': expected one of the training file's: 'no', 'yes'" "$L" \
    --train <(day 2 9 $all | sed 's/,yes,/,1,/; s/,no,/,0,/')
refused "column 'a' (numbers in training): expected a number" "$L" \
    --train <(day 2 9 $all | sed 's/,\([-0-9.]*,[0-9.]*\)$/,x\1/')
refused "holds no examples" "$L" --train <(day 2 0 $all)
: >"$dir/nothing.csv"
refused "is empty" "$L" --train "$dir/nothing.csv"
refused "is a file of format csv" "$dir/F" --train "$dir/numbers2.csv" --label late
refused "--standardize (data.standardize) is no, but was yes when" "$L" --standardize no
refused "column 'a' is a category, but it was not a category" "$L" --categories shop,a,size
said_text "omit the flag, or train with --fresh or in another --dir"
refused "--scale (data.scale) is 0.2, but was 0.1 when" "$dir/F" --scale 0.2
refused "--hash-bits (data.hash_bits) is 63, but was 16 when" "$dir/K" --hash-bits 0
for damage in '$d' 's/^means,,0/means,,1/' 's/^version,3/version,1/' d; do
    sed -i -e "$damage" "$L/current/columns.csv"
    refused "columns.csv" "$L" --train "$dir/all2.csv"
    cp "$dir/columns.kept" "$L/current/columns.csv"
done
for of in logistic:all2.csv F:digits2 K:clicks2; do # formats that can be read without it, too
    name=${of%:*}
    mv "$dir/$name/current/columns.csv" "$dir/columns.away"
    refused "is not known (restore the file): $(realpath "$dir/$name/current")/columns.csv" \
        "$dir/$name" --train "$dir/${of#*:}"
    mv "$dir/columns.away" "$dir/$name/current/columns.csv"
done
cp "$dir/columns.kept" "$L/current/columns.csv"
scores "$L" "$dir/probe.csv"
cmp -s "$dir/scores" "$dir/scores.kept" || fail "other scores after runs that were refused"

# Accepted: what the schema has already, columns that the user gives up, only new categories, numbers as categories.
keeps "$L" "$dir/probe.csv" --train <(day 3 20 late,size,a,b,d) --standardize yes --scale 1 --hash-bits 63 \
    --categories size,shop --new-columns ignore --missing-columns empty --test <(day 4 20 late,d,size,a,b)
grep -qF "left out, as the model has no such column: 'd'" "$dir/err.trained" || fail "what was left out is not listed"
grep -qF "taken as empty, as the file has no such column: 'shop', 'c'" "$dir/err.trained" || fail "what was empty is not listed"
train "$dir/N1" --model logistic --train "$dir/all1.csv" --label late --epochs 1
refused "labels are texts such as 'no', which have no base" "$dir/N1" --label-base 1
train "$dir/N1" --continue --train <(day 2 20 $all | sed 's/,\([SML]\),/,X\1,/')
said_text "none of the 3 values of 'size' was in an earlier file"
# For that run only.
refused "(--missing-columns empty" "$L" --train <(day 3 20 late,size,a,b)
refused "(--new-columns ignore" "$L" # that run's file, which a refused one has not replaced
keeps "$L" "$dir/probe.csv" --train <(day 3 20 $all | sed 's/^shop\([0-9]\)_/1\1/') --test <(day 4 20 $all)
refused "(--missing-columns empty" "$L" --test <(day 4 20 late,size,a,b)
expect 0 "" "$downpour" predict --from "$L" --data <(day 4 20 d,size,a,b) --new-columns ignore --missing-columns empty
expect 2 "(--new-columns ignore" "$downpour" predict --from "$L" --data <(day 4 20 d,size,a,b) --missing-columns empty
cmp -s "$L/current/columns.csv" "$dir/columns.kept" || fail "another schema after further runs"
# --fresh reads the file for itself again.
train "$L" --fresh --model logistic --train "$dir/all2.csv" --label late --epochs 1
cmp -s "$L/current/columns.csv" "$dir/columns.kept" && fail "--fresh kept the schema"

# ---- the schema goes with a run that is killed and resumed, and with checkpoints and exports
D=$dir/deepfm
cp "$D/current/columns.csv" "$dir/columns.kept"
scores "$D" "$dir/probe.csv"
mv "$dir/scores" "$dir/scores.kept"
begin "$downpour" run --dir "$D" --continue --train "$dir/all2.csv" --epochs 100000 --rate 1e-30 --workers 2
left | xargs -r kill -KILL
wait "$pid" 2>/dev/null
gone
begin "$downpour" run --dir "$D" --resume
until_trained
kill -INT "$pid"
wait "$pid"
scores "$D" "$dir/probe.csv"
cmp -s "$dir/scores" "$dir/scores.kept" || fail "other scores after a kill and a resume"
"${downpour%/*}/downpour-server" --cluster "$D/cluster.conf" --server 0 2>"$dir/server.log" &
server=$!
wait_until 30 "$downpour" status --dir "$D" >"$dir/out" 2>"$dir/err" || fail "a server does not serve"
expect 0 "" "$downpour" checkpoint --cluster "$D/cluster.conf" --to "$dir/C"
kill "$server"
wait "$server"
expect 0 "this is run " "$downpour" run --from "$dir/C" --dir "$dir/N" --continue --train "$dir/all1.csv" --epochs 1 --rate 1e-30
scores "$dir/N" "$dir/probe.csv"
cmp -s "$dir/scores" "$dir/scores.kept" || fail "other scores after --from --continue"
expect 2 "columns of the training file are missing: 'size'" "$downpour" run --from "$dir/C" --dir "$dir/M" --continue \
    --train <(day 2 9 late,shop,a,b,c)
expect 0 "" "$downpour" export --from "$dir/N" --to "$dir/export"
cmp "$dir/export/columns.csv" "$dir/columns.kept" || fail "an export has another schema"
expect 0 "" "$downpour" import --from "$dir/export" --to "$dir/I" --like "$dir/N"
expect 0 "Report:" "$downpour" run --from "$dir/I" --dir "$dir/P" --continue --train "$dir/all2.csv" --epochs 1 --rate 1e-30
scores "$dir/P" "$dir/probe.csv"
cmp -s "$dir/scores" "$dir/scores.kept" || fail "other scores after export, import and --from --continue"

# ---- day after day, in other orders: the same bits as in one order, and as good as all days at once
days=${DP_LONG:+5}
days=${days:-3}
check_days() { # MODEL RATE COLUMNS [OTHER ORDERS]
    local name=${1%%:*} flags=(--label late --no-overlap --batch 32 --epochs 5 --rate "$2") i order steps
    day 0 3000 "$3" >"$dir/test.csv"
    day 1 0 "$3" >"$dir/days.csv"
    for i in $(seq "$days"); do
        order=$3
        [ $((i % 2)) = 1 ] || order=$4
        day "$i" 3000 "$order" >"$dir/day.csv"
        day "$i" 3000 "$3" | tail -n +2 >>"$dir/days.csv"
        if [ "$i" = 1 ]; then
            train "$dir/$name.days" --model "$1" --train "$dir/day.csv" --test "$dir/test.csv" "${flags[@]}"
        else
            train "$dir/$name.days" --continue --train "$dir/day.csv"
            grep -q "earlier_examples = $((3000 * (i - 1)))" "$dir/$name.days/current/cluster.conf" || fail "earlier days are not counted"
        fi
    done
    steps=$(sed -n 's/^Test set: .*AUC \([0-9.]*\),.*/\1/p' "$dir/out")
    train "$dir/$name.once" --model "$1" --train "$dir/days.csv" --test "$dir/test.csv" "${flags[@]}"
    awk -v name="$name" -v steps="$steps" '/^Test set: / {
            sub(/.*AUC /, "")
            print name ": AUC " steps " day by day, " $0 + 0 " at once"
            good = steps > 0.7 && steps > $0 - 0.002
        }
        END { exit !good }' "$dir/out" || fail "$name is worse day by day"
}
check_days logistic 0.03 $all late,b,size,shop,c,a
check_days mlp:3-16-8-1,loss=logistic 0.003 $numbers b,a,late,c
check_days deepfm:8-16-8,columns=3,fields=2 0.01 $all late,b,size,shop,c,a
