# shellcheck shell=bash
# Waiting for pods and for Ceph.

# LIMIT_SECONDS
pods_wait() { wait_until "$1" "the pods" pods_missing pods_ready; }
pods_ready() { kube rollout status deployment --timeout 1s; }
# Prints each pod that is not ready, with the last log lines of failed ones.
pods_missing() {
    local pod state
    kube get pods --no-headers | awk '{ split($2, ready, "/") } ready[1] != ready[2] { print $1, $3 }' |
        while read -r pod state; do
            printf '%s %s' "$pod" "$state"
            [[ $state != Error && $state != CrashLoopBackOff ]] || printf ' (%s)' "$(last_words "$pod")"
            printf '; '
        done
}

last_words() { kube logs "$1" --tail 5 < /dev/null 2> /dev/null | grep . | tail -n 1; }

# Of a new cluster Ceph 20.2 warns that its clients may use keys of the earlier type. Rook mutes these checks if it is asked to.
keys_mute() {
    local check
    [[ $CEPH_VERSION != 18.* ]] || return 0
    for check in AUTH_INSECURE_{CLIENT_KEY_TYPE,KEYS_ALLOWED,KEYS_CREATABLE}; do
        toolbox_command ceph health mute "$check" --sticky || return
    done
}

# LIMIT_SECONDS: wait until Ceph is healthy with all its OSDs and placement groups. HEALTH_OK alone is not enough: Ceph reports it
# before the first OSD has come up.
health_wait() { wait_until "$1" HEALTH_OK health_summary healthy; }
# Sets STATUS, from which `health_summary` takes the reason: each program of Ceph takes half a second of CPU time.
healthy() {
    STATUS=$(toolbox_command ceph status) || return
    awk -v osds="$OSDS" '
        /^ *health: HEALTH_OK( \(muted: [^)]*\))?$/ { good++ }
        /^ *osd:/ && $2 == osds && $4 == osds { good++ }
        /^ *pools:/ { groups = $4 }
        / active\+clean(\+scrubbing(\+deep)?)?$/ { clean += $(NF - 1) }
        END { exit !(good == 2 && groups > 0 && clean == groups) }' <<< "$STATUS"
}
# Durations are left out: they would make every answer a new one.
health_summary() {
    awk '/^ *$/ { part = 0 } /^ *(health|osd|pgs):/ { part = 1 } /^ *(usage|rbd):/ { part = 0 } part { $1 = $1; print }' <<< "$STATUS" |
        sed 's/ (since [^)]*)//g' | paste -sd ';' | cut -c -200
}
toolbox_command() { kube exec deployment/rook-ceph-tools -- timeout 20 "$@"; }
