/* Writes one line for each event to standard error: level, area, request id, text; as text or as JSON. Any thread.
 *
 * Foreign strings are passed to %s only inside LOG_Q(), which quotes and escapes them. Bodies and secrets are never
 * logged. Example: log_info("tasks", NULL, "claimed %s attempt %d", LOG_Q(id), attempt);
 */
#pragma once

#include "base/util.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_setup(enum log_level level, bool json);
int log_level_parse(const char *name, enum log_level *ret) MUST_CHECK; /* error, warn, info, debug; -EINVAL */
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *area, const char *request_id, const char *fmt, ...) PRINTF_LIKE(4, 5);

#define log_error(area, id, ...) log_write(LOG_ERROR, area, id, __VA_ARGS__)
#define log_warn(area, id, ...) log_write(LOG_WARN, area, id, __VA_ARGS__)
#define log_info(area, id, ...) log_write(LOG_INFO, area, id, __VA_ARGS__)
#define log_debug(area, id, ...) log_write(LOG_DEBUG, area, id, __VA_ARGS__)

/* Quoted, escaped, cut at 200 bytes; the result lives in a thread-local ring of 8, so use it only as an argument of a
 * log call. */
const char *log_quote(const char *s);
#define LOG_Q(s) log_quote(s)
