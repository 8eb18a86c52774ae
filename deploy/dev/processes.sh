# The three processes of the development set-up: server, scripted model, worker. Sourced by up and demo. What already runs is
# used and left alone; what was started here is ended by stop_started, in reverse order.
# shellcheck shell=bash disable=SC2154

# What worker and command line share.
export BELAY_TASK_QUEUE=$queue BELAY_CONFIG=${BELAY_CONFIG:-$root/deploy/config} BELAY_STORE=$dev/store BELAY_STATE=$dev/state
export BELAY_WORKSPACE_ROOTS=${BELAY_WORKSPACE_ROOTS:-$root/examples} BELAY_UI=http://127.0.0.1:$ui_port

started=() # names of what was started here; nothing else is ever ended by stop_started

# word_of NAME: what is in the command line of that process and of no other of this folder.
word_of() {
	case $1 in
	server) printf '%s' "$dev/temporal.db" ;;
	model) printf 'scripted-model' ;;
	worker) printf '%s' "$root/bin/belay-worker" ;;
	esac
}

runs() { alive "$dev/$1.pid" "$(word_of "$1")"; } # NAME

# one_at_a_time COMMAND...: while no other script starts something in this folder, so that nothing is started twice.
one_at_a_time() {
	mkdir -p -- "$dev"
	exec 9>"$dev/start.lock"
	flock --nonblock 9 || { say "waiting for another start in $dev" && flock 9; }
	"$@"
	exec 9>&-
}

