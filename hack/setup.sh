#!/usr/bin/env bash
# Prepare a Debian or Ubuntu machine to build, check and test Plimsoll.
#
#   hack/setup.sh
#
# Packages of the distribution are installed only where something is missing, and only with root's rights or a sudo that
# asks nothing. Python packages go, with their hashes checked, into a virtual environment: $PLIMSOLL_VENV or .venv in this
# tree. A second call finds everything in place and returns at once.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
venv=$(realpath -m "${PLIMSOLL_VENV:-$root/.venv}")
readonly root venv
# shellcheck source=hack/follow_pip.sh
. "$root/hack/follow_pip.sh"

say() { printf 'setup.sh: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# The distribution's interpreter is optimized with profiles: the tests take two thirds of the time that they take with one
# compiled without. The first in PATH is used where the distribution's is too old, or cannot make environments.
find_python() {
    if /usr/bin/python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        echo /usr/bin/python3
    else
        echo python3
    fi
}

python=${PYTHON:-$(find_python)}
readonly python

# Print the packages that provide what is missing.
missing_packages() {
    local command
    command -v "$python" > /dev/null || echo python3
    if command -v "$python" > /dev/null && ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
        "$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    fi
    for command in setpriv:util-linux blkdiscard:util-linux blkid:util-linux flock:util-linux losetup:mount mount:mount mkfs.ext4:e2fsprogs \
        make:make chromium:chromium bonnie++:bonnie++ ioping:ioping iperf3:iperf3 nc.traditional:netcat-traditional ping:iputils-ping tc:iproute2 gcc:gcc; do
        command -v "${command%:*}" > /dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "${command%:*}" > /dev/null ||
            echo "${command#*:}"
    done
    [[ -e /usr/include/linux/filter.h ]] || echo libc6-dev
    # hack/fio.sh verifies what it fetches with this; where fio itself is recent enough, the distribution's is used.
    # shellcheck disable=SC1091  # a file of the machine
    if ! command -v fio > /dev/null; then
        case $(. /etc/os-release && echo "${ID:-}/${VERSION_ID:-}") in
            debian/12) [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || echo debian-archive-keyring ;;
            *) echo fio ;;
        esac
    fi
}

install_packages() {
    local packages=("$@") as_root=()
    command -v apt-get > /dev/null || die "missing, and there is no apt to install it with: ${packages[*]}"
    if ((EUID != 0)); then
        sudo --non-interactive true 2> /dev/null || die "as root, install first: apt-get install ${packages[*]}"
        as_root=(sudo --non-interactive)
    fi
    say "installing ${packages[*]}"
    {
        "${as_root[@]}" apt-get -qq update
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get -qq install --yes --no-install-recommends "${packages[@]}"
    } >&2 || die "apt-get could not install: ${packages[*]}"
}

# What the environment depends on: the locked requirements, the project's metadata and the interpreter.
fingerprint() {
    { "$python" -c 'import sys; print(sys.version, sys.executable)'
      echo "$root" "$venv"
      cat "$root"/operator/requirements/{runtime,dev}.txt "$root/operator/pyproject.toml"
    } | sha256sum | cut -d ' ' -f 1
}

# NAME: the lines of a package among the locked requirements, with its hashes.
locked() { awk -v name="$1==" 'index($0, name) == 1 { found = 1 } found { print; if (!/\\$/) exit }' "$root/operator/requirements/dev.txt"; }

make_venv() {
    say "making the virtual environment $venv"
    # At its final place, because scripts name their interpreter by path; the stamp, written last, tells it is complete.
    rm -rf "$venv"
    "$python" -m venv "$venv"
    # pip brings uv, which installs the rest several times as fast.
    locked uv > "$venv/uv.txt"
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet install --require-hashes -r "$venv/uv.txt" >&2
    follow_pip "$venv/bin/python"
    local install=("$venv/bin/uv" --quiet pip install --python "$venv/bin/python")
    "${install[@]}" --require-hashes -r "$root/operator/requirements/dev.txt" >&2
    "${install[@]}" --no-build-isolation --no-deps --editable "$root/operator" >&2
    echo "$1" > "$venv/.plimsoll-stamp"
}

mapfile -t packages < <(missing_packages | sort -u)
((${#packages[@]} == 0)) || install_packages "${packages[@]}"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "Python 3.11 or later is needed, $python is older: name one in PYTHON"
stamp=$(fingerprint)
up_to_date() { [[ $(cat "$venv/.plimsoll-stamp" 2> /dev/null) == "$stamp" ]]; }
if ! up_to_date; then
    mkdir -p "$(dirname "$venv")"
    exec 9> "$venv.lock"
    flock 9
    up_to_date || make_venv "$stamp"
fi
