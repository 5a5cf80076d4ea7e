#!/usr/bin/env bash
# The downpour command as a user has it: wrong flags and files, a whole run, going on, predicting, signals, and children
# that fail, hang or never answer. usage: cli.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"
bin=$(dirname "$downpour")

# The exit code of a child that is to end; one that does not is killed, with all that it started.
ended() {
    wait_until 90 has_ended "$1" || fail "process $1 did not end within 90 s"
    kill -KILL "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}

echo "one line" >"$dir/file"

# --- flags
expect 2 "Usage: downpour COMMAND" "$downpour"
expect 0 "Usage: downpour COMMAND" "$downpour" --help
expect 0 "downpour 0." "$downpour" --version
expect 2 "unknown command 'ruin' (did you mean 'run'?)" "$downpour" ruin
for command in run predict status; do
    expect 0 "Usage: downpour $command" "$downpour" $command --help
    expect 2 "unknown flag '--frobnicate'" "$downpour" $command --frobnicate 1
    case $command in
    status) expect 2 "give either --cluster FILE or --dir DIR" "$downpour" $command ;;
    *) expect 2 "is required" "$downpour" $command ;;
    esac
done
expect 2 "cannot generate 'click'" "$downpour" generate click --rows 3
expect 2 "give the kind of data" "$downpour" generate --rows 3
expect 2 "--rows N is required" "$downpour" generate clicks
expect 2 "--rows" "$downpour" generate clicks --rows 0
expect 2 "--features" "$downpour" generate clicks --rows 3 --features=1
expect 2 "cannot write '/nonexistent/x': there is no directory" "$downpour" generate clicks --rows 3 --out=/nonexistent/x
expect 2 "cannot write '/dev/full': No space" "$downpour" generate clicks --rows 300000 --out=/dev/full
base=("$downpour" run --dir "$dir/run")
expect 2 "'--epoch' (did you mean '--epochs'?)" "${base[@]}" --epoch 3
expect 2 "--epochs" "${base[@]}" --epochs 1000001
expect 2 "--epochs" "${base[@]}" --epochs three
expect 2 "--rate" "${base[@]}" --rate -1
expect 2 "--optimizer is 'adem'" "${base[@]}" --optimizer adem
expect 2 "flag '--beta1' is now '--optimizer beta1=X'" "${base[@]}" --beta1 0.9
expect 2 "'checkpoints' is now 'downpour inspect DIR'" "$downpour" checkpoints "$dir"
expect 2 "'verify' is now 'downpour inspect DIR --verify'" "$downpour" verify "$dir"
expect 2 "--optimizer l1 is not a setting of the optimizer 'adam'" "${base[@]}" --optimizer l1=1
expect 2 "--servers" "${base[@]}" --servers 0
expect 2 "--shards" "${base[@]}" --shards 65
expect 2 "--timeout" "${base[@]}" --timeout 0
expect 2 "--seed" "${base[@]}" --seed 18446744073709551616
expect 2 "--cache-bytes" "${base[@]}" --cache-bytes 12QB
expect 2 "'--rate' is given twice" "${base[@]}" --rate 1 --rate 2
expect 2 "unexpected argument 'x'" "${base[@]}" x
ok=("${base[@]}" --model logistic --train "$dir/file")
expect 2 "--model MODEL is required" "${base[@]}" --train "$dir/file"
expect 2 "--train FILE is required" "${base[@]}" --model logistic
expect 2 "--train: cannot read '/nonexistent'" "${base[@]}" --model logistic --train /nonexistent
expect 2 "--test: cannot read '/nonexistent'" "${ok[@]}" --test /nonexistent
expect 2 "--report: cannot write '/nonexistent/r.json': there is no directory '/nonexistent'" "${ok[@]}" --report /nonexistent/r.json
expect 2 "make directory /dev/null: a file is in the way" "$downpour" run --model logistic --train "$dir/file" --dir=/dev/null/x
expect 2 "--port" "${ok[@]}" --port 65536
expect 2 "cannot read '/nonexistent'" "${ok[@]}" --cluster /nonexistent
printf 'name = "x";\nmodle = "y";\n' >"$dir/bad.conf"
expect 2 "bad.conf:2: unknown key 'modle'; did you mean 'model'?" "$downpour" status --cluster "$dir/bad.conf"
expect 2 "cannot read '/nonexistent'" "$downpour" status --cluster /nonexistent
expect 2 "is not the directory of a run" "$downpour" predict --from "$dir" --data "$dir/file"
expect 2 "--data: cannot read" "$downpour" predict --from "$dir" --data /nonexistent
expect 2 "--test labels names a file, but --test, which it belongs to, names none" "${ok[@]}" --test labels="$dir/file"
expect 2 "--test negatives names a file" "${ok[@]}" --test negatives="$dir/file"
expect 2 "--validation labels names a file" "${ok[@]}" --validation labels="$dir/file"
expect 2 "--validation negatives names a file" "${ok[@]}" --validation share=0.1 --validation negatives="$dir/file"
expect 2 "--validation and --validation share: give one of them" "${ok[@]}" --validation share=0.1 --validation "$dir/file"
digits=("${base[@]}" --model mlp:64-10 --train "$data/digits.train.libsvm.gz" --durability none) tested=(--test "$data/digits.test.libsvm.gz")
expect 2 "did you mean 'accuracy'?" "${digits[@]}" "${tested[@]}" --stop-at acuracy:0.5
expect 2 "accuracy is never above 1" "${digits[@]}" "${tested[@]}" --stop-at accuracy:1.5
expect 2 "loss is never 0 or below" "${digits[@]}" "${tested[@]}" --stop-at loss:0
expect 2 "this model does not have two classes, so no auc" "${digits[@]}" "${tested[@]}" --stop-at auc:0.5
expect 2 "hr@10 needs ranked lists" "${digits[@]}" --stop-at hr@10:0.5 --validation share=0.1
expect 2 "gives no number of epochs" "${digits[@]}" "${tested[@]}" --patience metric=auc
expect 2 "there is nothing to evaluate: give --validation a file, or set --validation share=0.1" "${digits[@]}" --patience 2
expect 2 "--validation names a file, and '0.2' is none: a share of --train is held out by --validation share=0.1" "${digits[@]}" --validation 0.2
expect 2 "--test names a file, and 'share=0.2' is none" "${digits[@]}" --test share=0.2
expect 2 "--validation share" "${digits[@]}" --validation share=1
expect 2 "--validation: cannot read '/nonexistent/file'" "${digits[@]}" --validation /nonexistent/file
expect 2 "--inject jitter is exp, which multiplies the time of a minibatch, but --inject pace gives no time: give one" "${digits[@]}" --inject jitter=exp
expect 2 "--inject straggler has \"3:10x\", but the workers are 0 .. 2: name one of them, or raise --workers" "${digits[@]}" --workers 3 --inject straggler=3:10x
expect 2 "--inject straggler has \"1:0x\", but must be WORKER:FACTORx" "${digits[@]}" --workers 3 --inject straggler=1:0x
expect 2 "--inject pace: '20' is not a time with a unit" "${digits[@]}" --inject pace=20
expect 2 "--inject pace: '2h' is not a time with a unit" "${digits[@]}" --inject pace=2h
expect 2 "lower one of them" "${digits[@]}" --workers 3 --inject pace=60s,straggler=1:100x
expect 2 "--rate end is 0.1, but decay \"none\" does not end at a rate: give --rate decay" "${ok[@]}" --rate 0.2,end=0.1
expect 2 "--precision is tf32, but the CPU computes in f32: give --device a GPU" "${ok[@]}" --precision tf32
expect 2 "--consistency is \"bsp\", but must be async, ssp:S (S: steps that a worker may be ahead of the slowest, 0 .. 1000000), sync or sync:B (B: workers that a step does not wait for, 1 .. 1023)" \
    "${ok[@]}" --consistency bsp
