/* The rules of arrays and objects. */
#include "base/json_schema_private.h"

#include <string.h>

/* Applies a schema to one element or member; what that evaluates belongs to it alone. */
static int apply_to_item(struct schema_check *c, const struct schema_node *node, const struct schema_place *p,
                         struct json_value item, size_t at)
{
    size_t n = schema_path_add_item(&c->path, at);
    int r = schema_apply(c, node, &(struct schema_place){ item, NULL, p->scope });

    schema_path_cut(&c->path, n);
    return r;
}

static int apply_to_member(struct schema_check *c, const struct schema_node *node, const struct schema_place *p,
                           struct slice name, struct json_value item)
{
    size_t n = schema_path_add_member(&c->path, name);
    int r = schema_apply(c, node, &(struct schema_place){ item, NULL, p->scope });

    schema_path_cut(&c->path, n);
    return r;
}

/* ---- arrays ---- */

static int check_items(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    struct json_value item;
    size_t at = 0;
    int r = 0;

    for (struct json_iter it = json_iter(p->v); !schema_is_enough(c, r) && json_next(&it, NULL, &item); at++) {
        const struct schema_node *rule = at < node->prefix.n ? node->prefix.items[at] : node->items;

        if (!rule)
            break;
        r = schema_worse(r, apply_to_item(c, rule, p, item, at));
        schema_seen_add(p->seen, at);
    }
    return r;
}

static int check_contains(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    const struct schema_range *range = &node->contains_range;
    struct json_value item;
    size_t at = 0, n_fit = 0;

    for (struct json_iter it = json_iter(p->v); schema_go_on(c, 1) && json_next(&it, NULL, &item); at++) {
        struct schema_note *note = c->note;

        c->note = NULL;
        if (schema_fits(c, node->contains, &(struct schema_place){ item, NULL, p->scope })) {
            schema_seen_add(p->seen, at);
            n_fit++;
        }
        c->note = note;
    }
    return c->stop ? 0
                   : schema_report_range(c, range, n_fit, "item that fits the schema of contains",
                                         "items that fit the schema of contains");
}

static size_t place_in(struct json_value array, struct json_value wanted)
{
    struct json_value item;
    size_t at = 0;

    for (struct json_iter it = json_iter(array); json_next(&it, NULL, &item) && item.at != wanted.at;)
        at++;
    return at;
}

static int check_unique(struct schema_check *c, struct json_value v)
{
    struct schema_set set = schema_set_of(&c->walk, c->arena, v);
    struct json_value one, other;

    if (!schema_set_find_equal(&c->walk, &set, &one, &other) || !schema_go_on(c, 2 * set.n))
        return 0;
    return schema_report(c, "must not have equal items, but [%zu] equals [%zu]", place_in(v, one), place_in(v, other));
}

int schema_check_array(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    int r = schema_report_range(c, &node->items_range, json_length(p->v), "item", "items");

    if (node->are_unique && json_length(p->v) > 1 && !schema_is_enough(c, r))
        r = schema_worse(r, check_unique(c, p->v));
    if (node->prefix.n > 0 || node->items)
        r = schema_worse(r, check_items(c, node, p));
    if (node->contains && !schema_is_enough(c, r))
        r = schema_worse(r, check_contains(c, node, p));
    return r;
}

/* ---- objects ---- */

static bool has_member(struct schema_check *c, struct json_value object, struct slice name)
{
    return json_index_get(c->walk.index, object, name).doc;
}

static int check_required(struct schema_check *c, struct json_value names, struct json_value v, const char *beside)
{
    struct json_value name;
    int r = 0;

    for (struct json_iter it = json_iter(names); !schema_is_enough(c, r) && json_next(&it, NULL, &name);) {
        size_t n;

        if (!schema_go_on(c, 1 + json_string(name).n / SCHEMA_BYTES_A_STEP) || has_member(c, v, json_string(name)))
            continue;
        n = schema_path_add_member(&c->path, json_string(name));
        r = beside ? schema_report(c, "is required beside %s", beside) : schema_report(c, "is required");
        schema_path_cut(&c->path, n);
    }
    return r;
}

static int check_dependencies(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    int r = 0;

    for (size_t i = 0; i < node->n_dependencies && !schema_is_enough(c, r) && schema_go_on(c, 1); i++) {
        const struct schema_dependency *dependency = &node->dependencies[i];

        if (!has_member(c, p->v, dependency->name))
            continue;
        r = schema_worse(r, check_required(c, dependency->required, p->v, dependency->name.p));
        if (dependency->node)
            r = schema_worse(r, schema_apply(c, dependency->node, p));
    }
    return r;
}

