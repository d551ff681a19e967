#!/bin/sh
# Writes one object with Debian's static libxml2: page_html_part.sh LIBXML2.a OUT.o
# The shared library brings ICU with it (10 MB to fetch, 38 MB installed) for encodings that page_text.c has converted already, and liblzma for
# files that are never opened. Their symbols become weak here: nothing that page_html.c calls reaches them (it feeds UTF-8 from memory and
# sets HTML_PARSE_IGNORE_ENC). ARCHITECTURE.md has the figures.
set -eu
library=$1 out=$2
roots='-u htmlParseChunk -u htmlCtxtUseOptions -u htmlFreeParserCtxt -u xmlInitParser'
# shellcheck disable=SC2086
ld.bfd -r -e htmlCreatePushParserCtxt $roots -o "$out" "$library"
strip --strip-unneeded "$out"
weak=$(nm -u "$out" | sed -n 's/^ *U \(\(ucnv\|UCNV\|u\|lzma\)_[A-Za-z0-9_]*\)$/--weaken-symbol=\1/p')
# shellcheck disable=SC2086
[ -z "$weak" ] || objcopy $weak "$out"
