/* The files of this folder, which the build embeds (base/embed.py): style and scripts of the service's own pages. */
#pragma once

#include "http/files.h"

extern const struct http_embedded_file api_assets[];
