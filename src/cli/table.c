#include "cli/table.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/out.h"

#include <ctype.h>

enum { TABLE_GAP = 2, TABLE_CELL_CHARS = 60 };

/* --- cells --- */

/* At most n characters, the last one an ellipsis when there are more. */
static char *shorten(struct arena *a, char *text, size_t n)
{
    struct slice rest = slice_of(text);
    size_t kept = 0;

    if (utf8_length(rest) <= n)
        return text;
    for (size_t i = 0; i + 1 < n; i++) {
        size_t bytes = MAX(utf8_char_bytes((struct slice){ text + kept, rest.n - kept }), (size_t)1);

        kept += bytes;
    }
    return arena_printf(a, "%.*s\xE2\x80\xA6", (int)kept, text);
}

/* 2026-11-20T09:32:05.682Z -> 2026-11-20 09:32:05 in the person's own time zone. */
static char *local_time(struct arena *a, struct slice text)
{
    int64_t wall_ms;
    time_t seconds;
    struct tm parts;
    char out[32];

    if (clock_parse(text, &wall_ms) < 0)
        return arena_slicedup(a, text);
    seconds = (time_t)(wall_ms / 1000);
    if (!localtime_r(&seconds, &parts) || strftime(out, sizeof(out), "%Y-%m-%d %H:%M:%S", &parts) == 0)
        return arena_slicedup(a, text);
    return arena_strdup(a, out);
}

static char *joined(struct arena *a, struct json_value list)
{
    struct json_value item;
    char *text = arena_strdup(a, "");

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", json_cstr(item) ? json_cstr(item) : "");
    return *text ? text : arena_strdup(a, "-");
}

static char *value_text(struct arena *a, struct json_value v, enum cli_format format)
{
    if (json_is_absent(v))
        return arena_strdup(a, "-");
    switch (format) {
    case CLI_TIME:
        return local_time(a, json_string(v));
    case CLI_YES_NO:
        return arena_strdup(a, json_bool(v) ? "yes" : "no");
    case CLI_COUNT:
        return arena_printf(a, "%zu", json_length(v));
    case CLI_JOINED:
        return joined(a, v);
    default:
        return json_type(v) == JSON_STRING ? arena_slicedup(a, json_string(v)) : json_to_str(a, v);
    }
}

static struct json_value member_of(struct arena *a, struct json_value object, const char *member)
{
    const char *dot = strchr(member, '.');

    return dot ? member_of(a, json_get(object, arena_strndup(a, member, (size_t)(dot - member))), dot + 1) : json_get(object, member);
}

char *table_cell(struct arena *a, struct json_value object, const struct cli_column *column)
{
    char *text = value_text(a, member_of(a, object, column->member), column->format);

    text = out_shown(a, slice_of(text));
    return *text ? shorten(a, text, TABLE_CELL_CHARS) : arena_strdup(a, "-");
}

/* --- tables --- */

static size_t width_of(const char *text)
{
    return utf8_length(slice_of(text));
}

static void print_row(struct buf *out, const char *const *cells, const size_t *widths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, cells[i]);
        for (size_t k = width_of(cells[i]); i + 1 < n && k < widths[i] + TABLE_GAP; k++)
            buf_add_char(out, ' ');
    }
    buf_add_char(out, '\n');
}

void table_print(struct buf *out, struct json_value list, const struct cli_column *columns)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n = 0, n_rows = json_length(list) + 1, row = 1;
    struct json_value object;
    const char **cells;
    size_t *widths;

    while (columns[n].title)
        n++;
    cells = arena_array(a, n_rows * n, sizeof(*cells));
    widths = arena_array(a, n, sizeof(*widths));
    for (size_t i = 0; i < n; i++)
        cells[i] = columns[i].title;
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &object); row++)
        for (size_t i = 0; i < n; i++)
            cells[row * n + i] = table_cell(a, object, &columns[i]);
    for (size_t i = 0; i < n_rows * n; i++)
        widths[i % n] = MAX(widths[i % n], width_of(cells[i]));
    for (size_t i = 0; i < n_rows; i++)
        print_row(out, cells + i * n, widths, n);
}

/* --- one object --- */

void table_print_object(struct buf *out, struct json_value object)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value value;
    struct slice key;
    size_t width = 0;

    for (struct json_iter it = json_iter(object); json_next(&it, &key, &value);)
        width = MAX(width, width_of(out_shown(a, key)));
    for (struct json_iter it = json_iter(object); json_next(&it, &key, &value);) {
        const char *text = out_shown(a, slice_of(value_text(a, value, CLI_TEXT))), *label = out_shown(a, key);

        buf_printf(out, "%s:%*s%s\n", label, (int)(width - width_of(label) + 1), "", text);
    }
}
