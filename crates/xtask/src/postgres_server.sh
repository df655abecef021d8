# Runs a scratch PostgreSQL server until standard input ends, which it also does when the caller is killed.
# Arguments: folder of the programs, data folder (absent), port, further options of the server. The password is the
# first line of standard input; the others are orders: `kill`, and `start` after that.
set -eu
bin=$1 folder=$2 port=$3
shift 3
options=$*
umask 077
mkdir "$folder"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
head -n 1 > password
"$bin/initdb" -D data -U turnery --auth=scram-sha-256 --pwfile=password -E UTF8 --locale=C > initdb.log 2>&1 || {
    cat initdb.log >&2
    exit 1
}
key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
openssl req -x509 $key -days 2 -subj /CN=scratch -keyout ca.key -out ca.crt 2> openssl.log
openssl req $key -subj /CN=localhost -keyout data/server.key -out server.csr 2>> openssl.log
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' > names
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names \
    -out data/server.crt 2>> openssl.log
# The tests of other users may read the certificate.
chmod 711 .
chmod 644 ca.crt
start() {
    "$bin/postgres" -D data -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c ssl=on \
        -c max_connections=300 -c log_min_messages=warning $options >> server.log 2>&1 &
    server=$!
    # Ends this shell with the server.
    (while kill -0 "$server" 2> /dev/null; do sleep 1; done; kill "$$" 2> /dev/null) &
    watcher=$!
}
# Kills the server and its processes, as a power cut would, and waits until they use the data no more.
crash() {
    kill "$watcher"
    processes="$server $(cat "/proc/$server/task/$server/children")"
    kill -9 $processes 2> /dev/null || :
    wait "$server" || :
    for process in $processes; do
        while grep -qs '^State:[[:space:]]*[^Z[:space:]]' "/proc/$process/status"; do sleep 0.1; done
    done
}
start
trap 'kill -INT "$server" 2> /dev/null || cat server.log >&2; kill "$watcher" 2> /dev/null; wait "$server"; cd /; rm -rf "$folder"' EXIT
trap 'exit 1' TERM
while read -r order; do
    case $order in
        kill) crash && echo killed ;;
        start) start && echo started ;;
    esac
done
