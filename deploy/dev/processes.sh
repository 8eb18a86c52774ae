# The three processes of the development set-up: server, scripted model, worker. Sourced by up and demo. What already runs is
# used and left alone; what was started here is ended by stop_started, in reverse order.
# shellcheck shell=bash disable=SC2154

# What worker and command line share.
export BELAY_TASK_QUEUE=$queue BELAY_CONFIG=${BELAY_CONFIG:-$root/deploy/config} BELAY_STORE=$dev/store BELAY_STATE=$dev/state
export BELAY_WORKSPACE_ROOTS=${BELAY_WORKSPACE_ROOTS:-$root/examples} BELAY_UI=http://127.0.0.1:$ui_port

started=() # names of what was started here

# word_of NAME: what is in the command line of that process and of no other of this checkout.
word_of() {
	case $1 in
	model) printf 'scripted-model' ;;
	worker) printf '%s' "$root/bin/belay-worker" ;;
	esac
}

# start NAME COMMAND...: in a session of its own, so that Ctrl-C reaches it through stop_started only.
start() {
	local name=$1
	shift
	setsid "$@" </dev/null >"$dev/$name.log" 2>&1 &
	printf '%s\n' $! >"$dev/$name.pid"
	started+=("$name")
}

# wait_until NAME COMMAND...: until the command succeeds, as long as the process lives; a minute at most.
wait_until() {
	local name=$1 pid deadline=$((SECONDS + 60))
	pid=$(cat -- "$dev/$name.pid")
	shift
	until "$@"; do
		kill -0 "$pid" 2>/dev/null || { show_log "$dev/$name.log" && die "the $name ended at once"; }
		((SECONDS < deadline)) || { show_log "$dev/$name.log" && die "the $name does not come up"; }
		sleep 0.1
	done
}

start_all() {
	"$root/deploy/dev/setup"
	say "building bin/belay and bin/belay-worker"
	make --silent --no-print-directory -C "$root" build
	mkdir -p -- "$dev"
	start_server
	if alive "$dev/worker.pid" "$(word_of worker)"; then
		say "a worker already runs; it keeps its model"
		return
	fi
	start_model
	start worker "$root/bin/belay-worker"
	wait_until worker polls
	say "the worker runs (log: $dev/worker.log)"
}

start_server() {
	if ! "$root/deploy/dev/server" --running; then
		started+=(server)
		"$root/deploy/dev/server" --detach
	fi
}

# start_model uses the endpoint that the environment names, else the scripted model.
start_model() {
	if [[ -n ${BELAY_MODEL_BASE_URL-} ]]; then
		say "model: $BELAY_MODEL_BASE_URL"
		export OPENAI_API_KEY=${OPENAI_API_KEY:-none} # many endpoints want no key
	elif [[ -n ${OPENAI_API_KEY-} ]]; then
		say "model: the one that deploy/config names"
	else
		! listening "$model_port" || die "port $model_port is taken by another program; set BELAY_DEV_MODEL_PORT to a free one"
		start model "$root/bin/belay-worker" scripted-model --listen "127.0.0.1:$model_port" --scenarios "$root/examples/scenarios"
		wait_until model listening "$model_port"
		export BELAY_MODEL_BASE_URL=http://127.0.0.1:$model_port/v1 BELAY_MODEL_ID=calc OPENAI_API_KEY=none
		say "model: scripted, since neither OPENAI_API_KEY nor BELAY_MODEL_BASE_URL is set"
	fi
}

# polls: the server hands tasks to the worker that was started here.
polls() {
	"$temporal" task-queue describe --task-queue "$queue" --command-timeout 5s 2>/dev/null | grep -qF "$(cat -- "$dev/worker.pid")@"
}

stop_started() {
	local i
	for ((i = ${#started[@]} - 1; i >= 0; i--)); do
		case ${started[i]} in
		server) "$root/deploy/dev/server" --stop ;;
		*) end "$dev/${started[i]}.pid" "$(word_of "${started[i]}")" ;;
		esac
	done
	started=()
}

# how_to_talk: what another terminal needs for the commands that are shown here.
how_to_talk() {
	local found
	found=$(PATH=${PATH#"$root/.belay/bin:"} command -v temporal) || found=
	[[ -n $found && $port == 7233 ]] && return
	say "In another terminal these commands need:"
	[[ -n $found ]] || say "    export PATH=\"$root/.belay/bin:\$PATH\""
	[[ $port == 7233 ]] || say "    export TEMPORAL_ADDRESS=$TEMPORAL_ADDRESS"
}
