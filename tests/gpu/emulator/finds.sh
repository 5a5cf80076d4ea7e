#!/bin/sh
# finds.sh PROGRAM TEST: a bug is planted in what PROGRAM tests, and its TEST must fail (or the emulator must end it there). A program
# that fails before that test has found nothing.
out=$("$1" --only "$2" 2>&1)
code=$?
printf '%s\n' "$out"
case $out in
*"[ RUN      ] $2"*) ;;
*)
    echo "$2 did not run"
    exit 1
    ;;
esac
[ $code -ne 0 ] && exit 0
echo "$2 passes with the planted bug"
exit 1
