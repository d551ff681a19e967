#include "http/files.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/loop.h"
#include "base/pool.h"
#include "http/gzip.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names and types ---- */

static const struct {
    const char *extension, *type;
} types[] = {
    { "html", "text/html; charset=utf-8" },
    { "css", "text/css; charset=utf-8" },
    { "js", "text/javascript; charset=utf-8" },
    { "mjs", "text/javascript; charset=utf-8" },
    { "json", "application/json" },
    { "map", "application/json" },
    { "webmanifest", "application/manifest+json" },
    { "wasm", "application/wasm" },
    { "txt", "text/plain; charset=utf-8" },
    { "md", "text/markdown; charset=utf-8" },
    { "xml", "application/xml" },
    { "pdf", "application/pdf" },
    { "gz", "application/gzip" },
    { "svg", "image/svg+xml" },
    { "png", "image/png" },
    { "jpg", "image/jpeg" },
    { "jpeg", "image/jpeg" },
    { "gif", "image/gif" },
    { "webp", "image/webp" },
    { "avif", "image/avif" },
    { "ico", "image/x-icon" },
    { "woff", "font/woff" },
    { "woff2", "font/woff2" },
    { "ttf", "font/ttf" },
    { "otf", "font/otf" },
    { "mp3", "audio/mpeg" },
    { "ogg", "audio/ogg" },
    { "wav", "audio/wav" },
    { "mp4", "video/mp4" },
    { "webm", "video/webm" },
};

