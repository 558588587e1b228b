#!/usr/bin/env bash
# Check that Plimsoll runs with the lowest versions of its dependencies that operator/pyproject.toml declares.
#
#   hack/lowest_versions.sh
#
# Plimsoll itself is installed for each check, into a temporary directory.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
uv=${PLIMSOLL_VENV:-$root/.venv}/bin/uv
bin=$("$root/hack/environment.sh" pyproject.toml --resolution lowest-direct --extra report)
readonly root uv bin
# shellcheck source=hack/follow_pip.sh
. "$root/hack/follow_pip.sh"
follow_pip "${uv%uv}python"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$uv" --quiet pip install --python "$bin/python" --target "$work/plimsoll" --no-deps "$root/operator"
cd "$work"
PYTHONPATH=$work/plimsoll "$bin/python" "$root/hack/lowest_versions.py"
