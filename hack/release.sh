#!/usr/bin/env bash
# Build what a release publishes from the commit that is checked out, and start what was built. It publishes nothing.
#
#   hack/release.sh [--without-images] VERSION REPOSITORY
#
#   VERSION           the version of operator/pyproject.toml and of the chart, with a dated section in CHANGELOG.md
#   REPOSITORY        where the images will be, such as registry.example.org/team: chart and manifests name it
#   --without-images  everything but the images, without root, for a trial: chart and manifests then
#                     select images by tag instead of digest, and CHANGELOG.md may have unreleased entries
#
# Environment:
#   DIST              the directory to replace, by default dist in this tree
#   BUILDER           the builder that the provenance names, by default this script
#   ARCHITECTURES, PYTHONS
#                     fewer of them, for a trial: "amd64" and "3.11"
#   STALE_MIRROR      not empty: accept a mirror of Debian that has not been updated for a week, for a trial. The images
#                     then accept it, too.
#
# Two runs for the same commit are byte-equal. Images should be, while the mirror of Debian's testing suite stays the same.
# Images need root on Debian, and install with apt what is missing. Those for another architecture are built and started
# with qemu, which takes ten times as long: three minutes for amd64 and 45 for arm64 on two x86-64 cores.
set -euo pipefail
export LC_ALL=C.UTF-8
umask 022

