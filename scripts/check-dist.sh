#!/bin/sh
# check-dist.sh - make the release tarball twice, compare, and build and use it without Node. TAP.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
tmp=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tmp"' EXIT
version=$("$root/scripts/version.sh")
tarball=weir-$version.tar.xz
tree=$tmp/tree/weir-$version
weir=$tmp/build/src/cli/weir
n=0

# check WHAT COMMAND...: the case passes when the command does.
check() {
    n=$((n + 1))
    what=$1
    shift
    if "$@" >"$tmp/out" 2>&1; then
        echo "ok $n - $what"
    else
        echo "not ok $n - $what"
        tail -n 30 "$tmp/out" | sed 's/^/# /'
    fi
}

again() { (umask 077 && TZ=Asia/Tokyo LANG=C.UTF-8 "$root/scripts/make-dist.sh" "$tmp/second"); }
same() { cmp "$tmp/first/$tarball" "$tmp/second/$tarball"; }
sum_is_right() { (cd "$tmp/first" && sha256sum -c "$tarball.sha256"); }
unpack() { mkdir "$tmp/tree" && tar -x -C "$tmp/tree" -f "$tmp/first/$tarball"; }
owned_by_root() {
    tar -tv --numeric-owner -f "$tmp/first/$tarball" >"$tmp/list" || return 1
    ! grep -v ' 0/0 ' "$tmp/list"
}

# The libraries of the build and the packages of the page, each with what is known of it.
sbom_is_right() {
    python3 - "$tree" "$version" <<'PY'
import json, sys
tree, version = sys.argv[1:]
bom = json.load(open(tree + '/weir.cdx.json'))
assert bom['bomFormat'] == 'CycloneDX' and bom['metadata']['component']['version'] == version
parts = {part['bom-ref']: part for part in bom['components']}
assert len(parts) == len(bom['components'])
for library in 'sqlite3', 'jansson', 'hiredis', 'openssl', 'libcurl', 'libevent_core', 'wslay':
    assert 'system/' + library in parts, library
packages = json.load(open(tree + '/ui/package-lock.json'))['packages']
for path, package in packages.items():
    if path:
        part = parts[path + '@' + package['version']]
        assert part['purl'].endswith('@' + package['version']), part
        assert part['scope'] == ('excluded' if package.get('dev') else 'required'), part
assert set(bom['dependencies'][0]['dependsOn']) == set(parts)
PY
}

# Every program of PATH but Node's.
without_node() {
    mkdir "$tmp/bin"
    for dir in $(echo "$PATH" | tr : ' '); do
        for program in "$dir"/*; do
            name=${program##*/}
            case $name in node|nodejs|npm|npx|corepack) continue ;; esac
            [ -e "$tmp/bin/$name" ] || ln -s "$program" "$tmp/bin/$name" || return 1
        done
    done
    PATH=$tmp/bin
    export PATH
    ! command -v node && ! command -v npm
}
build() {
    (cd "$tree" && scripts/setup.sh build &&
        meson setup "$tmp/build" -Dtests=false -Dexamples=false -Dbench=false) &&
        ninja -C "$tmp/build" src/cli/weir
}
version_is_right() { [ "$("$weir" --version)" = "weir $version" ]; }

# Wait for the ready line; $address is in it.
start_server() {
    WEIR_DATA=$tmp/data "$weir" serve --listen 127.0.0.1:0 >"$tmp/served" 2>&1 &
    server=$!
    until address=$(grep -o 'http://127[0-9.:]*' "$tmp/served"); do
        kill -0 "$server" || { cat "$tmp/served"; return 1; }
        sleep 0.05
    done
}
page_is_served() {
    curl -fsS "$address/" >"$tmp/page" || return 1
    script=$(grep -o '/assets/[a-z]*-[0-9a-f]*\.js' "$tmp/page" | head -n 1)
    [ -n "$script" ] && curl -fsS "$address$script" >"$tmp/script" && [ "$(wc -c <"$tmp/script")" -gt 50000 ]
}
stop_server() { kill "$server" && wait "$server"; status=$?; server=; return $status; }

check "a tarball of the last commit" "$root/scripts/make-dist.sh" "$tmp/first"
if [ ! -e "$tmp/first/$tarball" ]; then
    echo "Bail out! There is no tarball"
    exit 1
fi
check "again, with another umask and time zone" again
check "both have the same bytes" same
check "its SHA-256 is beside it" sum_is_right
check "its files belong to root" owned_by_root
check "it unpacks" unpack
check "weir.cdx.json names libraries and packages" sbom_is_right
check "neither packages of npm nor the repository are in it" \
    sh -c "[ ! -e '$tree/ui/node_modules' ] && [ ! -e '$tree/.git' ]"
check "a PATH without Node" without_node
check "it builds" build
check "weir --version" version_is_right
check "the server starts" start_server
check "it serves the page" page_is_served
check "and stops" stop_server

echo "1..$n"
