# Sourced by ./start, ./test and scripts/*: the repository's root, messages, timing. Needs bash 5.
root=$(cd -- "${BASH_SOURCE[0]%/*}/../.." && pwd -P)

# Messages and progress go to stderr; stdout belongs to the answer.
say() { printf '%s\n' "$*" >&2; }
die() {
  say "${0##*/}: $*"
  exit 1
}

# seconds_since MICROSECONDS: seconds with one decimal since that reading of clock.
clock() { printf '%s' "${EPOCHREALTIME/[.,]/}"; }
seconds_since() {
  local tenths=$((($(clock) - $1) / 100000))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# The model store: the hub cache. Exported, so that every program of the run looks in the same place.
use_model_store() {
  if [[ -z ${HF_HUB_CACHE:-} ]]; then
    if [[ -n ${HF_HOME:-} ]]; then HF_HUB_CACHE=$HF_HOME/hub
    else HF_HUB_CACHE=${HOME:?is not set; set it or HF_HUB_CACHE}/.cache/huggingface/hub
    fi
  fi
  export HF_HUB_CACHE
}
