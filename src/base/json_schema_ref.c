/* Where references lead: the nodes, resources and anchors of one document, in a tree of search.h. */
#include "base/json_schema_private.h"

#include "base/limits.h"
#include "base/percent.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum place_kind { PLACE_NODE, PLACE_RESOURCE, PLACE_ANCHOR, PLACE_DYNAMIC };

struct place {
    enum place_kind kind;
    size_t at;      /* of a node */
    const void *of; /* the resource of an anchor */
    struct slice name;
    const void *found;
};

static int compare_places(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    int order;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->of != b->of)
        return (uintptr_t)a->of < (uintptr_t)b->of ? -1 : 1;
    order = a->name.n && b->name.n ? memcmp(a->name.p, b->name.p, MIN(a->name.n, b->name.n)) : 0;
    return order ? order : a->name.n < b->name.n ? -1 : a->name.n > b->name.n;
}

/* The first of equal places counts. */
static void add_place(struct schema_compiler *c, struct place place)
{
    struct place *own = ARENA_NEW(c->arena, struct place);

    *own = place;
    if (!tsearch(own, &c->schema->places, compare_places))
        schema_refuse(c, "needs more memory than there is");
}

static const void *find_place(const struct json_schema *schema, struct place place)
{
    struct place *const *found = tfind(&place, &schema->places, compare_places);

    return found ? (*found)->found : NULL;
}

static void leave_place(void *place)
{
}

void schema_free_places(void *arg)
{
    struct json_schema *schema = arg;

    tdestroy(schema->places, leave_place);
}

void schema_add_node(struct schema_compiler *c, struct json_value v, struct schema_node *node)
{
    add_place(c, (struct place){ .kind = PLACE_NODE, .at = v.at, .found = node });
}

struct schema_node *schema_find_node(const struct json_schema *schema, struct json_value v)
{
    return (struct schema_node *)find_place(schema, (struct place){ .kind = PLACE_NODE, .at = v.at });
}

/* ---- $schema, $id, $anchor ---- */

static struct slice text_of(struct schema_compiler *c, struct json_value v, const char *name)
{
    struct slice text = json_string(schema_get(c->index, v, name));

    return schema_take_bytes(&c->budget, text.n) ? text : (struct slice){ "", 0 };
}

static enum schema_dialect dialect_of(struct schema_compiler *c, struct json_value v, enum schema_dialect outer)
{
    static const struct {
        const char *uri;
        enum schema_dialect dialect;
    } dialects[] = {
        { "https://json-schema.org/draft/2020-12/schema", DIALECT_2020 },
        { "https://json-schema.org/draft/2019-09/schema", DIALECT_2020 },
        { "http://json-schema.org/draft-07/schema", DIALECT_07 },
        { "https://json-schema.org/draft-07/schema", DIALECT_07 },
        { "http://json-schema.org/draft-06/schema", DIALECT_07 },
        { "http://json-schema.org/draft-04/schema", DIALECT_07 },
    };
    struct slice uri = text_of(c, v, "$schema");

    if (uri.n > 0 && uri.p[uri.n - 1] == '#')
        uri.n--;
    for (size_t i = 0; i < ARRAY_SIZE(dialects); i++)
        if (slice_eq_str(uri, dialects[i].uri))
            return dialects[i].dialect;
    if (schema_get(c->index, v, "$schema").doc)
        schema_refuse(c, "has the $schema %.*s; known are draft 2020-12 and draft-07", (int)MIN(uri.n, (size_t)100),
                      uri.p);
    return outer;
}

/* Draft-07 has no $id beside $ref. */
static struct slice id_of(struct schema_compiler *c, struct json_value v, enum schema_dialect dialect)
{
    if (dialect == DIALECT_07 && schema_get(c->index, v, "$ref").doc)
        return (struct slice){ "", 0 };
    return text_of(c, v, "$id");
}

const struct schema_resource *schema_enter(struct schema_compiler *c, struct json_value v,
                                           const struct schema_resource *outer)
{
    enum schema_dialect dialect = outer ? outer->dialect : DIALECT_2020;
    struct schema_resource *own;
    struct slice id;

    if (!outer || text_of(c, v, "$id").n > 0)
        dialect = dialect_of(c, v, dialect);
    id = id_of(c, v, dialect);
    if (outer && (id.n == 0 || id.p[0] == '#'))
        return outer;
    own = ARENA_NEW(c->arena, struct schema_resource);
    *own = (struct schema_resource){ .dialect = dialect, .root = v };
    own->uri = uri_resolve(c->arena, outer ? outer->uri : (struct slice){ "", 0 }, id);
    if (!schema_take_bytes(&c->budget, own->uri.n))
        return own;
    add_place(c, (struct place){ .kind = PLACE_RESOURCE, .name = own->uri, .found = own });
    return own;
}

static void add_anchor(struct schema_compiler *c, enum place_kind kind, struct slice name, struct schema_node *node)
{
    if (name.n > 0)
        add_place(c, (struct place){ .kind = kind, .of = node->resource, .name = name, .found = node });
}

void schema_add_anchors(struct schema_compiler *c, struct json_value v, struct schema_node *node)
{
    if (node->resource->dialect == DIALECT_07) {
        add_anchor(c, PLACE_ANCHOR, uri_fragment(id_of(c, v, DIALECT_07), NULL), node);
        return;
    }
    add_anchor(c, PLACE_ANCHOR, text_of(c, v, "$anchor"), node);
    add_anchor(c, PLACE_ANCHOR, text_of(c, v, "$dynamicAnchor"), node);
    add_anchor(c, PLACE_DYNAMIC, text_of(c, v, "$dynamicAnchor"), node);
}

