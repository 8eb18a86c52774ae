# Where the development set-up keeps its things and how it is set. Sourced by the scripts beside it, and nothing else.
#
#   BELAY_DEV_DIR         folder of the server's database, the logs and the stores    .belay
#   BELAY_DEV_PORT        port of the Temporal server                                 7233
#   BELAY_DEV_UI_PORT     port of the Temporal Web UI                                 8233
#   BELAY_DEV_MODEL_PORT  port of the scripted model, which answers without an API key 7480
# shellcheck shell=bash disable=SC2034

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
dev=${BELAY_DEV_DIR:-$root/.belay}
port=${BELAY_DEV_PORT:-7233}
ui_port=${BELAY_DEV_UI_PORT:-8233}
model_port=${BELAY_DEV_MODEL_PORT:-7480}
queue=${BELAY_TASK_QUEUE:-belay}
[[ $dev == /* ]] || dev=$PWD/$dev

# The Temporal CLI that deploy/dev/setup chose; on the path, so that commands run here as they are printed.
temporal=$root/.belay/bin/temporal
PATH=$root/.belay/bin:$PATH

# Whatever other server this shell is set up for, the commands below mean the dev server.
for name in "${!TEMPORAL_@}"; do unset "$name"; done
export TEMPORAL_ADDRESS=127.0.0.1:$port TEMPORAL_NAMESPACE=default TEMPORAL_CONFIG_FILE=/dev/null

say() { printf '%s\n' "$@"; } # each argument on a line
warn() { printf '%s\n' "$@" >&2; }
die() {
	warn "${0##*/}: $*"
	exit 1
}

# check_port VARIABLE VALUE
check_port() { [[ $2 =~ ^[1-9][0-9]{0,4}$ && $2 -le 65535 ]] || die "$1: \"$2\": expected a port, 1 to 65535"; }
check_port BELAY_DEV_PORT "$port"
check_port BELAY_DEV_UI_PORT "$ui_port"
check_port BELAY_DEV_MODEL_PORT "$model_port"

# alive FILE WORD: the process whose id is in FILE runs, and is the one that we started: WORD is in its command line.
alive() {
	local pid
	pid=$(cat -- "$1" 2>/dev/null) && [[ $pid =~ ^[0-9]+$ ]] || return 1
	tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF -e "$2"
}

# end FILE WORD: ends that process, by force after ten seconds, and removes FILE.
end() {
	local pid deadline=$((SECONDS + 10))
	if alive "$1" "$2"; then
		pid=$(cat -- "$1")
		kill -TERM "$pid" 2>/dev/null || true
		while kill -0 "$pid" 2>/dev/null; do
			((SECONDS < deadline)) || kill -KILL "$pid" 2>/dev/null || true
			sleep 0.1
		done
	fi
	rm -f -- "$1"
}

# listening PORT: something accepts connections on that port of this machine.
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# show_log FILE: the end of a log, for someone who asks why.
show_log() {
	[[ -s $1 ]] || return 0
	warn "the last lines of $1:"
	tail -n 20 -- "$1" | cut -c 1-500 >&2 || true
}
