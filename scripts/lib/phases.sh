# Sourced by ./test: named phases, each timed; a failed one does not stop the rest.
phase_lines=()
phases_failed=0
tests_skipped=0

# phase NAME COMMAND...: runs it in a subshell (its exit is its own), notes the time and the outcome; false on failure.
phase() {
  local name=$1 begin status
  shift
  begin=$(clock)
  printf '\n== %s\n' "$name"
  ("$@")
  status=$?
  if ((status == 130)); then exit 130; fi
  if ((status == 0)); then phase_lines+=("$(printf '%8s s  ok      %s' "$(seconds_since "$begin")" "$name")")
  else
    phase_lines+=("$(printf '%8s s  FAILED  %s' "$(seconds_since "$begin")" "$name")")
    ((phases_failed += 1))
  fi
  return "$status"
}

# skip_phase NAME REASON: a phase that cannot run because an earlier one failed.
skip_phase() {
  phase_lines+=("$(printf '%8s s  NOT RUN %s (%s)' - "$1" "$2")")
  ((phases_failed += 1))
}

# summary TIER BEGIN: the times, the skipped tests; exits with the outcome of the whole run.
summary() {
  local tier=$1 begin=$2 line
  printf '\n== summary\n'
  printf '%s\n' "${phase_lines[@]}"
  if [[ -s $skips ]]; then
    tests_skipped=$(wc -l <"$skips")
    printf 'skipped tests: %d\n' "$tests_skipped"
    while read -r line; do printf '  %s\n' "$line"; done <"$skips"
    if [[ $tier == full ]]; then
      printf 'the full tier allows no skipped test\n'
      ((phases_failed += 1))
    fi
  else
    printf 'skipped tests: 0\n'
  fi
  if ((phases_failed > 0)); then
    printf 'test (%s): FAILED in %s s\n' "$tier" "$(seconds_since "$begin")"
    exit 1
  fi
  printf 'test (%s): ok in %s s\n' "$tier" "$(seconds_since "$begin")"
  exit 0
}