expect 2 "--consistency is \"\", but must be async" "${ok[@]}" --consistency ''
expect 2 "did you mean 'sync'?" "${ok[@]}" --consistency synch
expect 2 "--consistency is \"sync:0\", but must be" "${ok[@]}" --consistency sync:0
expect 2 "--consistency is sync:2, whose steps do not wait for the slowest 2, but --workers is 2: give more" \
    "${ok[@]}" --consistency sync:2 --workers 2
expect 2 "--fetch-every is 5, which pulls the weights of up to 5 steps at once, but --consistency is ssp:3: give it 4 steps or more" \
    "${ok[@]}" --consistency ssp:3 --fetch-every 5
expect 2 "--consistency is sync, which pulls the weights of each step, but --fetch-every is 2: leave it out" \
    "${ok[@]}" --consistency sync --fetch-every 2
expect 2 "--consistency is sync, which keeps pushes in a journal until a step is complete, but --durability is none: give it machine or process" \
    "${ok[@]}" --consistency sync --durability none
expect 2 "--accumulate is 2, which is both fetched and pushed together: leave --fetch-every and --push-every out" "${ok[@]}" --accumulate 2 --push-every 2
expect 2 "the name of a file or directory is empty" bash -c "cd '$dir' && '$downpour' run --model logistic --train '$dir/file' --dir ''"
expect 2 "--rate: 'nan' is not a number from" "${ok[@]}" --rate nan
expect 2 "--rate: 'inf' is not a number from" "${ok[@]}" --rate inf
long=$(printf 'x%.0s' $(seq 5000))
for flag in --train --test --cache; do expect 2 "$flag is longer than 1023 bytes" "${base[@]}" --model logistic $flag "$long"; done
expect 2 "is longer than 1023 bytes" "$downpour" run --model logistic --train "$dir/file" --dir "$long"
expect 2 "File name too long" "${ok[@]}" --report "$long"
expect 2 "File name too long" "$downpour" predict --from "$dir" --data "$long"
expect 2 "is longer than 1023 bytes" "$downpour" predict --from "$long" --data "$dir/file"
expect 2 "File name too long" "$downpour" status --cluster "$long"
expect 2 "File name too long" "$downpour" generate clicks --rows 1 --out "$long"
expect 2 "is a directory" "${ok[@]}" --report "$dir"
expect 2 "cannot write to standard output: No space left on device" bash -c "'$downpour' run --help >/dev/full"
expect 2 "cannot write to standard output: No space left on device" bash -c "'$downpour' --help >/dev/full"
gone "flags"
rm -rf "$dir/run"

