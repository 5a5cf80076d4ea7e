#!/usr/bin/env bash
# `downpour export` into a file of tensors (safetensors): the rows that inspect tells, the layers that .npy has, optimizer slots, from
# runs of all optimizers; what it cannot be is refused by name.
# usage: tensors.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "no python3: nothing is read"; exit 0; }

train() { # DIR FLAGS...
    local to=$1
    shift
    expect 0 "Report:" "$downpour" run --dir "$to" --journal-bytes 16MiB "$@"
}
tensors() { # FILE WHAT...
    python3 "$(dirname "$0")/tensors.py" "$@" >"$dir/out" 2>"$dir/err" || fail "tensors.py $*: $(cat "$dir/err")"
}
awk 'function draw(n) { seed = (seed * 1103515245 + 12345) % 2147483648; return int(seed / 65536) % n }
BEGIN { seed = 7; for (u = 0; u < 20; u++) for (i = 0; i < 8; i++) print u " " 100 + (u * 5 + i * i + draw(3)) % 30 }' >"$dir/pairs"

# Every optimizer, on two servers: each row's weights, step and slots.
for optimizer in sgd:- momentum:velocity adagrad:squares adam:m,v ftrl:n,z; do
    kind=${optimizer%:*} slots=${optimizer#*:}
    train "$dir/$kind" --model mf:4 --train "$dir/pairs" --epochs 2 --servers 2 --optimizer "$kind" --rate 0.01
    expect 0 "tensors" "$downpour" export --from "$dir/$kind" --to "$dir/$kind.safetensors" --slots
    tensors "$dir/$kind.safetensors" library
    tensors "$dir/$kind.safetensors" names
    wanted=$(printf '%s\n' keys weights step ${slots//[,-]/ } | sort | sed 's/^/mf.item./' | tr '\n' ' ')
    [ "$(tr ' ' '\n' <"$dir/out" | grep '^mf\.item\.' | tr '\n' ' ')" = "$wanted" ] || fail "$kind has $(cat "$dir/out")"
    for table in mf.item mf.user mf.user_bias; do
        "$downpour" inspect "$dir/$kind" --rows $table --limit 100 --json >"$dir/rows.json"
        tensors "$dir/$kind.safetensors" rows $table "$dir/rows.json"
    done
done

# Layers have the shape of the model, without what fills their last block; without --slots there are weights alone.
train "$dir/M" --model mlp:64-33-10 --train tests/data/digits.train.libsvm.gz --epochs 1 --shards 3
expect 0 "" "$downpour" export --from "$dir/M" --to "$dir/layers"
expect 0 "4 tensors" "$downpour" export --from "$dir/M" --to "$dir/M.safetensors"
expect 0 "18 tensors" "$downpour" export --from "$dir/M" --to "$dir/M.all" --format safetensors --slots
for layer in w1 b1 w2 b2; do
    for file in M.safetensors M.all; do
        tensors "$dir/$file" npy mlp.$layer "$dir/layers/mlp.$layer.npy"
    done
done
tensors "$dir/M.safetensors" library
tensors "$dir/M.all" library
cp "$dir/M.all" "$dir/M.again"
expect 0 "" "$downpour" export --from "$dir/M" --to "$dir/M.all" --format safetensors --slots
cmp "$dir/M.all" "$dir/M.again" || fail "another export of the same run has other bytes"
expect 0 "1 tensors" "$downpour" export --from "$dir/M" --to "$dir/one.safetensors" --table mlp.w2
tensors "$dir/one.safetensors" npy mlp.w2 "$dir/layers/mlp.w2.npy"

# What cannot be.
expect 2 "standard output takes text only" "$downpour" export --from "$dir/M" --to - --format safetensors
expect 2 "--slots needs a file of tensors, or a directory" "$downpour" export --from "$dir/M" --to "$dir/x.npy" --table mlp.w1 --slots
expect 2 "use npy, text or safetensors" "$downpour" export --from "$dir/M" --to "$dir/x" --format tensors
expect 2 "is no regular file" "$downpour" export --from "$dir/M" --to /dev/null --format safetensors
begin "$downpour" run --dir "$dir/K" --journal-bytes 16MiB --model mf:4 --train "$dir/pairs" --epochs 100000 --batch 4 --restarts 0
until_trained
left | xargs -r kill -STOP # at once: a server whose parent dies first would close
left | xargs -r kill -KILL
wait "$pid" 2>/dev/null
gone
expect 2 "was not closed cleanly, and its journal has pushes that it lacks" "$downpour" export --from "$dir/K" --to "$dir/K.safetensors" --slots
[ -e "$dir/K.safetensors" ] && fail "a file of what was refused"
expect 0 "" "$downpour" export --from "$dir/K" --to "$dir/K.safetensors" # weights, with the journal's pushes
tensors "$dir/K.safetensors" library

rest=$(ls "$TMPDIR")
[ -z "$rest" ] || fail "left in TMPDIR: $rest"
