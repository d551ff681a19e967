#!/bin/sh
# Writes the header that names the built hearth-child: child_image.sh PROGRAM HEADER. The checksum in the header makes the build notice a change.
set -eu
printf '#pragma once\n#define CHILD_IMAGE_PATH "%s"\n/* %s */\n' "$(realpath "$1")" "$(sha256sum <"$1" | cut -d' ' -f1)" >"$2"