# --- generate: a file is there when it is whole; links, pipes, devices and permissions stay what they are
# Devices: as root own ones, as a command that put a file in the place of /dev/null would do so for all of the machine.
null=/dev/null full=/dev/full
if [ "$(id -u)" = 0 ]; then
    null=$dir/null full=$dir/full
    mknod -m 666 "$null" c 1 3 && mknod -m 666 "$full" c 1 7 && : 2>/dev/null >"$null" || null='' full=''
fi
[ -n "$null" ] || echo "no devices can be made in $dir: outputs to devices are not tried"
generate=("$downpour" generate clicks --rows 300 --features 50)
"${generate[@]}" >"$dir/rows" 2>"$dir/figures" || fail "generate to standard output"
mkdir "$dir/gen"
echo old >"$dir/gen/file"
chmod 640 "$dir/gen/file"
ln -s file "$dir/gen/link"
mkfifo "$dir/gen/pipe"
expect 0 "the true model" "${generate[@]}" --out "$dir/gen/link"
[ -L "$dir/gen/link" ] && cmp -s "$dir/rows" "$dir/gen/file" || fail "generate through a link"
[ "$(stat -c %a "$dir/gen/file")" = 640 ] || fail "generate changed permissions"
timeout 60 cat "$dir/gen/pipe" >"$dir/piped" &
expect 0 "the true model" "${generate[@]}" --out "$dir/gen/pipe"
wait $!
cmp -s "$dir/rows" "$dir/piped" || fail "generate to a pipe"
[ -z "$null" ] || expect 0 "the true model" "${generate[@]}" --out "$null"
echo before >"$dir/log"
"${generate[@]}" --out /dev/fd/1 >>"$dir/log" 2>"$dir/err"
cmp -s <(echo before; cat "$dir/rows") "$dir/log" || fail "generate to /dev/stdout"
cmp -s "$dir/figures" "$dir/err" || fail "figures stood among the rows"
[ -z "$full" ] || expect 2 "cannot write '$full': No space left" "${generate[@]}" --out "$full"
expect 2 "--out: cannot write '$dir/gen': it is a directory" "${generate[@]}" --out "$dir/gen"
expect 2 "there is no directory '$dir/none'" "${generate[@]}" --out "$dir/none/x"
expect 0 '"seed": "18446744073709551615"' "${generate[@]}" --seed 18446744073709551615 --json --out "$dir/json"
expect 0 '"seed": 9223372036854775807' "${generate[@]}" --seed 9223372036854775807 --json --out "$dir/json"
writes() { [ -n "$(find -L "/proc/$1/fd" -maxdepth 1 -type f -size +8 2>/dev/null)" ]; }
# Ended in the middle, by a signal that asks and by one that does not.
for signal in TERM:143 KILL:137; do
    "$downpour" generate clicks --rows 1000000000 --features 50 --out "$dir/gen/file" >"$dir/out" 2>"$dir/err" &
    pid=$!
    wait_until 10 writes $pid
    kill -"${signal%:*}" $pid
    ended $pid
    [ $? = "${signal#*:}" ] || fail "SIG${signal%:*} did not end generate with ${signal#*:}"
    cmp -s "$dir/rows" "$dir/gen/file" || fail "generate left half a file"
    [ $signal = TERM:143 ] || "${generate[@]}" --out "$dir/gen/file" >"$dir/out" # (sweeps, where it needs a name)
    [ "$(cd "$dir/gen" && echo *)" = "file link pipe" ] || fail "generate left $(cd "$dir/gen" && echo *)"
