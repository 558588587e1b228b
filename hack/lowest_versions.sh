#!/usr/bin/env bash
# Check that Plimsoll runs with the lowest versions of its dependencies that operator/pyproject.toml declares.
#
#   hack/lowest_versions.sh
#
# They are installed once per declaration, into a virtual environment in ${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}; Plimsoll
# itself is installed for each check, into a temporary directory.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
bin=${PLIMSOLL_VENV:-$root/.venv}/bin
cache=$(realpath -m "${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}")/lowest-versions
readonly root bin cache
# shellcheck source=hack/follow_pip.sh
. "$root/hack/follow_pip.sh"

[[ -x $bin/uv ]] || { echo "lowest_versions.sh: no uv in $bin: run hack/setup.sh first" >&2; exit 1; }
follow_pip "$bin/python"
key=$({ "$bin/python" -c 'import sys; print(sys.version, sys.executable)'
        sed -n '/^\[project\]/,/^\[project.scripts\]/p' "$root/operator/pyproject.toml"
      } | sha256sum | cut -c 1-16)
readonly key environment=$cache/$key

mkdir -p "$cache"
exec 9> "$cache.lock"
flock 9
if [[ ! -e $environment/complete ]]; then
    find "$cache" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
    "$bin/uv" --quiet venv --python "$bin/python" "$environment"
    "$bin/uv" --quiet pip install --python "$environment/bin/python" --resolution lowest-direct \
        --requirements "$root/operator/pyproject.toml" --extra report
    touch "$environment/complete"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/uv" --quiet pip install --python "$environment/bin/python" --target "$work/plimsoll" --no-deps "$root/operator"
cd "$work"
PYTHONPATH=$work/plimsoll "$environment/bin/python" "$root/hack/lowest_versions.py"
