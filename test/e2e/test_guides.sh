# test_guides.sh - the examples of docs/guides work as they stand there, one after the other.
. "$(dirname "$0")/lib.sh"

build=$(realpath "$(dirname "$WEIR")/../..")

# What a reader has who installed weir: the program, the library, both clients.
installed() {
    local flags=
    mkdir -p bin node_modules
    ln -s "$WEIR" bin/weir
    ln -s "$source_root/clients/js" node_modules/weir
    if nm -D "$build/src/libweir.so" | grep -q __asan_init; then
        flags="-fsanitize=address,undefined"
    elif nm -D "$build/src/libweir.so" | grep -q __tsan_init; then
        flags="-fsanitize=thread"
    fi
    printf '#!/bin/sh\nexec %s %s "$@"\n' "$(command -v cc)" "$flags" >bin/cc
    chmod +x bin/cc
    export PATH=$PWD/bin:$PATH LD_LIBRARY_PATH=$build/src PYTHONPATH=$source_root/clients/python
    export PKG_CONFIG_PATH=$build/meson-uninstalled PYTHONDONTWRITEBYTECODE=1
    unset -f weir
}

guide() {
    python3 "$here/guide_blocks.py" "$source_root/docs/guides/$1.md"
    [ -s script ] || return 0
    installed
    timeout 120 bash -eux script </dev/null
}

for path in "$source_root"/docs/guides/*.md; do
    name=$(basename "$path" .md)
    eval "case_${name//-/_}() { guide $name; }"
done

run_cases
