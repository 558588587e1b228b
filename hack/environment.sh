#!/usr/bin/env bash
# Print the directory of the programs of a virtual environment with what a requirements file names.
#
#   hack/environment.sh REQUIREMENTS OPTION...     a file in operator, such as requirements/docs.txt; options of `uv pip install`
#
# It is made once for each version of the file, in ${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
bin=${PLIMSOLL_VENV:-$root/.venv}/bin
requirements=$root/operator/$1
name=$(basename "${1%.*}")
cache=$(realpath -m "${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}")/$name
readonly root bin requirements name cache
shift
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
    "$bin/uv" --quiet pip install --python "$environment/bin/python" --requirements "$requirements" "$@"
    touch "$environment/complete"
fi
echo "$environment/bin"
