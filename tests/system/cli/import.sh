#!/usr/bin/env bash
# `downpour import`: what export wrote comes back with the same digest, on any number of shards; weights that other programs wrote are
# trained on; every file that cannot be is refused by name, and leaves nothing.
# usage: import.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "no python3: no files to import"; exit 77; }
files=$(dirname "$0")/import_files.py

train() { # DIR FLAGS...
    local to=$1
    shift
    expect 0 "Report:" "$downpour" run --dir "$to" --journal-bytes 16MiB "$@"
}
digest() {
    "$downpour" inspect "$1" --digest 2>/dev/null | grep "^digest .* of all"
}
# restored CHECKPOINT RUN SHARDS: the digest of the checkpoint in the stores of another cluster
restored() {
    rm -rf "$dir/stores"
    mkdir "$dir/stores"
    awk -v shards="$3" '/^ *shards = / { $3 = shards ";" } /^ *port = / { $3 = 20000 + 100 * n++ ";" } { print }' "$2/cluster.conf" >"$dir/stores/cluster.conf"
    expect 0 "restored checkpoint" "$downpour" restore --from "$1" --cluster "$dir/stores/cluster.conf"
    digest "$dir/stores"
}
awk 'function draw(n) { seed = (seed * 1103515245 + 12345) % 2147483648; return int(seed / 65536) % n }
BEGIN { seed = 7; for (u = 0; u < 20; u++) for (i = 0; i < 8; i++) print u " " 100 + (u * 5 + i * i + draw(3)) % 30 }' >"$dir/pairs"

# The same digest, and the same bytes out of it again. AdamW and L2 move what lies behind the end of layers, too.
for optimizer in sgd adagrad adam ftrl; do
    train "$dir/$optimizer" --model mf:4 --train "$dir/pairs" --epochs 2 --servers 2 --optimizer $optimizer --rate 0.01
done
train "$dir/layers" --model mlp:64-33-10 --train "$data/digits.train.libsvm.gz" --epochs 1 --optimizer adamw,l2=0.01
for run in sgd adagrad adam ftrl layers; do
    expect 0 "" "$downpour" export --from "$dir/$run" --to "$dir/$run.safetensors" --slots
    expect 0 "slots included" "$downpour" import --from "$dir/$run.safetensors" --to "$dir/C.$run" --like "$dir/$run"
    expect 0 "all as their manifests say" "$downpour" inspect "$dir/C.$run" --verify
    before=$(digest "$dir/$run")
    [ -n "$before" ] && [ "$(restored "$dir/C.$run" "$dir/$run" 3)" = "$before" ] || fail "$run: another digest"
    expect 0 "" "$downpour" export --from "$dir/C.$run" --to "$dir/again.safetensors" --slots
    cmp "$dir/$run.safetensors" "$dir/again.safetensors" || fail "$run: another export of what was imported"
done
expect 0 "checkpoint 2 of mf:4" "$downpour" import --from "$dir/adam.safetensors" --to "$dir/C.adam" --like "$dir/C.adam"
[ "$(restored "$dir/C.adam/checkpoint-000002" "$dir/adam" 2)" = "$(digest "$dir/adam")" ] || fail "like a checkpoint: another digest"

# Weights alone, of another program: a training begins on them, with slots of its own.
python3 "$files" weights "$dir/layers.safetensors" "$dir/torch.safetensors"
expect 0 "the optimizer starts from zero" "$downpour" import --from "$dir/torch.safetensors" --to "$dir/C.torch" --like "$dir/layers"
expect 0 "" "$downpour" export --from "$dir/C.torch" --to "$dir/torch.again" --format safetensors
for layer in w1 b1 w2 b2; do
    expect 0 "" "$downpour" export --from "$dir/layers" --to "$dir/$layer.npy" --table mlp.$layer
    python3 "$(dirname "$0")/tensors.py" "$dir/torch.again" npy mlp.$layer "$dir/$layer.npy" || fail "other weights of $layer"
done
expect 0 "Run 1 goes on from checkpoint 1 (no run in it" "$downpour" run --from "$dir/C.torch" --dir "$dir/trained"
python3 "$files" weights "$dir/adam.safetensors" "$dir/weights.safetensors"
expect 0 "the optimizer starts from zero" "$downpour" import --from "$dir/weights.safetensors" --to "$dir/C.weights" --like "$dir/adam"
python3 "$files" backward "$dir/adam.safetensors" "$dir/backward.safetensors"
expect 0 "the optimizer starts from zero" "$downpour" import --from "$dir/backward.safetensors" --to "$dir/C.backward" --like "$dir/adam"
[ "$(restored "$dir/C.backward" "$dir/adam" 3)" = "$(restored "$dir/C.weights" "$dir/adam" 3)" ] || fail "keys in another order give other rows"
if python3 "$files" library "$dir/adam.safetensors" "$dir/library.safetensors"; then
    expect 0 "the optimizer starts from zero" "$downpour" import --from "$dir/library.safetensors" --to "$dir/C.library" --like "$dir/adam"
    [ "$(restored "$dir/C.library" "$dir/adam" 3)" = "$(restored "$dir/C.weights" "$dir/adam" 3)" ] || fail "the library's file gives other rows"
