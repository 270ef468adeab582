#!/bin/sh
# soak.sh BUILDDIR - the long form of the kill -9 test: SOAK_KILLS kills over SOAK_JOBS jobs.
set -eu
echo "soak: not wired" >&2
exit 1
