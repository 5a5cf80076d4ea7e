#!/usr/bin/env bash
# The units of deploy/systemd are ones that systemd accepts, with the programs of this build, and no command in them is refused.
# usage: systemd.sh SOURCE BUILD
set -u
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; exit 77; }
source=$1 build=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/dp_systemd_XXXXXX")
trap 'rm -rf "$dir"' EXIT
failed=0
fail() {
    echo "FAILED: $1"
    failed=1
}
for unit in server worker; do
    sed "s|@DP_PROGRAMS@|$build/bin|" "$source/deploy/systemd/downpour-$unit@.service.in" >"$dir/downpour-$unit@.service"
done
for unit in server worker; do
    systemd-analyze verify --man=no "$dir/downpour-$unit@0.service" >"$dir/out" 2>&1 || fail "$unit: $(cat "$dir/out")"
    grep "downpour-" "$dir/out" && fail "$unit: what systemd says of it"
    # The command line, with another cluster file and number, reaches the file: its flags are known.
    command=$(sed -n 's/^ExecStart=//p' "$dir/downpour-$unit@.service" | sed "s|/etc/downpour/cluster.conf|$dir/none.conf|; s|%i|0|")
    timeout 20 $command >"$dir/out" 2>&1
    code=$?
    [ $code = 2 ] && grep -q "$dir/none.conf" "$dir/out" || fail "'$command' ended with $code: $(cat "$dir/out")"
    # 2 and 0 are no reasons to start again.
    grep -qx "RestartPreventExitStatus=2" "$dir/downpour-$unit@.service" || fail "$unit is restarted after 2"
    grep -qx "Restart=on-failure" "$dir/downpour-$unit@.service" || fail "$unit is not restarted on failure alone"
done
exit $failed
