# For the tests of this folder: a directory of its own, which is removed at the end, and checks that are counted.
set -u
source=$(realpath "$1")
dir=$(mktemp -d "${TMPDIR:-/tmp}/dp_deploy_XXXXXX")
failures=0

finish() {
    rm -rf "$dir"
    [ "$failures" = 0 ] || echo "$failures checks failed"
    exit $((failures > 0))
}
trap finish EXIT

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    sed 's/^/    /' "$dir/said" 2>/dev/null
}

# expect CODE TEXT COMMAND...: exit code, and text on standard output or error, which stay in $dir/said
expect() {
    local code=$1 text=$2 got
    shift 2
    timeout 240 "$@" >"$dir/said" 2>&1 </dev/null
    got=$?
    [ "$got" = "$code" ] || fail "exit code $got, not $code: $*"
    grep -qF -e "$text" "$dir/said" || fail "no '$text' from: $*"
}

says() {
    grep -qF -e "$1" "$dir/said" || fail "no '$1'"
}

says_no() {
    ! grep -qF -e "$1" "$dir/said" || fail "'$1', which nobody should see"
}

# This machine's tools, without those that are named.
tools_but() {
    local folder
    mkdir "$dir/tools"
    while read -r folder; do # the first that has a name is the one that counts
        ln -s -t "$dir/tools" "$folder"/* 2>/dev/null
    done < <(tr : '\n' <<<"$PATH")
    (cd "$dir/tools" && rm -f "$@")
}
