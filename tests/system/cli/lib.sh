# For the scripts of this folder: a directory of their own, checks that are counted, and the processes that work in the directory.
# A script sources it first, with the path of the downpour command as its own first argument, from the root of the repository.
# $dir      is removed at the end, and whatever still runs in it is killed; TMPDIR lies in it
# $data     the data sets of the repository
# $dir/out, $dir/err          what the last command of `expect` wrote
# $dir/run.out, $dir/run.err  what the run in the background writes (`begin`); its process is $pid
# The exit code is 1 if a check failed.
# shellcheck shell=bash disable=SC2034,SC2062
set -u
downpour=$(realpath "$1")
data=$PWD/tests/data
dir=$(mktemp -d "${TMPDIR:-/tmp}/dp_$(basename "$0" .sh)_XXXXXX")
export TMPDIR=$dir/tmp
mkdir "$TMPDIR"
failures=0

finish() {
    left | xargs -r kill -KILL 2>/dev/null
    gone
    chmod -R u+w "$dir"
    rm -rf "$dir"
    [ "$failures" = 0 ] || echo "$failures checks failed"
    exit $((failures > 0)) # (in a trap, without a number: what it was before)
}
trap finish EXIT

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    tail -n 30 "$dir"/{out,err,run.out,run.err} 2>/dev/null | sed 's/^/    /'
}

# took SINCE WHAT: a script that was slow says where
took() {
    [ $((SECONDS - $1)) -lt 15 ] || echo "$((SECONDS - $1)) s: $2"
}

# expect CODE TEXT COMMAND...: exit code, and text on standard output or error
expect() {
    local code=$1 text=$2 got since=$SECONDS
    shift 2
    timeout 120 "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    took "$since" "$*"
    [ "$got" = "$code" ] || fail "exit code $got, not $code: $*"
    [ -z "$text" ] || cat "$dir/out" "$dir/err" | grep -qF -e "$text" || fail "no '$text' from: $*"
}

# said PATTERN, unsaid PATTERN: an extended regular expression
said() {
    cat "$dir/out" "$dir/err" | grep -qE -e "$1" || fail "'$1' was not said"
}

unsaid() {
    cat "$dir/out" "$dir/err" | grep -qE -e "$1" && fail "'$1' was said"
}

said_text() {
    cat "$dir/out" "$dir/err" | grep -qF -e "$1" || fail "'$1' was not said"
}

# wait_until SECONDS COMMAND...: true as soon as the command is, false at the deadline
wait_until() {
    local since=$SECONDS seconds=$1
    shift
    until "$@"; do
        [ $((SECONDS - since)) -lt "$seconds" ] || return 1
        sleep 0.1
    done
    took "$since" "$*"
}

has_ended() {
    ! kill -0 "$1" 2>/dev/null
}

# begin COMMAND...: a run in the background, until it shows its first epoch
begin() {
    : >"$dir/run.err" # here too: the process may open it later than it is looked into
    "$@" >"$dir/run.out" 2>"$dir/run.err" &
    pid=$!
    wait_until 60 grep -q "^epoch" "$dir/run.err" || fail "no epoch began within a minute: $*"
}

# The run in the background has an epoch behind it.
until_trained() {
    wait_until 60 grep -Eq "^ +[0-9]+ +[0-9.]+ " "$dir/run.out" || fail "no epoch was trained within a minute"
}

# left [PATTERN]: the processes whose command line names something in our directory (and is like the pattern)
left() {
    local p
    grep -lszF --file=- /proc/[0-9]*/cmdline <<<"$dir/" | cut -d/ -f3 | while read -r p; do
        [ $# = 0 ] || tr '\0' ' ' <"/proc/$p/cmdline" | grep -q -e "$1" && echo "$p"
    done 2>/dev/null
}

nobody_left() {
    [ -z "$(left)" ]
}

# A process that is ending has no command line any more, but its locks, ports and files until its last thread has ended. (The first
# one may be a zombie long before.)
lets_go() {
    grep -qsz . "/proc/$1/cmdline" || ! grep -qs '^State:[[:space:]][^ZX]' "/proc/$1"/task/*/status
}

# gone [WHAT]: nobody is left in our directory, and nobody holds anything of it. Whose a process was that is ending cannot be seen:
# it waits for all that have a name of ours.
gone() {
    local p
    wait_until 30 nobody_left || fail "processes are left${1:+ after $1}: $(left | xargs)"
    while read -r p; do
        wait_until 30 lets_go "$p" || fail "process $p${1:+, after $1,} does not end"
    done < <(grep -lsx 'downpour.*' /proc/[0-9]*/comm | cut -d/ -f3)
}
