# Sourced: the tests' own Python environment, made from the pinned tests/requirements.txt.

# make_venv: .venv, made anew when the pins or the interpreter's version change. A stamp is written last, so a killed
# run starts over.
make_venv() {
  local venv=$root/.venv requirements=$root/tests/requirements.txt want
  want="$root $(python3 --version) $(sha256sum <"$requirements")"
  if [[ -f $venv/hearth.stamp && $(<"$venv/hearth.stamp") == "$want" ]]; then return 0; fi
  say "making .venv from tests/requirements.txt"
  rm -rf "$venv"
  python3 -m venv "$venv" >&2 || return 1
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --requirement "$requirements" >&2 </dev/null || return 1
  "$venv/bin/python" -m pip check >&2 || return 1
  printf '%s\n' "$want" >"$venv/hearth.stamp"
}
