#!/usr/bin/env bash
# A run's directory that was moved, copied, archived, made read-only or lost a part: predict and inspect use what lies in it
# and nothing else, change nothing in it, or refuse it by name. usage: moved.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"
mounted=''
trap '[ -z "$mounted" ] || umount "$mounted"; finish' EXIT

# What is in a directory, to the byte and to the nanosecond.
tree() {
    (cd "$1" && find . -printf '%y %m %s %T@ %i %P\n' | sort -k6 && find . -type f -print0 | sort -z | xargs -0 md5sum)
}

train() { # DIR SEED [MORE FLAGS]
    local to=$1 seed=$2
    shift 2
    expect 0 "Report:" "$downpour" run --dir "$to" --seed "$seed" --model mlp:64-16-10 --train "$data/digits.train.libsvm.gz" \
        --batch 32 --rate 0.005 --servers 2 --epochs 1 --journal-bytes 16MiB "$@"
}

predict() { # DIR SCORES [COMMAND IN FRONT...]
    local from=$1 to=$2
    shift 2
    timeout 90 "$@" "$downpour" predict --from "$from" --data "$data/digits.test.libsvm.gz" >"$to" 2>"$dir/err" ||
        fail "predict --from $from"
}

digest() { # DIR
    "$downpour" inspect "$1" --digest 2>"$dir/err" | grep "of all" || fail "no digest of $1"
}

# same DIR WHAT [COMMAND IN FRONT...]: scores and digest are those of A as it was, and DIR is not touched.
same() {
    local at=$1 what=$2
    shift 2
    tree "$at" >"$dir/before"
    predict "$at" "$dir/scores" "$@"
    cmp -s "$dir/scores" "$dir/scores.A" || fail "$what: other scores"
    [ "$(digest "$at")" = "$digest_A" ] || fail "$what: another digest"
    tree "$at" >"$dir/after"
    diff "$dir/before" "$dir/after" >"$dir/out" || fail "$what: the directory was changed"
}

train "$dir/A" 1
train "$dir/B" 2
predict "$dir/A" "$dir/scores.A"
predict "$dir/B" "$dir/scores.B"
digest_A=$(digest "$dir/A")
cmp -s "$dir/scores.A" "$dir/scores.B" && fail "two seeds gave the same scores"
same "$dir/A" "where it was trained"

# A copy, and what it was copied from goes on.
cp -a "$dir/A" "$dir/C"
tar -C "$dir" -cf "$dir/a.tar" A
mkdir "$dir/unpacked"
tar -C "$dir/unpacked" --touch -xf "$dir/a.tar"
train "$dir/A" 1
predict "$dir/A" "$dir/scores.later"
cmp -s "$dir/scores.A" "$dir/scores.later" && fail "a second run gave the same scores"
same "$dir/C" "a copy beside the original"
same "$dir/unpacked/A" "an archive beside the original"
expect 2 "unpack an archive, and name the directory in it" "$downpour" predict --from "$dir/a.tar" --data "$data/digits.test.libsvm.gz"

# Moved, another in its place, and none there.
rm -rf "$dir/A"
mv "$dir/B" "$dir/A"
mv "$dir/C" "$dir/D"
same "$dir/D" "moved, another run in its place"
(cd "$dir" && same D/ "by a relative path")
ln -s D "$dir/link"
same "$dir/link" "through a link"
mv "$dir/A" "$dir/B"
same "$dir/D" "moved, nothing in its place"

# A cluster file of an older build: absolute paths, which lead to B.
cp -a "$dir/D" "$dir/old"
awk -v at="$dir/B" '/relative_to|columns = |names = |interactions = / { next } /store = / { sub("\"store/", "\"" at "/store/") } { print }' "$dir/D/cluster.conf" >"$dir/old/cluster.conf"
grep -q "$dir/B/store/server-1" "$dir/old/cluster.conf" || fail "no older cluster file was made"
same "$dir/old" "a cluster file of an older build"
# A directory of the version before had one run, in itself. It is read; a run in it is refused with the ways out.
for conf in D old; do
    cp -a "$dir/$conf/runs/1" "$dir/before-$conf"
    rm "$dir/before-$conf/cache"
    touch "$dir/before-$conf/lock"
    same "$dir/before-$conf" "of the version before"
    for how in "" --continue --fresh --resume; do
        # shellcheck disable=SC2086
        expect 2 "the run in '$dir/before-$conf' is of an older version" "$downpour" run --dir "$dir/before-$conf" \
            --model mlp:64-16-10 --train "$data/digits.train.libsvm.gz" $how
    done
