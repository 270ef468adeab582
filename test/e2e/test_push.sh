# test_push.sh - push workers: the receivers of the guide, in Python and JavaScript, get real jobs.
. "$(dirname "$0")/lib.sh"

SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')

# block LANGUAGE: the code of the guide.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$source_root/docs/http-push.md" | sed '/^```/d'; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'; }

# Until COMMAND... succeeds.
until_it() {
    local end=$((SECONDS + 60))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { echo "never: $*"; return 1; }
        sleep 0.05
    done
}

serve() {
    "$WEIR" serve --listen 127.0.0.1:0 --store "sqlite:$PWD/jobs.db" --data "$PWD/data" \
        --push-private --access-log access.log >ready 2>&1 &
    server=$!
    trap 'kill $server $receiver 2>/dev/null; wait' EXIT
    until_it grep -q http ready
    url=$(grep -oE 'http://[0-9.:]+' ready | head -n 1)
}

api() { curl -sS --fail-with-body -X "$1" "$url$2" -H 'Content-Type: application/json' -d "$3"; }

# A receiver that knows the secret does the job; one with another refuses it.
check_receiver() {
    local port
    port=$(free_port)
    SECRET=$SECRET PORT=$port "$@" 2>receiver.log &
    receiver=$!
    serve
    api PUT /v1/push/hello '{"types":["hello"],"url":"http://127.0.0.1:'"$port"'/",
        "secret":"'"$SECRET"'"}' >out
    hasnt out "$SECRET"
    api POST /v1/jobs '{"type":"hello","data":{"name":"Ünn"}}' >out
    has out '"id":1'
    until_it sh -c "curl -sS $url/v1/jobs/1 | grep -q '\"state\":\"complete\"'"
    curl -sS "$url/v1/jobs/1" >out
    has out 'nn"}'
    api PUT /v1/push/hello '{"types":["hello"],"url":"http://127.0.0.1:'"$port"'/",
        "secret":"this is not the secret"}' >out
    api POST /v1/jobs '{"type":"hello","data":{"name":"x"}}' >out
    until_it sh -c "curl -sS $url/v1/jobs/2 | grep -q '\"state\":\"failed\"'"
    curl -sS "$url/v1/jobs/2" >out
    has out 'HTTP 401'
    hasnt ready "$SECRET"
    has access.log /v1/push/hello
    hasnt access.log "$SECRET"
    same "$(stat -c %a data/push.json)" 600
}

case_the_receiver_in_python() {
    block python >receiver.py
    check_receiver python3 receiver.py
}

case_the_receiver_in_javascript() {
    block js >receiver.js
    check_receiver node receiver.js
}

run_cases
