/* Checks values against schemas for tests/peers/json_schema.test.mjs. Each line of standard input is
 * {"schema": …, "values": […]}; each line of standard output is {"valid": [true, false]}, or {"refused": "why"} for a
 * schema that cannot be used. "violations" holds the text of the first violation of each value, "" for a valid one. */
#include "base/json_schema.h"
#include "base/json_write.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

static void write_results(struct json_writer *w, const struct json_schema *schema, struct json_value values,
                          bool are_texts)
{
    struct json_value v;

    json_begin_array_as(w, are_texts ? "violations" : "valid");
    for (struct json_iter it = json_iter(values); json_next(&it, NULL, &v);) {
        struct err e = { 0 };
        int r = json_schema_apply(schema, v, "", &e);

        if (are_texts)
            json_add_string(w, NULL, r < 0 ? e.text : "");
        else
            json_add_bool(w, NULL, r == 0);
    }
    json_end(w);
}

static int check_line(struct slice line, struct buf *out)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct json_schema *schema = NULL;
    struct json_value root = { 0 };
    struct err e = { 0 };
    struct json_writer w;
    int r = json_parse(a, line, &root, &e);

    if (r < 0) {
        fprintf(stderr, "%s\n", e.text);
        return r;
    }
    json_write_init(&w, out);
    json_begin_object(&w);
    if (json_schema_compile(a, json_get(root, "schema"), "", &schema, &e) < 0) {
        json_add_string(&w, "refused", e.text);
    } else {
        write_results(&w, schema, json_get(root, "values"), false);
        write_results(&w, schema, json_get(root, "values"), true);
    }
    json_end(&w);
    return 0;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    int r = 0;

    while (r == 0 && (n = getline(&line, &size, stdin)) > 0) {
        struct buf out;

        buf_init(&out, LIMIT_REPLY);
        r = check_line((struct slice){ line, (size_t)n }, &out);
        printf("%s\n", buf_str(&out));
        buf_clear(&out);
    }
    free(line);
    return r < 0;
}
