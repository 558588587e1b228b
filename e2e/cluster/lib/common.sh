# shellcheck shell=bash
# Messages, waits with a timeout, and required programs.

# Only results go to standard output.
say() { printf 'cluster: [%3ds] %s\n' "$SECONDS" "$*" >&2; }
die() { printf 'cluster: %s\n' "$*" >&2; exit 1; }

STEP_PID=
stop_step() { [[ -z $STEP_PID ]] || kill "$STEP_PID" 2> /dev/null || true; }
trap stop_step EXIT
trap 'exit 130' INT TERM
trap 'say "failed: $BASH_COMMAND"' ERR

# LIMIT_SECONDS WHAT COMMAND...: run a program with its output in the log, and report progress now and then.
step() {
    local limit=$1 what=$2 begin=$SECONDS next=$((SECONDS + 30))
    shift 2
    say "$what"
    printf '\n== %s\n' "$what" >> "$LOG"
    timeout --kill-after=20 "$limit" "$@" >> "$LOG" 2>&1 < /dev/null 9>&- &
    STEP_PID=$!
    while kill -0 "$STEP_PID" 2> /dev/null; do
        sleep 0.1
        ((SECONDS >= next)) || continue
        next=$((SECONDS + 30))
        say "  still running after $((SECONDS - begin)) of at most $limit s: $(tail -n 1 "$LOG" | cut -c -110)"
    done
    wait "$STEP_PID" || step_failed "$what" $? "$limit"
    STEP_PID=
}

step_failed() {
    STEP_PID=
    tail -n 20 "$LOG" | sed 's/^/    /' >&2
    (($2 != 124)) || die "timed out after $3 s: $1; see $LOG"
    die "failed: $1; see $LOG"
}

# LIMIT_SECONDS WHAT COMMAND...: wait until a command succeeds.
wait_until() {
    local limit=$1 what=$2 deadline=$((SECONDS + $1))
    shift 2
    ! "$@" > /dev/null 2>&1 || return 0
    say "waiting for $what"
    until "$@" > /dev/null 2>&1; do
        ((SECONDS < deadline)) || die "timed out after $limit s waiting for $what"
        sleep 0.2
    done
}

process_gone() { ! kill -0 "$1" 2> /dev/null; }

# Only one command at a time may make changes. Long-lived children must not inherit the lock: start them with 9>&-.
lock() {
    mkdir -p "$CACHE"
    exec 9> "$CACHE/lock"
    flock --nonblock 9 || { say "waiting for another cluster command to end"; flock --timeout 3600 9 || die "the other command has not ended within an hour"; }
}

# PROGRAM:PACKAGE...: install missing programs.
need() {
    local pair missing=()
    for pair; do
        command -v "${pair%%:*}" > /dev/null || missing+=("${pair#*:}")
    done
    ((${#missing[@]})) || return 0
    command -v apt-get > /dev/null || die "required programs are missing, and there is no apt to install them: ${missing[*]}"
    ((EUID == 0)) || die "required programs are missing; run as root: apt-get install ${missing[*]}"
    step 300 "reading the package lists" apt-get -qq update
    step 900 "installing ${missing[*]}" \
        env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}"
}

need_root() { ((EUID == 0)) || die "only root can $1"; }

# The mirror that the machine's own apt takes Debian from.
debian_mirror() {
    local uri
    # shellcheck disable=SC2016 # apt's own variables
    uri=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(LABEL)' 'Created-By: Packages' 2> /dev/null |
        awk '$2 == "main" && $3 == "Debian" { print $1; exit }')
    [[ -n $uri ]] || die "apt has no package list of Debian (on Debian: apt-get update; elsewhere a container registry must be reachable)"
    printf '%s\n' "$uri"
}
