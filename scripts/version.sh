#!/bin/sh
# version.sh - the version of weir: meson.build says it. scripts/check-tree.sh compares all others.
exec sed -n "s/^  version: '\([0-9.]*\)',$/\1/p" "$(dirname "$0")/../meson.build"