read -ra ARCHITECTURES <<< "${ARCHITECTURES:-amd64 arm64}"
read -ra PYTHONS <<< "${PYTHONS:-3.11 3.12 3.13 3.14}"
declare -A MACHINES=([amd64]=x86_64 [arm64]=aarch64)
readonly ARCHITECTURES PYTHONS MACHINES SUITE=forky
root=$(realpath "$(dirname "$0")/..")
images=1
[[ ${1:-} != --without-images ]] || { images= && shift; }
(($# == 2)) || { sed -n '2,23s/^# \{0,1\}//p' "$0" >&2; exit 2; }
VERSION=$1 REPOSITORY=${2%/}
dist=$(realpath -m "${DIST:-$root/dist}")
readonly root images dist VERSION REPOSITORY

say() { printf 'release.sh: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

[[ ! -e $dist || -e $dist/SHA256SUMS ]] || die "$dist is not the directory of a release: remove it, or name another in DIST"
mkdir -p "$root/build"
work=$(mktemp -d "$root/build/release.XXXXXX")
trap '[[ -z ${registered:-} ]] || echo -1 > "$registered"; rm -rf --one-file-system "$work"' EXIT
source=$work/source out=$work/dist
mkdir "$source" "$out"
# Not the work tree: what is released is what was committed.
git -C "$root" archive HEAD | tar --extract --directory "$source"
git -C "$root" diff --quiet HEAD || die "commit or stash the changes first: this script is part of what is released"
grep -qx "version = \"$VERSION\"" "$source/operator/pyproject.toml" || die "operator/pyproject.toml does not have version $VERSION"
for line in "version: $VERSION" "appVersion: \"$VERSION\""; do
    grep -qx "$line" "$source/charts/plimsoll/Chart.yaml" || die "charts/plimsoll/Chart.yaml does not have the line: $line"
done
grep -qx "    tag: v$VERSION" "$source/manifests/gitops/flux/plimsoll.yaml" ||
    die "manifests/gitops/flux/plimsoll.yaml does not have the line: tag: v$VERSION"
grep -qE "^## \[$VERSION\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" "$source/CHANGELOG.md" ||
    die "CHANGELOG.md does not have a section: ## [$VERSION] - $(date +%F)"
[[ -z $images ]] || ! sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' "$source/CHANGELOG.md" | grep '^[-*] ' > /dev/null ||
    die "CHANGELOG.md still has entries in [Unreleased]: move them to the section of $VERSION"

COMMIT=$(git -C "$root" rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
BUILDER=${BUILDER:-hack/release.sh}
export VERSION REPOSITORY COMMIT SOURCE_DATE_EPOCH BUILDER
bin=$("$root/hack/environment.sh" requirements/release.txt --require-hashes)
helm=$("$root/hack/tool.sh" helm)
uv=${PLIMSOLL_VENV:-$root/.venv}/bin/uv
. "$root/hack/follow_pip.sh"
follow_pip "${uv%uv}python"
readonly source out work bin helm uv
release() { (cd "$out" && "$bin/python" "$source/hack/release.py" "$@"); }
# ARCHIVE DIRECTORY: the same bytes for the same files.
pack() {
    (cd "$2" && tar --create --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=u+w,go=rX \
        --mtime="@$SOURCE_DATE_EPOCH" -- *) | gzip --no-name > "$1"
}

# ARCHITECTURE: the kubectl plugin, with the compiled modules of each version of Python side by side.
plugin() {
    local tree=$work/plugin-$1 part python
    say "assembling the kubectl plugin for $1"
    mkdir -p "$tree/lib"
    for python in "${PYTHONS[@]}"; do
        part=$work/part-$1-$python
        install=("$uv" --quiet pip install --target "$part" --python-platform "${MACHINES[$1]}-manylinux_2_28" --python-version "$python")
        "${install[@]}" --only-binary :all: --require-hashes --requirements "$source/operator/requirements/plugin.txt"
        "${install[@]}" --no-deps "$out"/plimsoll-*.whl
        cp --recursive "$part/." "$tree/lib"
    done
    # Programs that are not started from here, and records of the installation.
    rm -rf "$tree"/lib/{bin,etc,share,.lock} "$tree"/lib/*.dist-info/{RECORD,INSTALLER,REQUESTED,direct_url.json,uv_cache.json}
    cp "$source/hack/kubectl-plimsoll" "$source/LICENSE" "$tree"
    pack "$out/kubectl-plimsoll-$VERSION-linux-$1.tar.gz" "$tree"
    release plugin_sbom "$1" "$tree/lib"
}

apt_install() { say "installing $1" && apt-get -qq install --yes --no-install-recommends "$1" >&2; }

# ARCHITECTURE: have the kernel start its programs with qemu until this script ends, unless it can start them.
emulate() {
    local binfmt=/proc/sys/fs/binfmt_misc handler=qemu-${MACHINES[$1]}
    [[ $1 != "$(dpkg --print-architecture)" ]] || return 0
    [[ -e /usr/lib/binfmt.d/$handler.conf ]] || apt_install qemu-user-static
    [[ -e $binfmt/register ]] || mount -t binfmt_misc binfmt_misc $binfmt
    [[ ! -e $binfmt/$handler ]] || return 0
    cat "/usr/lib/binfmt.d/$handler.conf" > $binfmt/register
    registered=$binfmt/$handler
}

containers() { buildah --root "$work/containers" --runroot "$work/run" "$@"; }

# ARCHITECTURE: both images, on a root file system of Debian.
build_images() {
    local target container base=localhost/plimsoll-base:$1 options=() stale=() mirror
    [[ -z ${STALE_MIRROR:-} ]] || stale=(--aptopt='Acquire::Check-Valid-Until "false"')
    # shellcheck disable=SC2016 # apt's own variables
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(LABEL)' 'Created-By: Packages' |
        awk '$2 == "main" && $3 == "Debian" { print $1; exit }')
    say "assembling a root file system of Debian $SUITE for $1"
    # shellcheck disable=SC2016 # for the hook's shell
    TMPDIR=$work mmdebstrap --quiet --mode=root --variant=minbase --architectures="$1" --include=ca-certificates --skip=output/dev \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --customize-hook="sha256sum \"\$1\"/var/lib/apt/lists/*_InRelease | cut --fields 1 --delimiter ' ' > '$work/InRelease-$SUITE-$1'" \
        --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin' \
        "${stale[@]}" "$SUITE" "$work/base-$1.tar" \
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $SUITE main"
    container=$(containers from --arch "$1" scratch)
    containers add --quiet "$container" "$work/base-$1.tar" / > /dev/null
    containers config --arch "$1" --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    containers commit --quiet --rm "$container" "$base" > /dev/null
    [[ ! -e /etc/ssl/certs/ca-certificates.crt ]] || options+=(--secret "id=ca,src=/etc/ssl/certs/ca-certificates.crt")
    for target in operator runner; do
        say "building plimsoll-$target for $1"
        containers build --isolation chroot --network host --layers --pull-never --platform "linux/$1" --format oci \
            --build-arg "BASE_IMAGE=$base" --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" "${options[@]}" \
            --target "$target" --tag "localhost/plimsoll-$target:$1" "$source" > "$work/log-$target-$1" 2>&1 ||
            { tail -n 30 "$work/log-$target-$1" >&2; die "plimsoll-$target for $1 cannot be built"; }
        containers push --quiet --disable-compression "localhost/plimsoll-$target:$1" "oci:$work/$target-$1"
    done
}

# NAME: start the programs of an image as it is in the archive, on each architecture.
start_image() {
    local arch container expected printed commands="uname -m; plimsoll --version"
    [[ $1 != runner ]] || commands+="; fio --version; ceph --version; iperf3 --version"
    for arch in "${ARCHITECTURES[@]}"; do
        container=$(containers from --quiet --arch "$arch" "oci-archive:$out/plimsoll-$1-$VERSION.oci.tar")
        printed=$(containers run --isolation chroot --user 65532 "$container" -- sh -ec "$commands" | paste -sd ' ')
        say "plimsoll-$1 for $arch: $printed"
        expected="${MACHINES[$arch]} plimsoll, version $VERSION"
        [[ "$printed " == "$expected "* ]] || die "plimsoll-$1 for $arch does not begin with: $expected"
        containers rm "$container" > /dev/null
    done
}

helm_chart() {
    local chart=$source/charts/plimsoll archive=$out/plimsoll-$VERSION.tgz
    say "packaging the chart, and rendering it"
    release pin "$chart"
    "$helm" package "$chart" --destination "$work" > /dev/null
    mkdir "$work/chart"
    tar --extract --touch --gzip --file "$work/plimsoll-$VERSION.tgz" --directory "$work/chart"
    pack "$archive" "$work/chart"
    release chart "$archive"
    {
        sed '/^# Source/,$d' "$source/manifests/install.yaml" | sed -n '/^---/,$p' | sed '$d'
        "$helm" template plimsoll "$archive" --namespace plimsoll-system --no-hooks --kube-version 1.31.0
    } > "$out/plimsoll-$VERSION-install.yaml"
    release check_images "plimsoll-$VERSION-install.yaml"
}

# What users would do: install the plugin as krew does, and start it, with each of its Pythons that this machine has.
start_plugin() {
    local store=$work/krew path=$work/path expected="kubectl plimsoll, version $VERSION" archive python program printed started=
    archive=$out/kubectl-plimsoll-$VERSION-linux-$(dpkg --print-architecture).tar.gz
    [[ -e $archive ]] || { say "no plugin is for this machine: none is started" && return; }
    mkdir "$store" "$path"
    tar --extract --gzip --file "$archive" --directory "$store"
    ln -s "$store/kubectl-plimsoll" "$work/kubectl-plimsoll"
    for python in "${PYTHONS[@]}"; do
        program=$("python$python" -c 'import sys; print(sys.executable)' 2> /dev/null) ||
            { say "the plugin is not started with Python $python, which this machine does not have" && continue; }
        ln -sf "$program" "$path/python3"
        printed=$(env -u PYTHONPATH PYTHONDONTWRITEBYTECODE=1 PATH="$path:$PATH" "$work/kubectl-plimsoll" --version)
        say "the plugin, with Python $python: $printed"
        [[ $printed == "$expected" ]] || die "the plugin does not print: $expected"
        started=1
    done
    [[ -n $started ]] || die "this machine has none of the Pythons of the plugin: install one of ${PYTHONS[*]}"
}

say "building the wheel and the source distribution"
(cd "$source/operator" && "$bin/hatchling" build --directory "$out" &> "$work/log-packages") || die "$(cat "$work/log-packages")"
for arch in "${ARCHITECTURES[@]}"; do
    plugin "$arch"
done
start_plugin
if [[ -n $images ]]; then
    for tool in buildah mmdebstrap arch-test; do
        command -v "$tool" > /dev/null || apt_install "$tool"
    done
    for arch in "${ARCHITECTURES[@]}"; do
        emulate "$arch"
        build_images "$arch"
    done
    for name in operator runner; do
        say "writing the archive of plimsoll-$name"
        layouts=("${ARCHITECTURES[@]/#/$work/$name-}")
        release image "plimsoll-$name" "${layouts[@]}"
        start_image "$name"
    done
fi
helm_chart
release krew
release notes
release provenance
(cd "$out" && sha256sum --quiet --check SHA256SUMS)
rm -rf "$dist"
mkdir -p "$(dirname "$dist")"
mv -T "$out" "$dist"
(cd "$dist" && ls -l)
say "built $dist; nothing is published"
