#!/bin/sh
# embed-lua.sh NAME OUT FILE... - write a C header that defines NAME as the text of these Lua files
# in this order, without comment lines and indentation (Redis compiles it at every start).
#
# Files called constants.lua, or something.constants.lua, are not in that text. Their lines are
# `local A, B = 1, 2`, and wherever the files behind them say A, the text says 1: a script makes its
# locals and functions anew at every call, and each local that a function uses makes that slower.
# No name may be there twice.
#
# luac5.1 compiles the text: an error of syntax, a 201st local, a 61st upvalue of a function and a
# misspelt name (a global that Redis does not have) stop the build, not the first call.
set -eu
name=$1 out=$2
shift 2
{
    printf '/* Made from Lua files by scripts/embed-lua.sh. */\n#define %s \\\n' "$name"
    awk '
        FNR == 1 { constants = FILENAME ~ /(^|[.\/])constants\.lua$/ }
        { sub(/^[ \t]+/, "") }
        /^--/ || /^$/ { next }
        constants {
            n = split(substr($0, 7), side, " = ")
            if (n != 2 || split(side[1], names, ", ") != split(side[2], values, ", ")) {
                print FILENAME ":" FNR ": not a line of constants: " $0 >"/dev/stderr"
                exit 1
            }
            for (i in names) {
                if (names[i] in value) {
                    print FILENAME ":" FNR ": a second " names[i] >"/dev/stderr"
                    exit 1
                }
                value[names[i]] = values[i] ~ /^-/ ? "(" values[i] ")" : values[i]
            }
            next
        }
        {
            line = ""
            while (match($0, /\047[^\047]*\047|[A-Za-z_][A-Za-z0-9_]*/)) {
                word = substr($0, RSTART, RLENGTH)
                line = line substr($0, 1, RSTART - 1) (word in value ? value[word] : word)
                $0 = substr($0, RSTART + RLENGTH)
            }
            print line $0
        }' "$@" >"$out.text"
    luac5.1 -p "$out.text"
    unknown=$(luac5.1 -l -p "$out.text" | sed -n 's/.*[GS]ETGLOBAL.*; //p' | sort -u | grep -vxE \
        'NAME|VERTX|_G|cjson|cmsgpack|ipairs|math|next|pairs|pcall|redis|string|struct|table|tonumber|tostring|type|unpack' || :)
    if [ -n "$unknown" ]; then
        echo "$out: unknown names:" $unknown >&2
        exit 1
    fi
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n" \\/' "$out.text"
    echo '    ""'
} >"$out"
rm -f "$out.text"
