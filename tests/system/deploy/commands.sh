#!/usr/bin/env bash
# deploy/install, build and demo on machines that lack something. What they call is fake. usage: commands.sh REPOSITORY
. "$(dirname "$0")/lib.sh"
tools_but apt-get dpkg-query sudo id cmake ninja pkg-config cc tput ccache
mkdir "$dir/fake"
export PATH=$dir/fake:$dir/tools

# fake NAME: its script is standard input; it notes how it is called
fake() {
    { echo '#!/bin/sh' && echo "echo \"$1 \$*\" >>'$dir/calls'" && cat; } >"$dir/fake/$1"
    chmod +x "$dir/fake/$1"
}

calls() {
    grep -qF -e "$1" "$dir/calls" || fail "no call of '$1', but: $(cat "$dir/calls")"
}

install=$source/deploy/install
build=$source/deploy/build
: >"$dir/file"

expect 2 "this system has no apt-get; install the software of these Debian packages" "$install"
fake apt-get </dev/null
fake dpkg-query <<<'echo installed'
expect 0 "everything needed is here" "$install" --tests
! grep -q apt-get "$dir/calls" || fail "apt-get was called for nothing"

fake dpkg-query <<<'exit 1'
fake id <<<'echo 1000'
expect 2 "run as root: apt-get install -y --no-install-recommends build-essential cmake" "$install"
says_no libcmocka-dev
expect 2 libcmocka-dev "$install" --tests
fake sudo <<<'exec "$@"'
expect 0 "apt-get install build-essential" "$install"
calls "sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install"
fake id <<<'echo 0'
: >"$dir/calls"
expect 0 "apt-get install build-essential" "$install"
calls "apt-get -qq update"
calls "apt-get -qq install -y --no-install-recommends build-essential cmake"
! grep -q sudo "$dir/calls" || fail "sudo was called by root"
fake apt-get <<<'case $* in *install*) seq -f "E: package %g" 150 >&2; echo "E: Unable to fetch" >&2; exit 100; esac'
expect 2 "E: Unable to fetch" "$install"
says "apt-get install failed (see above): is there a network"
says "still missing: build-essential cmake"
says "E: package 1"
[ "$(wc -l <"$dir/said")" -le 12 ] || fail "more than a few lines"

expect 1 "cmake is missing: deploy/install" "$build" "$dir/b"
fake ninja </dev/null
fake pkg-config </dev/null
fake cc </dev/null
fake cmake <<'E2'
if [ "$1" != --build ]; then
    echo "-- Detecting this and that"
    echo "-- Downpour: CUDA backend: not built, and why"
    exit
fi
echo "[0/1] Re-checking globbed directories..."
echo "[1/1] Re-running CMake..."
for i in $(seq 299); do
    echo "[$i/300] Building C object a/b/CMakeFiles/dp_b.dir/__/file$i.c.o"
done
echo "[300/300] Linking C executable bin/downpour"
E2
expect 1 "cannot write to $dir/file/b: give another directory" "$build" "$dir/file/b"
expect 1 "cannot write to $dir/file/b: name a directory" "$source/deploy/demo" "$dir/file/b"
expect 0 "build: CUDA backend: not built, and why" "$build" "$dir/b" -DX=Y
calls "cmake -S $source -B $dir/b -G Ninja -DX=Y"
calls "cmake --build $dir/b --target all"
says "build: 150 of 300: a/b/../file150.c"
says "build: 300 of 300: bin/downpour"
says_no Detecting
[ "$(wc -l <"$dir/said")" -le 15 ] || fail "more than a few lines"
expect 0 "build: done" "$build" --programs "$dir/b"
calls "cmake --build $dir/b --target programs"
fake ccache </dev/null
expect 0 "build: $dir/b, with ccache" "$build" "$dir/b" -DX=Y
calls "cmake -S $source -B $dir/b -G Ninja -DCMAKE_C_COMPILER_LAUNCHER=ccache -DX=Y"
rm "$dir/fake/ccache"
# One line that is rewritten: between the first file and the last there is no end of a line.
if command -v script >/dev/null; then
    TERM=vt100 expect 0 "build: done" script -qec "$build '$dir/b'" /dev/null
    grep -a "build: 1 of 1" "$dir/said" | grep -qa "build: 299 of 300: a/b/../file299.c" || fail "not one line on a terminal"
else
    echo "not looked at: the line on a terminal (no script)"
fi

fake cmake <<'E2'
[ "$1" = --build ] || exit 0
echo "[1/2] Building C object a.c.o"
echo "FAILED: a.c.o"
echo "a.c:1:1: error: this"
exit 1
E2
expect 1 "a.c:1:1: error: this" "$build" "$dir/b"
says "compiling failed (see above)"
says_no "[1/2]"
fake cmake <<<'echo "CMake Error: no such module"; exit 1'
expect 1 "CMake Error: no such module" "$build" "$dir/b"
says "deploy/install installs missing packages"
