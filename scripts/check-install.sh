#!/bin/sh
# check-install.sh - install into a temporary place and use what is there as a stranger would: build
# examples/hello.c with pkg-config (shared, static, and from C++), run it, look for the rest. TAP.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
dest=$tmp/dest
prefix=/opt/weir
usr=$dest$prefix
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

# A build directory of its own, so that PREFIX is not changed in another.
installed() {
    make -C "$root" --no-print-directory install B="$tmp/build" PREFIX="$prefix" DESTDIR="$dest"
}
in_tmp() { mkdir -p "$tmp/run.$n" && cd "$tmp/run.$n" && "$@"; }
says_hello() {
    in_tmp "$@" >"$tmp/said" || { cat "$tmp/said"; return 1; }
    diff "$root/examples/expected/hello.txt" "$tmp/said"
}
flags() { pkg-config --define-prefix "$@" weir; }
export PKG_CONFIG_PATH="$usr/lib/pkgconfig"
unset WEIR_STORE

check "make install" installed
if [ ! -e "$PKG_CONFIG_PATH/weir.pc" ]; then
    echo "Bail out! Nothing was installed"
    exit 1
fi
check "library, headers and pkg-config file are there" \
    ls "$usr/lib/libweir.so" "$usr/lib/libweir.so.0" "$usr/lib/libweir.a" \
       "$usr/lib/pkgconfig/weir.pc" "$usr/lib/cmake/weir/weirConfig.cmake" "$usr/include/weir/weir.h" "$usr/include/weir/weir.hpp"
check "headers are all installed" diff -r "$root/include/weir" "$usr/include/weir"
check "man page and completion are there" \
    ls "$usr/share/man/man1/weir.1" "$usr/share/man/man1/weir-list.1" \
       "$usr/share/bash-completion/completions/weir" "$usr/share/zsh/site-functions/_weir" \
       "$usr/share/fish/vendor_completions.d/weir.fish"
check "the service is there, with the program of this place" \
    grep -qx "ExecStart=$prefix/bin/weir serve" "$usr/lib/systemd/system/weir.service"
check "no path of the build is in the pkg-config file" \
    sh -c "! grep -F -e '$tmp' -e '$root' '$usr/lib/pkgconfig/weir.pc'"
check "the pkg-config file does not require libcurl, which is loaded at run time" \
    sh -c "! grep -F curl '$usr/lib/pkgconfig/weir.pc'"
check "pkg-config knows the version" \
    sh -c "[ \"\$(pkg-config --modversion weir)\" = \
             \"\$(sed -n 's/#define WEIR_VERSION \"\(.*\)\"/\1/p' '$root/include/weir/weir.h')\" ]"

# shellcheck disable=SC2046
check "hello.c builds with the shared library" \
    cc -o "$tmp/hello-shared" "$root/examples/hello.c" $(flags --cflags --libs)
check "and runs" says_hello env LD_LIBRARY_PATH="$usr/lib" "$tmp/hello-shared"
# Of weir alone; libcurl is loaded at run time.
# shellcheck disable=SC2046
check "hello.c builds with the static library" \
    cc -o "$tmp/hello-static" "$root/examples/hello.c" $(flags --cflags) "$usr/lib/libweir.a" \
        $(pkg-config --libs sqlite3 jansson hiredis openssl) -lpthread
check "and runs" says_hello "$tmp/hello-static"

cat >"$tmp/hello.cc" <<'CXX'
#include <cstdio>
#include <weir/weir.h>
int main()
{
    weir_error err;
    weir_queue *q;
    weir_spec spec = weir_spec();
    weir_added added;
    spec.type = "mail";
    if (weir_open(&q, "mem:", NULL, &err) || weir_add(q, &spec, &added, &err))
        return weir_complain(&err);
    std::printf("%s\n", weir_state_name(added.state));
    weir_close(q);
}
CXX
# shellcheck disable=SC2046
check "a C++ program builds" c++ -o "$tmp/hello-cxx" "$tmp/hello.cc" $(flags --cflags --libs)
check "and runs" in_tmp env LD_LIBRARY_PATH="$usr/lib" "$tmp/hello-cxx"
for cxx in g++ clang++; do
    # shellcheck disable=SC2046
    check "hello.cpp builds with $cxx" \
        "$cxx" -std=c++17 -o "$tmp/hello-$cxx" "$root/examples/hello.cpp" $(flags --cflags --libs)
    check "and runs" says_hello env LD_LIBRARY_PATH="$usr/lib" "$tmp/hello-$cxx"
    for way in -DWAY=1 -DWEIR_NO_EXCEPTIONS -fno-exceptions; do
        # shellcheck disable=SC2046
        check "the tests of the C++ wrapper build with $cxx $way" \
            "$cxx" -std=c++17 -g "$way" -fsanitize=address,undefined -o "$tmp/test-cpp" \
                "$root/test/cpp/test_cpp.cpp" $(flags --cflags --libs) -lpthread
        check "and pass" env LD_LIBRARY_PATH="$usr/lib" UBSAN_OPTIONS=halt_on_error=1 "$tmp/test-cpp"
    done
done
# built_by_cmake NAME VERSION OPTIONS...: hello.c and hello.cpp with find_package().
built_by_cmake() {
    dir=$tmp/cmake-$1
    mkdir -p "$dir" || return 1
    cat >"$dir/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.13)
project(hello C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(weir $2 REQUIRED)
add_executable(hello-c $root/examples/hello.c)
add_executable(hello-cpp $root/examples/hello.cpp)
target_link_libraries(hello-c weir::weir)
target_link_libraries(hello-cpp weir::weir)
CMAKE
    shift 2
    cmake -S "$dir" -B "$dir/build" "-DCMAKE_PREFIX_PATH=$usr" "$@" && cmake --build "$dir/build"
}
runs_both() { says_hello "$tmp/cmake-$1/build/hello-c" && rm -rf "$tmp/run.$n" && says_hello "$tmp/cmake-$1/build/hello-cpp"; }
needs_no_weir() { ! readelf -d "$1" | grep -q 'NEEDED.*libweir'; }
version=$(pkg-config --modversion weir)
check "find_package(weir) builds with the shared library" built_by_cmake shared "$version"
check "and runs" runs_both shared
check "and with the static one" built_by_cmake static "${version%.*}" -Dweir_USE_STATIC_LIBS=ON
check "and runs" runs_both static
check "without the shared one" needs_no_weir "$tmp/cmake-static/build/hello-cpp"
refuses_version() { ! built_by_cmake "refused-$1" "$1" && grep -q 'requested version' "$tmp/out"; }
check "a later version is refused" refuses_version 9.0
check "an earlier series is refused" refuses_version 0.1
check "the program runs" "$usr/bin/weir" version
check "the program adds" in_tmp "$usr/bin/weir" --store sqlite:x.db add mail '{"to":"ann"}'
check "the completion is valid bash" bash -n "$usr/share/bash-completion/completions/weir"

echo "1..$n"
