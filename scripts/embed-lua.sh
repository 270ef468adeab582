#!/bin/sh
# embed-lua.sh NAME OUT FILE... - write a C header that defines NAME as the text of these Lua files
# in this order, without comment lines and indentation (Redis compiles it at every start).
set -eu
name=$1 out=$2
shift 2
{
    printf '/* Made from Lua files by scripts/embed-lua.sh. */\n#define %s \\\n' "$name"
    sed -e 's/^[[:space:]]*//' -e '/^--/d' -e '/^$/d' \
        -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n" \\/' "$@"
    echo '    ""'
} >"$out"
