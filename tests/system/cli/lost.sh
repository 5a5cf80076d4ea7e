#!/usr/bin/env bash
# A run's directory whose stores are not those that it was trained on: lost, swapped, an older copy. Refused with what to do, and
# nothing is made or changed; gone on with where --replace-store says so.
# usage: lost.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

cp "$data/digits.train.libsvm.gz" "$dir/train.gz"
r=$dir/run
train=("$downpour" run --dir "$r" --servers 2 --shards 2 --journal-bytes 16MiB --cache-bytes 64MiB
    --model mlp:64-32-10 --train "$dir/train.gz" --batch 32 --rate 0.005 --epochs 1)
predict=("$downpour" predict --from "$r" --data "$data/digits.test.libsvm.gz" --out "$dir/scores")

# in_run: how the current run's store is named
in_run() {
    echo "$r/$(readlink "$r/current")/store"
}

# refused TEXT...: by a further run, and nothing in the stores is another than before
refused() {
    local before text
    before=$(cd "$r/runs/1/store" && find . -type d -o -name CURRENT -o -name layout -o -name register | sort)
    expect 2 "" "${train[@]}"
    for text in "$@"; do said_text "$text"; done
    [ "$before" = "$(cd "$r/runs/1/store" && find . -type d -o -name CURRENT -o -name layout -o -name register | sort)" ] ||
        fail "something was made"
}

# unread TEXT: by what reads a run's weights, and nothing stays behind
unread() {
    expect 2 "$1" "${predict[@]}"
    expect 2 "$1" "$downpour" export --from "$r" --to "$dir/export"
    expect 2 "$1" "$downpour" neighbours "$r" 1
    [ -z "$(ls -A "$TMPDIR")" ] || fail "something was left in TMPDIR"
}

# loses DIR SERVER SHARD COMMAND...: a run without an end loses a server's store and then the server
loses() {
    local server=$2 lost=$1/store/server-$2 shard=$3
    shift 3
    begin "$@"
    until_trained
    mv "$lost" "$dir/kept"
    left "downpour-server.*--server $server" | xargs -r kill -KILL
    wait "$pid"
    [ $? = 2 ] || fail "a run that lost server $server's store did not end with 2"
    grep -qF "/store/server-$server/$shard/CURRENT is not there" "$dir/run.err" || fail "the lost store was not named"
    [ ! -e "$lost" ] || fail "a store that was lost in a run was made anew"
    gone
}

digest() {
    "$downpour" inspect "$r" --digest | grep "^digest .* of all"
}

expect 0 "" "${train[@]}"
"$downpour" inspect "$r" | grep "^  id " >"$dir/ids"
"$downpour" inspect "$r" | grep -q "push numbers" && fail "inspect shows push numbers without --all"
[ "$(sort -u "$dir/ids" | wc -l)" = 4 ] || fail "inspect shows other ids than 4 different ones"
rows=$(digest)

# ---- lost: a server's, a shard's of the first one
for lost in server-1 server-0/shard-0000; do
    mv "$r/store/$lost" "$dir/kept"
    refused "there is no store in '$(in_run)/$lost" "--replace-store" "--fresh" "Put it back"
    unread "there is no store in '$(in_run)/$lost"
    mv "$dir/kept" "$r/store/$lost"
done
mv "$r/store/server-1" "$dir/kept"
mkdir "$r/store/server-1" # as a disk that is not mounted leaves it
refused "there is no store in '$(in_run)/server-1/shard-0002'"
[ -z "$(ls -A "$r/store/server-1")" ] || fail "the empty directory is not empty any more"
rmdir "$r/store/server-1"
mv "$dir/kept" "$r/store/server-1"
[ "$(digest)" = "$rows" ] || fail "a refused run changed rows"

