/* The files of examples/skeletons, which the build embeds (base/embed.py), for `hearth app new`. A name is
 * "<language>/<file>". Constant. */
#pragma once

#include "http/files.h"

extern const struct http_embedded_file cli_skeletons[]; /* ended by name NULL */
