#!/usr/bin/env bash
# A comparison: modes, samples scored, a mode that fails or diverges, a rate chosen on other seeds and data, signals, and what is refused.
# usage: compare.sh PATH/TO/downpour
. "$(dirname "$0")/../cli/lib.sh"

job=(--model mlp:64-16-10 --train tests/data/digits.train.libsvm.gz --test tests/data/digits.test.libsvm.gz --scale 0.1 --rate 0.01
    --journal-bytes 16MiB --cache-bytes 64MiB --sample-every 50ms)

one=("${job[@]}" --lr-grid none) # rate for all modes

# of FILE JQ-LIKE: python3 prints the expression over the report r.
of() {
    python3 -c "import json, sys; r = json.load(open(sys.argv[1])); print($2)" "$1"
}
is() { # FILE EXPRESSION VALUE
    [ "$(of "$1" "$2")" = "$3" ] || fail "$2 of $1 is '$(of "$1" "$2")', not '$3'"
}

# --- refused before anything is made
expect 2 "--test FILE is required" "$downpour" compare --dir "$dir/no" --model logistic --train tests/data/digits.train.libsvm.gz
expect 2 "the workers are 0 .. 3" "$downpour" compare --dir "$dir/no" "${job[@]}" --workers 4 --inject straggler=4:10x
expect 2 "'assync' is no mode" "$downpour" compare --dir "$dir/no" "${job[@]}" --modes assync
expect 2 "there is no model 'mpl'" "$downpour" compare --dir "$dir/no" "${job[@]/mlp:64-16-10/mpl:64}"
[ ! -e "$dir/no" ] || fail "a refused comparison left a directory"
mkdir "$dir/mine"
echo mine >"$dir/mine/report.json"
expect 2 "has other files" "$downpour" compare --dir "$dir/mine" "${job[@]}" --overwrite
[ "$(cat "$dir/mine/report.json")" = mine ] || fail "somebody's file was replaced"

expect 2 "mode async: --inject straggler=1:10x multiplies pace, which is not given: add pace=TIME" "$downpour" compare --dir "$dir/no" \
    "${job[@]}" --workers 2 --inject straggler=1:10x
[ ! -e "$dir/no" ] || fail "a refused comparison left a directory"

# --- said at once, not once for each seed
expect 2 "this model has no 'auc' on this test set, but loss, logloss, accuracy" "$downpour" compare --dir "$dir/auc" "${job[@]}" --epochs 1 \
    --target auc:0.9
expect 2 "write mlp:64-16-10, or" "$downpour" compare --dir "$dir/bad" \
    "${job[@]/mlp:64-16-10/mlp:63-16-10}" --modes async,sync
[ ! -e "$dir/bad" ] || fail "a comparison that was refused left a directory"
expect 2 "No mode ended well with the first seed" "$downpour" compare --dir "$dir/bad" "${job[@]:0:8}" "${job[@]:10}" \
    --modes sync,ssp:1 --workers 2 --batch 8 --optimizer sgd,l2=1 --rate 100 --lr-grid none
if command -v python3 >/dev/null; then
    # The cause is the message that names it, and not the run's last line.
    is "$dir/bad/report.json" '[(x["status"], x["diverged"], x["error"][:38]) for x in r["runs"]]' \
        "[('failed', True, 'training has diverged in epoch 1, mini'), ('failed', True, 'training has diverged in epoch 1, mini')]"
fi

# --- two modes that train, and one that cannot: without mpirun
mkdir "$dir/bin"
for program in env cat; do ln -s "$(command -v $program)" "$dir/bin/"; done
to=$dir/cmp
expect 0 "Page:      $to/report.html" env PATH="$dir/bin" "$downpour" compare --dir "$to" "${one[@]}" --workers 2 --seeds 2 --epochs 3 \
    --modes async,sync,allreduce --inject pace=2ms
said "With two seeds no difference can be shown: that takes three .--seeds."
said "^     about [0-9]+ s for the other 5 runs"
[ "$(cat "$dir/out" "$dir/err" | grep -c "for the other")" = 1 ] || fail "the time that is left is said again"
said "allreduce, seed 1 +failed: (mpirun is not installed|this build has no downpour-allreduce)"
grep -q "allreduce failed with 2 of 2 seeds" "$to/report.html" || fail "the page does not tell of the mode that failed"
expect 0 "Page:      $to/report.html" "$downpour" report "$to"
if command -v python3 >/dev/null; then
    is "$to/report.json" 'r["kind"], r["finished"]' "comparison True"
    is "$to/report.json" '[x["mode"] for x in r["runs"]]' "['async', 'sync', 'allreduce', 'sync', 'allreduce', 'async']"
    is "$to/report.json" '[x["seed"] for x in r["runs"]]' "[1, 1, 1, 2, 2, 2]"
    is "$to/report.json" '[x["status"] for x in r["runs"]]' "['ok', 'ok', 'failed', 'ok', 'failed', 'ok']"
    is "$to/report.json" '[(x["report"]["settings"]["consistency"], x["report"]["settings"]["seed"]) for x in r["runs"] if x["status"] == "ok"]' \
        "[('async', 1), ('sync', 1), ('sync', 2), ('async', 2)]"
    is "$to/report.json" 'r["settings"]["metric"]' accuracy
    is "$to/report.json" '[x["samples"][-1]["examples"] for x in r["runs"] if x["status"] == "ok"]' "[4311, 4311, 4311, 4311]"
    is "$to/report.json" '[tuple(x["report"]["applied"].values()) for x in r["runs"] if x["status"] == "ok"]' \
        "[(4311, 4311), (4311, 4311), (4311, 4311), (4311, 4311)]"
    is "$to/report.json" '[0 < x["efficiency"] < 1.01 and x["least_seconds"] > 0.05 for x in r["runs"] if x["status"] == "ok"]' \
        "[True, True, True, True]"
    is "$to/report.json" '[sum(s["by"] == "examples" for s in x["samples"]) >= 8 for x in r["runs"] if x["status"] == "ok"]' \
        "[True, True, True, True]"
    is "$to/report.json" '[x["machine"]["load"] >= 0 for x in r["runs"]]' "[True, True, True, True, True, True]"
    is "$to/report.json" '[x.get("scored_examples") for x in r["runs"]]' "[360, 360, None, 360, None, 360]"
    # Sync has equal bits in each run, so its last sample is what a run with --test reports.
    expect 0 "Report:" "$downpour" run --dir "$dir/one" "${job[@]:0:12}" --workers 2 --epochs 3 --consistency sync
    is "$to/report.json" '"%.6f" % [x["samples"][-1]["loss"] for x in r["runs"] if x["mode"] == "sync" and x["seed"] == 1][0]' \
        "$(of "$dir/one/report.json" '"%.6f" % r["final"]["test"]["loss"]')"
