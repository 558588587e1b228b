#!/usr/bin/env bash
# Print the path of a fio that is new enough to measure with.
#
#   hack/fio.sh
#
# A fio >= 3.36 on PATH is used as it is. Otherwise Debian's fio 3.39 and the libraries it needs are unpacked once (taken
# through apt, so signatures and checksums are verified) into ${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}/fio-3.39/; nothing
# is installed on the machine, and no privilege is needed.
# Only the path goes to standard output; progress and errors go to standard error.
set -euo pipefail

readonly minimum=3.36 version=3.39 suite=trixie
cache=$(realpath -m "${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}")
readonly cache
readonly home=$cache/fio-$version
readonly keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf 'fio.sh: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# Succeed if $1 is a fio whose version is at least the minimum.
new_enough() {
    local found
    found=$("$1" --version 2>/dev/null) || return 1
    found=${found#fio-}
    [[ $found == [0-9]* ]] && [[ $(printf '%s\n' "$minimum" "$found" | sort -V | head -n 1) == "$minimum" ]]
}

# Print the machine's own apt sources with the suite replaced, as deb822 stanzas.
sources() {
    local codename=$1 file
    for file in /etc/apt/sources.list.d/*.sources; do
        [[ -e $file ]] && awk -v RS= -v FS='\n' -v codename="$codename" '
            { uris = ""; wanted = 0
              for (i = 1; i <= NF; i++) {
                if ($i ~ /^URIs:/) uris = substr($i, 6)
                if ($i ~ /^Enabled: *no/) { wanted = 0; break }
                if ($i ~ /^Suites:/) { n = split(substr($i, 8), suites, " ")
                                       for (k = 1; k <= n; k++) if (suites[k] == codename) wanted = 1 } }
              if (wanted) print uris }' "$file"
    done > "$work/uris"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [[ -e $file ]] && sed -n -E "s/^deb(-src)? +(\[[^]]*\] +)?([^ ]+) +$codename +.*/\3/p" "$file"
    done >> "$work/uris"
    tr -s ' \t' '\n' < "$work/uris" | sed '/^$/d' | sort -u | while read -r uri; do
        printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n\n' "$uri" "$suite" "$keyring"
    done
}

# apt with sources, lists and cache of its own; proxy and credential settings are the machine's.
private_apt() {
    apt-get -q -o Dir::Etc::sourcelist="$work/fio.sources" -o Dir::Etc::sourceparts="$work/none" \
        -o Dir::State="$work/state" -o Dir::Cache="$work/cache" -o Dir::State::status="$work/status" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3 "$@" >> "$work/log" 2>&1
}

require() {
    local missing=() command
    for command in dpkg-deb:dpkg apt-get:apt flock:util-linux; do
        command -v "${command%:*}" > /dev/null || missing+=("${command#*:}")
    done
    [[ -e $keyring ]] || missing+=(debian-archive-keyring)
    ((${#missing[@]} == 0)) || die "to provide fio $version, install first: ${missing[*]}"
}

# Fetch fio, patchelf and everything they need, as if for an empty machine, and unpack it all into $work/root.
fetch() {
    local distribution archive
    # shellcheck disable=SC1091  # a file of the machine
    distribution=$(. /etc/os-release && echo "${ID:-}/${VERSION_CODENAME:-}")
    [[ $distribution == debian/?* ]] ||
        die "no fio >= $minimum on PATH, and only on Debian can one be provided: install it and put it on PATH"
    mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/none" "$work/root"
    : > "$work/status"
    sources "${distribution#debian/}" > "$work/fio.sources"
    [[ -s $work/fio.sources ]] ||
        die "found no apt source for ${distribution#debian/} in /etc/apt to derive one for $suite from"
    say "fetching fio $version and its libraries (about 65 MB)"
    private_apt update
    private_apt install --yes --download-only --no-install-recommends fio patchelf
    compgen -G "$work/cache/archives/fio_$version-*.deb" > /dev/null || die "$suite has no fio $version"
    for archive in "$work"/cache/archives/*.deb; do
        dpkg-deb --extract "$archive" "$work/root"
    done
}

# Make fio run by itself, with its own loader and libraries. Through the loader or a wrapper it would have another name
# in /proc, and libraries of the machine could be mixed in.
assemble() {
    local libraries loader path library
    libraries=$(echo "$work"/root/usr/lib/*-linux-gnu*)
    loader=$(echo "$libraries"/ld-linux*.so.*)
    [[ -x $loader ]] || die "found no loader among the unpacked packages"
    path=$libraries:$libraries/ceph
    mkdir -p "$work/out/bin" "$work/out/lib"
    cp "$work/root/usr/bin/fio" "$work/out/bin/fio"
    cp -L "$loader" "$work/out/lib/"
    "$loader" --library-path "$path" --list "$work/root/usr/bin/fio" > "$work/libraries"
    while read -r library; do
        [[ $library == "$work/root/"* ]] || die "library $library comes from outside"
        cp -L "$library" "$work/out/lib/"
    done < <(sed -n -E 's|^\s+[^/ ]+ => (/.+) \(0x[0-9a-f]+\)$|\1|p' "$work/libraries")
    for library in "$work"/out/lib/*; do
        case ${library##*/} in
            ld-linux* | libc.so.*) ;;
            *) patchelf --set-rpath "\$ORIGIN" "$library" ;;
        esac
    done
    patchelf --set-interpreter "$home/lib/${loader##*/}" --set-rpath "\$ORIGIN/../lib" "$work/out/bin/fio"
    # The interpreter's path holds only after the move; until then the loader is asked directly.
    "$work/out/lib/${loader##*/}" "$work/out/bin/fio" --enghelp > "$work/engines" || die "the fio just made does not run"
    grep -qw libaio "$work/engines" || die "the fio just made has no libaio engine"
}

patchelf() {
    "$loader" --library-path "$path" "$work/root/usr/bin/patchelf" "$@" >> "$work/log" 2>&1
}

provide() {
    require
    mkdir -p "$cache"
    exec 9> "$cache/fio-$version.lock"
    flock 9
    [[ -x $home/bin/fio ]] && return # another process has built it meanwhile
    work=$(mktemp -d "$cache/fio-$version.XXXXXX")
    trap 'status=$?; ((status == 0)) || { tail -n 20 "$work/log" >&2 || true; say "failed"; }; rm -rf "$work"' EXIT
    : > "$work/log"
    fetch
    assemble
    mv -T "$work/out" "$home"
    new_enough "$home/bin/fio" || { rm -rf "$home"; die "the fio put into $home did not run"; }
}

found=$(command -v fio || true)
if [[ -n $found ]] && new_enough "$found"; then
    echo "$found"
    exit
fi
[[ -x $home/bin/fio ]] || provide
echo "$home/bin/fio"
