#!/bin/sh
# sanitize.sh TOOL PROGRAM [FOLDER]: a test program on the GPU under compute-sanitizer's TOOL (memcheck, racecheck, synccheck, initcheck), which
# is looked for in PATH and in FOLDER. Exits with 77, and says why, where it or a GPU is not there (with 1 under DP_GPU=required);
# with 99 where it finds a mistake; with 124 after DP_SANITIZE_SECONDS (540).
# Kernels   racecheck looks at our own alone: cuBLAS's are full of barriers that it does not follow. They are known by their names,
#           dp_cuda_*. initcheck looks at our own alone, too, where it still notes what cuBLAS's write (2026.4 does); else at all.
# Versions  kernels are chosen by --kernel-name since compute-sanitizer 2023.3 (CUDA 12.3), by --kernel-regex since 2021.2 (11.4), and by
#           --filter before.
# Sizes     DP_SANITIZED=1 in the environment makes the test programs' batches small: kernels are 10 to 1,000 times slower.
# Memory    Device memory is not zeroed when it is reserved, so that initcheck sees what is read before it was written.
# Errors of calls are not reported: some are asked for (memory that no device has), and the test looks at each.
tool=$1 program=$2 seconds=${DP_SANITIZE_SECONDS:-540}
[ -z "$3" ] || PATH=$PATH:$3
if ! command -v compute-sanitizer >/dev/null; then
    exec "$program" --lacks "no compute-sanitizer in PATH${3:+ or $3}"
fi
"$program" --look
code=$?
[ $code -eq 0 ] || exit $code
help=$(compute-sanitizer --help)
has() {
    case $help in
    *" $1 "*) true ;;
    *) false ;;
    esac
}
set -- --report-api-errors no --error-exitcode 99 --print-limit 20
if [ "$tool" = racecheck ] || { [ "$tool" = initcheck ] && has --initcheck-track-filtered-global-memory; }; then
    if has --kernel-name; then
        set -- "$@" --kernel-name kns=dp_cuda_
    elif has --kernel-regex; then
        set -- "$@" --kernel-regex kns=dp_cuda_
    else
        set -- "$@" --filter kns=dp_cuda_
    fi
fi
DP_SANITIZED=1 timeout -k 10 "$seconds" compute-sanitizer --tool "$tool" "$@" "$program"
code=$?
[ $code -ne 124 ] || echo "failed: $tool of $program is not done after $seconds s: set DP_SANITIZE_SECONDS higher"
exit $code
