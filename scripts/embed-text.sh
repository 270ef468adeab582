#!/bin/sh
# embed-text.sh NAME OUT FILE - write a C header that defines NAME as the text of the file, without
# indentation and empty lines.
set -eu
{
    printf '/* Made by scripts/embed-text.sh. */\n#define %s \\\n' "$1"
    sed -e 's/^ *//' -e '/^$/d' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n" \\/' "$3"
    echo '    ""'
} >"$2"
