/* Answers of a Qdrant, Chroma, Milvus, Weaviate, Pinecone or Astra DB through whole operations: the first line names
 * the store and the operation (qq, cl, ...), each further line is one answer, perhaps after its status ("404 {...}");
 * after the last line there are no more answers. */
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

/* Replaces net/http_call.c. */
int http_call(const struct http_call_request *request, struct arena *a, const atomic_bool *is_gone,
              struct http_answer *ret, struct err *e)
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
    if (line.n > request->max_reply)
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
    static const struct {
        char letter;
        const char *name;
    } stores[] = { { 'c', "chroma" },   { 'q', "qdrant" },   { 'm', "milvus" },
                   { 'w', "weaviate" }, { 'p', "pinecone" }, { 'a', "astra" } };
    static struct vectors *opened[ARRAY_SIZE(stores)];
    struct slice first;
    int r = opened[0] ? 0 : hash_init(NULL);

    assert(r == 0);
    at = (const char *)bytes;
    end = at + n;
    first = next_line();
    for (size_t i = 0; i < ARRAY_SIZE(stores); i++) {
        opened[i] = opened[i] ? opened[i] : open_store(stores[i].name);
        if (first.n == 2 && first.p[0] == stores[i].letter)
            try_store(opened[i], first.p[1]);
    }
    return 0;
}
