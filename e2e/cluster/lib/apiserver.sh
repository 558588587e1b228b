# shellcheck shell=bash
# A kube-apiserver and its etcd alone, for tests of what the API server decides. Nothing runs in it. Needs neither root nor
# Docker.

readonly API_RUN=$CACHE/apiserver

apiserver_up() {
    local port etcd_client etcd_peer
    need openssl:openssl python3:python3
    programs_ensure "${API_PROGRAMS[@]}"
    if [[ -f $API_RUN/kubeconfig ]] && apiserver_answers; then
        printf '%s\n' "$API_RUN/kubeconfig"
        return
    fi
    apiserver_down
    mkdir -p "$API_RUN"
    read -r port etcd_client etcd_peer < <(free_ports)
    start_etcd "http://127.0.0.1:$etcd_client" "http://127.0.0.1:$etcd_peer"
    start_apiserver "$port" "http://127.0.0.1:$etcd_client"
    wait_until 60 "the API server (log: $API_RUN/kube-apiserver.log)" apiserver_answers
    printf '%s\n' "$API_RUN/kubeconfig"
}

start_etcd() {
    setsid nohup "$PROGRAMS/etcd" --data-dir "$API_RUN/etcd" --unsafe-no-fsync \
        --listen-client-urls "$1" --advertise-client-urls "$1" \
        --listen-peer-urls "$2" --initial-advertise-peer-urls "$2" --initial-cluster "default=$2" \
        > "$API_RUN/etcd.log" 2>&1 < /dev/null 9>&- &
    echo $! > "$API_RUN/etcd.pid"
}

start_apiserver() {
    local port=$1 token
    token=$(head -c 16 /dev/urandom | sha256sum | head -c 32)
    (
        umask 077
        printf '%s,admin,admin,system:masters\n' "$token" > "$API_RUN/tokens.csv"
        openssl genrsa -out "$API_RUN/service-accounts.key" 2048 2> /dev/null
        apiserver_kubeconfig "$port" "$token" > "$API_RUN/kubeconfig"
    )
    setsid nohup "$PROGRAMS/kube-apiserver" --etcd-servers "$2" --bind-address 127.0.0.1 --secure-port "$port" \
        --cert-dir "$API_RUN/certificates" --token-auth-file "$API_RUN/tokens.csv" --authorization-mode RBAC \
        --service-account-issuer https://plimsoll.test --service-account-key-file "$API_RUN/service-accounts.key" \
        --service-account-signing-key-file "$API_RUN/service-accounts.key" --service-cluster-ip-range 10.98.0.0/24 \
        --disable-admission-plugins ServiceAccount \
        > "$API_RUN/kube-apiserver.log" 2>&1 < /dev/null 9>&- &
    echo $! > "$API_RUN/kube-apiserver.pid"
}

apiserver_kubeconfig() {
    cat << EOF
apiVersion: v1
kind: Config
current-context: plimsoll-apiserver
clusters:
  - name: plimsoll-apiserver
    cluster: {server: "https://127.0.0.1:$1", insecure-skip-tls-verify: true}
users:
  - name: admin
    user: {token: $2}
contexts:
  - name: plimsoll-apiserver
    context: {cluster: plimsoll-apiserver, user: admin}
EOF
}

free_ports() {
    python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))'
}

apiserver_answers() {
    timeout 10 "$PROGRAMS/kubectl" --kubeconfig "$API_RUN/kubeconfig" get --raw /readyz --request-timeout 5s > /dev/null 2>&1
}

apiserver_down() {
    local name pid
    for name in kube-apiserver etcd; do
        pid=$(cat "$API_RUN/$name.pid" 2> /dev/null) || continue
        [[ $(readlink "/proc/$pid/exe") == */"$name"* ]] || continue
        kill "$pid"
        wait_until 30 "$name, process $pid, to end" process_gone "$pid"
    done
    rm -rf "$API_RUN"
}
