#!/bin/sh
# soak.sh BUILDDIR - the long form of the kill -9 test: SOAK_KILLS kills over SOAK_JOBS jobs.
set -eu
exec "$1/test/ledger" --kills "${SOAK_KILLS:-200}" --jobs "${SOAK_JOBS:-100000}" \
    --durability "${SOAK_DURABILITY:-os}" --dir "${TMPDIR:-/tmp}"
