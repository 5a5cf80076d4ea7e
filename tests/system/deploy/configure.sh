#!/usr/bin/env bash
# What CMake makes of a machine without cmocka, of one without MPI, and of one without nvcc, or with one where PATH does not lead.
# Only configured, not built. usage: configure.sh REPOSITORY
. "$(dirname "$0")/lib.sh"
unset CUDACXX CUDA_PATH CUDA_HOME
tools_but nvcc
export PATH=$dir/tools

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
configure 0 "tests: not built, cmocka is missing (deploy/install --tests" -DDP_CUDA=OFF
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

no_mpi=-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
configure 0 "downpour-allreduce: not built, no MPI is found (libopenmpi-dev and openmpi-bin" -DDP_CUDA=OFF $no_mpi
programs
configure 1 "DP_MPI is ON, and downpour-allreduce cannot be built: no MPI is found" -DDP_MPI=ON $no_mpi
configure 0 "downpour-allreduce: not built, DP_MPI is OFF" -DDP_MPI=OFF

# cuda CODE TEXT OPTIONS...: nvcc is in PATH or below this folder only
cuda() {
    configure "$1" "$2" -DDP_TESTS=OFF -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DDP_CUDA_PLACES="$dir/places" "${@:3}"
}

nvcc() {
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\nexit 1\n' >"$1"
    chmod +x "$1"
}

cuda 0 "CUDA backend: not built, no nvcc in PATH or $dir/places/cuda*/bin" -DDP_CUDA=AUTO
says "-DCMAKE_CUDA_COMPILER="
cuda 1 "DP_CUDA is ON, and the CUDA backend cannot be built: no nvcc" -DDP_CUDA=ON
# It is looked for again: an older one, a newer one, the one that is called cuda, the one in PATH.
for place in "$dir/places/cuda-9.2/bin" "$dir/places/cuda-12.10/bin" "$dir/places/cuda/bin" "$dir/tools"; do
    nvcc "$place/nvcc"
    cuda 0 "CUDA backend: not built, $place/nvcc does not compile" -DDP_CUDA=AUTO
done
CUDACXX=$dir/none cuda 0 "CUDACXX is '$dir/none'"
