#!/bin/bash
# test-packages.sh - build the Debian packages in a fresh root, install, use and purge them in
# another, and build the container image on a third instead of one from a registry. Roots are made by
# debootstrap from where apt of this machine gets its packages; all of it is in a temporary directory.
# Needs root. The last line is "N passed, N failed".
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
tmp=$(mktemp -d "${TMPDIR:-/var/tmp}/weir-packages.XXXXXX") || exit 1
version=$("$root/scripts/version.sh")
passed=0 failed=0
mounts=()

clean_up() {
    local i
    [ ! -d "$tmp/images" ] || image rm --all >"$tmp/out" 2>&1       # unmounts
    for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do
        umount "${mounts[i]}" || echo "test-packages.sh: ${mounts[i]} is still mounted" >&2
    done
    mounts=()
    # Never through a mount that is left.
    rm -rf --one-file-system "$tmp"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# check WHAT COMMAND...: the case passes when the command does.
check() {
    local what=$1
    shift
    if "$@" >"$tmp/out" 2>&1 </dev/null; then
        passed=$((passed + 1))
        echo "ok - $what"
    else
        failed=$((failed + 1))
        echo "not ok - $what"
        tail -n 40 "$tmp/out" | sed 's/^/# /'
    fi
}
# The cases behind it make no sense without this one.
must() {
    local before=$failed
    check "$@"
    if [ "$failed" != "$before" ]; then
        echo "$passed passed, $failed failed"
        exit 1
    fi
}

# ---- roots ----

mount_in() {    # mount_in ROOT: what programs expect of a machine
    mount -t proc proc "$1/proc" && mounts+=("$1/proc") || return 1
    mkdir -p "$1/dev/pts" "$1/dev/shm"
    mount -t devpts devpts "$1/dev/pts" && mounts+=("$1/dev/pts") || return 1
    mount -t tmpfs tmpfs "$1/dev/shm" && mounts+=("$1/dev/shm")
}
# The sources and proxies of this machine's apt; no passwords.
copy_apt() {
    local to=$1/etc/apt file
    rm -f "$to/sources.list"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
        [ ! -f "$file" ] || cp "$file" "$to/${file#/etc/apt/}" || return 1
    done
    apt-config dump | grep -E '^Acquire::https?::' >"$to/apt.conf.d/90host"
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"       # no service is started here
    chmod +x "$1/usr/sbin/policy-rc.d"
    cp /etc/resolv.conf "$1/etc/resolv.conf"
}
bootstrap() {
    local codename mirror
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Release: $codename" | head -n 1)
    [ -n "$mirror" ] || { echo "apt has no source of $codename"; return 1; }
    debootstrap --variant=minbase "$codename" "$tmp/build" "$mirror" &&
        copy_apt "$tmp/build" && chroot "$tmp/build" apt-get -q update
}
inside() {      # inside ROOT COMMAND...
    local where=$1
    shift
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive \
        chroot "$where" "$@"
}
apt_in() {
    local where=$1
    shift
    inside "$where" apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@"
}

# ---- build ----

source_package() {
    "$root/scripts/make-deb.sh" "$tmp/source" --source && mkdir -p "$tmp/build/src" &&
        cp "$tmp/source"/weir_* "$tmp/build/src/"
}
copy_root() { cp -a "$tmp/build" "$tmp/use" && rm -rf "$tmp/use/src"; }
build_depends() { apt_in "$tmp/build" install build-essential && apt_in "$tmp/build" build-dep "/src/weir_$version-1.dsc"; }
build_packages() {
    inside "$tmp/build" sh -ec "cd /src && dpkg-source -x weir_$version-1.dsc weir &&
        cd weir && dpkg-buildpackage -us -uc -b" && cp "$tmp/build"/src/*.{deb,buildinfo,changes} "$tmp/source/"
}
is_there() {    # is_there PACKAGE PATH...
    local package=$1 path
    shift
    dpkg-deb -c "$tmp/source/$package"_*.deb | awk '{ print $6 }' >"$tmp/list"
    for path; do
        grep -qE "^\./$path\$" "$tmp/list" || { echo "$package lacks $path"; cat "$tmp/list"; return 1; }
    done
}
lint() { lintian --fail-on error,warning --suppress-tags-from-file "$root/dist/lintian-suppressed" "$tmp"/source/*.changes; }
has_tracepoints() { inside "$tmp/build" sh -ec 'readelf -n src/weir/obj-*/src/libweir.so.0 | grep -A 2 stapsdt | grep -q "Provider: weir"'; }
hello() {       # a program of a stranger, with the installed library
    cp "$root/examples/hello.c" "$tmp/build/src/" && cp "$root/examples/expected/hello.txt" "$tmp/build/src/" &&
        inside "$tmp/build" sh -ec 'apt-get -q -y install /src/libweir0_*.deb /src/libweir-dev_*.deb
            cd /src && cc -o hello hello.c $(pkg-config --cflags --libs weir) && ./hello | diff hello.txt -
            readelf -d hello | grep -q "libweir.so.0"'
}

# ---- the ABI: of this build, and of baselines that differ from it in one thing ----

abi_of_build() { "$root/scripts/check-abi.sh" "$tmp"/build/src/weir/obj-*/src/libweir.so.0 "$@"; }
# abi_with SED: against a baseline that is changed by SED.
abi_with() {
    sed "$1" "$root/dist/abi/libweir.so.0.abi" >"$tmp/other.abi" &&
        ! cmp "$root/dist/abi/libweir.so.0.abi" "$tmp/other.abi" && abi_of_build "$tmp/other.abi"
}
abi_differs() {     # abi_differs SED WHAT: it says what, and how to accept it
    ! abi_with "$1" >"$tmp/said" 2>&1 && cat "$tmp/said" && grep -q "$2" "$tmp/said" &&
        grep -q 'check-abi.sh --accept' "$tmp/said"
}

# ---- install, use, purge ----

# What a package may leave: users, logs and caches of apt and dpkg.
files_of() {
    inside "$1" find / -xdev \( -path /proc -o -path /dev -o -path /var/cache -o -path /var/lib/apt \
        -o -path /var/lib/dpkg -o -path /var/lib/systemd -o -path /var/log -o -path /tmp -o -path /src \) \
        -prune -o -print | grep -vE '^/etc/(passwd|group|shadow|gshadow|subuid|subgid|\.pwd\.lock|ld\.so\.cache)-?$' | sort
}
install_packages() {
    mkdir "$tmp/use/src" && cp "$tmp"/source/weir_*.deb "$tmp"/source/libweir0_*.deb "$tmp/use/src/" &&
        apt_in "$tmp/use" install $(cd "$tmp/use" && ls src/*.deb | sed 's,^,/,')
}
weir_in() { inside "$tmp/use" "$@"; }
version_is_right() { [ "$(weir_in weir --version)" = "weir $version" ]; }
user_is_there() { weir_in id weir; }
does_a_job() {
    weir_in sh -ec 'export WEIR_DATA=/tmp/data
        weir add mail "{\"to\":\"ann\"}"
        weir work mail --drain -- cat
        weir get 1 | grep -q complete'
}
serves_the_page() {
    weir_in sh -ec 'mkdir -p /tmp/served && chown weir /tmp/served
        setpriv --reuid weir --regid weir --clear-groups env WEIR_DATA=/tmp/served \
            weir serve --listen 127.0.0.1:0 >/tmp/said 2>&1 & pid=$!
        until grep -q "http://127" /tmp/said; do kill -0 $pid || { cat /tmp/said; exit 1; }; sleep 0.1; done
        url=$(grep -o "http://127[0-9.:]*" /tmp/said)
        weir --store "$url" add mail "{}"
        weir --store "$url" status
        port=${url##*:}
        bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; printf \"GET / HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3" >/tmp/page
        kill $pid; wait $pid || true
        grep -q "/assets/main-" /tmp/page'
}
service_waits() { [ ! -e "$tmp/use/etc/systemd/system/multi-user.target.wants/weir.service" ]; }
purge() { weir_in mkdir -p /var/lib/weir && apt_in "$tmp/use" purge weir libweir0 && apt_in "$tmp/use" autoremove --purge; }
nothing_left() {
    rm -rf "$tmp/use/src" "$tmp/use/tmp/"*
    files_of "$tmp/use" | diff "$tmp/before" -
}

# ---- the container image, from the release tarball ----

image() { buildah --root "$tmp/images" --runroot "$tmp/images.run" "$@"; }
base_image() {
    local made
    made=$(image from scratch) && image add --quiet "$made" "$tmp/build" / &&
        image commit --quiet "$made" localhost/weir-base && image rm "$made"
}
build_image() {
    mkdir "$tmp/release" &&
        tar -x -C "$tmp/release" --strip-components 1 -f "$tmp/source/weir_$version.orig.tar.xz" &&
        image build --format docker --isolation chroot --network host --build-arg BASE=localhost/weir-base \
            --tag weir "$tmp/release"
}
# of_image PATH: what its settings say, a list as lines.
of_image() {
    image inspect --type image weir | python3 -c '
import json, sys
found = json.load(sys.stdin)["Docker"]["config"]
for name in sys.argv[1].split("."):
    found = found[name]
print("\n".join(found) if isinstance(found, (list, dict)) else found)' "$1"
}
image_is_right() {
    [ "$(of_image User)" = 7340:7340 ] && [ "$(of_image Volumes)" = /var/lib/weir ] &&
        [ "$(of_image StopSignal)" = SIGTERM ] && [ "$(of_image ExposedPorts)" = 7340/tcp ] &&
        [ "$(of_image Entrypoint) $(of_image Cmd)" = "weir serve" ]
}
mount_image() { container=$(image mount "$(image from weir)") && [ -d "$container/var/lib/weir" ]; }
# As an engine runs it: its user, its environment, first of its processes.
in_image() {
    local set
    mapfile -t set < <(of_image Env)
    exec timeout --foreground --signal KILL 60 unshare --pid --fork --kill-child --mount --mount-proc \
        --root="$container" --setgid 7340 --setuid 7340 --wd "$(of_image WorkingDir)" env -i "${set[@]}" "$@"
}
# in_pod FUNCTION: in a network of its own, where all ports are free.
in_pod() {
    export -f image of_image in_image start_image stop_image "$1"
    export tmp container
    unshare --net bash -ec "ip link set lo up; $1"
}
start_image() {
    # shellcheck disable=SC2046
    (in_image $(of_image Entrypoint) $(of_image Cmd)) >"$tmp/served" 2>&1 &
    engine=$!
    until grep -q ' at http' "$tmp/served"; do
        kill -0 $engine || { cat "$tmp/served"; return 1; }
        sleep 0.1
    done
}
stop_image() {
    kill "$(pgrep -P "$(pgrep -P $engine)")"        # timeout, unshare, weir
    wait $engine
}
asks_for_a_token() {
    (in_image weir serve) >"$tmp/said" 2>&1 && return 1
    grep -q 'weir token add' "$tmp/said"
}
serves_and_stops() {
    (in_image weir token add ann --role admin) >"$tmp/token"
    start_image
    (in_image sh -ec "$(of_image Healthcheck.Test | tail -n 1)")
    (in_image env WEIR_TOKEN="$(cat "$tmp/token")" weir --store http://127.0.0.1:7340 add mail '{}')
    stop_image
    ! (in_image sh -ec "$(of_image Healthcheck.Test | tail -n 1)")
    start_image
    (in_image env WEIR_TOKEN="$(cat "$tmp/token")" weir --store http://127.0.0.1:7340 get 1)
    stop_image
}

formula_is_ruby() { ruby -c "$root/dist/homebrew/weir.rb"; }
# Packages and their versions, with all macros that this rpm knows.
spec_is_right() {
    rpmspec -P "$root/dist/rpm/weir.spec" >"$tmp/spec" || return 1
    for name in weir weir-libs weir-devel; do
        rpmspec -q --qf '%{NAME} %{VERSION}\n' "$root/dist/rpm/weir.spec" | grep -qx "$name $version" || return 1
    done
}

check "the Homebrew formula is Ruby" formula_is_ruby
check "the RPM spec makes weir, weir-libs, weir-devel of this version" spec_is_right
[ "$(id -u)" = 0 ] || { echo "test-packages.sh: needs root, for chroot"; echo "0 passed, 1 failed"; exit 1; }
must "a fresh root" bootstrap
must "the source package" source_package
must "a second root" copy_root
must "an image of the root" base_image
mount_in "$tmp/build" && mount_in "$tmp/use"
must "packages that the build needs" build_depends
must "the packages are built" build_packages
check "weir has program, page of the manual, completions, service, alert rules" is_there weir usr/bin/weir \
    usr/share/man/man1/weir-serve.1.gz usr/share/bash-completion/completions/weir \
    usr/share/zsh/vendor-completions/_weir usr/share/fish/vendor_completions.d/weir.fish \
    lib/systemd/system/weir.service usr/lib/sysusers.d/weir.conf usr/share/weir/weir.rules.yml
check "libweir0 has the library" is_there libweir0 'usr/lib/.*/libweir.so.0'
check "libweir-dev has headers, library, pkg-config file" is_there libweir-dev usr/include/weir/weir.h usr/include/weir/weir.hpp \
    'usr/lib/.*/libweir.a' 'usr/lib/.*/pkgconfig/weir.pc' \
    'usr/lib/.*/cmake/weir/weirConfig.cmake'
check "lintian has nothing to say" lint
check "the library has tracepoints" has_tracepoints
check "hello.c builds with the installed library, and runs" hello
check "the ABI is that of the baseline" abi_of_build
check "a function more is fine" abi_with "/'weir_stop[@']/d"
check "a function that has gone is found" abi_differs "s/'weir_stop\([@']\)/'weir_gone\1/" "Removed function"
check "a struct of another size is found" abi_differs \
    "s/\(name='weir_added' size-in-bits=\)'448'/\1'512'/" "struct weir_added. changed"
check "an enumerator of another value is found" abi_differs "s/\('WEIR_STATE_ACTIVE' value=\)'3'/\1'9'/" \
    "WEIR_STATE_ACTIVE. from value"

must "systemd, which would leave files of its own" apt_in "$tmp/use" install systemd
files_of "$tmp/use" >"$tmp/before"
must "weir and libweir0 are installed" install_packages
check "weir --version" version_is_right
check "the user weir is there" user_is_there
check "the service waits to be enabled" service_waits
check "weir add and work" does_a_job
check "weir serve, as the user weir, has the page" serves_the_page
check "both are purged" purge
check "and nothing is left" nothing_left

must "the container image is built" build_image
check "it has a user, a volume, a port, a signal to stop" image_is_right
must "a container of it" mount_image
check "without a token it does not serve other machines" in_pod asks_for_a_token
check "it serves, is healthy, ends on SIGTERM, and keeps its jobs" in_pod serves_and_stops

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
