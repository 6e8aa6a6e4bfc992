#!/usr/bin/env bash
# Installs everything for `make demo` and `make test` on a fresh Debian or Ubuntu with Python 3.11+; takes seconds if all
# is installed already. System packages (a JDK, Chromium for the page tests, libfaketime for clock jumps) are installed if
# permissions allow it.
set -euo pipefail
cd "$(dirname "$0")/.."

say() {
  local tag='[setup]'
  [ ! -t 1 ] || tag=$'\033[2m[setup]\033[0m'
  printf '%s %s\n' "$tag" "$*"
}
die() { printf '[setup] %s\n' "$*" >&2; exit 1; }

python=""
for candidate in python3 python3.13 python3.12 python3.11; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || die "Python 3.11, 3.12 or 3.13 is needed; this machine has $(python3 --version 2>&1 || echo none)."

missing=() wanting=()
{ command -v javac >/dev/null && java -version 2>&1 | grep -qE '"(1[7-9]|2[0-9])'; } || missing+=(default-jdk-headless)
"$python" -c 'import ensurepip' 2>/dev/null || missing+=("python3-venv")
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || wanting+=(chromium)
compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || wanting+=(libfaketime)
install_packages() {
  local root=""
  [ "$(id -u)" = 0 ] || root="sudo -n"
  command -v apt-get >/dev/null && { [ -z "$root" ] || sudo -n true 2>/dev/null; } || return 1
  say "installing $* (Debian packages)"
  $root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}" || die "please install: sudo apt-get install ${missing[*]}"
if [ ${#wanting[@]} -gt 0 ] && ! install_packages "${wanting[@]}"; then
  for package in "${wanting[@]}"; do
    case $package in
      chromium) lost="the page tests will be left out" ;;
      libfaketime) lost="no clock jumps in make chaos" ;;
    esac
    say "$package is not installed: $lost. To install it: sudo apt-get install $package"
  done
fi

stamp=$(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)
if [ "$(cat .venv/.setup-stamp 2>/dev/null)" != "$stamp" ]; then
  say "installing the locked Python packages (about 1.3 GB; 1–3 minutes the first time)"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  uv_version=$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements.lock)
  [ -x .venv/bin/uv ] || .venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$uv_version"
  quiet=--quiet
  [ ! -t 2 ] || quiet="" # a terminal shows uv's progress
  .venv/bin/uv pip sync $quiet --python "$PWD/.venv/bin/python" --require-hashes --compile-bytecode requirements.lock
  .venv/bin/uv pip install --quiet --python "$PWD/.venv/bin/python" --no-deps --no-build-isolation --editable .
  echo "$stamp" >.venv/.setup-stamp
fi
# The module fetches only missing jars. The class archive makes each start of Spark faster.
PYTHONPATH=docker .venv/bin/python -m demo.jars
.venv/bin/python -m spark_apps.runtime.class_archive >/dev/null
