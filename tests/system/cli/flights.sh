#!/usr/bin/env bash
# Most columns of a table are codes that look like numbers. The hint names them; with it the model is near the true one.
# usage: flights.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

flights() { # DIR FLAGS...
    local to=$1
    shift
    expect 0 "label: late (yes " "$downpour" run --dir "$to" --model logistic --train "$dir/train.csv" --test "$dir/test.csv" \
        --label late --epochs 4 --batch 32 --rate 0.01 --journal-bytes 16MiB "$@"
}

# auc DIR: less that of the true model
auc() {
    python3 -c "import json, sys; print(json.load(open(sys.argv[1] + '/report.json'))['final']['test']['auc'] - $(cat "$dir/true"))" "$1"
}

python3 - "$dir" >"$dir/true" <<'PY'
import math, random, sys
random.seed(7)
sizes = {'month': 12, 'hour': 19, 'carrier': 16, 'dest': 60}
effect = {name: [random.gauss(0, 0.8) for _ in range(size)] for name, size in sizes.items()}
ranked = []
for part, rows in (('train', 12000), ('test', 4000)):
    with open(f'{sys.argv[1]}/{part}.csv', 'w') as f:
        f.write('id,month,hour,carrier,dest,wind,late\n')
        for i in range(rows):
            code = {name: random.randrange(size) for name, size in sizes.items()}
            wind = random.gauss(10, 4)
            p = 1 / (1 + math.exp(1 - 0.1 * (wind - 10) - sum(effect[name][code[name]] for name in sizes)))
            late = random.random() < p
            ranked += [(p, late)] if part == 'test' else []
            f.write(f"{i * 3 + i % 2},{','.join(str(code[name] + 1) for name in sizes)},{wind:.2f},{'yes' if late else 'no'}\n")
below = wins = 0
for p, late in sorted(ranked):
    wins += below * late
    below += not late
print(wins / below / (len(ranked) - below))
PY
flights "$dir/numbers"
said_text "numbers: id, month (12 values), hour (19 values), carrier (16 values), dest (60 values), wind"
said_text "id: each value is above the one before, as ids and times are; to leave it out: --ignore id"
said_text "month has 12, hour has 19, carrier has 16, dest has 60 whole values: if they are codes, not amounts"
hint=$(grep -oE -m 1 -e '--categories [a-z,]+' "$dir/out")
[ "$hint" = "--categories month,hour,carrier,dest" ] || fail "the hint is '$hint'"
# shellcheck disable=SC2086
flights "$dir/codes" $hint --ignore id
said_text "categories: month (12), hour (19), carrier (16), dest (60)"
unsaid "whole values"
python3 -c "import sys; sys.exit(not ($(auc "$dir/numbers") < -0.1 and $(auc "$dir/codes") > -0.02))" ||
    fail "AUC less that of the true model: $(auc "$dir/numbers") with numbers, $(auc "$dir/codes") with codes"
