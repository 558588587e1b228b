#!/usr/bin/env bash
# Compile operator/requirements/*.in into hash-locked *.txt in the same directory.
#
#   hack/lock.sh              refresh what the .in files no longer allow, keep every other version
#   hack/lock.sh --upgrade    take the newest versions
#   hack/lock.sh --check      change nothing; fail if the .txt files do not correspond to the .in files
#
# The result serves every supported Python on every platform and names no package index.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
uv=$(command -v "${PLIMSOLL_VENV:-$root/.venv}/bin/uv" || command -v uv) ||
    { echo "lock.sh: no uv found: run hack/setup.sh first" >&2; exit 1; }
directory=$root/operator/requirements
options=() names=(runtime build dev docs plugin release)
mode=${1:-}
case $mode in
    "" | --check) ;;
    --upgrade) options+=(--upgrade) ;;
    *) echo "usage: $0 [--upgrade | --check]" >&2; exit 2 ;;
esac

# The project's own metadata and the file compiled from must ask for the same.
diff <(sed -n -E '/^dependencies = \[/,/^\]/ s/^ *"([^"]+)".*/\1/p' "$root/operator/pyproject.toml" | sort) \
    <(sed -E '/^(#|$)/d' "$directory/runtime.in" | sort) >&2 ||
    { echo "lock.sh: runtime.in and the dependencies in pyproject.toml differ" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$directory"/*.in "$directory"/*.txt "$work/" 2> /dev/null || true

cd "$work"
for name in "${names[@]}"; do
    "$uv" --quiet pip compile --universal --python-version 3.11 --generate-hashes --no-strip-extras \
        --no-emit-index-url --no-emit-find-links --no-header "${options[@]}" \
        --output-file "$name.txt" "$name.in" > /dev/null
    if grep -nE '^(-i|--index|--extra-index|--find-links|-f )|://' "$name.txt" >&2; then
        echo "lock.sh: $name.txt would name where packages come from" >&2
        exit 1
    fi
done

for name in "${names[@]}"; do
    if [[ $mode != --check ]]; then
        cp "$name.txt" "$directory/$name.txt"
    elif ! diff -u "$directory/$name.txt" "$name.txt" >&2; then
        echo "lock.sh: $name.txt does not correspond to $name.in: run hack/lock.sh" >&2
        exit 1
    fi
done