done

# --- fake programs beside a copy of the command: what fails, hangs, never answers
fake=$dir/fake
mkdir "$fake"
cp "$downpour" "$fake/downpour"
printf '#!/bin/sh\necho "no luck with $*" >&2\nexit 7\n' >"$fake/downpour-server"
cp "$fake/downpour-server" "$fake/downpour-worker"
chmod +x "$fake"/*
with_fake=("$fake/downpour" run --dir "$dir/run" --model logistic --train "$dir/file")
expect 2 "server 0 ended with status 7; its log, $dir/run/runs/1/log/server-0.log, ends with:" "${with_fake[@]}"
expect 2 "    no luck with --cluster $dir/run/runs/2/cluster.conf --server 0" "${with_fake[@]}"
gone "a server that failed"
# One that this command ended because of the other is no news.
printf '#!/bin/sh\ncase "$*" in *"--server 0"*) sleep 0.2; exit 7 ;; esac\nexec sleep 1000\n' >"$fake/downpour-server"
expect 2 "server 0 ended with status 7" "${with_fake[@]}" --servers 2
unsaid "server 1"
gone "a server that failed first"

# Deaf to SIGTERM, and it never answers: named, and a second signal ends the waiting for it.
printf '#!/bin/bash\ntrap "" TERM\necho $$ >>%s/started\nwhile :; do sleep 0.2; done\n' "$dir" >"$fake/downpour-server"
"${with_fake[@]}" --servers 2 >"$dir/out" 2>"$dir/err" &
pid=$!
wait_until 30 test -s "$dir/started" || fail "no server was started"
kill -INT $pid
wait_until 10 grep -q "as signal 2 asks" "$dir/err"
kill -INT $pid
ended $pid
[ $? = 130 ] || fail "two interrupts did not end it with 130"
grep -q "server 0 is killed, as a second signal asks" "$dir/err" || fail "killing was not said"
unsaid "ends with"
gone "two interrupts"
printf '#!/bin/sh\nexec sleep 1000\n' >"$fake/downpour-server"
expect 2 "none listens at 127.0.0.1:" "${with_fake[@]}" --timeout 1
gone "a server that never answered"
rm -rf "$dir/run"

# The command itself is killed: its children follow.
printf '#!/bin/sh\necho $$ >%s/pid\nexec sleep 1000\n' "$dir" >"$fake/downpour-server"
"${with_fake[@]}" >"$dir/out" 2>"$dir/err" &
pid=$!
wait_until 30 test -s "$dir/pid" || fail "no server was started"
kill -KILL $pid
ended $pid
wait_until 10 has_ended "$(cat "$dir/pid")" || fail "a server outlived the command"
rm -rf "$dir/run"

# --- the real ones
[ -x "$bin/downpour-server" ] && [ -x "$bin/downpour-worker" ] || { fail "no server and worker in $bin"; exit; }
train=("${base[@]}" --model mlp:64-32-10 --train "$data/digits.train.libsvm.gz" --batch 32 --rate 0.005 --servers 2)
expect 2 "downpour: model 'quux': there is no model" "${base[@]}" --model quux --train "$data/digits.train.libsvm.gz"
unsaid "Training quux"
expect 2 "file:1:" "${ok[@]}"
tail -1 "$dir/err" | grep -q "starting the workers" && fail "progress was shown behind the failure"
[ -e "$dir/run/cluster.conf" ] && fail "a store that nobody trained on was kept"
# The report alone, where it is asked for on standard output.
"${train[@]}" --epochs 2 --report - >"$dir/out" 2>"$dir/err" || fail "--report -"
[ "$(head -c 1 "$dir/out")" = "{" ] && [ "$(tail -n 1 "$dir/out")" = "}" ] && [ "$(grep -c '^[{}]' "$dir/out")" = 2 ] || fail "--report -: not the report alone"
cmp -s "$dir/out" "$dir/run/report.json" || fail "--report - is not the report"
grep -q '^epoch  train loss' "$dir/err" && grep -q '^    2 ' "$dir/err" && grep -q '^Report: ' "$dir/err" || fail "--report -: no tables on stderr"
rm -rf "$dir/run"
expect 0 "Test set: accuracy" "${train[@]}" --workers 2 --epochs 3 --test "$data/digits.test.libsvm.gz" --report "$dir/r.json"
[ -s "$dir/r.json" ] || fail "no report"
# One line an epoch, once.
[ "$(grep -c '^    [123] ' "$dir/out")" = 3 ] && [ "$(grep -c '^epoch  train loss   test loss' "$dir/out")" = 1 ] || fail "not a line an epoch: $(cat "$dir/out")"
grep -q "3/3 " "$dir/err" || fail "progress was not shown"
[ "$(grep -c '^ *[123] ' "$dir/out")" = 3 ] || fail "no table of epochs"
gone "a run"
expect 2 "use --servers 2, another --dir, or --fresh" "${base[@]}" --model mlp:64-32-10 --train "$data/digits.train.libsvm.gz"
expect 2 "use --shards 1, another --dir, or --fresh" "${train[@]}" --shards 3
expect 2 "holds the store of model 'mlp:64-32-10'" "${train[@]/mlp:64-32-10/mlp:64-16-10}"
expect 0 "this is run 2" "${train[@]}" --epochs 1
grep -q "run = 2;" "$dir/run/cluster.conf" || fail "the second run has not its number"
(cd / && timeout 60 "$downpour" predict --from "$dir/run" --data "$data/digits.test.libsvm.gz" >"$dir/scores" 2>"$dir/err") || fail "predict from another directory"
[ "$(wc -l <"$dir/scores")" = "$(zcat "$data/digits.test.libsvm.gz" | wc -l)" ] || fail "not a line of scores for each example"
expect 0 "" "$downpour" predict --from "$dir/run" --data "$data/digits.test.libsvm.gz" --out "$dir/scores2" --model mlp:64-32-10
cmp -s "$dir/scores" "$dir/scores2" || fail "scores differ between standard output and file"
ls "$dir"/run/predict*.out >/dev/null 2>&1 && fail "a file of scores is left in the directory"
predict=("$downpour" predict --from "$dir/run" --data "$data/digits.test.libsvm.gz")
ln -sf scores2 "$dir/link"
chmod 604 "$dir/scores2"
expect 0 "" "${predict[@]}" --out "$dir/link" --device cpu --precision f32
[ -L "$dir/link" ] && cmp -s "$dir/scores" "$dir/scores2" || fail "predict through a link"
[ "$(stat -c %a "$dir/scores2")" = 604 ] || fail "predict changed permissions"
echo before >"$dir/log"
"${predict[@]}" --out /dev/fd/1 >>"$dir/log" 2>"$dir/err" || fail "predict to /dev/stdout"
cmp -s <(echo before; cat "$dir/scores") "$dir/log" || fail "predict to /dev/stdout wrote something else"
[ -z "$full" ] || expect 2 "cannot write to $full: No space left" "${predict[@]}" --out "$full"
expect 2 "--device is \"gpu\", but must be cpu, cuda" "${predict[@]}" --device gpu
expect 2 "--precision is \"f16\", but must be f32, tf32 or bf16" "${predict[@]}" --precision f16
expect 2 "--precision is bf16, but the CPU computes in f32: give --device a GPU" "${predict[@]}" --device cpu --precision bf16
expect 2 "--out: cannot write '$dir': it is a directory" "${predict[@]}" --out "$dir"
expect 2 "is the data file itself" "$downpour" predict --from "$dir/run" --data "$dir/file" --out "$dir/file"
ln -f "$dir/file" "$dir/labels"
expect 2 "is the labels file itself" "${predict[@]}" --data labels="$dir/file" --out "$dir/labels"
[ "$(cat "$dir/file")" = "one line" ] || fail "predict wrote over its data"
expect 2 "--out: '$dir/run/cluster.conf' is the run's cluster file" "${predict[@]}" --out "$dir/run/cluster.conf"
expect 2 "--report: '$dir/labels' is a file of the data itself" "${train[@]}" --test "$dir/file" --report "$dir/labels"
expect 2 "--report: '$dir/run/cluster.conf' is a cluster file" "${train[@]}" --report "$dir/run/cluster.conf"
expect 2 "is a cluster file: name another" "$downpour" run --model logistic --train "$dir/file" --dir "$dir/new" --report "$dir/new/cluster.conf"
expect 2 "has the model 'mlp:64-32-10', not 'logistic'" "$downpour" predict --from "$dir/run" --data "$dir/file" --model logistic
cp "$dir/run/cluster.conf" "$dir/kept.conf"
: >"$dir/run/cluster.conf"
expect 2 "cannot be resumed (--fresh removes it): $dir/run/runs/2/cluster.conf: missing key 'name'" "${train[@]}"
cp "$dir/kept.conf" "$dir/run/cluster.conf"
if [ "$(id -u)" = 0 ]; then
    chmod 755 "$dir"
    chmod 700 "$dir/run"
    nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    expect 2 "cannot read '$dir/run/cluster.conf': Permission denied" "${nobody[@]}" "$downpour" predict --from "$dir/run" --data "$dir/file"
fi
# What is refused is refused before --fresh removes anything.
expect 2 "--precision is tf32" "${train[@]}" --fresh --precision tf32
expect 2 "--report: cannot write" "${train[@]}" --fresh --report "$dir/none/x"
expect 2 "over 65535" "${train[@]}" --fresh --port 65535
expect 2 "longer than" "${train[@]}" --fresh --cache "${long:0:1020}"
[ -d "$dir/run/store/server-0" ] || fail "--fresh removed a store for a run that was refused"
expect 2 "file:1:" "$downpour" predict --from "$dir/run" --data "$dir/file"
gone "predict"

# While one runs: its status, a second one in its directory, its ports, and what a signal does.
for signal in INT:130 TERM:143; do
    begin "${train[@]}" --epochs 1000000 --continue
    port=$(sed -n 's/ *port = \([0-9]*\);/\1/p' "$dir/run/cluster.conf" | head -1)
    expect 0 "mlp.w1" "$downpour" status --all --cluster "$dir/run/cluster.conf"
    expect 2 "is in use by another downpour command" "${train[@]}"
    expect 2 "port $port cannot be used" "$downpour" run --model logistic --train "$dir/file" --dir "$dir/other" --port "$port"
    kill -"${signal%:*}" "$pid"
    ended "$pid"
    [ $? = "${signal#*:}" ] || fail "SIG${signal%:*} did not end it with ${signal#*:}"
    gone "SIG${signal%:*}"
    grep -q "is not finished: in epoch .* of .*% of the training done. To finish it: downpour run --dir $dir/run --resume" "$dir/run.err" ||
        fail "SIG${signal%:*} did not say how to go on"
done
# A worker that is killed and not to be started again ends the run; the store is closed cleanly, and trained on.
begin "${train[@]}" --epochs 1000000 --restarts 0 --continue
left downpour-worker | xargs -r kill -KILL
ended "$pid"
[ $? = 2 ] || fail "a killed worker did not end the run with 2"
grep -q "worker 0 was killed by signal 9" "$dir/run.err" || fail "the killed worker was not named"
gone "a killed worker"
expect 2 "the earlier run there is not finished (in epoch " "${train[@]}" --epochs 1
expect 0 "Resuming the store" "${train[@]}" --epochs 1 --continue
# A server that is killed while the command asks which run's number is free is started again. (Server 1 stands still until server 0,
# which has answered the handshake, is dead. Not every try comes in time.)
for try in 1 2 3; do
    n=$(($(ls "$dir/run/runs" | sort -n | tail -n 1) + 1))
    "${train[@]}" --epochs 1 --fresh --timeout 6 >"$dir/run.out" 2>"$dir/run.err" &
    pid=$!
    serves() { tail -n 3 "$dir/run/runs/$n/log/server-1.log" 2>/dev/null | grep -q "serves at"; }
    deadline=$((SECONDS + 30))
    until serves || [ "$SECONDS" -ge "$deadline" ]; do sleep 0.01; done
    last=$(left "downpour-server.*--server 1")
    kill -STOP "$last"
    sleep 0.25
    left "downpour-server.*--server 0" | xargs -r kill -KILL
    kill -CONT "$last"
    ended "$pid" || fail "a server that was killed before the training began ended the run ($try)"
done
gone "a server that was killed before the training began"
# A server that is killed is started again, but has no journal: it refuses its store by name, which ends the run, and --fresh
# gets out of that.
begin "${train[@]}" --epochs 1000000 --durability none --fresh
left "downpour-server.*--server 1" | xargs -r kill -KILL
ended "$pid"
[ $? = 2 ] || fail "a killed server did not end the run with 2"
grep -q "server 1 was killed by signal 9" "$dir/run.err" || fail "the killed server was not named"
grep -q "^downpour: server 1: store $dir/run/runs/[0-9]*/store/server-1/" "$dir/run.err" || fail "a server that refuses was not named"
[ "$(grep -c " error server 1: store " "$dir/run/log/server-1.log")" = 1 ] || fail "why a server ended is not in its log once"
gone "a killed server"
grep -q "without a journal (--durability none) the updates of a killed server are lost" "$dir/run.err" || fail "that weights are lost was not said"
expect 2 "anew, add --fresh" "${train[@]}" --durability none --epochs 1 --continue
expect 2 "No checkpoint of it is known: start empty with --discard" "$downpour" run --dir "$dir/run" --resume
expect 2 "--discard goes with --resume" "${train[@]}" --durability none --epochs 1 --continue --discard
begin "$downpour" run --dir "$dir/run" --resume --discard
grep -q "What the replaced store does not have is trained again" "$dir/run.err" || fail "what is trained again was not said"
kill -INT "$pid"
ended "$pid"
[ $? = 130 ] || fail "a run whose lost store was discarded did not end as it was asked to"
gone "a run whose lost store was discarded"
echo mine >"$dir/run/mine"
expect 0 "Report:" "${train[@]}" --epochs 1 --fresh
[ -e "$dir/run/mine" ] || fail "--fresh removed what was not its own"
grep -q "first_epoch = 0;" "$dir/run/cluster.conf" || fail "--fresh did not start anew"
# A cluster file as the base: settings from it, addresses of its own.
sed 's/ port = .*/ port = 1;/; s/epochs = .*/epochs = 2;/; s/host = .*/host = "192.0.2.1";/' "$dir/run/cluster.conf" |
    awk '/port = 1;/ && n++ { sub("1;", "9;") } { print }' >"$dir/base.conf"
