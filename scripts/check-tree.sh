#!/bin/sh
# check-tree.sh SOURCE SHARED-LIBRARY STATIC-LIBRARY - rules of the tree that no compiler checks.
# Writes TAP.
set -u
root=$1
shared=$(realpath "$2")
static=$(realpath "$3")
cd "$root" || exit 1
cc=${CC:-cc}
cxx=${CXX:-c++}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# check WHAT: the case passes when nothing came on standard input; else that is why it failed.
check() {
    echo >>"$tmp/cases"     # a pipe's last command may be a subshell: no variable would last
    n=$(wc -l <"$tmp/cases")
    why=$(cat)
    if [ -z "$why" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo >>"$tmp/failed"
        echo "$why" | head -n 40 | sed 's/^/# /'
    fi
}

c_files() {
    find include src test bench examples \( -name '*.[ch]' -o -name '*.[ch]pp' \) | sort
}

# Columns, not bytes: a UTF-8 continuation byte takes no column.
c_files | while read -r file; do
    LC_ALL=C sed 's/[\x80-\xBF]//g' "$file" | LC_ALL=C awk -v file="$file" \
        'length($0) > 100 { print file ":" NR ": " length($0) " columns" }'
done | check "no line of C is longer than 100 columns"

c_files | while read -r file; do
    grep -Hn "$(printf '\t')" "$file" | cut -c 1-80
done | check "no tabs in C files"

c_files | while read -r file; do
    grep -HnE ' +$' "$file" | cut -c 1-80
    [ -z "$(tail -c 1 "$file")" ] || echo "$file: no newline at the end"
done | check "no blanks at ends of lines"

# A header compiles alone. The macro of an empty translation unit would be a pedantic warning.
for header in $(find include src -name '*.h' | sort); do
    printf '#include "%s"\ntypedef int weir_not_empty;\n' "$root/$header" >"$tmp/alone.c"
    $cc -std=gnu11 -D_GNU_SOURCE -Iinclude -Isrc -Wall -Wextra -Werror -fsyntax-only \
        "$tmp/alone.c" 2>&1 | head -n 5
done | check "every header compiles alone"

for header in include/weir/*.h; do
    printf '#include <weir/%s>\n' "$(basename "$header")" >"$tmp/alone.cc"
    $cxx -std=c++11 -Iinclude -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$tmp/alone.cc" 2>&1 |
        head -n 5
    printf '#include <weir/%s>\n' "$(basename "$header")" >"$tmp/plain.c"
    $cc -std=c11 -Iinclude -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$tmp/plain.c" 2>&1 |
        head -n 5
done | check "every public header compiles alone as plain C11 and as C++11"

# The wrapper, with exceptions, with results, and where exceptions are off, by each compiler.
alone() {   # alone HEADER COMPILER OPTION
    printf '#include <weir/%s>\n' "$1" >"$tmp/alone.cc"
    "$2" -std=c++17 "$3" -Iinclude -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
        -Wno-sign-conversion -Werror -fsyntax-only "$tmp/alone.cc" 2>&1 | head -n 5
}
{
    for way in -DWAY=1 -DWEIR_NO_EXCEPTIONS -fno-exceptions; do
        alone weir.hpp g++ "$way"
        alone weir.hpp clang++ "$way"
    done
    for header in include/weir/cpp/*.hpp; do
        alone "cpp/${header##*/}" g++ -DWAY=1
    done
} | check "the C++ wrapper compiles in every way with g++ and clang++, its headers alone"

# Public headers include nothing but each other and the standard library.
grep -rHn '#include "' include/weir | grep -v '"weir/' |
    check "public headers include no private header"

# Layers: base knows nothing of jobs, core nothing of stores, stores nothing of the runtime, the
# program public headers and some of the server alone.
scripts/check-includes.py 2>&1 | check "dependencies point one way, through all headers"