done
expect 0 "" "$downpour" export --from "$dir/before-D" --to "$dir/tensors" --slots
expect 0 "" "$downpour" import --from "$dir/tensors" --to "$dir/imported" --like "$dir/before-D"
expect 0 "Report:" "$downpour" run --from "$dir/imported" --dir "$dir/onward" --continue --epochs 1
# A copy without its links, or with what they lead to in their place: read where it can be, and else refused by name.
cp -rL "$dir/D" "$dir/followed"
same "$dir/followed" "a copy that has followed the links"
expect 2 "is no link to runs/N, as in a copy that has followed the links" "$downpour" run --dir "$dir/followed" --continue
cp -a "$dir/D" "$dir/unlinked"
find "$dir/unlinked" -type l -delete
for refused in "run --resume --dir" "predict --data $dir/scores --from"; do
    # shellcheck disable=SC2086
    expect 2 "'$dir/unlinked/current', the link to the run in use, is missing" "$downpour" $refused "$dir/unlinked"
done
ln -sfn runs/1 "$dir/unlinked/current"
predict "$dir/unlinked" "$dir/scores"
cmp -s "$dir/scores" "$dir/scores.A" || fail "the link that was made again: other scores"

# Nothing can be written there.
if [ "$(id -u)" = 0 ]; then
    chmod 755 "$dir"
    chmod -R a+rX "$dir/D"
    chmod 1777 "$TMPDIR"
    another=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    if "${another[@]}" test -x "$downpour" && "${another[@]}" test -r "$data/digits.test.libsvm.gz"; then
        same "$dir/D" "owned by another" "${another[@]}"
    else
        echo "SKIPPED: another user's directory: other users cannot read $data or run $downpour"
    fi
    mkdir "$dir/mounted"
    if mount --bind "$dir/D" "$dir/mounted" 2>/dev/null && mount -o remount,bind,ro "$dir/mounted" 2>/dev/null; then
        mounted=$dir/mounted
        touch "$mounted/x" 2>/dev/null && fail "the mount is not read-only"
        same "$mounted" "mounted read-only"
        umount "$mounted" && mounted=''
    else
        umount "$dir/mounted" 2>/dev/null
        echo "SKIPPED: a read-only mount: nothing can be mounted here"
    fi
else
    echo "SKIPPED: a read-only mount, and another user's directory: needs root"
fi
chmod -R a-w "$dir/D"
same "$dir/D" "without the right to write"
chmod -R u+w "$dir/D"

# Two at a time.
predict "$dir/D" "$dir/scores.1" &
predict "$dir/D" "$dir/scores.2"
wait $!
cmp -s "$dir/scores.1" "$dir/scores.A" && cmp -s "$dir/scores.2" "$dir/scores.A" || fail "two predictions at a time"

# What is missing is named, and nothing else is used instead.
lacks() { # FILE
    rm -rf "$dir/part"
    cp -a "$dir/D" "$dir/part"
    rm -rf "${dir:?}/part/$1"
    expect 2 "$2" "$downpour" predict --from "$dir/part" --data "$data/digits.test.libsvm.gz"
    [ -e "$dir/part/$1" ] && fail "predict made $1"
}
lacks runs/1/cluster.conf "is not the directory of a run"
lacks runs/1/store "there is no store in '$dir/part/runs/1/store/server-0/shard-0000'"
lacks store/server-1 "there is no store in '$dir/part/runs/1/store/server-1/shard-0001'"
lacks store/server-0/shard-0000 "there is no store in '$dir/part/runs/1/store/server-0/shard-0000'"
lacks store/server-1/shard-0001/CURRENT "there is no store in '$dir/part/runs/1/store/server-1/shard-0001'"
manifest=$(cat "$dir/D/store/server-0/shard-0000/CURRENT")
lacks "store/server-0/shard-0000/$manifest" "$manifest"
for sst in "$dir/D"/store/server-1/shard-0001/*.sst; do
    lacks "store/server-1/shard-0001/${sst##*/}" "$(basename "$sst" .sst).ldb: No such file" # (RocksDB tries an older name last)
done
rm -rf "$dir/part"
cp -a "$dir/D" "$dir/part"
mv "$dir/part/store/server-1" "$dir/elsewhere"
ln -s "$dir/elsewhere" "$dir/part/store/server-1"
expect 2 "outside of the run's directory" "$downpour" predict --from "$dir/part" --data "$data/digits.test.libsvm.gz"
# So is a link further in: that of a journal, or of rows.
rm "$dir/part/store/server-1"
for linked in journal "$(basename "$sst")"; do
    cp -a "$dir/D/store/server-1" "$dir/part/store/server-1"
    rm -rf "${dir:?}/part/store/server-1/shard-0001/$linked"
    ln -s "$dir/elsewhere/shard-0001/$linked" "$dir/part/store/server-1/shard-0001/$linked"
    expect 2 "'$dir/part/runs/1/store/server-1/shard-0001/$linked' leads to" "$downpour" predict --from "$dir/part" --data "$data/digits.test.libsvm.gz"
    rm -rf "$dir/part/store/server-1"
done
# Another run's store in the place of one.
cp -a "$dir/B/store/server-1" "$dir/part/store/server-1"
expect 2 "belongs to cluster" "$downpour" predict --from "$dir/part" --data "$data/digits.test.libsvm.gz"

