# Runs one Postgres for as long as stdin stays open, then removes its folder.
#
#   sh -c "$(cat watchdog.sh)" NAME BIN DIR SEGMENT ARGUMENT...
#
# Orders come in on stdin, one a line. Each is answered on stdout with what
# Postgres is then: init (the data is initialized, with SEGMENT MB in each file of
# the log): made; start: up; crash, kill: down. Whoever orders the first start
# without init has copied the data. All else is written to stderr.

bin=$1 dir=$2 segment=$3 pg= tries=1
shift 3
trap '' HUP INT TERM PIPE # only the end of stdin ends this, or a failure
trap 'down QUIT; rm -rf "$dir"' EXIT

up() {
	until serve "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || exit 1
		sleep 0.1
	done
	tries=1
	echo up
}

serve() {
	"$bin/postgres" -D "$dir/data" -k "$dir" "$@" </dev/null >&2 &
	pg=$!
	until ready 2>/dev/null <"$dir/data/postmaster.pid"; do
		kill -0 "$pg" 2>/dev/null || return
		sleep 0.02
	done
}

# ready reads Postgres's file: the first line is its process, the last one its state.
ready() {
	read -r line && [ "$line" = "$pg" ] || return
	while read -r line; do
		case $line in ready* | standby*) return 0 ;; esac
	done
	return 1
}

down() {
	[ "$pg" ] && kill "-$1" "$pg" 2>/dev/null
	wait
	pg=
}

while read -r order; do
	case $order in
	init)
		"$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C \
			--no-sync --wal-segsize="$segment" </dev/null >&2 || exit 1
		echo made
		;;
	crash) down QUIT; echo down ;;
	# Its orphans end by themselves, and keep the next one from starting until then.
	kill) down KILL; tries=100; echo down ;;
	start) up "$@" ;;
	esac
done