# A public struct can grow: it has reserved members, or is one of these, which weir allocates one by
# one, or which are values that stay as they are.
fixed=' weir_backoff weir_cursor weir_error weir_header weir_keep weir_reply
weir_bus_addresses weir_error_groups weir_event weir_explanation weir_job weir_lines weir_page
weir_report weir_retry_tasks weir_schedules weir_stats weir_story weir_task weir_task_page '
awk '/^typedef struct weir_[a-z_]* \{/ { name = $3; grows = 0 }
     /reserved\[WEIR_RESERVED/ { grows = 1 }
     name && $0 == "} " name ";" { if (!grows) print name; name = "" }' include/weir/*.h |
while read -r name; do
    echo $fixed | grep -qw "$name" || echo "$name has no reserved members"
done | check "every struct that callers allocate, or that is in an array, has reserved members"

# The size of a public struct that can grow is asserted.
awk '/^typedef struct weir_[a-z_]* \{/ { name = $3 }
     /void +\*reserved\[WEIR_RESERVED/ { print name }' include/weir/*.h | while read -r name; do
    grep -q "X($name, " src/runtime/abi.c || echo "src/runtime/abi.c has no line of $name"
done | check "every struct with reserved members has its size in abi.c"

# The library does not know the commands of the program: it says what helps, not what to type.
grep -rn '`weir ' src --include='*.[ch]' | grep -v -e '^src/cli/' -e '^src/server/' |
    check "no text of the library names a command of the program"

# Retired words: scripts/retired-words.txt says what to write instead. Of the changelog the part
# that is not released counts; its tables name what was renamed.
mkdir "$tmp/unreleased"
awk '/^## / { on = /Unreleased/ } { print on && !/^\|/ ? $0 : "" }' CHANGELOG.md \
    >"$tmp/unreleased/CHANGELOG.md"
grep -v '^#' scripts/retired-words.txt | while IFS='|' read -r line; do
    paths=${line##*|}
    rest=${line%|*}
    instead=${rest##*|}
    word=${rest%|*}
    grep -rnowiP "(?:$word)" src include docs examples clients bench test ui/src scripts README.md \
        CONTRIBUTING.md "$tmp/unreleased" --include='*.mdoc' --include='*.json' --include='*.sh' \
        --include='*.[ch]' --include='*.[ch]pp' --include='*.lua' --include='*.md' --include='*.py' \
        --include='*.js' --include='*.ts' --include='*.tsx' --exclude-dir=node_modules |
        while IFS= read -r hit; do
            hit=${hit#"$tmp/unreleased/"}
            for path in $paths; do
                echo "$hit" | grep -qE "^$path" && continue 2
            done
            echo "$hit: write $instead"
        done
done | check "no retired word is back"

# One file reads the clocks; the program, which does not see it, has its own.
grep -rnE '(clock_gettime|gettimeofday)\([^)]' src --include='*.[ch]' |
    grep -vE '^src/(base|cli)/clock\.c:' |
    check "clocks are read by base/clock.c and cli/clock.c alone"

# A function fits a screen: at most 60 lines between its braces, or between its first line and end.
{
    find src -name '*.c' | sort | xargs awk '
        /^[a-z]/ { name = $0 }
        /^\{$/   { start = FNR }
        /^\}/    { if (start && FNR - start > 61) print FILENAME ":" start ": " name
                   start = 0 }'
    find src -name '*.lua' | sort | xargs awk '
        /^(local )?function / { name = $0; start = FNR }
        /^end/                { if (start && FNR - start > 61) print FILENAME ":" start ": " name
                                start = 0 }'
} | check "no function of src is longer than 60 lines"

# meson.build says which version this is.
version=$(scripts/version.sh)
number=$(echo "$version" | awk -F. '{ printf "0x%02x%02x%02x", $1, $2, $3 }')
for place in "include/weir/weir.h:#define WEIR_VERSION \"$version\"" \
    "include/weir/weir.h:#define WEIR_VERSION_NUMBER $number" \
    "clients/js/package.json:\"version\": \"$version\"" \
    "dist/debian/changelog:weir ($version-1) " \
    "dist/homebrew/weir.rb:/weir-$version.tar.xz\"" \
    "dist/rpm/weir.spec:Version:        $version" \
    "clients/python/weir/protocol.py:__version__ = \"$version\""; do
    grep -qF "${place#*:}" "${place%%:*}" || echo "${place%%:*} lacks: ${place#*:}"
done | check "every version is that of meson.build"

# Names of the sanitizers' own, and that of tracepoints, apart.
names() { nm "$@" 2>/dev/null | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' |
              grep -v -e '^__.*[au]san' -e '^_\.stapsdt\.base$' |
              sort -u; }
names -D --defined-only "$shared" >"$tmp/versioned"
sed 's/@.*//' "$tmp/versioned" | grep -vx WEIR_0 >"$tmp/exported"
names -g --defined-only "$static" >"$tmp/defined"
sed -n 's/^WEIR_API .*[ *]\(weir_[a-z_]*\)(.*/\1/p' include/weir/*.h | sort -u >"$tmp/declared"

grep -v '^weir_[a-z]' "$tmp/exported" | check "the shared library exports only weir_ names"
grep -vx -e '.*@@WEIR_0' -e WEIR_0 "$tmp/versioned" | check "every exported name has the version WEIR_0"
comm -23 "$tmp/declared" "$tmp/exported" | check "everything that is declared is exported"
comm -13 "$tmp/declared" "$tmp/exported" | check "everything that is exported is declared"
grep -v '^weir_' "$tmp/defined" | check "the static library defines only weir_ names"

# Every source is listed in a meson.build (nothing lies about unbuilt).
for file in $(find src bench examples test \( -name '*.c' -o -name '*.cpp' \) ! -path 'test/toy/*' | sort); do
    dir=$(dirname "$file")
    listed=
    while [ "$dir" != . ]; do
        if [ -e "$dir/meson.build" ]; then
            grep -qF "${file#"$dir"/}" "$dir/meson.build" && listed=1
            stem=$(basename "${file#"$dir"/}" .c)
            grep -qE "'$stem'" "$dir/meson.build" && listed=1
        fi
        dir=$(dirname "$dir")
    done
    [ -n "$listed" ] || echo "$file"
done | check "every source file is built"

# Blocks of code in the documents: C compiles, the other languages are well-formed.
scripts/check-blocks.py "$cc" 2>&1 | check "every block of code in the documents compiles"
awk '/^```cpp$/ { on = 1; next } /^```$/ { exit } on' docs/cpp.md >"$tmp/doc.cpp"
diff "$tmp/doc.cpp" examples/hello.cpp | check "docs/cpp.md shows examples/hello.cpp"
awk 'BEGIN { print "#include <weir/weir.hpp>"; print "using namespace std::chrono_literals;" }
    /^```cpp$/ { if (n++) { print "void part" n "(weir::Queue &queue) {"; on = 1 } next }
    /^```$/ { if (on) print "(void)queue; }"; on = 0; next } on' docs/cpp.md >"$tmp/parts.cpp"
$cxx -std=c++17 -Iinclude -Wall -Wextra -Werror -fsyntax-only "$tmp/parts.cpp" 2>&1 | head -n 20 |
    check "the other examples of docs/cpp.md compile"

# The tests run the examples of clients/README.md: those of the README must be among them.
for language in python js; do
    awk -v open="\`\`\`$language" '$0 == open { on = 1; next } /^```$/ { on = 0 } on' README.md \
        >"$tmp/readme.$language"
    python3 -c 'import sys; part, whole = (open(name).read() for name in sys.argv[1:])
part.strip() and part in whole or print(sys.argv[1], "is not an example of", sys.argv[2])' \
        "$tmp/readme.$language" clients/README.md
done | check "the README shows examples of the clients that are run"

scripts/api-reference.py --check 2>&1 | check "docs/reference.md is what the headers say"

# Links in the docs lead somewhere.
for doc in *.md docs/*.md; do
    grep -oE '\]\([^)#:]+(#[^)]*)?\)' "$doc" | sed 's/^](//; s/[#)].*//' | while read -r link; do
        [ -e "$(dirname "$doc")/$link" ] || echo "$doc: $link"
    done
done | check "links in the docs lead somewhere"

# Words of one table are explained in the docs.
for word in $(sed -n 's/^ *X(\([A-Z]*\), *[0-9].*/WEIR_\1/p' include/weir/error.h); do
    grep -q "$word" docs/api.md || echo "docs/api.md does not explain $word"
done | check "the API guide explains every code"
for word in $(sed -n 's/^ *X([A-Z_]*, *"\([a-z_]*\)").*/\1/p' include/weir/event.h); do
    grep -q "\`$word\`" docs/concepts.md || echo "docs/concepts.md does not explain $word"
done | check "the concepts explain every event"

for word in $(sed -n 's/^ *R(X, [A-Z]*, *[a-z_]*, *[A-Z]*, *"\([A-Za-z_]*\)".*/\1/p' \
    src/core/job_fields.h | sort -u); do
    grep -q "\"$word\":" src/server/api/schemas.json || echo "src/server/api/schemas.json lacks $word"
    grep -q "\b$word\b" docs/http.md || echo "docs/http.md does not explain $word"
done | check "every field of a job is in the schemas and the HTTP guide"

# Tests that test/features.md names in the last cell of a row: "`FILE`: `CASE`, `CASE`; `FILE`: ...". The
# cases of scripts have a sentence as their name.
sed -n 's/^| .* | \(.*\) |$/\1/p' test/features.md | grep -oE '`[^`]*`' | tr -d '`' |
    while read -r word; do
        case $word in
        test/*) file=$word; [ -e "$file" ] || echo "test/features.md: no file $file" ;;
        *\ *) grep -qF "$word" "${file:-/dev/null}" || echo "test/features.md: $file has no '$word'" ;;
        *) grep -qw "$word" "${file:-/dev/null}" || echo "test/features.md: $file has no $word" ;;
        esac
    done | check "the tests that test/features.md names are there"
# Each row names one, at least.
grep '^| F[0-9]' test/features.md | grep -vE '\| [^|]*`test/[^|]*\|$' |
    check "every row of test/features.md names a test"

echo "1..$(wc -l <"$tmp/cases")"
[ ! -e "$tmp/failed" ]
