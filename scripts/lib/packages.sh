# Sourced: Debian packages. What the product links is listed in build_packages, what tests add in test_packages.
build_packages=(
  g++ cmake ninja-build ccache mold pkg-config
  libfmt-dev libboost1.81-dev libboost-json1.81-dev libssl-dev libcli11-dev libpcre2-dev libutf8proc-dev libgtest-dev
  python3 python3-pip ca-certificates
)
test_packages=(python3-venv clang-19 libclang-rt-19-dev clang-format-19)
# The corpus comes through npm. Debian's package is wanted only where no other Node.js brings one.
if ! command -v npm >/dev/null; then test_packages+=(npm); fi

# missing_packages NAME...: those that dpkg does not report as installed.
missing_packages() {
  local name status
  declare -A installed=()
  while read -r name status; do
    if [[ $status == installed ]]; then installed[$name]=1; fi
  done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null)
  for name in "$@"; do
    if [[ -z ${installed[$name]:-} ]]; then printf '%s\n' "$name"; fi
  done
}

# need_packages NAME...: installs the missing ones as root, else prints the line to run and exits 1.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here: make sure that these Debian packages' counterparts are installed: $*"
    return 0
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then return 0; fi
  if ((EUID != 0)); then
    say "some packages are missing; install them, then run this again:"
    say "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
    exit 1
  fi
  say "installing: ${missing[*]}"
  local apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  export DEBIAN_FRONTEND=noninteractive
  # A run killed in the middle of an installation leaves packages half set up.
  dpkg --configure -a >&2 </dev/null || die "dpkg --configure -a failed; mend the package database and run this again"
  "${apt[@]}" update >&2 </dev/null || die "apt-get update failed; connect to the network and run this again"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2 </dev/null ||
    die "apt-get could not install: ${missing[*]}"
}
