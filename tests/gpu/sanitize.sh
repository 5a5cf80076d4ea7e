#!/bin/sh
# sanitize.sh TOOL PROGRAM [FOLDER]: a test program on the GPU under compute-sanitizer's TOOL (memcheck, racecheck, synccheck, initcheck), which
# is looked for in PATH and in FOLDER. Exits with 77, and says why, where it or a GPU is not there (with 1 under DP_GPU=required);
# with 99 where it finds a mistake.
# Errors of calls are not reported: some are asked for (memory that no device has), and the test looks at each.
tool=$1 program=$2
[ -z "$3" ] || PATH=$PATH:$3
if ! command -v compute-sanitizer >/dev/null; then
    exec "$program" --lacks "no compute-sanitizer in PATH${3:+ or $3}"
fi
"$program" --look
code=$?
[ $code -eq 0 ] || exit $code
exec compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 99 --print-limit 20 "$program"
