#!/bin/sh
# check-options.sh - build weir without what can be left out, see what is linked, and use it. TAP.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
unset WEIR_STORE
export HOME="$tmp/home"
mkdir "$HOME"

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

# build NAME TARGET OPTIONS...
build() {
    dir=$tmp/$1
    target=$2
    shift 2
    meson setup "$dir" "$root" -Dbench=false -Dexamples=false "$@" || return 1
    ninja -C "$dir" ${target:+"$target"}
}
# links FILE NAMES: these libraries, besides those of the C library and of a sanitizer.
links() {
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[lib\([a-z0-9_]*\)[-.].*/\1/p' |
        grep -vxE 'c|m|dl|pthread|ld|asan|ubsan' | sort | tr '\n' ' ' >"$tmp/linked"
    echo "expected: $2"
    echo "linked:   $(cat "$tmp/linked")"
    [ "$(cat "$tmp/linked")" = "$2 " ]
}
# says STATUS TEXT COMMAND...: it ends with this status and says this.
says() {
    want=$1
    text=$2
    shift 2
    "$@" >"$tmp/said" 2>&1 </dev/null
    got=$?
    cat "$tmp/said"
    [ "$got" = "$want" ] && grep -qF -- "$text" "$tmp/said"
}
never_says() {
    text=$1
    shift
    "$@" >"$tmp/said" 2>&1 || return 1
    ! grep -F -- "$text" "$tmp/said"
}
exports() { nm -D --defined-only "$1" | awk '{ print $3 }' | sort; }
declared() { sed -n 's/^WEIR_API .*[ *]\(weir_[a-z_]*\)(.*/\1/p' "$root"/include/weir/*.h | sort -u; }
same_names() {
    exports "$1" | sed 's/@.*//' | grep '^weir_[a-z]' | sort -u >"$tmp/exported"
    declared | diff - "$tmp/exported"
}

# ---- the smallest: SQLite alone ----

small=$tmp/small
weir=$small/src/cli/weir
check "a build without Redis, HTTP and the server" \
    build small "" -Dredis=false -Dhttp=false -Dserver=false
if [ ! -x "$weir" ]; then
    echo "Bail out! Nothing was built"
    exit 1
fi
check "the library links SQLite and jansson alone" links "$small/src/libweir.so" "jansson sqlite3"
check "and so does the program" links "$weir" "jansson sqlite3"
check "libcurl is not loaded at run time either" sh -c "! grep -aq libcurl '$small/src/libweir.so'"
check "the library exports the same names as a whole one" same_names "$small/src/libweir.so"
check "conformance of mem and sqlite" meson test -C "$small" --no-rebuild conformance

check "Redis is rejected with the reason" \
    says 2 "redis: this weir was built without Redis" "$weir" --store redis://127.0.0.1 list
check "and so is the layout of Kue, whatever its options" \
    says 2 "redis+kue: this weir was built without Redis" \
    "$weir" --store 'redis+kue://127.0.0.1?profile=kue' list
check "and a server" \
    says 2 "http: this weir was built without HTTP" "$weir" --store http://127.0.0.1:1 list
check "the version says what was left out" says 0 "built without server" "$weir" version
check "and so it does in JSON" says 0 '"redis":false,"http":false,"server":false' "$weir" version --json
check "there is no command serve" says 2 "unknown command 'serve'" "$weir" serve
check "help does not list it" never_says "serve the queue" "$weir" help
check "nor the completion" never_says "token" "$weir" completion bash
check "no manual page of it" sh -c "[ -e '$small/docs/weir-add.1' ] && [ ! -e '$small/docs/weir-serve.1' ]"

check "weir add" says 0 1 "$weir" add mail '{"to":"ann"}'
check "weir work" says 0 "" "$weir" work mail --drain -- sh -c 'cat'
check "the job is complete" says 0 "complete" "$weir" get 1
check "weir check" says 0 "" "$weir" check

# ---- in between ----

check "a build without Redis" build served src/cli/weir -Dredis=false -Dtests=false
check "has the server" says 0 "serve" "$tmp/served/src/cli/weir" help
check "a build without the server" build stores src/cli/weir -Dserver=false -Dtests=false
check "has the stores of Redis" \
    says 6 "" "$tmp/stores/src/cli/weir" --store 'redis://127.0.0.1:1?timeout=100ms' list
check "the server needs HTTP" \
    says 1 "-Dserver=true needs -Dhttp=true" meson setup "$tmp/none" "$root" -Dhttp=false

echo "1..$n"
