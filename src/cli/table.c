#include "cli/table.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "cli/out.h"

#include <ctype.h>

enum { TABLE_GAP = 2, TABLE_CELL_CHARS = 60, TABLE_ID_CHARS = 8, TABLE_LEAST_CHARS = 8 };

/* --- cells --- */

/* At most n characters; the last one is an ellipsis when the text is longer. */
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

    return dot ? member_of(a, json_get(object, arena_strndup(a, member, (size_t)(dot - member))), dot + 1)
               : json_get(object, member);
}

static char *whole_cell(struct arena *a, struct json_value object, const struct cli_column *column)
{
    char *text = out_shown(a, slice_of(value_text(a, member_of(a, object, column->member), column->format)));

    return *text ? text : arena_strdup(a, "-");
}

char *table_cell(struct arena *a, struct json_value object, const struct cli_column *column)
{
    return shorten(a, whole_cell(a, object, column), TABLE_CELL_CHARS);
}

/* --- tables --- */

struct table {
    struct arena *arena;
    const struct cli_column *columns;
    const char **cells; /* n_rows * n */
    size_t *widths;     /* 0: the column is left out */
    size_t n, n_rows;
};

static size_t width_of(const char *text)
{
    return utf8_length(slice_of(text));
}

static const char *cell_of(struct table *t, struct json_value object, size_t i, const struct table_form *form)
{
    char *text = whole_cell(t->arena, object, &t->columns[i]);

    if (form->is_wide)
        return text;
    if (form->width && t->columns[i].format == CLI_ID && uuid_is_valid(slice_of(text)))
        return arena_strndup(t->arena, text, TABLE_ID_CHARS);
    return shorten(t->arena, text, TABLE_CELL_CHARS);
}

static void fill_table(struct table *t, struct json_value list, const struct table_form *form)
{
    struct json_value object;
    size_t row = 1;

    for (size_t i = 0; i < t->n; i++)
        t->cells[i] = t->columns[i].title;
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &object); row++)
        for (size_t i = 0; i < t->n; i++)
            t->cells[row * t->n + i] = cell_of(t, object, i, form);
    for (size_t i = 0; i < t->n_rows * t->n; i++)
        t->widths[i % t->n] = MAX(t->widths[i % t->n], width_of(t->cells[i]));
}

static size_t total_width(const struct table *t)
{
    size_t total = 0;

    for (size_t i = 0; i < t->n; i++)
        total += t->widths[i] ? t->widths[i] + TABLE_GAP : 0;
    return total - MIN(total, (size_t)TABLE_GAP);
}

/* Leaves the least important column out; of equal ones the last. */
static bool drop_column(struct table *t)
{
    size_t least = t->n;

    for (size_t i = 0; i < t->n; i++)
        if (t->widths[i] && t->columns[i].drop > 0 && (least == t->n || t->columns[i].drop >= t->columns[least].drop))
            least = i;
    if (least == t->n)
        return false;
    t->widths[least] = 0;
    return true;
}

static void cut_widest(struct table *t, size_t excess)
{
    size_t widest = 0, width;

    for (size_t i = 1; i < t->n; i++)
        widest = t->widths[i] > t->widths[widest] ? i : widest;
    width = t->widths[widest] - MIN(excess, t->widths[widest]);
    t->widths[widest] = MIN(t->widths[widest], MAX(width, (size_t)TABLE_LEAST_CHARS));
}

/* The widest columns are cut last, each once at most. */
static void fit_table(struct table *t, size_t width)
{
    while (total_width(t) > width && drop_column(t))
        ;
    for (size_t i = 0; i < t->n && total_width(t) > width; i++)
        cut_widest(t, total_width(t) - width);
}

static void print_row(struct buf *out, const struct table *t, size_t row)
{
    size_t n_gap = 0;

    for (size_t i = 0; i < t->n; i++) {
        char *text = shorten(t->arena, arena_strdup(t->arena, t->cells[row * t->n + i]), t->widths[i]);

        if (t->widths[i] == 0)
            continue;
        for (; n_gap; n_gap--)
            buf_add_char(out, ' ');
        buf_add_str(out, text);
        n_gap = t->widths[i] - width_of(text) + TABLE_GAP;
    }
    buf_add_char(out, '\n');
}

static void print_dropped(struct buf *out, const struct table *t)
{
    const char *comma = "";

    for (size_t i = 0; i < t->n; i++)
        if (t->widths[i] == 0) {
            buf_printf(out, "%s%s", *comma ? comma : "(left out: ", t->columns[i].title);
            comma = ", ";
        }
    if (*comma)
        buf_add_str(out, "; --wide shows everything)\n");
}

void table_print(struct buf *out, struct json_value list, const struct cli_column *columns,
                 const struct table_form *form)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct table t = { .arena = a, .columns = columns, .n_rows = json_length(list) + 1 };

    while (columns[t.n].title)
        t.n++;
    t.cells = arena_array(a, t.n_rows * t.n, sizeof(*t.cells));
    t.widths = arena_array(a, t.n, sizeof(*t.widths));
    fill_table(&t, list, form);
    if (form->width && !form->is_wide)
        fit_table(&t, form->width);
    for (size_t i = 0; i < t.n_rows; i++)
        print_row(out, &t, i);
    print_dropped(out, &t);
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