const struct schema_node *schema_find_dynamic(const struct json_schema *schema, const struct schema_resource *resource,
                                              struct slice name)
{
    return find_place(schema, (struct place){ .kind = PLACE_DYNAMIC, .of = resource, .name = name });
}

/* ---- $ref ---- */

void schema_add_reference(struct schema_compiler *c, struct schema_node *node, struct slice text, bool is_dynamic)
{
    struct schema_reference *reference = ARENA_NEW(c->arena, struct schema_reference);

    *reference = (struct schema_reference){ .node = node, .text = text, .is_dynamic = is_dynamic, .path = c->path };
    *c->last_reference = reference;
    c->last_reference = &reference->next;
}

/* One part of a JSON pointer (RFC 6901), in place: ~1 is a slash, ~0 a tilde. */
static struct slice unescape(char *part, size_t n)
{
    size_t n_out = 0;

    for (size_t i = 0; i < n; i++) {
        bool is_escape = part[i] == '~' && i + 1 < n && (part[i + 1] == '0' || part[i + 1] == '1');

        part[n_out++] = !is_escape ? part[i] : part[i + 1] == '0' ? '~' : '/';
        i += is_escape;
    }
    return (struct slice){ part, n_out };
}

static struct json_value element_at(struct schema_compiler *c, struct json_value array, struct slice digits)
{
    struct json_iter it = json_iter(array);
    struct json_value item = { 0 };
    size_t at = 0;

    if (digits.n == 0 || digits.n > 9 || (digits.n > 1 && digits.p[0] == '0'))
        return item;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9')
            return item;
        at = 10 * at + (size_t)(digits.p[i] - '0');
    }
    for (size_t i = 0; i <= at; i++)
        if (!schema_take(&c->budget, 1) || !json_next(&it, NULL, &item))
            return (struct json_value){ 0 };
    return item;
}

static struct json_value step_into(struct schema_compiler *c, struct json_value v, struct slice name)
{
    if (json_type(v) == JSON_ARRAY)
        return element_at(c, v, name);
    return json_type(v) == JSON_OBJECT ? json_index_get(c->index, v, name) : (struct json_value){ 0 };
}

/* The node that a JSON pointer leads to; NULL: none. pointer ends in a NUL and is changed. */
static const struct schema_node *follow_pointer(struct schema_compiler *c, const struct schema_resource *resource,
                                                char *pointer)
{
    struct json_value v = resource->root;

    while (*pointer == '/' && v.doc && schema_take(&c->budget, 1)) {
        size_t n = strcspn(pointer + 1, "/");
        const struct schema_node *passed;

        v = step_into(c, v, unescape(pointer + 1, n));
        passed = v.doc ? schema_find_node(c->schema, v) : NULL;
        if (passed)
            resource = passed->resource;
        pointer += 1 + n;
    }
    return v.doc && *pointer == '\0' ? schema_node_of(c, v, resource) : NULL;
}

static const struct schema_resource *find_resource(struct schema_compiler *c, const struct schema_reference *reference)
{
    struct slice uri = uri_resolve(c->arena, reference->node->resource->uri, reference->text);

    return find_place(c->schema, (struct place){ .kind = PLACE_RESOURCE, .name = uri });
}

static const struct schema_node *find_target(struct schema_compiler *c, const struct schema_reference *reference,
                                             const struct schema_resource *resource, struct slice *ret_anchor)
{
    char *fragment = NULL;

    if (percent_decode(c->arena, uri_fragment(reference->text, NULL), false, &fragment, NULL) < 0)
        return NULL;
    *ret_anchor = (struct slice){ "", 0 };
    if (*fragment == '\0' || *fragment == '/')
        return follow_pointer(c, resource, fragment);
    *ret_anchor = slice_of(fragment);
    return find_place(c->schema, (struct place){ .kind = PLACE_ANCHOR, .of = resource, .name = *ret_anchor });
}

static void resolve_reference(struct schema_compiler *c, const struct schema_reference *reference)
{
    struct schema_node *node = reference->node;
    const struct schema_resource *resource;
    const struct schema_node *target;
    struct slice anchor;

    c->path = reference->path;
    if (!schema_take_bytes(&c->budget, reference->text.n + node->resource->uri.n))
        return;
    resource = find_resource(c, reference);
    if (!resource)
        return schema_refuse(c, "refers to %.*s outside of this schema; such references are never followed",
                             (int)MIN(reference->text.n, (size_t)100), reference->text.p);
    target = find_target(c, reference, resource, &anchor);
    if (!target)
        return schema_refuse(c, "refers to %.*s, which this schema does not have",
                             (int)MIN(reference->text.n, (size_t)120), reference->text.p);
    if (!reference->is_dynamic) {
        node->reference = target;
        return;
    }
    node->dynamic_reference = target;
    if (anchor.n > 0 && schema_find_dynamic(c->schema, resource, anchor))
        node->dynamic_name = anchor;
}

/* A reference may lead to a schema that is not read yet, with references of its own. */
void schema_resolve_references(struct schema_compiler *c)
{
    for (; c->references && !c->is_over; c->references = c->references->next)
        resolve_reference(c, c->references);
}
