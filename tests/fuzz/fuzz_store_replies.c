/* Answers of a Qdrant or Chroma through whole operations: the first line says which store and operation (qq, cl, ...), each further line is one answer,
 * perhaps after its status ("404 {...}"); then nobody answers any more. */
#include "fuzz_stores.h"

#include "base/hash.h"
#include "net/http_client.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *at, *end;

static struct slice next_line(void)
{
    const char *from = at, *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

    at = newline ? newline + 1 : end;
    return (struct slice){ from, (size_t)((newline ? newline : end) - from) };
}

/* In the place of net/http_call.c. */
int http_call(const struct http_ask *ask, struct arena *a, const atomic_bool *is_gone, struct http_answer *ret, struct err *e)
{
    struct slice line;

    if (at >= end)
        return err_set(e, -ECONNREFUSED, "CONNECT_FAILED", "nobody is there");
    line = next_line();
    *ret = (struct http_answer){ .status = 200 };
    if (line.n > 4 && line.p[3] == ' ' && line.p[0] >= '2' && line.p[0] <= '5') {
        ret->status = (int)strtol(line.p, NULL, 10);
        line = (struct slice){ line.p + 4, line.n - 4 };
    }
    if (line.n > ask->max_reply)
        return err_set(e, -EMSGSIZE, "UPSTREAM_TOO_LARGE", "too much");
    ret->body = (struct slice){ arena_slicedup(a, line), line.n };
    return 0;
}

static struct vectors *open_store(const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value config = { 0 };
    struct vectors *v = NULL;
    int r = json_parse(a, SLICE_LIT("{\"url\":\"http://127.0.0.1:1\"}"), &config, NULL);

    if (r == 0)
        r = vectors_provider_find(name)->open("f", config, NULL, &v, NULL);
    assert(r == 0);
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct vectors *qdrant, *chroma;
    struct slice first;
    int r = qdrant ? 0 : hash_init(NULL);

    assert(r == 0);
    qdrant = qdrant ? qdrant : open_store("qdrant");
    chroma = chroma ? chroma : open_store("chroma");
    at = (const char *)bytes;
    end = at + n;
    first = next_line();
    if (first.n == 2)
        try_store(first.p[0] == 'c' ? chroma : qdrant, first.p[1]);
    return 0;
}
