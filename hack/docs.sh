#!/usr/bin/env bash
# Build the site of the documentation, strictly, into a directory.
#
#   hack/docs.sh [DIRECTORY]        default: build/site
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
bin=$("$root/hack/environment.sh" requirements/docs.txt --require-hashes)
directory=$(realpath -m "${1:-$root/build/site}")
readonly root bin directory
cd "$root"
NO_MKDOCS_2_WARNING=1 "$bin/python" -m mkdocs build --strict --clean --site-dir "$directory"
echo "docs.sh: the site is in $directory" >&2
