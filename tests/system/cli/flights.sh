#!/usr/bin/env bash
# Most columns of a table are codes that look like numbers. The hint names them; with it a model's defaults reach the true
# one. They start at the odds of the label, and end at a rate of 0.
# usage: flights.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

flights() { # DIR MODEL FLAGS...
    local to=$1 model=$2
    shift 2
    expect 0 "label: late (yes " "$downpour" run --dir "$to" --model "$model" --train "$dir/train.csv" --test "$dir/test.csv" \
        --label late --durability none "$@"
}

# holds DIR EXPRESSION: of the report r
holds() {
    python3 -c "import json, sys; r = json.load(open(sys.argv[1] + '/report.json')); sys.exit(not ($2))" "$1" || fail "$1/report.json: not $2"
}

# auc DIR: less that of the true model
auc() {
    python3 -c "import json, sys; print(json.load(open(sys.argv[1] + '/report.json'))['final']['test']['auc'] - $(cat "$dir/true"))" "$1"
}

# made PREFIX ROWS CONSTANT SEED: trains on as many rows; the AUC of the true model
made() {
    python3 - "$dir/$1" "${@:2}" >"$dir/true" <<'PY'
import math, random, sys
rows, constant = int(sys.argv[2]), float(sys.argv[3])
random.seed(int(sys.argv[4]))
sizes = {'month': 12, 'hour': 19, 'carrier': 16, 'dest': 60}
effect = {name: [random.gauss(0, 0.8) for _ in range(size)] for name, size in sizes.items()}
ranked = []
for part, rows in (('train', rows), ('test', 4000 if constant == 1 else 10000)):
    with open(f'{sys.argv[1]}{part}.csv', 'w') as f:
        f.write('id,month,hour,carrier,dest,wind,late\n')
        for i in range(rows):
            code = {name: random.randrange(size) for name, size in sizes.items()}
            wind = random.gauss(10, 4)
            p = 1 / (1 + math.exp(constant - 0.1 * (wind - 10) - sum(effect[name][code[name]] for name in sizes)))
            late = random.random() < p
            ranked += [(p, late)] if part == 'test' else []
            f.write(f"{i * 3 + i % 2},{','.join(str(code[name] + 1) for name in sizes)},{wind:.2f},{'yes' if late else 'no'}\n")
below = wins = 0
for p, late in sorted(ranked):
    wins += below * late
    below += not late
print(wins / below / (len(ranked) - below))
PY
}
made "" 12000 1 7
flights "$dir/numbers" logistic --epochs 4 --batch 32 --rate 0.01
holds "$dir/numbers" "r['settings']['rate'] == 0.01 and r['settings']['decay'] == 'none'"
said_text "numbers: id, month (12 values), hour (19 values), carrier (16 values), dest (60 values), wind"
said_text "id: each value is above the one before, as ids and times are; to leave it out: --ignore id"
said_text "month has 12, hour has 19, carrier has 16, dest has 60 whole values: if they are codes, not amounts"
hint=$(grep -oE -m 1 -e '--categories [a-z,]+' "$dir/out")
[ "$hint" = "--categories month,hour,carrier,dest" ] || fail "the hint is '$hint'"
# shellcheck disable=SC2086
flights "$dir/codes" wide-deep:16-64 $hint --ignore id
said_text "categories: month (12), hour (19), carrier (16), dest (60)"
unsaid "whole values"
python3 -c "import sys; sys.exit(not ($(auc "$dir/numbers") < -0.1 and $(auc "$dir/codes") > -0.01))" ||
    fail "AUC less that of the true model: $(auc "$dir/numbers") with numbers, $(auc "$dir/codes") with codes"
holds "$dir/codes" "r['settings']['decay'] == 'linear'"

# Another flag than the rate does not change it, and another optimizer may not have it.
flights "$dir/odds" logistic --epochs 1 --rate 1e-30
holds "$dir/odds" "abs(r['epochs'][0]['train_loss'] - r['constant']['loss']) < 0.01"
flights "$dir/own" fm:4 --epochs 1 --rate decay=cosine
holds "$dir/own" "r['settings']['rate'] == 0.001 and r['settings']['decay'] == 'cosine'"
flights "$dir/ftrl" logistic --epochs 1 --optimizer ftrl
holds "$dir/ftrl" "r['settings']['decay'] == 'none'"
expect 2 "weights of ftrl are a function of the rate" "$downpour" run --dir "$dir/ftrl" --continue --rate decay=linear
# A later command's rate, or optimizer, does not take the default's decay over, but one that was given.
again() { # DECAY FLAGS...
    expect 0 "Report:" "$downpour" run --dir "$dir/odds" --epochs 1 "${@:2}"
    holds "$dir/odds" "r['settings']['decay'] == '$1'"
}
flights "$dir/odds" logistic --epochs 1 --fresh
again linear --continue
again none --continue --rate 0.05
again linear --fresh --rate decay=linear
again linear --continue --rate 0.04
again linear --fresh --rate 0.05
again none --fresh --optimizer ftrl

# 1% are late. Below the true model: 0.03, without the prior and its steps 0.14.
made rare. 8000 5.5 7
expect 0 "" "$downpour" run --dir "$dir/rare" --model fm:8 --train "$dir/rare.train.csv" --test "$dir/rare.test.csv" \
    --label late --categories month,hour,carrier,dest --ignore id --durability none
python3 -c "import sys; sys.exit(not $(auc "$dir/rare") > -0.07)" || fail "AUC less that of the true model: $(auc "$dir/rare")"
