# shellcheck shell=bash disable=SC2034 # used by those who source it
# What a locally assembled cluster consists of. They were seen working together: change one, run everything (README.md).
readonly KUBERNETES_VERSION=v1.35.4
# The oldest and the newest API server that decide about the product's definitions in tests.
readonly OLDEST_API_VERSION=v1.34.4 NEWEST_API_VERSION=v1.37.2
readonly KIND_VERSION=v0.33.0
readonly ETCD_VERSION=v3.6.5
readonly COREDNS_VERSION=v1.14.7

# systemd 252 (bookworm) boots on cgroup v1 and v2, later ones on v2 only.
readonly NODE_SUITE=bookworm
# Images are built on Debian's testing suite, which has the Ceph that Rook deploys, and on the stable one, which has the oldest
# that is tested.
readonly BASE_SUITE=forky STABLE_SUITE=trixie STABLE_CEPH_VERSION=18.2.7

# What the nodes run where a registry can be reached: the image that was built for this kind.
readonly STOCK_NODE_IMAGE=kindest/node:v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0
# SUITE appended, and -slim.
readonly STOCK_BASE_IMAGE=debian
