#!/usr/bin/env bash
# What a shell or a batch system does not let a process have (ulimit) is refused by name before a library aborts, and nothing that cannot
# work is started again.
# usage: limits.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

within() { # LIMIT VALUE COMMAND...
    local limit=$1 value=$2
    shift 2
    (ulimit "$limit" "$value" && exec "$@")
}
export -f within
limited() { # CODE TEXT LIMIT VALUE FLAGS...
    local code=$1 text=$2 limit=$3 value=$4
    shift 4
    rm -rf "$dir/D"
    expect "$code" "$text" bash -c 'within "$@"' - "$limit" "$value" "$downpour" run --dir "$dir/D" --journal-bytes "$journal" \
        --model logistic --train "$dir/train" --epochs 1 "$@"
    unsaid "started again"
}
journal=16MiB
seq 200 | awk '{ print $1 % 2, "1:1" }' >"$dir/train"

for files in 24 40 64; do
    limited 2 "a server with 4 shards needs about 160 open files and connections, and its limit is $files: raise 'ulimit -n'" -n $files \
        --servers 2 --workers 2 --shards 4
done
limited 0 "Report:" -n 170 --servers 2 --workers 2 --shards 4
limited 2 "needs files of 80 MiB, and their limit is 1000 KiB: raise 'ulimit -f'" -f 1000
limited 0 "Report:" -f 200000
# No earlier checkpoint is in its way.
expect 2 "a client needs about" bash -c 'within "$@"' - -n 15 "$downpour" checkpoint --cluster "$dir/D/cluster.conf" --to "$dir/C"
unsaid "to remove earlier ones"
journal=1000MiB
limited 2 "needs files of 125 MiB, and their limit is 97 MiB" -f 100000
journal=16MiB
# Sanitizers reserve terabytes: they say so themselves.
if within -v 1000000 "$downpour" --version >"$dir/out" 2>&1; then
    limited 2 "MiB of address space, and its limit is 390 MiB: raise 'ulimit -v'" -v 400000
    limited 0 "Report:" -v 1000000
    grep -q "warn server 0: once its row caches are full, this server needs about .*'ulimit -v'" "$dir/D/log/server-0.log" ||
        fail "row caches that do not fit are not named"
fi
# A file that grows beyond the limit is an error of that file, not the end by a signal.
expect 2 "File too large; raise 'ulimit -f'" bash -c 'within "$@"' - -f 8 "$downpour" generate clicks --rows 1000 --out "$dir/clicks"

rest=$(ls "$TMPDIR")
[ -z "$rest" ] || fail "left in TMPDIR: $rest"
