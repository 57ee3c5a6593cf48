#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Unmodified programs of Debian's packages (tests/vm/programs). Data arrive unchanged, and counters show by which
# protocol.
#
#   debian.sh [--list | CASE...]              both ends in this machine
#   debian.sh --serve ADDRESS                 servers; it says "serving" when all are there
#   debian.sh --to ADDRESS                    clients of those on the other machine
#
# serve_NAME starts a server on $PORT, and the servers that it uses; use_NAME is its client. Case NAME: first both are
# started by exs-run, then only the server; case NAME_alone: only the client is.
set -u
# shellcheck source=../lib/cases.sh
. "$(dirname "$0")/../lib/cases.sh"
HOST=10.77.0.1
PORT=7100
SHARED=/run/exs/programs	# files for all cases
SERVERS=()
# An ordinary user, with a shell, which sshd asks for.
USER_ID=7000
AS_USER="setpriv --reuid $USER_ID --regid $USER_ID --clear-groups"
HERE="" RUN=""			# words before a command: for the cgroup, and for the program
PROGRAMS="python iperf3 nuttcp nginx redis memcached postgres ssh rsync haproxy socat openssl java"
# Static programs, and Go's.
WHOLE="go busybox"
# Go's, by exs-run itself.
STARTED="go_started"
# Clients of a server without EXS, within one machine.
ALONE="postgres java"
# Between two machines, where all servers are started first; and those of which a server without EXS is there, too.
APART=${APART-"iperf3 nginx redis memcached ssh rsync socat go busybox"}
APART_ALONE=${APART_ALONE-"nginx redis ssh go"}
[ "$APART" != all ] || APART="python iperf3 nuttcp nginx redis memcached postgres ssh rsync socat openssl go busybox"
[ "$APART_ALONE" != all ] || APART_ALONE="python iperf3 nuttcp nginx redis memcached ssh rsync socat openssl go busybox"
FAR=""			# the other machine, if there is one

in_cgroup()
{
	# shellcheck disable=SC2016
	sh -c 'echo 0 > "$1/cgroup.procs"; shift; exec "$@"' - "$@"
}

# by exs|tcp: how what follows is started.
by()
{
	RUN="" HERE=""
	[ "$1" = exs ] || return 0
	case " $WHOLE " in
	*" $NAME "*) HERE="in_cgroup $CGROUP" ;;
	*) RUN=exs-run ;;
	esac
}

# start COMMAND...: a server.
start()
{
	# shellcheck disable=SC2086	# words
	$HERE $AS_USER $RUN "$@" > server.out 2>> server.err &
	SERVERS+=($!)
}

start_root()
{
	# shellcheck disable=SC2086
	$HERE $RUN "$@" > server.out 2>> server.err &
	SERVERS+=($!)
}

# client COMMAND...: its output goes to the file "printed".
client()
{
	local status=0

	# shellcheck disable=SC2086
	$HERE $AS_USER $RUN "$@" > printed 2> client.err || status=$?
	[ $status = 0 ] || fail "$*: exit status $status: $(tail -n 3 client.err server.err)"
}

# prints PATTERN...: the client has printed a line for each.
prints()
{
	local pattern

	for pattern in "$@"; do
		grep -q -e "$pattern" printed || fail "it does not say '$pattern': $(tail -n 10 printed client.err)"
	done
}

# EXS listens before TCP does.
listens()
{
	local port

	printf -v port ':%04X [0-9A-F]*:0000 0A ' "$1"
	grep -q "$port" /proc/net/tcp /proc/net/tcp6
}

ready()
{
	wait_for "a server on port $1" listens "$1"
}

end_servers()
{
	local pid

	for pid in "${SERVERS[@]}"; do
		kill "$pid" 2> /dev/null
		wait_for "the end of a server" no_process "$pid"
	done
	SERVERS=()
}

same()
{
	must cmp "$1" "$2"
}

# Whether the client does more than one thing: where the case is about TCP, it does not.
more()
{
	[ -n "$MORE" ]
}

# -- programs

serve_python()
{
	start python3 -m http.server -b $HOST -d "$SHARED" $PORT
	ready $PORT
}

use_python()
{
	LEAST=1000000
	client python3 -c 'import sys, urllib.request as r; sys.stdout.buffer.write(r.urlopen(sys.argv[1]).read())' \
		"http://$HOST:$PORT/1000000"
	same printed "$SHARED/1000000"
}

serve_iperf3()
{
	start iperf3 -s -B $HOST -p $PORT
	ready $PORT
}

