#include "base/json_schema_private.h"

#include "base/json_write.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum { NOTED_SCHEMAS = 3 }; /* of anyOf or oneOf, whose first violation is reported */

/* ---- the path ---- */

void schema_path_init(struct schema_path *path, const char *start)
{
    path->n = (size_t)MAX(0, snprintf(path->text, sizeof(path->text), "%s", start));
    path->n = MIN(path->n, sizeof(path->text) - 1);
}

static void add_text(struct schema_path *path, struct slice text)
{
    size_t n = strnlen(text.p ? text.p : "", MIN(text.n, sizeof(path->text) - 1 - path->n));

    if (n > 0)
        memcpy(path->text + path->n, text.p, n);
    path->n += n;
    path->text[path->n] = '\0';
}

size_t schema_path_add_member(struct schema_path *path, struct slice name)
{
    size_t n = path->n;

    if (n > 0)
        add_text(path, SLICE_LIT("."));
    add_text(path, name);
    return n;
}

size_t schema_path_add_item(struct schema_path *path, size_t at)
{
    char digits[INT_TEXT_SIZE];
    size_t n = path->n, n_digits = int_text(digits, (int64_t)at);

    add_text(path, SLICE_LIT("["));
    add_text(path, (struct slice){ digits, n_digits });
    add_text(path, SLICE_LIT("]"));
    return n;
}

void schema_path_cut(struct schema_path *path, size_t n)
{
    path->n = n;
    path->text[n] = '\0';
}

/* ---- violations and limits ---- */

int schema_report(struct schema_check *c, const char *fmt, ...)
{
    char rule[2 * sizeof(((struct err_field *)0)->rule)];
    va_list ap;

    if (c->is_quiet && (!c->note || c->note->is_set))
        return -EINVAL;
    va_start(ap, fmt);
    vsnprintf(rule, sizeof(rule), fmt, ap);
    va_end(ap);
    if (!c->is_quiet)
        return err_add_field(c->e, c->path.text, "%s", rule);
    snprintf(c->note->text, sizeof(c->note->text), "%s%s%s", c->path.text, c->path.n > 0 ? " " : "", rule);
    c->note->is_set = true;
    return -EINVAL;
}

bool schema_go_on(struct schema_check *c, size_t n)
{
    if (!c->stop && !schema_take(&c->budget, n))
        c->stop = STOP_STEPS;
    return !c->stop;
}

bool schema_is_enough(const struct schema_check *c, int r)
{
    return c->stop || (r < 0 && (c->is_quiet || !c->e || c->e->n_fields >= ERR_MAX_FIELDS));
}

int schema_report_range(struct schema_check *c, const struct schema_range *range, uint64_t n, const char *one,
                        const char *many)
{
    if (n < range->least)
        return schema_report(c, "must have at least %ju %s", (uintmax_t)range->least, range->least == 1 ? one : many);
    if (n > range->most)
        return schema_report(c, "must have at most %ju %s", (uintmax_t)range->most, range->most == 1 ? one : many);
    return 0;
}

static int report_number(struct schema_check *c, const char *rule, struct json_value wanted)
{
    struct buf text;
    int r;

    buf_init(&text, SCHEMA_PATH_SIZE);
    json_print(&text, wanted);
    r = schema_report(c, "%s %s", rule, buf_str(&text));
    buf_clear(&text);
    return r;
}

bool schema_matches(struct schema_check *c, const struct pattern *pattern, struct slice text)
{
    int r = c->stop ? 0 : pattern_search(pattern, text, &c->budget.n, c->budget.max);

    if (r == -ENOMEM)
        c->stop = STOP_PATTERN_HEAP;
    else if (r < 0)
        c->stop = STOP_PATTERN_STEPS;
    return r > 0;
}

/* ---- what was evaluated ---- */

struct schema_seen *schema_seen_new(struct schema_check *c, struct json_value v)
{
    struct schema_seen *seen;
    size_t n = json_length(v);

