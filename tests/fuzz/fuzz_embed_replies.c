/* An answer of an embedding provider, read like an answer of each service of the table, for one to four texts. */
#include "base/limits.h"
#include "embed/embed.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void read_as(const struct embed_protocol *protocol, struct json_value root, size_t n_texts)
{
    static const struct slice texts[4];
    static float vector[LIMIT_DIMENSIONS];
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct embed_batch batch = { .texts = texts, .n = n_texts };
    struct embed_reply reply = { 0 };
    struct err e = { 0 };

    if (protocol->read(root, &batch, a, &reply, &e) < 0)
        return;
    assert(reply.n == n_texts);
    for (size_t i = 0; i < reply.n; i++) {
        size_t length = embed_vector_length(reply.vectors[i]);

        if (length <= LIMIT_DIMENSIONS && embed_vector_read(reply.vectors[i], vector, length))
            for (size_t k = 0; k < length; k++)
                assert(vector[k] - vector[k] == 0); /* finite */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value root = { 0 };

    if (json_parse(a, (struct slice){ (const char *)bytes, n }, &root, NULL) < 0)
        return 0;
    for (size_t n_texts = 1; n_texts <= 4; n_texts++) {
        const struct embed_protocol *last = NULL;

        for (const struct embed_service *s = embed_services; s->id; s++) { /* neighbours mostly share a protocol */
            if (s->protocol != last)
                read_as(s->protocol, root, n_texts);
            last = s->protocol;
        }
    }
    return 0;
}
