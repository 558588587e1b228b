# shellcheck shell=bash
# The Docker daemon: the caller's if it works, else one of our own.

readonly OWN_SOCKET=unix://$RUN/docker.sock
# Images and build steps are cached there: a cluster is up and images are built sooner the next time.
readonly OWN_DATA=$CACHE/docker MAX_BUILD_CACHE=4GB

daemon_answers() { timeout 10 docker info > /dev/null 2>&1 9>&-; }
daemon_is_own() { [[ ${DOCKER_HOST:-} == "$OWN_SOCKET" ]]; }

own_daemon_pid() {
    local pid
    # After a crash the number may be another process's.
    pid=$(cat "$RUN/docker.pid" 2> /dev/null) &&
        [[ $(tr '\0' ' ' 2> /dev/null < "/proc/$pid/cmdline") == *" --pidfile $RUN/docker.pid "* ]] &&
        printf '%s\n' "$pid"
}

# Point DOCKER_HOST at the daemon that an earlier command settled on. Fails if there is none.
daemon_recall() {
    [[ -f $RUN/docker-host ]] || return 1
    DOCKER_HOST=$(< "$RUN/docker-host")
    export DOCKER_HOST
    [[ -n $DOCKER_HOST ]] || unset DOCKER_HOST
}

daemon_ensure() {
    need docker:docker.io
    if daemon_recall; then
        daemon_answers && return
        daemon_is_own || die "the Docker daemon that holds the cluster does not answer: ${DOCKER_HOST:-the default one}"
    elif daemon_answers; then
        mkdir -p "$RUN"
        printf '%s' "${DOCKER_HOST:-}" > "$RUN/docker-host"
        return
    fi
    daemon_start
}

daemon_start() {
    local runtime=()
    need_root "start a Docker daemon, and none answers at ${DOCKER_HOST:-the default address}"
    need dockerd:docker.io iptables:iptables
    # A daemon that does not answer is useless.
    daemon_kill
    ((${#RUN} < 80)) || die "PLIMSOLL_CACHE is too long a path for the daemon's sockets: $CACHE"
    mkdir -p "$RUN"
    # Without these, Docker closes the machine's forwarding for everyone else when it opens it, and Docker before 25
    # asks for a capability that it may not have.
    sysctl -qw net.ipv4.ip_forward=1
    if ! has_sys_resource; then
        install -m 755 "$HERE/lib/runc-without-sys-resource" "$RUN/runc"
        runtime=(--add-runtime "plimsoll=$RUN/runc" --default-runtime plimsoll)
    fi
    say "starting a Docker daemon"
    export DOCKER_HOST=$OWN_SOCKET
    printf '%s' "$DOCKER_HOST" > "$RUN/docker-host"
    rm -f "$RUN/docker.pid"
    setsid nohup dockerd --host "$OWN_SOCKET" --pidfile "$RUN/docker.pid" \
        --data-root "$OWN_DATA" --exec-root "$RUN/docker-exec" \
        --bridge none --default-address-pool base=172.30.0.0/16,size=24 "${runtime[@]}" \
        > "$RUN/dockerd.log" 2>&1 < /dev/null 9>&- &
    wait_until 60 "the Docker daemon (log: $RUN/dockerd.log)" daemon_answers
}

has_sys_resource() {
    local bounding
    bounding=$(awk '/^CapBnd:/ { print $2 }' /proc/self/status)
    ((0x$bounding >> 24 & 1))
}

daemon_kill() {
    local pid
    pid=$(own_daemon_pid) || return 0
    say "stopping the Docker daemon"
    kill "$pid"
    wait_until 60 "the Docker daemon, process $pid, to end" process_gone "$pid"
}

# Stop our own daemon, unless it still runs what others started, and release what it mounted.
daemon_stop() {
    local others mount
    others=$(docker ps --format '{{.Names}}' | paste -sd ' ')
    [[ -z $others ]] || die "our Docker daemon runs other containers; stop them first: $others"
    docker network rm kind > /dev/null 2>&1 || true
    docker image prune --force >> "$LOG"
    docker builder prune --force --keep-storage "$MAX_BUILD_CACHE" >> "$LOG"
    daemon_kill
    while read -r mount; do
        umount --lazy "$mount"
    done < <(awk -v run="$RUN/" -v data="$OWN_DATA/" 'index($5, run) == 1 || index($5, data) == 1 { print $5 }' \
        /proc/self/mountinfo | sort -r)
}


# REFERENCE ARCHIVE DOCKER_IMPORT_OPTION...: import an image from its cached file system if it is missing.
image_import() {
    local reference=$1 archive=$2
    shift 2
    # The reference does not show whether the image came from this archive.
    [[ $(docker image inspect --format '{{.Comment}}' "$reference" 2> /dev/null) != "$(basename "$archive")" ]] || return 0
    step 300 "importing $reference" docker import --message "$(basename "$archive")" "$@" "$archive" "$reference"
    printf '%s\n' "$reference" >> "$RUN/images"
}

# Remove the images that were imported into a daemon that is not ours.
images_remove() {
    local reference
    [[ -f $RUN/images ]] || return 0
    while read -r reference; do
        docker image rm "$reference" > /dev/null 2>&1 || say "not removed from Docker, because it is in use: $reference"
    done < <(sort -u "$RUN/images")
}