static int compare_names(struct slice one, struct slice other)
{
    int order = one.n && other.n ? memcmp(one.p, other.p, MIN(one.n, other.n)) : 0;

    return order ? order : one.n < other.n ? -1 : one.n > other.n;
}

static const struct schema_node *find_member(const struct schema_members *members, struct slice name)
{
    size_t low = 0, high = members->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_names(members->items[middle].name, name);

        if (order == 0)
            return members->items[middle].node;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The name of a member is a value too. */
static int check_name(struct schema_check *c, const struct schema_node *node, const struct schema_place *p,
                      struct slice name, struct json_value item)
{
    const struct json_value text = { item.doc, item.at - 1 };
    struct schema_note note = { .is_set = false }, *outer_note = c->note;
    size_t n = schema_path_add_member(&c->path, name), n_path;
    bool is_fit;
    int r = 0;

    n_path = c->path.n;
    c->note = c->is_quiet && !outer_note ? NULL : &note;
    is_fit = schema_fits(c, node->names, &(struct schema_place){ text, NULL, p->scope });
    c->note = outer_note;
    if (!is_fit && !c->stop)
        r = schema_report(c, "has a name that is not allowed: the name %s",
                          note.is_set ? note.text + MIN(n_path + (n_path > 0), strlen(note.text)) : "");
    schema_path_cut(&c->path, n);
    return r;
}

static int report_unknown(struct schema_check *c, struct slice name, const char *known)
{
    size_t n = schema_path_add_member(&c->path, name);
    int r = schema_report(c, "is not a known member%s", known);

    schema_path_cut(&c->path, n);
    return r;
}

static int check_other(struct schema_check *c, const struct schema_node *node, const struct schema_node *rule,
                       const struct schema_place *p, struct slice name, struct json_value item)
{
    return rule->is_false ? report_unknown(c, name, node->names_text) : apply_to_member(c, rule, p, name, item);
}

static int check_member(struct schema_check *c, const struct schema_node *node, const struct schema_place *p,
                        struct slice name, struct json_value item, size_t at)
{
    const struct schema_node *rule = find_member(&node->properties, name);
    bool is_known = rule != NULL;
    int r = rule ? apply_to_member(c, rule, p, name, item) : 0;

    for (size_t i = 0; i < node->n_patterns && !schema_is_enough(c, r); i++)
        if (schema_matches(c, node->patterns[i].pattern, name)) {
            is_known = true;
            r = schema_worse(r, apply_to_member(c, node->patterns[i].node, p, name, item));
        }
    if (!is_known && node->additional && !c->stop)
        r = check_other(c, node, node->additional, p, name, item);
    if (is_known || node->additional)
        schema_seen_add(p->seen, at);
    if (node->names && !schema_is_enough(c, r))
        r = schema_worse(r, check_name(c, node, p, name, item));
    return r;
}

static int check_members(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    struct json_value item;
    struct slice name;
    size_t at = 0;
    int r = 0;

    for (struct json_iter it = json_iter(p->v); !schema_is_enough(c, r) && json_next(&it, &name, &item); at++) {
        if (!schema_go_on(c, 1 + name.n / SCHEMA_BYTES_A_STEP))
            break;
        r = schema_worse(r, check_member(c, node, p, name, item, at));
    }
    return r;
}

int schema_check_object(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    int r = schema_report_range(c, &node->members_range, json_length(p->v), "member", "members");

    if (node->required.doc)
        r = schema_worse(r, check_required(c, node->required, p->v, NULL));
    if (node->n_dependencies > 0)
        r = schema_worse(r, check_dependencies(c, node, p));
    if ((node->properties.n > 0 || node->n_patterns > 0 || node->additional || node->names) && !schema_is_enough(c, r))
        r = schema_worse(r, check_members(c, node, p));
    return r;
}

/* ---- what no schema has evaluated ---- */

static bool is_seen(const struct schema_seen *seen, size_t at)
{
    return seen->bits[at / 64] >> at % 64 & 1;
}

int schema_check_unevaluated(struct schema_check *c, const struct schema_node *node, const struct schema_place *p)
{
    bool is_array = json_type(p->v) == JSON_ARRAY;
    const struct schema_node *rule = is_array ? node->unevaluated_items : node->unevaluated_members;
    struct json_value item;
    struct slice name;
    size_t at = 0;
    int r = 0;

    if (!rule)
        return 0;
    for (struct json_iter it = json_iter(p->v); !schema_is_enough(c, r) && json_next(&it, &name, &item); at++) {
        if (!schema_go_on(c, 1) || is_seen(p->seen, at))
            continue;
        r = schema_worse(r, is_array ? apply_to_item(c, rule, p, item, at) : check_other(c, node, rule, p, name, item));
    }
    schema_seen_add_all(p->seen);
    return r;
}
