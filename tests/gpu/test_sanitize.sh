#!/bin/sh
# test_sanitize.sh SOURCES SCRATCH: what sanitize.sh asks of compute-sanitizer, which a stand-in takes the place of, with the options that three of
# its versions have; and that every kernel in SOURCES (worker/compute/cuda) has a name by which it can be chosen.
here=$(dirname "$0") sources=$1 scratch=$2 failures=0
rm -rf "$scratch" && mkdir -p "$scratch/tools" || exit 1
cat >"$scratch/tools/compute-sanitizer" <<'END'
#!/bin/sh
if [ "$1" = --help ]; then
    for option in $FAKE_HAS; do echo "  $option arg   what it does"; done
    exit 0
fi
[ -z "$FAKE_HANGS" ] || exec tail -f /dev/null
echo "sanitized=$DP_SANITIZED $*"
exit "${FAKE_CODE:-0}"
END
cat >"$scratch/program" <<'END'
#!/bin/sh
[ "$1" = --look ]
END
chmod +x "$scratch/tools/compute-sanitizer" "$scratch/program"

# check HAS TOOL CODE TEXT: with these options, this tool exits so and says this, which may be a pattern.
check() {
    said=$(FAKE_HAS=$1 "$here/sanitize.sh" "$2" "$scratch/program" "$scratch/tools" 2>&1)
    code=$?
    # shellcheck disable=SC2254
    case $code/$said in
    $3/$4) ;;
    *)
        failures=$((failures + 1))
        echo "FAILED: $2 where there is '$1': exit code $code, not $3, or not '$4', but: $said"
        ;;
    esac
}

now="--kernel-name --kernel-name-exclude --initcheck-track-filtered-global-memory"
ends="*$scratch/program"
check "$now" racecheck 0 "sanitized=1 --tool racecheck *--error-exitcode 99*--kernel-name kns=dp_cuda_ $ends"
check "$now" initcheck 0 "sanitized=1 --tool initcheck *--kernel-name kns=dp_cuda_ $ends"
check "--kernel-name" racecheck 0 "*--kernel-name kns=dp_cuda_ $ends"
check "--kernel-regex --kernel-regex-exclude" racecheck 0 "*--kernel-regex kns=dp_cuda_ $ends"
check "--filter" racecheck 0 "*--filter kns=dp_cuda_ $ends"
for tool in memcheck synccheck; do
    check "$now" $tool 0 "sanitized=1 --tool $tool --report-api-errors no --error-exitcode 99 --print-limit 20 $scratch/program"
done
# What cuBLAS wrote would be reported as never written.
check "--kernel-name" initcheck 0 "sanitized=1 --tool initcheck --report-api-errors no --error-exitcode 99 --print-limit 20 $scratch/program"
FAKE_CODE=99
export FAKE_CODE
check "$now" memcheck 99 "*"
FAKE_HANGS=1 DP_SANITIZE_SECONDS=1
export FAKE_HANGS DP_SANITIZE_SECONDS
check "$now" memcheck 124 "failed: memcheck of $scratch/program is not done after 1 s*"

kernels=$(grep -ho 'DP_CUDA_LAUNCH([a-z_]*' "$sources"/*.cu | wc -l)
others=$(grep -ho 'DP_CUDA_LAUNCH([a-z_]*' "$sources"/*.cu | grep -v 'DP_CUDA_LAUNCH(dp_cuda_')
if [ "$kernels" -lt 10 ] || [ -n "$others" ]; then
    failures=$((failures + 1))
    echo "FAILED: of $kernels launches, these kernels are not named dp_cuda_*: $others"
fi
rm -rf "$scratch"
[ $failures -eq 0 ] && echo "sanitize.sh: what it asks for is right"
