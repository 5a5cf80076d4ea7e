#!/usr/bin/env bash
# What CMake makes of a machine without cmocka. Only configured, not built. usage: configure.sh REPOSITORY
. "$(dirname "$0")/lib.sh"

# configure CODE TEXT OPTIONS...
configure() {
    expect "$1" "$2" cmake -S "$source" -B "$dir/b" -G Ninja "${@:3}"
}

# This machine's packages without cmocka, as pkg-config sees them.
mkdir "$dir/pc"
pkg-config --variable pc_path pkg-config | tr : '\n' | while read -r folder; do
    find "$folder" -name '*.pc' ! -name cmocka.pc -exec ln -sf -t "$dir/pc" {} + 2>/dev/null
done

programs() {
    expect 0 "-o bin/downpour-worker" ninja -C "$dir/b" -t commands programs
    says_no "-o tests/"
}

export PKG_CONFIG_LIBDIR=$dir/pc
configure 0 "tests: not built, cmocka is missing (deploy/install --tests" -DCMAKE_CUDA_COMPILER=OFF
programs
expect 0 "Total Tests: 0" ctest -N --test-dir "$dir/b"
configure 1 "The tests need cmocka" -DDP_TESTS=ON
says "deploy/install --tests"
# A directory that is to have tests serves the demo, which asks for AUTO, and has them when cmocka is there.
configure 0 "tests: not built" -DDP_TESTS=AUTO
unset PKG_CONFIG_LIBDIR
configure 0 "Build files have been written"
says_no "tests: not built"
programs
expect 0 unit/test_shard ctest -N --test-dir "$dir/b"
