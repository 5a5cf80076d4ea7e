#!/usr/bin/env bash
# Machines whose clocks are days apart: a worker two days late and a server two days early. No figure mixes their clocks: the time of
# the training is no longer than it took, and no worker is shown as silent.
# usage: clocks.sh PATH/TO/downpour; 77: no libfaketime here
. "$(dirname "$0")/lib.sh"

library=$(find /usr/lib /usr/lib64 -name libfaketimeMT.so.1 2>/dev/null | head -n 1)
[ -n "$library" ] || {
    echo "skipped: libfaketime is not installed (package faketime)"
    exit 77
}
programs=$(dirname "$downpour")
# at SHIFT COMMAND...
at() {
    local shift=$1
    shift
    LD_PRELOAD=$library FAKETIME=$shift FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_NO_CACHE=1 exec "$@"
}
cat >"$dir/c.conf" <<END
name = "clocks"; model = "mlp:64-32-10"; journal_bytes = "16MiB"; dir = "$dir/kept";
servers = ( { host = "ipc://$dir/s"; port = 1; store = "$dir/store/0"; }, { host = "ipc://$dir/s"; port = 11; store = "$dir/store/1"; } );
data = { train = "$data/digits.train.libsvm.gz"; };
training = { workers = 2; epochs = 2; batch = 32; pace = "60ms"; };
END
"$programs/downpour-server" --cluster "$dir/c.conf" --server 0 --new 2>"$dir/server-0.log" &
servers=($!)
(at +2d "$programs/downpour-server" --cluster "$dir/c.conf" --server 1 2>"$dir/server-1.log") &
servers+=($!)
begun_ms=$(date +%s%3N)
(at -2d "$programs/downpour-worker" --cluster "$dir/c.conf" --worker 1 2>"$dir/worker-1.log") &
workers=($!)
"$programs/downpour-worker" --cluster "$dir/c.conf" --worker 0 2>"$dir/worker-0.log" &
workers+=($!)

both_train() {
    [ "$("$downpour" status --cluster "$dir/c.conf" 2>/dev/null | grep -c ' training ')" = 2 ]
}
wait_until 30 both_train || fail "the workers do not train"
expect 0 "" "$downpour" status --cluster "$dir/c.conf"
unsaid "silent"
for pid in "${workers[@]}"; do
    wait "$pid" || fail "a worker failed"
done
took_ms=$(($(date +%s%3N) - begun_ms))
seconds=$(sed -n 's/.*trained 2 epochs in \([0-9.]*\) s.*/\1/p' "$dir/worker-0.log")
awk -v s="$seconds" -v took="$took_ms" 'BEGIN { exit !(s > 1 && s * 1000 <= took + 50) }' || fail "trained in $seconds s, but all took $took_ms ms"
kill "${servers[@]}"
wait
