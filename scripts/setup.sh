#!/bin/sh
# setup.sh WHAT... - see that the packages are there which `build`, `test`, `bench`, `docs`,
# `fuzz`, `dist`, `deb` or `packages` need, and install the missing ones (Debian; as root or with sudo). Quick and
# silent when none is missing.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1

missing=
need() {    # need PACKAGE COMMAND...: the command says whether it is there
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
library() { pkg-config --exists "$1"; }
# The compiler knows where headers are; without one, all that is missing is found after the next look.
header() { echo "#include <$1>" | ${CC:-cc} -E -; }
# Looked up, not imported: setuptools cannot be imported after pip.
debian_python() {
    /usr/bin/python3 -c "import importlib.util as u, sys
sys.exit(not all(u.find_spec(name) for name in sys.argv[1:]))" "$@"
}
compiler() { command -v cc || command -v gcc || command -v clang; }

look() {
    missing=
    for what in ${*:-build}; do
        case $what in
        build)
            need gcc compiler
            need libc6-dev header stdlib.h
            need pkg-config command -v pkg-config
            need meson command -v meson
            need ninja-build command -v ninja
            need libsqlite3-dev library sqlite3
            need libjansson-dev library jansson
            need libhiredis-dev library hiredis
            need libcurl4-openssl-dev library libcurl
            need libevent-dev library libevent_core
            need libssl-dev library openssl
            need lua5.1 command -v luac5.1      # checks the scripts for Redis
            need libwslay-dev header wslay/wslay.h
            need systemtap-sdt-dev header sys/sdt.h     # tracepoints
            need tzdata test -e /usr/share/zoneinfo/Europe/Berlin     # read at run time
            # The page is built with Node, or there already, in a release tarball.
            need nodejs test -e "$root/ui/built/ui_assets.c" -o -n "$(command -v node)"
            need npm test -e "$root/ui/built/ui_assets.c" -o -n "$(command -v npm)" ;;
        test)
            need g++ command -v g++
            need clang command -v clang++       # the C++ wrapper is for both
            need libcmocka-dev library cmocka
            need redis-server command -v redis-server
            need mariadb-server-core command -v mariadbd    # a task table in it
            need libmariadb-dev library libmariadb
            need cmake command -v cmake         # find_package(weir)
            need curl command -v curl
            need nodejs command -v node
            need npm command -v npm
            need python3 command -v python3
            need python3-pip debian_python pip              # installs the client
            need python3-setuptools debian_python setuptools
            need python3-wheel debian_python wheel
            need mypy command -v mypy           # checks its types
            need prometheus command -v promtool             # checks alert rules
            need sqlite3 command -v sqlite3     # copies a store
            need mandoc command -v mandoc       # checks the manual pages
            need zsh command -v zsh             # ... and these the completions
            need fish command -v fish
            need python3-mistune debian_python mistune      # makes the site of the documents
            need chromium command -v chromium ;;    # shows the page
        bench)
            need redis-server command -v redis-server
            need sqlite3 command -v sqlite3
            # The drivers of other queues are there: one of them is measured beside weir.
            if [ -n "${WEIR_PEERS:-}" ]; then
                need nats-server command -v nats-server
                need libnats-dev library libnats
            fi ;;
        docs)
            need python3-mistune debian_python mistune      # reads the pages
            need mandoc command -v mandoc ;;
        fuzz)
            need clang command -v clang
            need llvm command -v llvm-symbolizer ;;
        dist)
            need abigail-tools command -v abidiff ;;    # compares the ABI
        deb)
            need build-essential command -v dpkg-buildpackage
            need debhelper command -v dh
            need git command -v git
            need xz-utils command -v xz ;;
        packages)
            need debootstrap command -v debootstrap
            need lintian command -v lintian
            need ruby command -v ruby       # checks the Homebrew formula
            need rpm command -v rpmspec
            need buildah command -v buildah     # builds the container image
            need iproute2 command -v ip
            need procps command -v pgrep ;;
        *)
            echo "setup.sh: I know build, test, bench, docs, fuzz, dist, deb and packages, not '$what'" >&2
            exit 2 ;;
        esac
    done
}

cannot() {
    {
        echo "weir: $1"
        echo "weir: missing packages:$missing"
        echo "weir: install them with: apt-get install --no-install-recommends$missing"
    } >&2
    exit 1
}

look "$@"
[ -n "$missing" ] || exit 0

command -v apt-get >/dev/null 2>&1 || cannot "this system has no apt-get (names below are Debian's)"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1; then
    as_root=sudo
else
    cannot "installing packages needs root or sudo"
fi

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
apt() {     # apt ARGUMENTS...
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >>"$log" 2>&1 ||
        { tail -n 20 "$log" >&2
          cannot "apt-get could not install them (its last lines are above)"; }
}

echo "weir: installing$missing"
wanted=$missing
apt update
# shellcheck disable=SC2086
apt install --no-install-recommends $missing
look "$@"
[ -n "$missing" ] || exit 0

# dpkg may count a package as installed whose files were deleted.
echo "weir: installing$missing again: their files are missing"
# shellcheck disable=SC2086
apt install --no-install-recommends --reinstall $missing
look "$@"
[ -n "$missing" ] || exit 0
tail -n 20 "$log" >&2
cannot "apt-get installed$wanted, and yet something is not found (its last lines are above)"
