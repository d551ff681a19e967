/* The GGUF file format, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
#include "llm/local/gguf.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HEAD_BYTES = 64 << 10,               /* read from a file; the keys before the tokenizer's keys are a few KiB */
    MOST_VALUE = 1 << 20,                /* a larger value is not a count of layers, heads, ... */
    GUESSED_BYTES_PER_TOKEN = 128 << 10, /* as for a model of 8 billion parameters */
};

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
};

static const unsigned char sizes[] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

/* ---- bytes; a read past the end returns 0 and sets is_over ---- */

struct cursor {
    const char *at, *end;
    bool is_over;
};

static struct slice take(struct cursor *c, uint64_t n)
{
    const char *at = c->at;

    if (n > (uint64_t)(c->end - c->at)) {
        c->is_over = true;
        return (struct slice){ "", 0 };
    }
    c->at += n;
    return (struct slice){ at, n };
}

static uint64_t take_number(struct cursor *c, unsigned n_bytes)
{
    struct slice bytes = take(c, n_bytes);
    uint64_t value = 0;

    for (size_t i = 0; i < bytes.n; i++)
        value |= (uint64_t)(unsigned char)bytes.p[i] << (8 * i);
    return value;
}

static struct slice take_string(struct cursor *c)
{
    return take(c, take_number(c, 8));
}

/* Reads a count; 0 for any other value. */
static int64_t take_scalar(struct cursor *c, uint32_t type)
{
    uint64_t value;

    if (type == GGUF_STRING) {
        take_string(c);
        return 0;
    }
    if (type >= ARRAY_SIZE(sizes) || sizes[type] == 0) {
        c->is_over = true;
        return 0;
    }
    value = take_number(c, sizes[type]);
    return type == GGUF_F32 || type == GGUF_F64 || value > MOST_VALUE * 1024ULL ? 0 : (int64_t)value;
}

/* Reads a count; of an array (one number for each layer) the largest. */
static int64_t take_value(struct cursor *c, uint32_t type)
{
    int64_t largest = 0;
    uint32_t of;

    if (type != GGUF_ARRAY)
        return take_scalar(c, type);
    of = (uint32_t)take_number(c, 4);
    for (uint64_t n = take_number(c, 8); n > 0 && !c->is_over; n--) {
        int64_t value = take_scalar(c, of);

        largest = MAX(largest, value);
    }
    return largest;
}

/* ---- keys ---- */

static const struct {
    const char *key;
    size_t at;
    int64_t max;
} numbers[] = {
    { "context_length", offsetof(struct gguf_info, n_context), MOST_VALUE * 1024LL },
    { "block_count", offsetof(struct gguf_info, n_layers), MOST_VALUE },
    { "embedding_length", offsetof(struct gguf_info, n_embedding), MOST_VALUE },
    { "attention.head_count", offsetof(struct gguf_info, n_heads), MOST_VALUE },
    { "attention.head_count_kv", offsetof(struct gguf_info, n_heads_kv), MOST_VALUE },
    { "attention.key_length", offsetof(struct gguf_info, key_length), MOST_VALUE },
    { "attention.value_length", offsetof(struct gguf_info, value_length), MOST_VALUE },
    { "pooling_type", offsetof(struct gguf_info, pooling), MOST_VALUE },
};

static void set_number(struct gguf_info *info, struct slice key, int64_t value)
{
    size_t n = strlen(info->architecture);

    if (n == 0 || key.n <= n || memcmp(key.p, info->architecture, n) != 0 || key.p[n] != '.')
        return;
    key = (struct slice){ key.p + n + 1, key.n - n - 1 };
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if (slice_eq_str(key, numbers[i].key) && value <= numbers[i].max)
            memcpy((char *)info + numbers[i].at, &value, sizeof(value));
}

static void read_pair(struct cursor *c, struct slice key, struct gguf_info *info)
{
    uint32_t type = (uint32_t)take_number(c, 4);
    struct slice text;

    if (type != GGUF_STRING || !slice_eq_str(key, "general.architecture")) {
        set_number(info, key, take_value(c, type));
        return;
    }
    text = take_string(c);
    if (text.n < sizeof(info->architecture))
        memcpy(info->architecture, text.p, text.n);
}

static bool is_of_tokenizer(struct slice key)
{
    static const char beginning[] = "tokenizer.";

    return key.n >= sizeof(beginning) - 1 && memcmp(key.p, beginning, sizeof(beginning) - 1) == 0;
}

int gguf_parse(struct slice head, struct gguf_info *ret, struct err *e)
{
    struct cursor c = { head.p, head.p + head.n, false };
    struct gguf_info info = { .n_context = 0 };
    struct slice magic = take(&c, 4);
    uint64_t version = take_number(&c, 4), n_pairs;

    if (c.is_over || memcmp(magic.p, "GGUF", 4) != 0)
        return err_set(e, -EBADMSG, "BAD_MODEL_FILE", "is no GGUF file: it does not begin with the letters GGUF");
    if (version != 2 && version != 3)
        return err_set(e, -EBADMSG, "BAD_MODEL_FILE", "is a GGUF file of version %u; versions 2 and 3 are known",
                       (unsigned)version);
    take_number(&c, 8); /* the number of tensors */
    for (n_pairs = take_number(&c, 8); n_pairs > 0 && !c.is_over; n_pairs--) {
        struct slice key = take_string(&c);

        if (is_of_tokenizer(key))
            break;
        read_pair(&c, key, &info);
    }
    if (!*info.architecture)
        return err_set(e, -EBADMSG, "BAD_MODEL_FILE",
                       "is a GGUF file that does not tell the architecture of its model: it is damaged or cut off");
    *ret = info;
    return 0;
}

int gguf_read(const char *path, struct gguf_info *ret, struct err *e)
{
    AUTO(freep) char *head = xcalloc(1, HEAD_BYTES);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct err why = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block the caller */
    ssize_t n = fd >= 0 ? pread(fd, head, HEAD_BYTES, 0) : -1;
    int r = n < 0 ? -errno : 0;

    if (fd >= 0)
        close(fd);
    if (r < 0)
        return err_set(e, r, "BAD_MODEL_FILE", "The model file %.200s cannot be read: %s.", name, strerror(-r));
    r = gguf_parse((struct slice){ head, (size_t)n }, ret, &why);
    return r < 0 ? err_set(e, r, "BAD_MODEL_FILE", "The model file %.200s %s.", name, why.text) : 0;
}

/* ---- derived values ---- */

bool gguf_is_embedding(const struct gguf_info *info)
{
    return info->pooling > 0 || strstr(info->architecture, "bert") != NULL;
}

/* MOST_VALUE keeps the product for one token below 2^62. */
int64_t gguf_context_bytes(const struct gguf_info *info, int64_t n_tokens)
{
    int64_t heads = info->n_heads_kv ? info->n_heads_kv : info->n_heads;
    int64_t length = info->n_heads ? info->n_embedding / info->n_heads : 0;
    int64_t both = (info->key_length ? info->key_length : length) + (info->value_length ? info->value_length : length);
    int64_t a_token = heads * both * info->n_layers * 2, all;

    if (a_token == 0)
        a_token = GUESSED_BYTES_PER_TOKEN;
    return __builtin_mul_overflow(a_token, n_tokens, &all) ? INT64_MAX : all;
}
