/* The files of packaging/completion, which the build embeds (base/embed.py): hearth.bash, hearth.zsh,
 * hearth.fish. */
#pragma once

#include "http/files.h"

extern const struct http_embedded_file completion_scripts[];
