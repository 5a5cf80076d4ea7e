#!/usr/bin/env bash
# The CUDA plugin, as built and as installed, names the folders of CUDA's libraries: they need not be where the loader looks by itself.
# usage: runpath.sh REPOSITORY BUILD [PLUGIN]
. "$(dirname "$0")/lib.sh"
if [ $# -lt 3 ]; then
    trap - EXIT
    rm -r "$dir"
    echo "skipped: this build has no CUDA backend (nvcc)"
    exit 77
fi

check() {
    local runpath needed folder found
    readelf -d "$1" >"$dir/said"
    runpath=$(sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p' "$dir/said")
    case :$runpath: in *::*) fail "$1: its RUNPATH is empty, or has the current folder in it" ;; esac
    for needed in $(sed -n 's/.*(NEEDED).*\[\(libcuda.*\|libcublas.*\)\]/\1/p' "$dir/said"); do
        found=no
        for folder in ${runpath//:/ }; do
            [ ! -e "$folder/$needed" ] || found=yes
        done
        [ $found = yes ] || fail "$1: $needed is in no folder of its RUNPATH"
    done
    says "[libcudart"
    says "[libcublas"
}

check "$3"
expect 0 libdownpour-cuda.so env DESTDIR="$dir/root" cmake --install "$2"
check "$(find "$dir/root" -name libdownpour-cuda.so)"
