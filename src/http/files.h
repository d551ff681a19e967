/* Static files as answers, from a folder or from a table in the program (RFC 9110: ETag, Last-Modified, conditional
 * requests; a Range is ignored, as section 14.2 allows).
 *
 * A path below the set is segments of a decoded path; empty segments and segments that start with a dot name nothing.
 * In a folder, only regular files reached without a symbolic link are found. A sibling PATH.gz, if it is not older, is
 * sent in place of PATH to clients that accept gzip. Workers only, except for the stream's own steps.
 *
 *     r = http_files_find(&set, x, path, &file, e);
 *     r = r < 0 ? r : http_file_answer(&file, x, e);
 *     if (r > 0)
 *         http_file_stream(&file, stream, is_head, loop, pool);
 *     http_file_clear(&file);
 */
#pragma once

#include "http/reply.h"

struct loop;
struct pool;

struct http_embedded_file {
    const char *name; /* NULL ends a table */
    struct slice bytes;
};

struct http_files {
    const struct http_embedded_file *embedded; /* NULL: the folder's files */
    const char *folder;
    bool is_app; /* a single-page app: paths without a file give index.html, except those that end in NAME.EXTENSION */
    const char *immutable; /* files whose path starts with this text never change, e.g. "assets/"; NULL: none */
};

struct http_file {
    const char *type;                        /* literal */
    char etag[40], modified[HTTP_DATE_SIZE]; /* modified: "" when not known */
    bool is_gzip, is_immutable;
    size_t n;
    struct slice bytes; /* of an embedded file; borrowed */
    int fd;             /* owned; -1: an embedded file */
};

/* -ENOENT NOT_FOUND, -E2BIG TOO_LARGE above LIMIT_FILE_BYTES. */
int http_files_find(const struct http_files *set, const struct http_exchange *x, const char *path,
                    struct http_file *ret, struct err *e) MUST_CHECK;
void http_file_clear(struct http_file *f);
/* Sets type and headers, and adds the body; or the status 304 when the client has this file. 1: the file is above
 * LIMIT_FILE_WHOLE_BYTES and its body must follow by http_file_stream(). -EIO when the file became shorter. */
int http_file_answer(const struct http_file *f, struct http_exchange *x, struct err *e) MUST_CHECK;
/* Takes file and stream. Sends in chunks: a job of the pool reads each, the loop pushes it once the client has taken
 * the one before, so no thread waits for the client. is_head: ends the stream without reading. */
void http_file_stream(struct http_file *f, struct http_stream *stream, bool is_head, struct loop *loop,
                      struct pool *pool);
