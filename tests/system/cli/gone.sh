#!/usr/bin/env bash
# `gone` of lib.sh: after it the locks of killed processes are free, although a large process takes its time to end.
# usage: gone.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"
cat >"$dir/large" <<'LARGE'
import fcntl, sys, threading, time
open('/proc/self/comm', 'w').write('downpour-large')
lock = open(sys.argv[1], 'w')
fcntl.flock(lock, fcntl.LOCK_EX)
memory = bytearray(1 << 29)
memory[::4096] = b'x' * (1 << 17) # all its pages
threading.Thread(target=time.sleep, args=(60,)).start() # the process ends with the last of two threads
print('locked', flush=True)
LARGE
for _ in 1 2 3; do
    : >"$dir/out"
    python3 "$dir/large" "$dir/lock" >"$dir/out" 2>"$dir/err" &
    wait_until 60 grep -q locked "$dir/out" || fail "the lock was not taken"
    left | xargs -r kill -KILL
    gone
    flock -n "$dir/lock" true || fail "a killed process still has its lock"
    wait $! 2>/dev/null
done