fi
ls -d "$to"/runs/*/*/store/server-0 2>/dev/null && fail "stores are kept"
expect 2 "a comparison is in '$to' already" "$downpour" compare --dir "$to" "${job[@]}"

# --- a rate for each mode, on a seed of its own and a fifth of the training set; a target that nothing reaches; the weights are kept
expect 0 "Page:" "$downpour" compare --dir "$to" --overwrite "${job[@]:0:8}" "${job[@]:10}" --lr-grid 1e-9,0.01 --seeds 1 --epochs 1 \
    --modes sync,async --target accuracy:1 --keep-stores
said "Rate of sync: 0.01"
said "Rate of async: 0.01"
[ -d "$to/runs/sync/seed-1/store/server-0" ] || fail "--keep-stores kept no store"
if command -v python3 >/dev/null; then
    is "$to/grid/sync/0.01-seed-1001/report.json" 'r["epochs"][0]["examples"], r["settings"]["overlap"]' "1150 False"
    is "$to/grid/sync/0.01-seed-1001/samples.json" 'r["set"]' validation
fi
[ ! -e "$to/runs/allreduce" ] || fail "--overwrite left runs of the comparison before"
grep -q "No mode reached accuracy 1" "$to/report.html" || fail "the page does not say that the target was not reached"
grep -q "(chosen)" "$to/report.html" || fail "the page does not have the rates"

# --- stopped: its children with it, and what has ended stays
"$downpour" compare --dir "$dir/stopped" "${one[@]}" --modes sync,async --seeds 3 --epochs 2 --inject pace=5ms >"$dir/run.out" 2>"$dir/run.err" &
pid=$!
wait_until 60 grep -q "^  1/6" "$dir/run.err" || fail "no run ended within a minute"
kill -TERM "$pid"
wait "$pid"
[ $? = 143 ] || fail "a stopped comparison does not end with 143"
gone "a stopped comparison"
expect 0 "Page:" "$downpour" report "$dir/stopped"
grep -q "This comparison is not finished" "$dir/stopped/report.html" || fail "the page does not say that it is not finished"

# --- gone on with: what had ended well is kept, as it was; by no other flags, and on no other machine
grep -q "downpour compare --dir $dir/stopped --resume" "$dir/run.err" || fail "a stopped comparison does not say how to go on"
expect 2 "give no flag but --dir" "$downpour" compare --dir "$dir/stopped" --resume --seeds 4
expect 2 "cannot read '$dir/nowhere/report.json'" "$downpour" compare --dir "$dir/nowhere" --resume
if command -v python3 >/dev/null; then
    mkdir "$dir/other"
    sed 's/"processor": ".*"/"processor": "of another"/' "$dir/stopped/report.json" >"$dir/other/report.json"
    expect 2 "was started on another machine" "$downpour" compare --dir "$dir/other" --resume
    first=$(of "$dir/stopped/report.json" 'r["runs"][0]["wall_seconds"], r["began"], r["command"]')
fi
touch "$dir/stopped/runs/sync/seed-1/mine" # of a run that is kept
expect 0 "Page:" sh -c 'cd / && exec "$0" compare --dir "$1" --resume' "$downpour" "$dir/stopped"
said "Going on with comparing 2 modes with 3 seeds each"
[ -e "$dir/stopped/runs/sync/seed-1/mine" ] || fail "a run that had ended well was made again"
if command -v python3 >/dev/null; then
    is "$dir/stopped/report.json" 'r["runs"][0]["wall_seconds"], r["began"], r["command"]' "$first"
    is "$dir/stopped/report.json" 'r["finished"], [(x["mode"], x["seed"], x["status"]) for x in r["runs"]]' \
        "True [('sync', 1, 'ok'), ('async', 1, 'ok'), ('async', 2, 'ok'), ('sync', 2, 'ok'), ('sync', 3, 'ok'), ('async', 3, 'ok')]"
fi
expect 2 "is finished" "$downpour" compare --dir "$dir/stopped" --resume