    if ((json_type(v) != JSON_ARRAY && json_type(v) != JSON_OBJECT) || !schema_go_on(c, 1 + n / 64))
        return NULL;
    seen = ARENA_NEW(c->arena, struct schema_seen);
    seen->n = n;
    seen->bits = arena_array(c->arena, n / 64 + 1, sizeof(*seen->bits));
    return seen;
}

void schema_seen_add(struct schema_seen *seen, size_t at)
{
    if (seen && at < seen->n)
        seen->bits[at / 64] |= UINT64_C(1) << at % 64;
}

void schema_seen_add_all(struct schema_seen *seen)
{
    if (seen)
        memset(seen->bits, 0xff, (seen->n / 64 + 1) * sizeof(*seen->bits));
}

void schema_seen_merge(struct schema_check *c, struct schema_seen *seen, const struct schema_seen *other)
{
    if (!seen || !other || !schema_go_on(c, 1 + seen->n / 64))
        return;
    for (size_t i = 0; i <= seen->n / 64; i++)
        seen->bits[i] |= other->bits[i];
}

/* ---- one value ---- */

static unsigned type_of(struct json_value v)
{
    static const unsigned types[] = {
        [JSON_NULL] = SCHEMA_NULL,     [JSON_BOOL] = SCHEMA_BOOLEAN,  [JSON_INT] = SCHEMA_NUMBER,
        [JSON_DOUBLE] = SCHEMA_NUMBER, [JSON_STRING] = SCHEMA_STRING, [JSON_ARRAY] = SCHEMA_ARRAY,
        [JSON_OBJECT] = SCHEMA_OBJECT
    };

    return types[json_type(v)] | (schema_is_integer(v) ? SCHEMA_INTEGER : 0);
}

static int check_choice(struct schema_check *c, const struct schema_node *node, struct json_value v)
{
    if (node->types && !(node->types & type_of(v)))
        return schema_report(c, "must be %s", node->types_text);
    if (node->only.doc && !schema_is_same(&c->walk, node->only, v))
        return schema_report(c, "must be %s", node->only_text);
    if (node->choices && !schema_set_has(&c->walk, node->choices, v))
        return schema_report(c, "must be one of %s", node->choices_text);
    return 0;
}

static int check_number(struct schema_check *c, const struct schema_node *node, struct json_value v)
{
    int r = 0;

    if (node->minimum.doc && schema_compare_numbers(v, node->minimum) < 0)
        r = report_number(c, "must be at least", node->minimum);
    if (node->exclusive_minimum.doc && schema_compare_numbers(v, node->exclusive_minimum) <= 0)
        r = report_number(c, "must be greater than", node->exclusive_minimum);
    if (node->maximum.doc && schema_compare_numbers(v, node->maximum) > 0)
        r = report_number(c, "must be at most", node->maximum);
    if (node->exclusive_maximum.doc && schema_compare_numbers(v, node->exclusive_maximum) >= 0)
        r = report_number(c, "must be less than", node->exclusive_maximum);
    if (node->multiple_of.doc && !schema_is_multiple(v, node->multiple_of))
        r = report_number(c, "must be a multiple of", node->multiple_of);
    return r;
}

static int check_string(struct schema_check *c, const struct schema_node *node, struct json_value v)
{
    struct slice text = json_string(v);
    int r = 0;

    if ((node->length.least > 0 || node->length.most < UINT64_MAX) && schema_go_on(c, 1 + text.n / SCHEMA_BYTES_A_STEP))
        r = schema_report_range(c, &node->length, utf8_length(text), "character", "characters");
    if (node->pattern && !schema_matches(c, node->pattern, text) && !c->stop) {
        struct slice source = pattern_source(node->pattern);

        r = schema_report(c, "must match the pattern %.*s", (int)MIN(source.n, (size_t)160), source.p);
    }
    return r;
}

/* ---- schemas of schemas ---- */

bool schema_fits(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    bool was_quiet = c->is_quiet;
    int r;

    c->is_quiet = true;
    r = schema_apply(c, node, p);
    c->is_quiet = was_quiet;
    return r == 0 && !c->stop;
}

