#!/bin/sh
# Writes one object with the functions of libarchive that a C file calls and what these need: archive_part.sh LIBARCHIVE.a FILE.c OUT.o
# Debian's shared libarchive links ICU and libxml2 (40 MB) for formats that Hearth does not read; ARCHITECTURE.md has the figures.
set -eu
library=$1 source=$2 out=$3
names=$(mktemp)
trap 'rm -f "$names"' EXIT
nm -g --defined-only "$library" 2>/dev/null | sed -n 's/^[0-9a-f]* T \(archive_[a-z0-9_]*\)$/\1/p' | sort -u >"$names"
roots=$(grep -o 'archive_[a-z0-9_]*' "$source" | sort -u | comm -12 - "$names" | sed 's/^/-u /')
# The order of $roots is no matter; -e names one of them, because ld drops nothing from a partial link without an entry.
# shellcheck disable=SC2086
ld.bfd -r --gc-sections -e archive_read_new $roots -o "$out" "$library"
strip --strip-unneeded "$out"
