#!/bin/bash
# test_http_docs.sh - the guide to the HTTP API is right: its examples do what they show, it has every
# route and every limit with its value. The clients' page is right, too.
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
unset WEIR_LISTEN WEIR_DATA WEIR_CONFIG NOTIFY_SOCKET
guide=$source_root/docs/http.md

# A server with a store of its own, which `weir` finds; sets url.
serve() {
    unset WEIR_STORE
    mkdir bin
    ln -s "$WEIR" bin/weir
    export PATH=$PWD/bin:$PATH
    "$WEIR" serve --listen 127.0.0.1:0 >serve.out 2>serve.err </dev/null &
    wait_for grep -q '^weir: serving ' serve.out
    url=$(sed -n 's/.* at \(http:.*\)$/\1/p' serve.out)
}

case_examples_of_the_guide() {
    serve
    python3 "$here/run_examples.py" "$guide" "$url"
    same "$(grep -c '^\$ ' "$guide")" "$(grep -c '^\$ ' <(sed -n '/^```console$/,/^```$/p' "$guide"))"
}

case_every_route_has_a_heading() {
    serve
    curl -sS "$url/v1/openapi.json" >openapi.json
    python3 - openapi.json "$guide" <<'PY'
import json, re, sys
paths = json.load(open(sys.argv[1]))["paths"]
served = {"%s %s" % (m.upper(), p) for p, methods in paths.items() for m in methods}
headings = set(re.findall(r"^### ([A-Z]+ /\S+)$", open(sys.argv[2]).read(), re.M))
print("not in docs/http.md:", sorted(served - headings))
print("not served:", sorted(headings - served))
sys.exit(served != headings)
PY
}

# Names that only the inside of the server has.
inside='SRV_TREND_LATE_MS WEIR_TREND_AHEAD_MS SRV_MAX_ARGS SRV_MAX_FILE SRV_MAX_LOOPS SRV_MAX_READ SRV_LINGER_MS'

case_every_limit_with_its_value() {
    python3 - "$guide" "$inside" "$source_root"/src/server/*.h "$source_root"/src/server/*/*.h "$source_root/include/weir/job.h" "$source_root/src/core/trend.h" <<'PY'
import re, sys
values = {}
for path in sys.argv[3:]:
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    for name, value in re.findall(r"\b((?:SRV|WEIR)_[A-Z_]+)\s*=\s*([^,}]+)", text):
        values[name] = value
def number(name):
    return eval(re.sub(r"[A-Z_]{4,}", lambda m: str(number(m.group())), values[name]))
rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", open(sys.argv[1]).read(), re.M))
limits = {n for n in values if re.match(r"(SRV|WEIR)_MAX_|.*_MS$", n)} - set(sys.argv[2].split())
bad = ["%s is missing" % n for n in sorted(limits - set(rows))]
bad += ["%s: %s, but it is %d" % (n, v, number(n)) for n, v in rows.items()
        if n in values and int(v) != number(n)]
bad += ["%s: there is no such limit" % n for n in rows if n not in values]
print("\n".join(bad))
sys.exit(bool(bad) or len(rows) < 40)
PY
}

case_every_metric_and_error_code() {
    local name bad=0
    serve
    weir add mail --quiet
    curl -sS "$url/metrics" | sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' >metrics
    sed -n 's/^    X(\(E[A-Z]*\),.*/\1/p' "$source_root/include/weir/error.h" >codes
    [ "$(wc -l <metrics)" -gt 20 ]
    [ "$(wc -l <codes)" -gt 10 ]
    while read -r name; do
        grep -q "\`$name\`" "$guide" || { echo "docs/http.md: $name is missing"; bad=1; }
    done < <(cat metrics codes)
    return $bad
}

case_examples_of_the_clients_curl() {
    serve
    python3 "$here/run_examples.py" "$source_root/clients/README.md" "$url"
}

# block LANGUAGE N: the Nth of that language on the clients' page.
block() {
    awk -v open="\`\`\`$1" -v n="$2" '/^```$/ { on = 0 } on && at == n { print }
        $0 == open { on = 1; at++ }' "$source_root/clients/README.md"
}

# snippet LANGUAGE N FILE: with the first one before it, which opens the queue. What it is said to
# print, in a comment at the end of a line, goes to FILE.want.
snippet() {
    { block "$1" 1; block "$1" "$2"; } | sed "s,http://127.0.0.1:7340,$url," >"$3"
    block "$1" "$2" | sed -n 's,.*print(.*  # ,,p; s,.*console.log(.*  // ,,p' >"$3.want"
}

# client_examples LANGUAGE SUFFIX COMMAND...: worker, listener and producer of that page together.
client_examples() {
    local language=$1 suffix=$2 n
    shift 2
    for n in 2 3 4 5; do
        snippet "$language" $n "$n.$suffix"
    done
    [ -s "3.$suffix.want" ]
    [ -s "4.$suffix.want" ]
    "$@" "2.$suffix" &
    "$@" "4.$suffix" >heard &
    listened() {        # events are for those who listen already: so again, until one is heard
        "$@" "3.$suffix" >out
        cmp out "3.$suffix.want" && same "$(head -1 heard)" "$(cat "4.$suffix.want")"
    }
    wait_for listened "$@"
}

case_examples_of_the_clients_python() {
    serve
    export PYTHONPATH=$source_root/clients/python PYTHONUNBUFFERED=1
    client_examples python py python3
    python3 5.py >out
    cmp out 5.py.want
    snippet python 6 6.py
    python3 6.py >out
    cmp out 6.py.want
}

npm_project() {
    mkdir node_modules
    ln -s "$source_root/clients/js" node_modules/weir
    echo '{"type":"module"}' >package.json
}

case_examples_of_the_clients_javascript() {
    serve
    npm_project
    client_examples js js node
}

# bus_example LANGUAGE N FILE COMMAND...: a program that stands for itself.
bus_example() {
    snippet "$1" "$2" "$3"
    [ -s "$3.want" ]
    "${@:4}" "$3" >out
    cmp out "$3.want"
}

case_examples_of_the_clients_bus() {
    serve
    PYTHONPATH=$source_root/clients/python bus_example python 7 bus.py python3
    npm_project
    bus_example js 5 bus_example.js node
}

run_cases
