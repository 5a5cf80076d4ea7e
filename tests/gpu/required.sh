#!/bin/sh
# required.sh PROGRAM...: that each GPU test, and compute-sanitizer's over the first of them, skips where it finds no GPU, and fails there
# with DP_GPU=required. CUDA sees none here, whatever the machine has.
export CUDA_VISIBLE_DEVICES=
failures=0

# check GPU CODE TEXT COMMAND...
check() {
    gpu=$1 code=$2 text=$3
    shift 3
    said=$(DP_GPU=$gpu "$@" 2>&1)
    got=$?
    case $got/$said in
    "$code/$text"*) ;;
    *)
        failures=$((failures + 1))
        echo "FAILED: DP_GPU=$gpu $*: exit code $got, not $code, or not '$text', but: $said"
        ;;
    esac
}

check_all() {
    check "" 77 "skipped: " "$@"
    check required 1 "failed: DP_GPU=required, and this test would be skipped: " "$@"
    check yes 1 "failed: DP_GPU is 'yes'; only 'required' is known" "$@"
}

for program in "$@"; do
    check_all "$program"
done
# Nothing is in PATH, so no compute-sanitizer.
check_all env PATH= /bin/sh "$(dirname "$0")/sanitize.sh" memcheck "$1"
check_all /bin/sh "$(dirname "$0")/sanitize.sh" memcheck "$1"
[ $failures -eq 0 ]
