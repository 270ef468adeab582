#!/bin/sh
# make-dist.sh DIR - write the release tarball of the last commit, weir-VERSION.tar.xz, and its
# SHA-256 into DIR. The page is in it, built, so that it needs no Node, and weir.cdx.json, which says
# of what weir is made. The same commit gives the
# same bytes: files are sorted, belong to root, and have the time of the commit.
set -eu
out=$(realpath -m "${1:?usage: make-dist.sh DIR}")
cd "$(dirname "$0")/.."
root=$PWD
if ! commit=$(git rev-parse --verify --quiet HEAD); then
    echo "make-dist.sh: this is no git checkout; a tarball is made from a commit" >&2
    exit 1
fi
[ -z "$(git status --porcelain)" ] ||
    echo "make-dist.sh: changes that are not committed stay out of the tarball" >&2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
umask 022
export LC_ALL=C TZ=UTC

git archive --format=tar --prefix=weir/ "$commit" | tar -x -C "$tmp"
version=$("$tmp/weir/scripts/version.sh")
name=weir-$version
mv "$tmp/weir" "$tmp/$name"

# The page, from the sources of the commit. What npm installed here serves if it is what they want.
ui=$tmp/$name/ui
if cmp -s "$ui/package-lock.json" "$root/ui/node_modules/.installed-lock"; then
    ln -s "$root/ui/node_modules" "$ui/node_modules"
fi
"$tmp/$name/scripts/build-ui.sh" "$tmp/ui_assets.c" "$tmp/ui_assets.d" >&2
rm -rf "$ui/node_modules" "$ui/.install-lock"
mkdir "$ui/built"
cp "$tmp/ui_assets.c" "$ui/built/ui_assets.c"

when=$(git log -1 --format=%ct "$commit")
"$tmp/$name/scripts/make-sbom.py" "$version" "${SOURCE_DATE_EPOCH:-$when}" >"$tmp/$name/weir.cdx.json"
mkdir -p "$out"
tar -C "$tmp" --format=gnu --sort=name --mtime="@${SOURCE_DATE_EPOCH:-$when}" --owner=0 --group=0 \
    --numeric-owner --mode=u+rw,go+rX,go-w -cf "$tmp/$name.tar" "$name"
xz -6 -T1 -c "$tmp/$name.tar" >"$out/$name.tar.xz"
cd "$out"
sha256sum "$name.tar.xz" >"$name.tar.xz.sha256"
echo "$out/$name.tar.xz"