# iperf3 does not check the data. With -F it skips bytes after a short send, so the copy differs from the file. Then it also
# sends up to a block more. UDP is left alone.
use_iperf3()
{
	LEAST=4000000
	client iperf3 -c $HOST -p $PORT -n 4M -l 128K
	prints '4[.][01][0-9] MBytes.*sender' 'receiver'
	more || return 0
	client iperf3 -c $HOST -p $PORT -n 1M -P 4 -R
	prints 'SUM.*receiver'
	client iperf3 -c $HOST -p $PORT -n 16K -u -l 1000 -b 0
}

serve_nuttcp()
{
	start nuttcp -S --nofork -P $PORT
	ready $PORT
}

use_nuttcp()
{
	LEAST=4000000
	client nuttcp -t -P $PORT -p $((PORT + 1)) -l 64k -n 64 -fparse $HOST
	prints 'megabytes=4.0000'
}

serve_nginx()
{
	cat > nginx.conf <<-END
		worker_processes 2;
		daemon off;
		pid $PWD/nginx.pid;
		events { worker_connections 256; }
		http {
			access_log off;
			client_body_temp_path $PWD/1; proxy_temp_path $PWD/2; fastcgi_temp_path $PWD/3;
			uwsgi_temp_path $PWD/4; scgi_temp_path $PWD/5;
			sendfile on; tcp_nopush on; keepalive_requests 10000;
			server {
				listen $HOST:$PORT reuseport; root $SHARED;
				location /again/ { proxy_pass http://$HOST:$((PORT + 1))/; proxy_buffers 4 32k; }
			}
			server { listen $HOST:$((PORT + 1)) deferred fastopen=16; root $SHARED; }
			server {
				listen $HOST:$((PORT + 2)) ssl; root $SHARED;
				ssl_certificate $SHARED/cert.pem; ssl_certificate_key $SHARED/key.pem;
			}
		}
	END
	start nginx -e stderr -c "$PWD/nginx.conf"
	ready $((PORT + 2))
}

# Two files on one connection, one through a worker that is a client, too, one by TLS, and many connections. With
# reuseport each worker has a listener: one of them has EXS's connections, and TCP's may come to those that have only TCP.
use_nginx()
{
	LEAST=5000000
	client curl -sSf -w '%{num_connects} ' -o got1 "http://$HOST:$((PORT + 1))/4000000" -o got2 "http://$HOST:$((PORT + 1))/100000"
	prints '^1 0 '
	same got1 "$SHARED/4000000"
	same got2 "$SHARED/100000"
	more || return 0
	client curl -sSf --tcp-fastopen -o got3 "http://$HOST:$PORT/again/1000000"
	same got3 "$SHARED/1000000"
	client curl -sSfk -o got4 "https://$HOST:$((PORT + 2))/100000"
	same got4 "$SHARED/100000"
	client wrk --timeout 60s -t 2 -c 16 -d 1 "http://$HOST:$PORT/1000"
	prints 'requests in'
	if grep -E 'errors|Non-2xx' printed; then fail "wrk says: $(cat printed)"; fi
}

serve_redis()
{
	start redis-server --bind $HOST --port $PORT --save '' --protected-mode no --dir "$PWD"
	ready $PORT
}

use_redis()
{
	LEAST=2000000
	client redis-cli -h $HOST -p $PORT -x set numbers < "$SHARED/1000000"
	prints OK
	client redis-cli -h $HOST -p $PORT get numbers
	head -c 1000000 printed > got
	same got "$SHARED/1000000"
	more || return 0
	client redis-benchmark -h $HOST -p $PORT -c 20 -P 16 -n 2000 -q -d 100 -t set,get
	prints 'SET: .* requests per second' 'GET: .* requests per second'
}

serve_memcached()
{
	start memcached -l $HOST -p $PORT -U 0 -t 2
	ready $PORT
}

use_memcached()
{
	local file=$SHARED/1000000

	LEAST=2000000
	{ printf 'set numbers 0 0 1000000\r\n'; cat "$file"; printf '\r\nget numbers\r\nquit\r\n'; } > ask
	{ printf 'STORED\r\nVALUE numbers 0 1000000\r\n'; cat "$file"; printf '\r\nEND\r\n'; } > want
	client socat -t 60 - TCP:$HOST:$PORT < ask
	same printed want
}

# Its database is made once.
serve_postgres()
{
	local data=$SHARED/postgres

	if [ ! -e "$data" ]; then
		# shellcheck disable=SC2086
		must $AS_USER initdb --no-sync --no-locale -E SQL_ASCII -U user -D "$data"
		echo 'host all all all trust' >> "$data/pg_hba.conf"
	fi
	start postgres -D "$data" -p $PORT -k "$SHARED" -c listen_addresses=$HOST -c fsync=off -c jit=off \
		-c authentication_timeout=600 -c max_connections=20
	ready $PORT
	wait_for "the database" grep 'ready to accept' server.err
}

use_postgres()
{
	local url="postgresql://user@$HOST:$PORT/postgres"

	LEAST=200000
	seq 20000 > rows
	client psql -q "$url" -c 'drop table if exists t' -c 'create table t (i int)' -c '\copy t from rows' -c '\copy t to stdout'
	same printed rows
	more || return 0
	echo 'select i from t where i = 77;' > ask.sql
	client pgbench -n -f ask.sql -c 4 -j 2 -t 5 "$url"
	prints 'processed: 20/20'
}

serve_ssh()
{
	mkdir -p /run/sshd
	[ -e "$SHARED/host" ] || must ssh-keygen -q -t ed25519 -N '' -f "$SHARED/host"
	start_root /usr/sbin/sshd -D -e -f /dev/null -p $PORT -o ListenAddress=$HOST -h "$SHARED/host" \
		-o PermitEmptyPasswords=yes -o UsePAM=no -o Subsystem='sftp /usr/lib/openssh/sftp-server'
	ready $PORT
}

use_ssh()
{
	local how=(-F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR)

	LEAST=3900000
	client ssh "${how[@]}" -p $PORT tester@$HOST "wc -c; cat $SHARED/1000000" < "$SHARED/1000000"
	{ echo 1000000; cat "$SHARED/1000000"; } > want
	same printed want
	more || return 0
	client scp -q "${how[@]}" -P $PORT "$SHARED/1000000" tester@$HOST:"$SHARED/by-scp"
	echo "get $SHARED/by-scp got" > commands
	client sftp -q "${how[@]}" -P $PORT -b commands tester@$HOST
	same got "$SHARED/1000000"
}

serve_rsync()
{
	printf 'use chroot = no\n[files]\npath = %s\nread only = yes\n' "$SHARED/tree" > rsyncd.conf
	start rsync --daemon --no-detach --address $HOST --port $PORT --config rsyncd.conf
	ready $PORT
}

use_rsync()
{
	LEAST=500000
	client rsync -r "rsync://$HOST:$PORT/files/" tree
	must diff -r tree "$SHARED/tree"
}

# Between a client and nginx. It can splice.
serve_haproxy()
{
	grep -qw cx16 /proc/cpuinfo || skip "HAProxy needs a processor with CMPXCHG16B"
	serve_nginx
	cat > haproxy.cfg <<-END
		defaults
			mode tcp
			timeout connect 30s
			timeout client 60s
			timeout server 60s
			option splice-auto
		listen one
			bind $HOST:$((PORT + 3))
			server nginx $HOST:$PORT
	END
	start haproxy -db -f haproxy.cfg
	ready $((PORT + 3))
}

use_haproxy()
{
	# The connections behind it use EXS anyway.
	LEAST=8000000 BEHIND=1
	client curl -sSf -o got "http://$HOST:$((PORT + 3))/4000000"
	same got "$SHARED/4000000"
}

serve_socat()
{
	start socat -t 60 TCP-LISTEN:$PORT,bind=$HOST,reuseaddr,fork EXEC:cat
	ready $PORT
}

# Each side ends while the other goes on.
use_socat()
{
	LEAST=8000000
	client socat -t 60 - TCP:$HOST:$PORT < "$SHARED/4000000"
	same printed "$SHARED/4000000"
}

serve_openssl()
{
	start env -C "$SHARED" openssl s_server -quiet -accept $HOST:$PORT -cert cert.pem -key key.pem -WWW
	ready $PORT
}

use_openssl()
{
	LEAST=1000000
	printf 'GET /1000000 HTTP/1.0\r\n\r\n' > ask
	client openssl s_client -quiet -connect $HOST:$PORT < ask
	tail -c 1000000 printed > got
	same got "$SHARED/1000000"
}

JAVA=(/usr/lib/jvm/java-17-openjdk-amd64/bin/java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
	-cp '/usr/share/java/*' bsh.Interpreter)

# Both ends are in a JVM.
serve_java()
{
	cat > server.bsh <<-END
		import com.sun.net.httpserver.*;
		HttpHandler handler = new HttpHandler() {
			handle(HttpExchange e) {
				e.sendResponseHeaders(200, 0);
				new java.io.FileInputStream("$SHARED/4000000").transferTo(e.getResponseBody());
				e.close();
			}
		};
		HttpServer server = HttpServer.create(new java.net.InetSocketAddress("$HOST", $PORT), 0);
		server.createContext("/", handler);
		server.start();
	END
	start "${JAVA[@]}" server.bsh
	ready $PORT
}

use_java()
{
	LEAST=4000000
	echo "new java.net.URL(\"http://$HOST:$PORT/\").openStream().transferTo(new java.io.FileOutputStream(\"got\"));" > client.bsh
	client "${JAVA[@]}" client.bsh
	same got "$SHARED/4000000"
}

# Both ends are Go's.
serve_go()
{
	cat > hooks.json <<-END
		[{"id": "cat", "execute-command": "/bin/cat", "include-command-output-in-response": true,
		  "pass-arguments-to-command": [{"source": "string", "name": "$SHARED/1000000"}]}]
	END
	start webhook -ip $HOST -port $PORT -hooks hooks.json
	ready $PORT
}

use_go()
{
	LEAST=17000000
	client curl -sSf -o got "http://$HOST:$PORT/hooks/cat"
	same got "$SHARED/1000000"
	client hey -n 16 -c 4 "http://$HOST:$PORT/hooks/cat"
	prints '\[200\].16 responses'
}

# Started by root, each by an exs-run of its own: it finds out that preload does not reach them.
serve_go_started()
{
	AS_USER=
	serve_go
}

use_go_started()
{
	AS_USER=
	use_go
}

serve_busybox()
{
	start busybox httpd -f -p $HOST:$PORT -h "$SHARED"
	ready $PORT
}

use_busybox()
{
	LEAST=1000000
	client busybox wget -q -O got "http://$HOST:$PORT/1000000"
	same got "$SHARED/1000000"
}

# -- cases

fallbacks()
{
	awk '/^fallback_/ { n += $2 } END { printf "%.0f\n", n }' /proc/net/exs
}

sent()
{
	awk '/^(direct|indirect|eager)_tx_bytes/ { n += $2 } END { printf "%.0f\n", n }' /proc/net/exs
}

segments()
{
	awk '$1 == "Tcp:" { n = $12 } END { print n }' /proc/net/snmp
}

# goes exs|tcp: the client, now. Every connection went that way.
goes()
{
	local connects fallbacks sent segments

	MORE="" LEAST=0 BEHIND=0
	[ "$1" = tcp ] || MORE=1
	connects=$(counter connects) fallbacks=$(fallbacks) sent=$(sent) segments=$(segments)
	use_"$NAME"
	connects=$(($(counter connects) - connects)) fallbacks=$(($(fallbacks) - fallbacks))
	sent=$(($(sent) - sent)) segments=$(($(segments) - segments))
	echo "$NAME by $1: $connects connections, $fallbacks fallbacks, $sent bytes by EXS, $segments segments by TCP"
	if [ "$1" = exs ]; then
		# Bytes that the other machine has sent are counted there.
		[ -z "$FAR" ] || LEAST=1
		[ $((connects > 0 && fallbacks == 0 && segments == 0 && sent >= LEAST)) = 1 ]
	else
		[ $((connects == BEHIND && segments > 0)) = 1 ]
	fi || fail "$(tail -n 1 "$CASE_DIR/.out")"
}

# The program's server, unless it is on the other machine.
serve()
{
	by "$1"
	[ -n "$FAR" ] || serve_"$NAME"
}

both()
{
	local tcp

	serve exs
	by exs
	goes exs
	by tcp
	tcp=$(counter accepts_tcp)
	goes tcp
	[ -n "$FAR" ] || [ "$(counter accepts_tcp)" -gt "$tcp" ] || fail "no connection of TCP's was accepted"
	end_servers
}

alone()
{
	local refused

	serve tcp
	by exs
	refused=$(counter fallback_refused)
	goes tcp
	[ "$(counter fallback_refused)" -gt "$refused" ] || fail "nobody was refused"
	end_servers
}

# A name with an IPv6 address, which is tried first, and an IPv4 address. The server has both, and then only the latter.
two_families()
{
	local fallbacks connects

	by exs
	printf 'fd77::1 both\n%s both\n' $HOST >> /etc/hosts
	printf 'precedence %s\n' 'fd77::/64 50' '::ffff:0:0/96 40' '::/0 30' > /etc/gai.conf
	start socat -t 60 TCP6-LISTEN:$PORT,ipv6only=0,reuseaddr,fork EXEC:cat
	start socat -t 60 TCP4-LISTEN:$((PORT + 1)),bind=$HOST,reuseaddr,fork EXEC:cat
	ready $PORT
	ready $((PORT + 1))
	connects=$(counter connects) fallbacks=$(fallbacks)
	echo hello > ask
	client socat -t 60 - TCP6:[fd77::1]:$PORT < ask
	same printed ask
	client socat -t 60 - TCP4:$HOST:$PORT < ask
	same printed ask
	client python3 -c "import socket; s = socket.create_connection(('both', $PORT)); print(s.getpeername()[0])"
	prints '^fd77::1$'
	[ $(($(counter connects) - connects)) = 3 ] && [ "$(fallbacks)" = "$fallbacks" ] || fail "not all went by EXS"
	client python3 -c "import socket; s = socket.create_connection(('both', $((PORT + 1)))); print(s.getpeername()[0])"
	prints "^$HOST\$"
	[ $(($(counter connects) - connects)) = 4 ] || fail "it did not go by EXS"
	end_servers
}

# Cgroups, where the kernel can do that.
has_hook()
{
	mountpoint -q /sys/fs/bpf || must mount -t bpf bpf /sys/fs/bpf
	mountpoint -q /sys/fs/cgroup || must mount -t cgroup2 cgroup2 /sys/fs/cgroup
	grep -q ' update_socket_protocol$' /proc/kallsyms || skip "this kernel has no hook for BPF programs in socket(2)"
}

use_cgroups()
{
	has_hook
	CGROUP=/sys/fs/cgroup/programs
	mkdir -p "$CGROUP"
	must exs-run --cgroup="$CGROUP"
}

# once NAME both|alone
once()
{
	NAME=$1
	chmod 777 .
	if [[ " $STARTED " = *" $NAME "* ]]; then
		has_hook
	elif [[ " $WHOLE " = *" $NAME "* ]]; then
		trap 'exs-run --off' EXIT
		use_cgroups
	fi
	"$2"
}

prepare()
{
	local n

	"$TOP/tests/vm/programs" --over
	printf 'tester::%s:%s::/:/bin/sh\nsshd:x:7001:7001::/run/sshd:/bin/false\n' $USER_ID $USER_ID >> /etc/passwd
	mkdir -p $SHARED/tree
	for n in 1000 100000 1000000 4000000; do
		seq $n | head -c $n > $SHARED/$n
	done
	for n in {1..50}; do
		seq $((n * 100)) > $SHARED/tree/$n
	done
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $SHARED/key.pem -out $SHARED/cert.pem \
		-subj "/CN=$HOST" 2> /dev/null
	chmod -R a+rX $SHARED
	chmod 777 $SHARED
}

# Each has ports of its own, as all of them are there at once on the other machine.
port_of()
{
	local name port=7100

	for name in $PROGRAMS $WHOLE; do
		[ "$name" != "$1" ] || echo $port
		port=$((port + 10))
	done
}

# serve_far exs|tcp NAME PORT: on this machine, for the other.
serve_far()
{
	NAME=$2 PORT=$3 CASE_DIR=$SHARED/$1-$2
	mkdir -m 777 "$CASE_DIR"
	cd "$CASE_DIR" || exit
	[[ " $WHOLE " != *" $NAME "* ]] || use_cgroups
	by "$1"
	serve_"$NAME"
}

serve_all()
{
	local name

	for name in $APART; do
		( serve_far exs "$name" "$(port_of "$name")" ) || { cat "$SHARED/exs-$name/.why"; exit 1; }
	done
	for name in $APART_ALONE; do
		( serve_far tcp "$name" $(($(port_of "$name") + 5)) ) || { cat "$SHARED/tcp-$name/.why"; exit 1; }
	done
	echo serving
	sleep infinity
}

[ "${1-}" = --list ] || [ -e $SHARED ] || prepare
# Not by their wrappers, for which the packages' scripts would have to be run.
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
case ${1-} in
--serve)
	HOST=$2
	serve_all
	;;
--to)
	HOST=$2 FAR=$2
	shift 2
	for name in $APART; do
		eval "case_$name() { PORT=$(port_of "$name"); once $name both; }"
	done
	for name in $APART_ALONE; do
		eval "case_${name}_alone() { PORT=$(($(port_of "$name") + 5)); once $name alone; }"
	done
	;;
*)
	for name in $PROGRAMS $WHOLE $STARTED; do
		eval "case_$name() { once $name both; }"
	done
	for name in $ALONE; do
		eval "case_${name}_alone() { once $name alone; }"
	done
	case_two_families() { once none two_families; }
	;;
esac
run_cases "$@"