else
    echo "skipped: a file written by the library safetensors, which is not installed"
fi

# A row with its initial weights is one, where no step says that it was never pushed.
printf 'a,b,y\n1,x,0\n2,y,1\n3,x,1\n4,y,0\n' >"$dir/symmetric.csv"
train "$dir/zeros" --model logistic --train "$dir/symmetric.csv" --label y --epochs 2
expect 0 "" "$downpour" export --from "$dir/zeros" --to "$dir/zeros.safetensors"
expect 0 "2 tables, 3 rows" "$downpour" import --from "$dir/zeros.safetensors" --to "$dir/C.zeros" --like "$dir/zeros"

# Names and columns come from what it is like, a run or a checkpoint; a checkpoint without them is named, not where it was restored.
expect 0 "" "$downpour" export --from "$dir/zeros" --to "$dir/zeros.txt"
sed 's/zeros\.columns/again.columns/' "$dir/zeros.txt" >"$dir/zeros.wanted"
for like in zeros C.zeros; do
    expect 0 "checkpoint" "$downpour" import --from "$dir/zeros.safetensors" --to "$dir/C.$like.again" --like "$dir/$like"
    expect 0 "" "$downpour" export --from "$dir/C.$like.again" --to "$dir/again.txt"
    cmp "$dir/zeros.wanted" "$dir/again.txt" && cmp "$dir/zeros.columns.csv" "$dir/again.columns.csv" || fail "like $like: other names"
done
rm "$dir/zeros/current/"{names,columns}.*
expect 0 "checkpoint 1" "$downpour" import --from "$dir/zeros.safetensors" --to "$dir/C.nameless" --like "$dir/zeros"
expect 2 "the checkpoint $dir/C.nameless/checkpoint-000001 has no names of its keys" "$downpour" export --from "$dir/C.nameless" --to "$dir/x.txt"
expect 0 "'$dir/C.nameless' has no columns" "$downpour" export --from "$dir/C.nameless" --to "$dir/x.txt" --no-names

# A directory of .npy files: export's own with slots gives the same digest; its weights alone, or those that somebody wrote by hand,
# those of the file of tensors. What an earlier export left there is no part of a later one.
for run in adagrad adam layers; do
    expect 0 "" "$downpour" export --from "$dir/$run" --to "$dir/npy.$run/" --slots
    expect 0 "slots included" "$downpour" import --from "$dir/npy.$run" --to "$dir/N.$run" --like "$dir/$run"
    [ "$(restored "$dir/N.$run" "$dir/$run" 3)" = "$(digest "$dir/$run")" ] || fail "$run as .npy: another digest"
done
grep -q '"keys": "mf.item.keys.npy"' "$dir/npy.adam/manifest.json" && [ -e "$dir/npy.adam/mf.item.v.npy" ] || fail "the manifest has no keys"
expect 0 "" "$downpour" export --from "$dir/adam" --to "$dir/npy.adam/"
[ -e "$dir/npy.adam/mf.item.v.npy" ] && fail "files of an earlier export are left"
python3 "$files" npy "$dir/adam.safetensors" "$dir/npy.hand"
for form in adam hand; do
    expect 0 "the optimizer starts from zero" "$downpour" import --from "$dir/npy.$form" --to "$dir/N.$form.weights" --like "$dir/adam"
    [ "$(restored "$dir/N.$form.weights" "$dir/adam" 3)" = "$(restored "$dir/C.weights" "$dir/adam" 3)" ] || fail "$form: other rows"
done

# What cannot be.
for kind in bad bad_npy; do
    mkdir "$dir/$kind"
    python3 "$files" $kind "$dir/adam.safetensors" "$dir/$kind" >"$dir/$kind.list" || fail "no bad files"
    while IFS=$'\t' read -r name text; do
        expect 2 "$text" "$downpour" import --from "$dir/$kind/$name" --to "$dir/C.bad" --like "$dir/adam"
        grep -qF "$dir/$kind/$name" "$dir/err" || fail "$name: the file is not named"
    done <"$dir/$kind.list"
done
[ "$(cat "$dir/bad.list" "$dir/bad_npy.list" | wc -l)" -gt 40 ] || fail "bad files are missing"
expect 2 "No such file or directory" "$downpour" import --from "$dir/none" --to "$dir/C.bad" --like "$dir/adam"
expect 2 "is no run's directory, no checkpoint and no cluster file" "$downpour" import --from "$dir/adam.safetensors" --to "$dir/C.bad" --like "$dir/none"
expect 2 "the file has no tensor 'mlp.w1'" "$downpour" import --from "$dir/adam.safetensors" --to "$dir/C.bad" --like "$dir/layers"
expect 2 "lies inside" "$downpour" import --from "$dir/adam.safetensors" --to "$dir/adam/store/server-0/C" --like "$dir/adam"
expect 2 "--like is required" "$downpour" import --from "$dir/adam.safetensors" --to "$dir/C.bad"
[ -e "$dir/C.bad" ] && fail "a refusal left a directory"
[ -z "$(find "$dir" -name 'making-*')" ] || fail "a checkpoint in the making is left"
rest=$(ls "$TMPDIR")
[ -z "$rest" ] || fail "left in TMPDIR: $rest"