expect 0 "Report:" "$downpour" run --cluster "$dir/base.conf" --dir "$dir/based" --batch 64
# A setting is named as it was given: by its key in that file, or by its flag.
sed 's/accumulate = 1;/accumulate = 2;/; s/push_every = 1;/push_every = 2;/' "$dir/base.conf" >"$dir/keys.conf"
expect 2 "'training.accumulate' is 2, which" "$downpour" run --cluster "$dir/keys.conf" --dir "$dir/keyed"
sed 's/push_every = 1;/push_every = 2;/' "$dir/base.conf" >"$dir/keys.conf"
expect 2 "--accumulate is 3, which is both fetched and pushed together: leave 'training.fetch_every' and 'training.push_every' out" \
    "$downpour" run --cluster "$dir/keys.conf" --dir "$dir/keyed" --accumulate 3
grep -q "epochs = 2;" "$dir/based/cluster.conf" && grep -q "batch = 64;" "$dir/based/cluster.conf" || fail "the base was not taken"
# On a terminal one line moves.
if command -v script >/dev/null; then
    timeout 90 script -qec "'$downpour' run --dir '$dir/tty' --model mlp:64-32-10 --train '$data/digits.train.libsvm.gz' --epochs 100" "$dir/typescript" >/dev/null ||
        fail "a run on a terminal did not end well within 90 s"
    grep -q $'\r.*epoch .*100%.*\033\\[K' "$dir/typescript" || fail "no moving line on a terminal"
fi
gone "all"