# start NAME COMMAND...: in a session of its own, so that Ctrl-C reaches it through stop_started only.
start() {
	local name=$1
	shift
	setsid "$@" </dev/null >"$dev/$name.log" 2>&1 9>&- &
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

# watch NAME...: returns never; ends this script when one of these processes is gone, and says which.
watch() {
	local name
	while sleep 1; do
		for name in "$@"; do
			runs "$name" && continue
			[[ -e $dev/$name.pid ]] || die "the $name was stopped by another command"
			show_log "$dev/$name.log"
			die "the $name ended"
		done
	done
}

start_all() {
	"$root/deploy/dev/setup"
	say "building bin/belay and bin/belay-worker"
	make --silent --no-print-directory -C "$root" build
	one_at_a_time start_missing
}

start_missing() {
	start_server
	if runs worker; then
		say "a worker already runs; it keeps its model"
		return
	fi
	start_model
	start worker "$root/bin/belay-worker"
	wait_until worker polls
	say "the worker runs (log: $dev/worker.log)"
}

start_server() {
	if runs server; then
		same_ports
		wait_until server answers
		say "the dev server already runs: $TEMPORAL_ADDRESS, Web UI $BELAY_UI"
		return
	fi
	! listening "$port" || die "port $port is taken by another program; set BELAY_DEV_PORT to a free one"
	! listening "$ui_port" || die "port $ui_port is taken by another program; set BELAY_DEV_UI_PORT to a free one"
	same_version
	local line args=()
	while read -r line; do
		[[ $line == --* ]] && args+=("${line%% *}" "${line#* }")
	done <"$root/deploy/dev/server.args"
	start server "$temporal" server start-dev --port "$port" --ui-port "$ui_port" --db-filename "$dev/temporal.db" \
		--log-level warn "${args[@]}"
	wait_until server answers
	# Closed runs stay readable for 30 days; a dev server's namespace starts with one.
	"$temporal" operator namespace update --namespace "$TEMPORAL_NAMESPACE" --retention 720h >>"$dev/server.log"
	say "the dev server runs: $TEMPORAL_ADDRESS, Web UI $BELAY_UI"
}

answers() { "$temporal" operator cluster health --command-timeout 2s >/dev/null 2>&1; }

# same_ports refuses to take a server that runs for one on other ports.
same_ports() {
	[[ $(tr '\0' ' ' <"/proc/$(cat -- "$dev/server.pid")/cmdline") =~ \ --port\ ([0-9]+)\ --ui-port\ ([0-9]+)\  ]]
	[[ ${BASH_REMATCH[1]} == "$port" && ${BASH_REMATCH[2]} == "$ui_port" ]] ||
		die "the server of $dev runs on the ports ${BASH_REMATCH[1]} and ${BASH_REMATCH[2]}; set BELAY_DEV_PORT and BELAY_DEV_UI_PORT to them, or BELAY_DEV_DIR to another folder for a second one"
}

# same_version refuses a database of another server version: the dev server does not migrate it.
same_version() {
	local now made database=$dev/temporal.db
	now=$("$temporal" --version | sed -n 's/.*Server \([0-9.]*\).*/\1/p')
	if [[ -e $database ]]; then
		made=$(cat -- "$database.version" 2>/dev/null) || made=unknown
		[[ $made == "$now" ]] ||
			die "$database was made by server $made, this one is $now; move it away, or put the other temporal on the path"
	fi
	printf '%s\n' "$now" >"$database.version"
}

# start_model uses the endpoint that the environment names, else the scripted model.
start_model() {
	if [[ -n ${BELAY_MODEL_BASE_URL-} ]]; then
		say "model: $BELAY_MODEL_BASE_URL"
		export OPENAI_API_KEY=${OPENAI_API_KEY:-none} # many endpoints want no key
	elif [[ -n ${OPENAI_API_KEY-} ]]; then
		say "model: the one that deploy/config names"
	else
		if runs model; then end "$dev/model.pid" "$(word_of model)"; fi # of a start that was killed: its worker is gone
		! listening "$model_port" || die "port $model_port is taken by another program; set BELAY_DEV_MODEL_PORT to a free one"
		start model "$root/bin/belay-worker" scripted-model --listen "127.0.0.1:$model_port" --scenarios "$root/examples/scenarios"
		wait_until model listening "$model_port"
		export BELAY_MODEL_BASE_URL=http://127.0.0.1:$model_port/v1 BELAY_MODEL_ID=calc OPENAI_API_KEY=none
		say "model: scripted, since neither OPENAI_API_KEY nor BELAY_MODEL_BASE_URL is set"
	fi
}

# polls: the server has heard from this host's worker since it was started here. Its identity is the host's id, as that of the
# worker before it was.
polls() {
	local id heard
	id=$(cat -- "$BELAY_STATE/host-id" 2>/dev/null) || return
	heard=$("$temporal" task-queue describe --task-queue "$queue" --output json --command-timeout 5s 2>/dev/null |
		grep -A 1 -F "\"identity\": \"$id\"" | sed -n 's/.*"lastAccessTime": "\(.*\)".*/\1/p' | sort | tail -n 1) || return
	[[ $heard > $(date -u -r "$dev/worker.pid" +%FT%T) ]]
}

stop_started() {
	local i
	for ((i = ${#started[@]} - 1; i >= 0; i--)); do
		end "$dev/${started[i]}.pid" "$(word_of "${started[i]}")"
	done
	started=()
}

# end_sandboxes ends what waiting tasks left in the state folder: sandboxes outlive their worker on purpose.
end_sandboxes() {
	compgen -G "$BELAY_STATE/sandboxes/sandboxes/*" >/dev/null || return 0
	[[ -x $root/bin/belay-worker ]] || make --silent --no-print-directory -C "$root" build
	"$root/bin/belay-worker" reap-all
}

# how_to_talk: what another terminal needs for the commands that are shown here.
how_to_talk() {
	local need=()
	PATH=${PATH#"$root/.belay/bin:"} command -v temporal >/dev/null || need+=("export PATH=\"$root/.belay/bin:\$PATH\"")
	[[ $port == 7233 ]] || need+=("export TEMPORAL_ADDRESS=$TEMPORAL_ADDRESS")
	[[ $dev == "$root/.belay" ]] || need+=("export BELAY_STORE=\"$dev/store\"")
	((${#need[@]})) || return 0
	say "In another terminal these commands need:" "${need[@]/#/    }"
}