static const char *last_segment(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static const char *type_of(const char *path)
{
    const char *dot = strrchr(last_segment(path), '.');

    for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
        if (strcasecmp(types[i].extension, dot + 1) == 0)
            return types[i].type;
    return "application/octet-stream";
}

static int not_found(struct err *e)
{
    return err_set(e, -ENOENT, "NOT_FOUND", "Not Found");
}

/* ---- in the program ---- */

static const struct http_embedded_file *embedded_named(const struct http_embedded_file *table, const char *name)
{
    while (table->name && strcmp(table->name, name) != 0)
        table++;
    return table->name ? table : NULL;
}

static int find_embedded(const struct http_files *set, const struct http_exchange *x, const char *path,
                         struct http_file *ret)
{
    const struct http_embedded_file *f = embedded_named(set->embedded, path), *packed = NULL;
    char digits[HASH_HEX_SIZE];

    if (!f)
        return -ENOENT;
    if (http_accepts_gzip(http_header(&x->request, "accept-encoding")))
        packed = embedded_named(set->embedded, arena_printf(x->arena, "%s.gz", path));
    ret->is_gzip = packed != NULL;
    ret->bytes = packed ? packed->bytes : f->bytes;
    ret->n = ret->bytes.n;
    hash_text_hex(ret->bytes, digits);
    snprintf(ret->etag, sizeof(ret->etag), "\"%.32s\"", digits);
    return 0;
}

/* ---- in a folder ---- */

/* Opens a regular file. Its kind is known before it is opened: opening a device may have effects. */
static int open_file(int folder, const char *name, struct stat *ret)
{
    int fd, r;

    if (fstatat(folder, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(ret->st_mode))
        return -ENOENT;
    fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = fstat(fd, ret) < 0 ? -errno : S_ISREG(ret->st_mode) ? 0 : -ENOENT;
    if (r < 0)
        close(fd);
    return r < 0 ? r : fd;
}

static int open_folder(int parent, const char *name)
{
    int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* The length of the segment at the start of path; 0 when it names nothing. */
static size_t segment_bytes(const char *path)
{
    size_t n = strcspn(path, "/");

    return n > NAME_MAX || path[0] == '.' || memchr(path, '\\', n) ? 0 : n;
}

/* Walks from the folder segment by segment, so that no link and no ".." leads out. Returns a file descriptor. */
static int open_below(const char *folder, const char *path, struct stat *ret)
{
    int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), next = at < 0 ? -errno : at;
    char name[NAME_MAX + 1];

    while (next >= 0) {
        size_t n = segment_bytes(path);
        bool is_last = path[n] == '\0';

        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        next = n == 0 ? -ENOENT : is_last ? open_file(at, name, ret) : open_folder(at, name);
        close(at);
        if (is_last)
            break;
        at = next;
        path += n + 1;
    }
    return next;
}

static void describe(struct http_file *f, const struct stat *st)
{
    int64_t ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;

    snprintf(f->etag, sizeof(f->etag), "\"%llx-%llx\"", (unsigned long long)st->st_size, (unsigned long long)ns);
    http_date_write(st->st_mtim.tv_sec, f->modified);
    f->n = (size_t)st->st_size;
}

static bool is_older(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec < b->st_mtim.tv_sec
                                                  : a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

static int find_in_folder(const struct http_files *set, const struct http_exchange *x, const char *path,
                          struct http_file *ret)
{
    struct stat st, st_packed;
    int fd = open_below(set->folder, path, &st), fd_packed = -ENOENT;

    if (fd < 0)
        return fd;
    if (http_accepts_gzip(http_header(&x->request, "accept-encoding")))
        fd_packed = open_below(set->folder, arena_printf(x->arena, "%s.gz", path), &st_packed);
    ret->is_gzip = fd_packed >= 0 && !is_older(&st_packed, &st);
    ret->fd = ret->is_gzip ? fd_packed : fd;
    describe(ret, ret->is_gzip ? &st_packed : &st);
    if (fd_packed >= 0)
        close(ret->is_gzip ? fd : fd_packed);
    return 0;
}

/* ---- finding ---- */

static int find_path(const struct http_files *set, const struct http_exchange *x, const char *path,
                     struct http_file *ret)
{
    *ret = (struct http_file){ .type = type_of(path), .fd = -1 };
    ret->is_immutable = set->immutable && strncmp(path, set->immutable, strlen(set->immutable)) == 0;
    return set->embedded ? find_embedded(set, x, path, ret) : find_in_folder(set, x, path, ret);
}

int http_files_find(const struct http_files *set, const struct http_exchange *x, const char *path,
                    struct http_file *ret, struct err *e)
{
    static const int absences[] = { ENOENT, ENOTDIR, ELOOP, EACCES, ENXIO, ENAMETOOLONG };
    int r = find_path(set, x, path, ret);

    for (size_t i = 0; i < ARRAY_SIZE(absences); i++)
        r = r == -absences[i] ? -ENOENT : r;
    if (r == -ENOENT && set->is_app && !strchr(last_segment(path), '.'))
        r = find_path(set, x, "index.html", ret);
    if (r == -ENOENT)
        return not_found(e);
    if (r < 0)
        return err_errno(e, -r, "cannot open a file that is to be sent");
    if (ret->n <= LIMIT_FILE_BYTES)
        return 0;
    http_file_clear(ret);
    return err_set(e, -E2BIG, "TOO_LARGE", "The file is larger than %d MiB.", LIMIT_FILE_BYTES >> 20);
}

void http_file_clear(struct http_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* ---- the answer ---- */

/* RFC 9110 section 13.1.2: a list of tags, compared weakly, or "*". */
static bool names_tag(const char *list, const char *etag)
{
    size_t n = strlen(etag);

    while (*list) {
        list += strspn(list, " \t,");
        if (strcmp(list, "*") == 0)
            return true;
        list += strncmp(list, "W/", 2) == 0 ? 2 : 0;
        if (strncmp(list, etag, n) == 0 && strchr(" \t,", list[n]))
            return true;
        list += strcspn(list, ",");
    }
    return false;
}

static bool client_has(const struct http_file *f, const struct http_request *in)
{
    const char *tags = http_header(in, "if-none-match"), *since = http_header(in, "if-modified-since");

    if (tags)
        return names_tag(tags, f->etag);
    return since && *f->modified && strcmp(since, f->modified) == 0;
}

static void add_headers(const struct http_file *f, struct http_exchange *x)
{
    http_response_header(x, "etag", f->etag);
    if (*f->modified)
        http_response_header(x, "last-modified", f->modified);
    http_response_header(x, "cache-control", f->is_immutable ? "public, max-age=31536000, immutable" : "no-cache");
    http_response_header(x, "vary", "accept-encoding");
    http_response_header(x, "accept-ranges", "none");
    http_response_header(x, "x-content-type-options", "nosniff");
    if (f->is_gzip)
        http_response_header(x, "content-encoding", "gzip");
}

static int read_part(int fd, char *to, size_t n, struct err *e)
{
    size_t n_read = 0;

    while (n_read < n) {
        ssize_t got = read(fd, to + n_read, n - n_read);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, errno, "cannot read a file that is to be sent");
        if (got == 0)
            return err_set(e, -EIO, "INTERNAL_ERROR", "A file became shorter while it was sent.");
        n_read += (size_t)got;
    }
    return 0;
}

static int read_whole(const struct http_file *f, struct buf *out, struct err *e)
{
    char *to;
    int r;

    if (f->fd < 0) {
        buf_add_slice(out, f->bytes);
        return 0;
    }
    to = buf_reserve(out, f->n);
    if (!to)
        return buf_check(out, e);
    r = read_part(f->fd, to, f->n, e);
    out->n += r < 0 ? 0 : f->n;
    return r;
}

int http_file_answer(const struct http_file *f, struct http_exchange *x, struct err *e)
{
    bool is_held = client_has(f, &x->request), is_large = f->fd >= 0 && f->n > LIMIT_FILE_WHOLE_BYTES;
    int r = is_held || is_large ? 0 : read_whole(f, &x->response.body, e);

    if (r < 0)
        return r;
    add_headers(f, x);
    x->response.content_type = f->type;
    if (is_held)
        x->response.status = 304;
    return is_large && !is_held;
}

/* ---- large files ---- */

struct sender {
    struct http_file file; /* owned */
    struct http_stream *stream;
    struct loop *loop;
    struct pool *pool;
    size_t left;    /* bytes not yet read */
    size_t n_chunk; /* bytes of `chunk`; this, the chunk and `left` are the worker's while it reads */
    bool is_broken;
    bool has_chunk; /* on the loop only: the chunk has been read and not yet pushed */
    char chunk[LIMIT_FILE_CHUNK_BYTES];
};

static void end_sender(struct sender *s, bool is_complete)
{
    http_stream_on_change(s->stream, NULL, NULL);
    s->stream = is_complete ? http_stream_end(s->stream) : http_stream_abort(s->stream);
    http_file_clear(&s->file);
    free(s);
}

static void take_chunk(void *arg);

static void read_chunk(void *arg)
{
    struct sender *s = arg;

    s->n_chunk = MIN(s->left, sizeof(s->chunk));
    s->left -= s->n_chunk;
    s->is_broken = read_part(s->file.fd, s->chunk, s->n_chunk, NULL) < 0;
    loop_post(s->loop, take_chunk, s);
}

static void send_chunk(struct sender *s)
{
    int r = s->is_broken ? -EIO : http_stream_push(s->stream, (struct slice){ s->chunk, s->n_chunk });

    if (r == -EAGAIN)
        return;
    s->has_chunk = false;
    if (r == 0 && s->left == 0)
        end_sender(s, true);
    else if (r < 0 || pool_submit(s->pool, read_chunk, s) < 0)
        end_sender(s, false);
}

static void take_chunk(void *arg)
{
    struct sender *s = arg;

    s->has_chunk = true;
    send_chunk(s);
}

/* A change while a worker reads is seen by the next push. */
static void on_change(struct http_stream *stream, void *arg)
{
    struct sender *s = arg;

    if (s->has_chunk)
        send_chunk(s);
}

void http_file_stream(struct http_file *f, struct http_stream *stream, bool is_head, struct loop *loop,
                      struct pool *pool)
{
    struct sender *s;

    if (is_head) {
        http_stream_end(stream);
        http_file_clear(f);
        return;
    }
    s = xcalloc(1, sizeof(*s));
    s->file = *f;
    f->fd = -1;
    s->stream = stream;
    s->loop = loop;
    s->pool = pool;
    s->left = s->file.n;
    http_stream_on_change(stream, on_change, s);
    read_chunk(s);
}
