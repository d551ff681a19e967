/* packaging/hearth.service.in, which the build embeds (base/embed.py): one file. Constant. */
#pragma once

#include "http/files.h"

extern const struct http_embedded_file unit_template[]; /* ended by name NULL */