/* The same; what a schema that does not fit has evaluated does not count. note may be NULL. */
static bool fits_aside(struct schema_check *c, const struct schema_node *node, const struct schema_place *p,
                       struct schema_note *note)
{
    struct schema_seen *own = p->seen ? schema_seen_new(c, p->v) : NULL;
    const struct schema_place aside = { p->v, own, p->scope };
    struct schema_note *outer_note = c->note;
    bool is_fit;

    c->note = note;
    is_fit = schema_fits(c, node, &aside);
    c->note = outer_note;
    if (is_fit)
        schema_seen_merge(c, p->seen, own);
    return is_fit;
}

struct counted {
    size_t n, first, second; /* how many fit, and the places of the first two */
};

/* Counts the schemas that fit, up to `enough` unless each one's evaluated members matter. */
static struct counted count_fits(struct schema_check *c, const struct schema_list *list, const struct schema_place *p,
                                 size_t enough, struct schema_note *notes)
{
    struct counted counted = { 0 };

    for (size_t i = 0; i < list->n && schema_go_on(c, 1) && (counted.n < enough || p->seen); i++) {
        if (!fits_aside(c, list->items[i], p, notes && i < NOTED_SCHEMAS ? &notes[i] : NULL))
            continue;
        counted.n++;
        if (counted.n == 1)
            counted.first = i;
        if (counted.n == 2)
            counted.second = i;
    }
    return counted;
}

static int report_none(struct schema_check *c, const char *rule, const struct schema_list *list,
                       const struct schema_note *notes)
{
    struct buf text;
    int r;

    buf_init(&text, sizeof(((struct err_field *)0)->rule) * 2);
    for (size_t i = 0; notes && i < MIN(list->n, (size_t)NOTED_SCHEMAS); i++)
        buf_printf(&text, "%s%zu. %s", i > 0 ? "; " : ": ", i + 1, notes[i].text);
    r = schema_report(c, "%s%s", rule, buf_str(&text));
    buf_clear(&text);
    return r;
}

static struct schema_note *new_notes(struct schema_check *c)
{
    return c->is_quiet ? NULL : arena_array(c->arena, NOTED_SCHEMAS, sizeof(struct schema_note));
}

static int check_any(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    struct schema_note *notes = new_notes(c);

    if (count_fits(c, &node->any, p, 1, notes).n > 0 || c->stop)
        return 0;
    return report_none(c, "must fit at least one schema of anyOf", &node->any, notes);
}

static int check_one(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    struct schema_note *notes = new_notes(c);
    struct counted counted = count_fits(c, &node->one, p, 2, notes);

    if (counted.n == 1 || c->stop)
        return 0;
    if (counted.n == 0)
        return report_none(c, "must fit one schema of oneOf", &node->one, notes);
    return schema_report(c, "must fit only one schema of oneOf, but fits number %zu and number %zu", counted.first + 1,
                         counted.second + 1);
}

static int check_condition(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    const struct schema_node *next;

    if (!node->when_true && !node->when_false && !p->seen)
        return 0;
    next = fits_aside(c, node->condition, p, NULL) ? node->when_true : node->when_false;
    return next ? schema_apply(c, next, p) : 0;
}

/* The outermost resource of the dynamic scope that has the anchor (2020-12, core, section 8.2.3.2). */
static const struct schema_node *dynamic_target(struct schema_check *c, const struct schema_node *node,
                                                const struct schema_place *p)
{
    const struct schema_node *target = node->dynamic_reference, *found;

    if (node->dynamic_name.n == 0)
        return target;
    for (const struct schema_scope *scope = p->scope; scope && schema_go_on(c, 1); scope = scope->outer) {
        found = schema_find_dynamic(c->schema, scope->resource, node->dynamic_name);
        target = found ? found : target;
    }
    return target;
}

