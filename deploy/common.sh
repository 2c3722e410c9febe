# Functions that quickstart and tests/run share. Sourced, not run.

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1; then sudo "$@"
  else die "packages are missing and neither root nor sudo is available; install them by hand: $*"
  fi
}

# install_packages FILE...: installs the Debian packages listed in the files that are missing.
install_packages() {
  command -v dpkg-query >/dev/null 2>&1 || {
    say "not a Debian system: install the equivalents of these packages yourself: $*"; return 0; }
  local missing=() name
  while read -r name; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done < <(grep -hvE '^[[:space:]]*(#|$)' "$@")
  if [ ${#missing[@]} -eq 0 ]; then return 0; fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

# Compiling a folder of actors as one takes up to 2 GB per job.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  if [ "$cores" -lt "$memory" ]; then echo "$cores"; else echo "$memory"; fi
}

# build PRESET [CMake options]: configures and builds into build/PRESET; $target, or everything.
build() {
  local preset=$1; shift
  say "building build/$preset with $(build_jobs) jobs (a first build takes some minutes)"
  cmake --preset "$preset" "$@" >/dev/null
  cmake --build "build/$preset" -j "$(build_jobs)" ${target:+--target "$target"}
}
