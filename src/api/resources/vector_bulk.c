#include "api/resources/vector_bulk.h"

#include "api/resources/vector_texts.h"

struct head {
    struct field_strings ids;
    struct json_value metadata;
    const char *workspace, *model;
};

const struct field vector_bulk_head[] = {
    FIELD_STRINGS(struct head, ids, "ids", FIELD_REQUIRED, .min = 1, .max = LIMIT_VECTORS_PER_CALL),
    FIELD_ARRAY(struct head, metadata, "metadata", .max = LIMIT_VECTORS_PER_CALL,
                .help = "as many objects as there are ids"),
    FIELD_WORKSPACE(struct head),
    FIELD_MODEL(struct head),
    FIELD_END,
};

/* Separates the line from the numbers, which begin after the line feed. */
static int split(struct slice body, struct slice *ret_line, struct slice *ret_numbers, struct err *e)
{
    const char *end = body.n > 0 ? memchr(body.p, '\n', MIN(body.n, (size_t)LIMIT_VECTOR_HEAD + 1)) : NULL;
    size_t n = end ? (size_t)(end - body.p) : 0;

    if (!end && body.n > LIMIT_VECTOR_HEAD)
        return err_set(e, -E2BIG, "BODY_TOO_LARGE", "The first line must have at most %d bytes.", LIMIT_VECTOR_HEAD);
    if (!end)
        return err_set(e, -EINVAL, "VALIDATION_ERROR",
                       "The body must be one line of JSON, a line feed, and the float32 numbers of the vectors.");
    *ret_line = (struct slice){ body.p, n };
    *ret_numbers = (struct slice){ end + 1, body.n - n - 1 };
    return 0;
}

static int read_head(struct arena *a, struct slice line, struct head *ret, struct err *e)
{
    struct json_value value = { 0 };
    int r = json_parse(a, line, &value, e);

    if (r == 0 && json_type(value) != JSON_OBJECT)
        r = err_set(e, -EINVAL, "VALIDATION_ERROR", "The first line must be a JSON object.");
    if (r == 0)
        r = fields_read(vector_bulk_head, value, ret, a, "", e);
    if (r < 0 || json_is_absent(ret->metadata) || json_length(ret->metadata) == ret->ids.n)
        return r;
    return err_add_field(e, "metadata", "must have as many objects as there are ids, %zu", ret->ids.n);
}

/* Every vector has the same number of dimensions, which follows from the number of bytes. */
static int count_dimensions(struct slice numbers, size_t n_vectors, size_t *ret, struct err *e)
{
    size_t bytes_of_one = numbers.n / MAX(n_vectors, (size_t)1), n = bytes_of_one / sizeof(float);

    if (numbers.n != bytes_of_one * n_vectors || bytes_of_one % sizeof(float) != 0 || n < 1 || n > LIMIT_DIMENSIONS)
        return err_set(e, -EINVAL, "VALIDATION_ERROR",
                       "%zu bytes follow the line feed: for %zu ids there must be 1 to %d numbers of 4 bytes each, as "
                       "many for every id.",
                       numbers.n, n_vectors, LIMIT_DIMENSIONS);
    *ret = n;
    return 0;
}

static int read_metadata(struct arena *a, const struct head *head, struct vector_record *items, struct err *e)
{
    struct json_iter it = json_iter(head->metadata);
    struct sent_record record = { 0 };
    char field[48];
    int r = 0;

    for (size_t i = 0; r == 0 && json_next(&it, NULL, &record.metadata); i++) {
        snprintf(field, sizeof(field), "metadata[%zu]", i);
        r = json_type(record.metadata) == JSON_OBJECT ? vector_texts_metadata(a, &record, i, &items[i].metadata, e)
                                                      : err_add_field(e, field, "must be an object");
    }
    return r;
}

int vector_bulk_read(struct arena *a, struct slice body, struct vector_bulk *ret, struct err *e)
{
    struct slice line = SLICE_LIT(""), bytes = line;
    struct vector_record *items;
    struct head head = { 0 };
    size_t n_dimensions = 0;
    float *numbers;
    int r;

    r = split(body, &line, &bytes, e);
    if (r == 0)
        r = read_head(a, line, &head, e);
    if (r == 0)
        r = count_dimensions(bytes, head.ids.n, &n_dimensions, e);
    if (r < 0)
        return r;
    numbers = arena_array(a, head.ids.n * n_dimensions, sizeof(*numbers));
    memcpy(numbers, bytes.p, head.ids.n * n_dimensions * sizeof(*numbers)); /* the body's may be unaligned */
    items = arena_array(a, head.ids.n, sizeof(*items));
    for (size_t i = 0; i < head.ids.n; i++)
        items[i] =
            (struct vector_record){ .id = head.ids.items[i], .vector = numbers + i * n_dimensions, .metadata = "{}" };
    *ret = (struct vector_bulk){ head.workspace, head.model, { items, head.ids.n, n_dimensions } };
    return read_metadata(a, &head, items, e);
}