static int check_logic(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    int r = 0;

    if (node->reference)
        r = schema_apply(c, node->reference, p);
    if (node->dynamic_reference)
        r = schema_worse(r, schema_apply(c, dynamic_target(c, node, p), p));
    for (size_t i = 0; i < node->all.n && !schema_is_enough(c, r); i++)
        r = schema_worse(r, schema_apply(c, node->all.items[i], p));
    if (node->any.n > 0 && !schema_is_enough(c, r))
        r = schema_worse(r, check_any(c, node, p));
    if (node->one.n > 0 && !schema_is_enough(c, r))
        r = schema_worse(r, check_one(c, node, p));
    if (node->denied && fits_aside(c, node->denied, &(struct schema_place){ p->v, NULL, p->scope }, NULL))
        r = schema_report(c, "must not fit the schema of not");
    if (node->condition && !schema_is_enough(c, r))
        r = schema_worse(r, check_condition(c, node, p));
    return r;
}

static int check_rules(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    int r = check_choice(c, node, p->v);

    if (schema_is_number(p->v))
        r = schema_worse(r, check_number(c, node, p->v));
    else if (json_type(p->v) == JSON_STRING)
        r = schema_worse(r, check_string(c, node, p->v));
    else if (json_type(p->v) == JSON_ARRAY)
        r = schema_worse(r, schema_check_array(c, node, p));
    else if (json_type(p->v) == JSON_OBJECT)
        r = schema_worse(r, schema_check_object(c, node, p));
    if (node->has_logic && !schema_is_enough(c, r))
        r = schema_worse(r, check_logic(c, node, p));
    return r;
}

/* unevaluatedItems and unevaluatedProperties see what their own schema has evaluated, never what schemas beside it
 * have. */
static int check_with_own(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    struct schema_seen *own = schema_seen_new(c, p->v);
    const struct schema_place inner = { p->v, own, p->scope };
    int r = check_rules(c, node, &inner);

    if (r == 0 && own)
        r = schema_check_unevaluated(c, node, &inner);
    if (r == 0)
        schema_seen_merge(c, p->seen, own);
    return r;
}

int schema_apply(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    const struct schema_scope own = { p->scope, node->resource };
    const struct schema_place inner = { p->v, p->seen,
                                        p->scope && p->scope->resource == node->resource ? p->scope : &own };
    int r;

    if (!schema_go_on(c, 1))
        return 0;
    if (node->is_false)
        return schema_report(c, "is not allowed");
    if (!node->has_rules)
        return 0;
    if (c->depth == LIMIT_SCHEMA_DEPTH) {
        c->stop = STOP_DEPTH;
        return 0;
    }
    c->depth++;
    r = node->unevaluated_items || node->unevaluated_members ? check_with_own(c, node, &inner)
                                                             : check_rules(c, node, &inner);
    c->depth--;
    return r;
}

static int report_stop(const struct schema_check *c, const char *path)
{
    switch (c->stop) {
    case STOP_PATTERN_STEPS:
        return err_add_field(c->e, path,
                             "takes more than %d steps of checking: a pattern of the schema is too slow for it",
                             LIMIT_SCHEMA_STEPS);
    case STOP_PATTERN_HEAP:
        return err_add_field(c->e, path, "takes more than %d bytes to match a pattern of the schema",
                             LIMIT_PATTERN_HEAP);
    case STOP_DEPTH:
        return err_add_field(c->e, path, "needs more than the %d schemas within each other that are allowed",
                             LIMIT_SCHEMA_DEPTH);
    default:
        return err_add_field(c->e, path, "takes more than the %d steps of checking that are allowed",
                             LIMIT_SCHEMA_STEPS);
    }
}

int json_schema_apply(const struct json_schema *schema, struct json_value v, const char *path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct schema_check c = { .schema = schema, .budget = { .max = LIMIT_SCHEMA_STEPS }, .arena = a, .e = e };
    int r;

    c.walk = (struct schema_walk){ &c.budget, json_index_new(a) };
    schema_path_init(&c.path, path);
    r = schema_apply(&c, schema->root, &(struct schema_place){ .v = v });
    (void)schema_go_on(&c, 0);
    return c.stop ? report_stop(&c, path) : r;
}

int json_schema_check(struct json_value schema, struct json_value v, const char *path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct json_schema *compiled = NULL;
    int r = json_schema_compile(a, schema, "schema", &compiled, e);

    return r < 0 ? r : json_schema_apply(compiled, v, path, e);
}
