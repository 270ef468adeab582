#!/bin/sh
# make-deb.sh DIR [--source] - Debian packages of the last commit in DIR: the source package from the
# release tarball and dist/debian, then the binary packages, unless --source.
set -eu
out=$(realpath -m "${1:?usage: make-deb.sh DIR [--source]}")
only_source=${2:-}
cd "$(dirname "$0")/.."
version=$(scripts/version.sh)
rm -rf "$out"
tarball=$(scripts/make-dist.sh "$out")
cd "$out"
mv "$tarball" "weir_$version.orig.tar.xz"
rm "$tarball.sha256"
tar -xf "weir_$version.orig.tar.xz"
cd "weir-$version"
cp -r dist/debian debian
dpkg-source --build . >/dev/null
if [ -z "$only_source" ]; then
    dpkg-buildpackage -us -uc -b >"../build.log" 2>&1 || { tail -n 30 ../build.log >&2; exit 1; }
fi
ls "$out"/*.dsc
[ -n "$only_source" ] || ls "$out"/*.deb
