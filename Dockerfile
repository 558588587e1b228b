# Three images of one build: `operator` (the control plane), `runner` (conductor and agents, with the tools they run) and
# `kube-burner` (the helper that runs kube-burner).
#
#   docker build --target runner --tag plimsoll-runner .
#
# BASE_IMAGE is Debian's testing suite, whose Ceph is 20.2: earlier clients cannot read the keys that Ceph makes since 20.2.4.
# Behind a proxy with its own certificate authority add: --secret id=ca,src=/etc/ssl/certs/ca-certificates.crt

ARG BASE_IMAGE=docker.io/library/debian:forky-slim
ARG KUBE_BURNER_IMAGE=quay.io/kube-burner/kube-burner:v2.7.3

FROM ${BASE_IMAGE} AS base
# Without PYDANTIC_DISABLE_PLUGINS, every start reads the metadata of all packages in search of plugins.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYDANTIC_DISABLE_PLUGINS=__all__ PATH=/opt/plimsoll/bin:$PATH
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/*

FROM base AS build
# Of a release: compiled modules then contain no time.
ARG SOURCE_DATE_EPOCH
RUN apt-get update && apt-get install --yes --no-install-recommends python3-venv
RUN python3 -m venv /opt/plimsoll && python3 -m venv /opt/build
COPY operator/requirements/runtime.txt operator/requirements/build.txt /requirements/
RUN --mount=type=secret,id=ca \
    if [ -e /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi \
    && /opt/plimsoll/bin/pip install --no-cache-dir --require-hashes --requirement /requirements/runtime.txt \
    && /opt/build/bin/pip install --no-cache-dir --no-compile --require-hashes --requirement /requirements/build.txt
COPY operator/pyproject.toml /source/operator/
COPY operator/src /source/operator/src
RUN cd /source/operator && /opt/build/bin/hatchling build --target wheel --directory /wheel
RUN /opt/plimsoll/bin/pip install --no-cache-dir --no-deps --no-index /wheel/*.whl

FROM base AS operator
COPY --from=build /opt/plimsoll /opt/plimsoll
USER 65532:65532
ENTRYPOINT ["plimsoll"]
CMD ["operator"]

# Limits servers of benchmarks to one peer.
FROM base AS accept
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev linux-libc-dev
COPY runner/accept.c /source/
RUN gcc -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC -o /accept.so /source/accept.c

FROM ${KUBE_BURNER_IMAGE} AS kube-burner-program

FROM base AS kube-burner
COPY --from=build /opt/plimsoll /opt/plimsoll
COPY --from=kube-burner-program /bin/kube-burner /usr/local/bin/kube-burner
USER 65532:65532
ENTRYPOINT ["plimsoll"]
CMD ["burner"]

FROM base AS tools
ARG SOURCE_DATE_EPOCH
ARG LEAST_CEPH_VERSION=20.2.4
# The copy of ping has neither setuid nor the capability that its file grants: a restricted pod may gain neither, and the
# kernel would refuse to run it. The pods have a sysctl that permits its sockets instead.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        bonnie++ ceph-common fio ioping iperf3 iputils-ping netcat-traditional util-linux \
    && version=$(dpkg-query --show --showformat='${Version}' ceph-common) \
    && { dpkg --compare-versions "$version" ge "$LEAST_CEPH_VERSION" \
        || { echo "ceph-common is $version, older than $LEAST_CEPH_VERSION: choose a BASE_IMAGE with a newer one" >&2; exit 1; }; } \
    && install --mode=0755 /usr/bin/ping /usr/bin/plain-ping && mv /usr/bin/plain-ping /usr/bin/ping \
    && rm -rf /var/lib/apt/lists/*
COPY --from=accept /accept.so /usr/lib/plimsoll/accept.so

FROM tools AS runner
# Conductor and agents trust only the certificates of the run and of the API server, each from a file. Without this setting
# Python also loads all public authorities, which takes longer than any import.
ENV SSL_CERT_FILE=/dev/null
COPY --from=build /opt/plimsoll /opt/plimsoll
USER 65532:65532
ENTRYPOINT ["plimsoll"]
