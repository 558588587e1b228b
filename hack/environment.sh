#!/usr/bin/env bash
# Print the directory of the programs that operator/requirements/NAME.txt locks.
#
#   hack/environment.sh NAME
#
# They are installed once per lock file into a virtual environment in ${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
bin=${PLIMSOLL_VENV:-$root/.venv}/bin
cache=$(realpath -m "${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}")/$1
requirements=$root/operator/requirements/$1.txt
readonly root bin cache requirements
# shellcheck source=hack/follow_pip.sh
. "$root/hack/follow_pip.sh"

[[ -x $bin/uv ]] || { echo "environment.sh: no uv in $bin: run hack/setup.sh first" >&2; exit 1; }
key=$({ "$bin/python" -c 'import sys; print(sys.version, sys.executable)'; cat "$requirements"; } | sha256sum | cut -c 1-16)
readonly key environment=$cache/$key

mkdir -p "$cache"
exec 9> "$cache.lock"
flock 9
if [[ ! -e $environment/complete ]]; then
    find "$cache" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
    follow_pip "$bin/python"
    "$bin/uv" --quiet venv --python "$bin/python" "$environment"
    "$bin/uv" --quiet pip install --python "$environment/bin/python" --require-hashes --requirements "$requirements"
    touch "$environment/complete"
fi
echo "$environment/bin"
