/* Header values that have their own readers: Accept-Encoding, Cookie, If-None-Match; and the path of a static file,
 * which is the first line. No path leads out of the folder. */
#include "base/limits.h"
#include "http/files.h"
#include "http/gzip.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_inside(const char *folder, int fd)
{
    char link[32], path[4096] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    assert(readlink(link, path, sizeof(path) - 1) > 0);
    assert(strncmp(path, folder, strlen(folder)) == 0);
}

static void read_file_request(struct arena *a, const char *path, const char *tags)
{
    static const struct http_embedded_file table[] = { { "a.js", { "a", 1 } }, { "a.js.gz", { "b", 1 } }, { NULL } };
    struct http_files sets[] = { { .embedded = table }, { .folder = realpath(".", NULL), .is_app = true } };
    struct http_header headers[] = { { "if-none-match", tags }, { "accept-encoding", tags } };

    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        struct http_exchange x = { .arena = a, .request = { .headers = headers, .n_headers = ARRAY_SIZE(headers) } };
        struct http_file file;

        buf_init(&x.response.body, LIMIT_REPLY);
        if (http_files_find(&sets[i], &x, path, &file, NULL) == 0) {
            if (file.fd >= 0)
                assert_inside(sets[i].folder, file.fd);
            assert(http_file_answer(&file, &x, NULL) >= 0);
            http_file_clear(&file);
        }
        buf_clear(&x.response.body);
    }
    free((char *)(uintptr_t)sets[1].folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *value = arena_slicedup(a, (struct slice){ (const char *)data, size });
    struct http_header header = { "cookie", value };
    struct http_request request = { .headers = &header, .n_headers = 1 };
    const char *cookie = http_cookie(a, &request, "sid");

    assert(!cookie || (strstr(value, "sid=") && !strchr(cookie, ';')));
    assert(!http_accepts_gzip(value) || strpbrk(value, "gG*"));
    if (strchr(value, '\n')) {
        size_t n = strcspn(value, "\n");

        read_file_request(a, arena_strndup(a, value, n), value + n + 1);
    }
    return 0;
}
