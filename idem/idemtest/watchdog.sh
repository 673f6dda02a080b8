# Runs one Postgres for as long as stdin stays open, then removes its folder.
#
#   sh -c "$(cat watchdog.sh)" NAME BIN DIR SEGMENT ARGUMENT...
#
# Orders come in on stdin, one a line: crash, start. Each is answered on stdout
# with what Postgres is then: down, up. All else is written to stderr.

bin=$1 dir=$2 segment=$3 pg=
shift 3
trap '' HUP INT TERM PIPE # only the end of stdin ends this, or a failure
trap 'down; rm -rf "$dir"' EXIT

up() {
	"$bin/postgres" -D "$dir/data" -k "$dir" "$@" </dev/null >&2 &
	pg=$!
	until grep -q '^ready' "$dir/data/postmaster.pid" 2>/dev/null; do
		kill -0 "$pg" 2>/dev/null || exit 1
		sleep 0.02
	done
	echo up
}

down() {
	[ "$pg" ] && kill -QUIT "$pg" 2>/dev/null
	wait
	pg=
}

"$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C \
	--no-sync --wal-segsize="$segment" </dev/null >&2 || exit 1
up "$@"
while read -r order; do
	case $order in
	crash) down; echo down ;;
	start) up "$@" ;;
	esac
done
