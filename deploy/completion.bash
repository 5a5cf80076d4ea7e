# Bash completion of downpour. Commands and flags are read from --help, so they are those of the program that is called.
# shellcheck shell=bash
_downpour() {
  local program=$1 word=$2 words=
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    words=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z-]*\) .*/\1/p')
  elif [[ $word == -* ]]; then
    words=$("$program" "${COMP_WORDS[1]}" --help all 2>/dev/null | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')
  fi
  [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _downpour downpour