# inspect, too, takes no part for the whole, unless it is asked for that part.
rm -rf "$dir/part"
cp -a "$dir/D" "$dir/part"
rm -rf "$dir/part/store/server-1"
expect 2 "'$dir/part' is not complete: '$dir/part/store/server-1' is missing" "$downpour" inspect "$dir/part" --digest
expect 0 "of all" "$downpour" inspect "$dir/part/store/server-0" --digest
cp -a "$dir/D/store/server-1" "$dir/part/store/server-1"
rm "$dir/part/store/server-1/layout" # it was damaged, or its server has not served yet
expect 0 "of all" "$downpour" inspect "$dir/part" --digest
rm -rf "$dir/part/store/server-1/shard-0001"
expect 2 "'$dir/part/store/server-1/shard-0001' is missing" "$downpour" inspect "$dir/part" --digest
cp "$dir/D/store/server-1/layout" "$dir/part/store/server-1/layout"
expect 2 "'$dir/part/store/server-1/shard-0001' is missing" "$downpour" inspect "$dir/part" --digest
printf X | dd of="$dir/part/store/server-0/layout" conv=notrunc status=none
expect 2 "its file 'layout' is damaged" "$downpour" inspect "$dir/part"

# While it runs: status tells of it and not of its copy, and it is not predicted from. Killed: read with its journal.
cp -a "$dir/D" "$dir/R"
begin "$downpour" run --dir "$dir/R" --model mlp:64-16-10 --train "$data/digits.train.libsvm.gz" --batch 32 --rate 0.005 \
    --servers 2 --epochs 1000000 --restarts 0
mkdir -p "$dir/S"
cp -L "$dir/R/cluster.conf" "$dir/R/lock" "$dir/S" # what a copy has of it, beside the stores of before
cp -a "$dir/D/runs/1/store" "$dir/S/store"
expect 0 "mlp.w1" "$downpour" status --all --cluster "$dir/R/cluster.conf"
expect 2 "no process has '$dir/S/store/server-0/shard-0000' open" "$downpour" status --cluster "$dir/S/cluster.conf"
mkdir "$dir/far" # as on another machine than the servers
cp "$dir/R/cluster.conf" "$dir/far"
expect 0 "mlp.w1" "$downpour" status --all --cluster "$dir/far/cluster.conf"
awk -v at="$dir/R" '/relative_to/ { next } /store = / { sub("\"store/", "\"" at "/store/") } { print }' "$dir/R/cluster.conf" >"$dir/S/cluster.conf"
expect 2 "names others ('$dir/R/store/server-0')" "$downpour" status --cluster "$dir/S/cluster.conf"
expect 2 "is in use by another downpour command" "$downpour" predict --from "$dir/R" --data "$data/digits.test.libsvm.gz"
left downpour-server | xargs -r kill -KILL
wait "$pid"
gone
mkdir "$dir/killed"
mv "$dir/R" "$dir/killed/R"
chmod -R a-w "$dir/killed/R"
tree "$dir/killed/R" >"$dir/before"
predict "$dir/killed/R" "$dir/scores.killed"
tree "$dir/killed/R" >"$dir/after"
diff "$dir/before" "$dir/after" >"$dir/out" || fail "a killed run's directory was changed"
grep -q "not closed cleanly" <("$downpour" inspect "$dir/killed/R" --digest 2>&1) || fail "the killed run's stores are clean"
chmod -R u+w "$dir/killed/R"
serve() { # SERVER
    : >"$dir/run.err"
    "${downpour%/*}/downpour-server" --cluster "$dir/killed/R/cluster.conf" --server "$1" 2>"$dir/run.err" &
    servers+=($!)
    wait_until 60 grep -q "ready:" "$dir/run.err" || fail "server $1 is not ready"
}
servers=()
serve 0
expect 1 "down: no answer" "$downpour" status --timeout 1 --cluster "$dir/killed/R/cluster.conf" # server 1
serve 1
awk '/ port = / { sub(" port = .*", " port = " 20000 + 100 * n++ ";") } { print }' "$dir/killed/R/cluster.conf" >"$dir/killed/R/other.conf"
for n in 0 1; do
    expect 2 "is in use by a server" "${downpour%/*}/downpour-server" --read-only --cluster "$dir/killed/R/other.conf" --server $n
done
for p in "${servers[@]}"; do
    kill -TERM "$p"
    wait "$p" || fail "a server did not close"
done
predict "$dir/killed/R" "$dir/scores"
cmp -s "$dir/scores" "$dir/scores.killed" || fail "a killed run was read otherwise than it recovers"
cmp -s "$dir/scores" "$dir/scores.A" && fail "the killed run had not trained"

# A moved run goes on, with its own store.
tree "$dir/B" >"$dir/before"
mv "$dir/D" "$dir/E"
train "$dir/E" 1
predict "$dir/E" "$dir/scores"
cmp -s "$dir/scores" "$dir/scores.later" || fail "a moved run went on otherwise than one that stayed"
tree "$dir/B" >"$dir/after"
diff "$dir/before" "$dir/after" >"$dir/out" || fail "another run's directory was changed"
[ ! -e "$dir/A" ] && [ ! -e "$dir/D" ] || fail "a former place was made again"
