# Sourced: configure and build a preset, with a stamp that spares cmake when no source has changed.

# What the program is made from: a change of one of these, or of a folder's listing, makes a stamp old.
program_sources=(src cmake CMakeLists.txt CMakePresets.json scripts/check-includes)

# program_fresh PRESET: true when build/PRESET/hearth was built in this folder after the last change of its sources.
program_fresh() {
  local stamp=$root/build/$1/hearth.stamp place='' newer
  [[ -x $root/build/$1/hearth && -f $stamp ]] || return 1
  read -r place <"$stamp" || true
  [[ $place == "$root" ]] || return 1
  newer=$(cd "$root" && find "${program_sources[@]}" -newer "$stamp" -print -quit) || return 1
  [[ -z $newer ]]
}

# configure PRESET [cmake arguments]: cmake, from nothing when the tree was moved or its cache is broken.
configure() {
  local preset=$1 cache=$root/build/$1/CMakeCache.txt fresh=()
  shift
  if [[ -f $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then fresh=(--fresh); fi
  (cd "$root" && cmake --preset "$preset" "${fresh[@]}" "$@") >&2 </dev/null ||
    (cd "$root" && cmake --preset "$preset" --fresh "$@") >&2 </dev/null || die "cmake --preset $preset failed"
}

# build PRESET [targets]: nothing given builds all.
build() {
  local preset=$1
  shift
  (cd "$root" && cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}) >&2 </dev/null ||
    die "the build of $preset failed"
}

# with_build_lock PRESET COMMAND...: one build of a folder at a time; a second caller waits.
with_build_lock() {
  local preset=$1
  shift
  mkdir -p "$root/build/$preset"
  (
    if ! flock -n 9; then
      say "another build of $preset is running, waiting"
      flock 9
    fi
    "$@" 9>&-
  ) 9>"$root/build/$preset/.lock"
}

# build_program PRESET: the hearth program and its stamp. The stamp is as old as the start of the build, so that a
# source changed meanwhile counts as newer.
build_program() {
  local preset=$1 stamp=$root/build/$1/hearth.stamp
  if program_fresh "$preset"; then return 0; fi
  printf '%s\n' "$root" >"$stamp.new"
  configure "$preset"
  build "$preset" hearth
  mv -f "$stamp.new" "$stamp"
}
