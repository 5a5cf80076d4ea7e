#!/usr/bin/env bash
# Manual pages and bash completion have every command and flag that --help has. usage: manuals.sh DOWNPOUR
. "$(dirname "$0")/lib.sh"
. deploy/completion.bash

# offers WORDS...: what the completion offers for the last of them
offers() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _downpour "$downpour" "${!#}"
    echo "${COMPREPLY[*]}"
}

commands=$("$downpour" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 10 ] || fail "few commands: $commands"
[ "$(offers downpour ru)" = run ] || fail "ru: $(offers downpour ru)"
[ "$(offers downpour run --rate-b)" = --rate-by-staleness ] || fail "run --rate-b: $(offers downpour run --rate-b)"
[ "$("$downpour" run --help | wc -l)" -le 45 ] || fail "run --help has more than 45 lines"
[ "$("$downpour" run --help all | grep -c '^  --')" -le 79 ] || fail "run has more than 79 flags"
[ -z "$(offers downpour run --train a)" ] || fail "not left to file names"
for command in $commands; do
    flags=$("$downpour" "$command" --help all | grep -oE '^  --[a-z0-9-]+' | xargs)
    [ "$(offers downpour "$command" -)" = "$flags" ] || fail "$command: $(offers downpour "$command" -), not $flags"
done

if ! command -v help2man >/dev/null; then
    expect 0 "help2man is missing" deploy/docs/manuals "$(dirname "$downpour")" "$dir/man1"
    echo "not looked at: manual pages (no help2man)"
    exit
fi
expect 0 "" deploy/docs/manuals "$(dirname "$downpour")" "$dir/man1"
for command in $commands; do
    page=$dir/man1/downpour-$command.1
    for flag in $("$downpour" "$command" --help all | grep -oE '^  --[a-z0-9-]+'); do
        grep -qF -e "${flag//-/\\-}" "$page" || fail "$page lacks $flag"
    done
done
