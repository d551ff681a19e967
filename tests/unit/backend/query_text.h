/* Conditions of queries written short, for tests: "column=op.value", "column->step->>step=op.value", a "!" before for
 * NOT, "and(a&b)", "or(a&b)"; "column=value" with a value that begins with { or [ is eq. */
#pragma once

#include "backend/query.h"

#include <string.h>

static inline struct query_path query_text_path(struct arena *a, char *text)
{
    const char **steps = arena_array(a, 8, sizeof(*steps));
    struct query_path path = { .steps = steps };
    char *arrow = strstr(text, "->");

    path.column = arrow ? arena_strndup(a, text, (size_t)(arrow - text)) : text;
    while (arrow) {
        char *begin = arrow + 2 + (arrow[2] == '>');

        path.is_text = arrow[2] == '>';
        arrow = strstr(begin, "->");
        steps[path.n_steps++] = arrow ? arena_strndup(a, begin, (size_t)(arrow - begin)) : begin;
    }
    return path;
}

static inline enum query_op query_text_op(const char *word, size_t n)
{
    static const char *const words[] = { "eq", "neq",  "gt",    "gte", "lt", "lte", "in",
                                         "is", "like", "ilike", "cs",  "cd", "ov",  "isdistinct" };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strlen(words[i]) == n && strncmp(words[i], word, n) == 0)
            return (enum query_op)i;
    return QUERY_EQ;
}

static inline struct query_condition query_text_read(struct arena *a, const char *source);

static inline struct query_condition query_text_test(struct arena *a, char *text)
{
    char *equal = strchr(text, '='), *dot = strchr(equal, '.'), *value = dot ? dot + 1 : equal + 1;
    struct query_condition c = { .op = QUERY_EQ };
    const char **values = arena_array(a, 8, sizeof(*values));

    if (equal[1] == '{' || equal[1] == '[')
        value = equal + 1;
    else
        c.op = query_text_op(equal + 1, (size_t)(dot - equal - 1));
    *equal = '\0';
    c.path = query_text_path(a, text);
    c.values = values;
    values[c.n_values++] = value;
    if (c.op == QUERY_IN && !*value)
        c.n_values = 0;
    while (c.op == QUERY_IN && (value = strchr(value, ','))) {
        *value++ = '\0';
        values[c.n_values++] = value;
    }
    return c;
}

static inline struct query_condition query_text_read(struct arena *a, const char *source)
{
    char *text = arena_strdup(a, source[0] == '!' ? source + 1 : source), *rest, *part;
    bool is_and = strncmp(text, "and(", 4) == 0;
    struct query_condition c = { .junction = is_and ? QUERY_AND : QUERY_OR }, *items = arena_array(a, 8, sizeof(c));

    if (!is_and && strncmp(text, "or(", 3) != 0) {
        c = query_text_test(a, text);
    } else {
        rest = strchr(text, '(') + 1;
        *strrchr(rest, ')') = '\0';
        for (; (part = strtok_r(rest, "&", &rest));)
            items[c.n_items++] = query_text_read(a, part);
        c.items = items;
    }
    c.is_not = source[0] == '!';
    return c;
}
