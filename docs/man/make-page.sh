#!/bin/sh
# make-page.sh PROGRAM OUTPUT DIR PAGE - write a manual page: what the program knows of itself, with
# DIR/PAGE.mdoc (and DIR/PAGE.intro.mdoc) in the places that it leaves.
set -eu
program=$1 output=$2 dir=$3 page=$4
name=${page#weir}
"$program" help --man ${name:+"${name#-}"} >"$output.tmp"
for mark in MORE INTRODUCTION; do
    part=$dir/$page.mdoc
    [ "$mark" = MORE ] || part=$dir/$page.intro.mdoc
    if [ -e "$part" ]; then
        sed -i -e "/^\\.\\\\\" $mark\$/{r $part" -e 'd}' "$output.tmp"
    fi
done
mv "$output.tmp" "$output"