# ---- lost: those of all servers, and all that lies beside them
for lost in "runs/1/store/server-[01]" runs/1/store; do
    mkdir "$dir/kept"
    # shellcheck disable=SC2086
    mv $r/$lost "$dir/kept/"
    for how in "" --continue; do
        # shellcheck disable=SC2086
        expect 2 "" "${train[@]}" $how
        said_text "there is no store in '$(in_run)/server-0/shard-0000': was it removed (as compare does without --keep-stores), or its disk not mounted? Put it back"
        [ ! -e "$r/store/server-0" ] || fail "stores were made anew"
    done
    unread "there is no store in '$(in_run)/server-0"
    mv "$dir"/kept/* "$r/${lost%server*}"
    rmdir "$dir/kept"
done
expect 0 "" "$downpour" inspect "$r" --verify
[ "$(digest)" = "$rows" ] || fail "a refused run changed rows"

# ---- stores without their run's cluster file: nobody's, so that nothing of them is removed
conf=$(realpath "$r/cluster.conf")
mv "$conf" "$dir/kept.conf"
all() {
    (cd "$r" && find . -type f ! -name lock ! -name failure.json -printf '%p %s %T@\n' | sort)
}
all >"$dir/before"
for how in "" --continue --fresh --replace-store; do
    # shellcheck disable=SC2086
    expect 2 "cluster.conf, which says of which run they are, is missing" "${train[@]}" $how
    all | diff "$dir/before" - || fail "a refused run changed what is there ($how)"
done
expect 2 "cluster.conf, which says of which run they are, is missing" "$downpour" run --dir "$r" --resume
mv "$dir/kept.conf" "$conf"
[ "$(digest)" = "$rows" ] || fail "a refused run changed rows"

# ---- swapped
swap() {
    mv "$r/store/server-0" "$dir/kept"
    mv "$r/store/server-1" "$r/store/server-0"
    mv "$dir/kept" "$r/store/server-1"
}
swap
place="'s place is that of shards 0..1 of 4 (says its file 'layout'): was another directory put (or mounted) in its place?"
refused "$(in_run)/server-0 holds shards 2..3 of 4, and this server$place"
unread "$(in_run)/server-0 holds shards 2..3 of 4, and this server$place"
expect 2 "" "$downpour" inspect "$r" --verify
said_text "stored in server-0, but holds shards 2..3 of 4, where shard 0 comes first"
said_text "stored in server-1, but holds shards 0..1 of 4, where shard 2 comes first"
swap
expect 0 "" "$downpour" inspect "$r" --verify

# ---- an older copy: of a server, and of the register
cp -a "$r/store/." "$dir/older"
expect 0 "" "${train[@]}"
"$downpour" inspect "$r" | grep "^  id " | diff - "$dir/ids" >"$dir/out" || fail "a further run has other stores"
rows=$(digest)
expect 0 "" "${predict[@]}"
mv "$r/store/server-1" "$dir/kept"
cp -a "$dir/older/server-1" "$r/store/server-1"
refused "is not the copy that was opened last" "/store/server-1/shard-000"
unread "or, with --replace-store on \`downpour run\` or the server and with no way back, continue with these"
rm -r "$r/store/server-1"
mv "$dir/kept" "$r/store/server-1"
mv "$r/store/server-0" "$dir/kept" # nobody can tell whether the first server's or the others' are older
cp -a "$dir/older/server-0" "$r/store/server-0"
refused "or server 0's store, with the register, is an older copy" "/store/server-1/shard-000" "Put back the latest of both"
rm -r "$r/store/server-0"
mv "$dir/kept" "$r/store/server-0"
mv "$r/store/server-0/register" "$dir/kept"
cp -a "$dir/older/server-0/register" "$r/store/server-0/register"
refused "or server 0's store, with the register, is an older copy"
rm "$r/store/server-0/register"
refused "its file 'register' is missing"
rm -f "$r/store/server-0/register"
mv "$dir/kept" "$r/store/server-0/register"
expect 0 "" "${predict[@]}"
[ "$(digest)" = "$rows" ] || fail "a refused run changed rows"

# ---- damaged, before it could serve: the way out is one
current=$r/store/server-1/shard-0003/CURRENT
mv "$current" "$dir/kept"
: >"$current"
refused "the file CURRENT is damaged" "or a checkpoint (downpour restore --overwrite)" "or a copy of the store made since its server last ended" "without one, move it away and start with --replace-store"
mv "$dir/kept" "$current"
manifest=$(ls "$r"/store/server-1/shard-0003/MANIFEST-*)
cp -p "$manifest" "$dir/kept"
printf 'xxxxxxxx' | dd of="$manifest" bs=1 seek=40 conv=notrunc 2>/dev/null
refused "/MANIFEST-" "or a checkpoint (downpour restore --overwrite)"
mv "$dir/kept" "$manifest"

# ---- all of it, from a backup, in another place too
cp -a "$r" "$dir/copy"
expect 0 "" "${train[@]}"
train[3]=$dir/copy
expect 0 "" "${train[@]}"
train[3]=$r

# ---- on purpose: what is lost is said before anything is replaced
no_way="there is no way back from this but a copy of all of '$r'"
expect 0 "" "${train[@]}" --replace-store
unsaid "as --replace-store says"
rm -r "$r/store/server-1"
cp -a "$dir/older/server-1" "$r/store/server-1"
mv "$dir/train.gz" "$dir/right.gz"
echo "not a number" | gzip >"$dir/train.gz"
expect 2 "" "${train[@]}" --replace-store --continue
said "the store in '$r/runs/[0-9]+/store/server-1/shard-0003' takes the place of the one of shard 3, as --replace-store says; the pushes to a later copy are lost"
said "$no_way"
said "stores were replaced, and stay so: correct the cause above and repeat the command without --replace-store"
mv "$dir/right.gz" "$dir/train.gz"
expect 0 "" "${train[@]}"
rm "$r/store/server-0/register"
expect 0 "" "${train[@]}" --replace-store
said "server 0's register is gone, or another one"
said "the other register's knowledge of runs"
said "$no_way"
expect 0 "" "${train[@]}" --replace-store
unsaid "as --replace-store says"
rm -r "$r/store/server-1"
expect 0 "" "${train[@]}" --replace-store
said "shard 2 begins anew"
said "$no_way"
grep -q "all its rows are lost" "$r"/log/server-1.log || fail "the server's log does not say what is lost"
expect 0 "" "${train[@]}"
rm -r "$r/store/server-0"
expect 0 "" "${train[@]}" --replace-store
said "shard 0 begins anew"
said "the other register's knowledge of runs"
grep -q "the other register's knowledge of runs" "$r"/log/server-1.log || fail "the log does not say that the register is lost"
expect 0 "" "${train[@]}"
expect 0 "" "${predict[@]}"

# ---- what was said at the start is not said of a store that is lost later
rm -r "$r/store/server-1/shard-0003"
train[${#train[@]}-1]=1000000 # epochs
loses "$r" 1 shard-0002 "${train[@]}" --replace-store
mv "$dir/kept" "$r/store/server-1"
expect 0 "" "${predict[@]}"

# ---- the only server's, while the run goes on: no other server could tell
one=("$downpour" run --dir "$dir/one" --shards 2 --journal-bytes 16MiB --cache-bytes 64MiB
    --model mlp:64-32-10 --train "$dir/train.gz" --batch 32 --rate 0.005 --epochs 1000000)
loses "$dir/one" 0 shard-0000 "${one[@]}"

# ---- of a run that was interrupted: what it trains again is shown, and the summary says which figures mix both weights
half=("$downpour" run --dir "$dir/half" --servers 2 --journal-bytes 16MiB --cache-bytes 64MiB
    --model mlp:64-32-10 --train "$dir/train.gz" --batch 8 --rate 0.005 --epochs 100)
begin "${half[@]}"
until_trained
kill -INT $pid
wait $pid
gone
grep -q '"finished": false' "$dir/half/current/run.json" || fail "the run was finished too soon to be interrupted"
rm -r "$dir/half/store/server-1"
expect 0 "What the replaced store does not have is trained again." "${half[@]:0:4}" --resume --replace-store
said "^ +1 +[0-9.]+ "
said "^Note: +A store was replaced during this run: the figures of epochs 1 \.\. [0-9]+ are partly"
[ "$(grep -Ec '^ +100 ' "$dir/out")" = 1 ] || fail "the last epoch is not in the table, once"

# ---- without server 0's register it cannot go on where it was: what can be done is said before anything is replaced
begin "${half[@]/half/first}"
until_trained
kill -INT $pid
wait $pid
gone
rm -r "$dir/first/store/server-0"
for _ in 1 2; do
    expect 2 "nothing is replaced" "$downpour" run --dir "$dir/first" --resume --replace-store
    said_text "downpour restore --overwrite"
    said_text "(the rows of missing stores are lost): downpour run --continue --replace-store --dir $dir/first"
done
[ ! -e "$dir/first/store/server-0" ] || fail "a refused resume made a store"
expect 0 "this is run 2" "$downpour" run --continue --replace-store --dir "$dir/first" --epochs 1
said "shard 0 begins anew, as --replace-store says; its rows are lost"

# ---- a synchronous run cannot go back to steps that its other stores have closed
half=("$downpour" run --dir "$dir/sync" --servers 2 --workers 2 --consistency sync --journal-bytes 16MiB --cache-bytes 64MiB
    --model mlp:64-32-10 --train "$dir/train.gz" --batch 32 --rate 0.005 --epochs 1000000)
begin "${half[@]}"
until_trained
kill -INT $pid
wait $pid
gone
rm -r "$dir/sync/store/server-1"
expect 2 "run 1 is synchronous, and cannot go on where it was without one of its stores" "${half[@]:0:4}" --resume --replace-store
[ ! -e "$dir/sync/store/server-1" ] || fail "a refused resume made a store"
expect 0 "Report:" "${half[@]:0:4}" --continue --replace-store --epochs 1
