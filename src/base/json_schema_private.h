/* What the files of json_schema.h share: the compiled form of a schema.
 *
 *     json_schema_compile.c   reads each schema into a node, by a table of keywords
 *     json_schema_ref.c       $id, $anchor, $ref: finds the nodes that references lead to
 *     json_schema_check.c     applies a node to a value
 *     json_schema_members.c   the rules of arrays and objects
 *     json_schema_value.c     equality, sets and numbers
 */
#pragma once

#include "base/json_names.h"
#include "base/json_schema.h"
#include "base/pattern.h"

#include <stdarg.h>

enum { SCHEMA_BYTES_A_STEP = 64, SCHEMA_PATH_SIZE = sizeof(((struct err_field *)0)->field) };

/* Steps taken, of compiling or of one check. */
struct schema_budget {
    size_t n, max;
};

/* Counts n steps. False: the limit is exceeded. */
static inline bool schema_take(struct schema_budget *budget, size_t n)
{
    budget->n += MIN(n, budget->max + 1);
    return budget->n <= budget->max;
}

static inline bool schema_take_bytes(struct schema_budget *budget, size_t n)
{
    return schema_take(budget, 1 + n / SCHEMA_BYTES_A_STEP);
}

/* ---- values (json_schema_value.c) ---- */

/* Walks within values: equality and hashes. */
struct schema_walk {
    struct schema_budget *budget;
    struct json_index *index;
};

/* Values sorted by a hash that is the same for equal values. */
struct schema_set {
    const void *doc;
    struct schema_hashed {
        uint64_t hash;
        size_t at;
    } * items;
    size_t n;
};

bool schema_is_number(struct json_value v);
bool schema_is_integer(struct json_value v);
/* Negative, 0 or positive. Both are numbers. */
int schema_compare_numbers(struct json_value one, struct json_value other);
/* In decimal, as both are written: 0.0075 is a multiple of 0.0001. divisor is above 0. */
bool schema_is_multiple(struct json_value v, struct json_value divisor);
/* False also when the budget ends. */
bool schema_is_same(const struct schema_walk *w, struct json_value one, struct json_value other);
struct schema_set schema_set_of(const struct schema_walk *w, struct arena *a, struct json_value list);
bool schema_set_has(const struct schema_walk *w, const struct schema_set *set, struct json_value v);
/* Whether two values of the set are equal, and their places in the list. */
bool schema_set_find_equal(const struct schema_walk *w, const struct schema_set *set, struct json_value *ret_one,
                           struct json_value *ret_other);

/* ---- the path to a value ---- */

struct schema_path {
    char text[SCHEMA_PATH_SIZE]; /* cut when it is longer */
    size_t n;
};

void schema_path_init(struct schema_path *path, const char *start);
/* Both return the length before, for schema_path_cut(). */
size_t schema_path_add_member(struct schema_path *path, struct slice name);
size_t schema_path_add_item(struct schema_path *path, size_t at);
void schema_path_cut(struct schema_path *path, size_t n);

/* ---- compiled schemas ---- */

enum schema_type {
    SCHEMA_NULL = 1,
    SCHEMA_BOOLEAN = 2,
    SCHEMA_OBJECT = 4,
    SCHEMA_ARRAY = 8,
    SCHEMA_NUMBER = 16,
    SCHEMA_STRING = 32,
    SCHEMA_INTEGER = 64,
};

enum schema_dialect { DIALECT_07 = 1, DIALECT_2020 = 2, DIALECT_ALL = 3 };

/* The part of a document under one $id. */
struct schema_resource {
    struct slice uri; /* without fragment; "": the document has none */
    enum schema_dialect dialect;
    struct json_value root;
};

struct schema_range {
    uint64_t least, most;
};

struct schema_list {
    const struct schema_node **items;
    size_t n;
};

/* Sorted by name. */
struct schema_members {
    struct schema_member {
        struct slice name;
        const struct schema_node *node;
    } * items;
    size_t n;
};

struct schema_patterned {
    const struct pattern *pattern;
    const struct schema_node *node;
};

/* When the object has the member: `required` are too (absent: none), and it keeps to `node` (NULL: anything). */
struct schema_dependency {
    struct slice name;
    struct json_value required;
    const struct schema_node *node;
};

struct schema_node {
    const struct schema_resource *resource;
    bool is_false;  /* the schema `false` */
    bool has_logic; /* any of: all … dynamic_reference */
    bool has_rules; /* any rule besides logic */

    unsigned types;         /* 0: any */
    const char *types_text; /* "a string or null" */
    struct json_value only;
    const char *only_text;
    const struct schema_set *choices; /* NULL: any */
    const char *choices_text;
    struct json_value minimum, exclusive_minimum, maximum, exclusive_maximum, multiple_of;
    struct schema_range length, items_range, members_range, contains_range;
    const struct pattern *pattern;

    struct schema_list prefix;
    const struct schema_node *items, *contains, *unevaluated_items;
    bool are_unique, is_tuple; /* is_tuple: prefix is items as draft-07 has it */

    struct schema_members properties;
    struct schema_patterned *patterns;
    size_t n_patterns;
    const struct schema_node *additional, *names, *unevaluated_members;
    const char *names_text; /* "; known are a, b" */
    struct json_value required;
    struct schema_dependency *dependencies;
    size_t n_dependencies;

    struct schema_list all, any, one;
    const struct schema_node *denied, *condition, *when_true, *when_false, *reference, *dynamic_reference;
    struct slice dynamic_name; /* the $dynamicAnchor that dynamic_reference has; "": it has none */
};

struct json_schema {
    const struct schema_node *root;
    void *places; /* of tsearch(): nodes, resources and anchors */
};

/* ---- compiling ---- */

struct schema_reference {
    struct schema_reference *next;
    struct schema_node *node;
    struct slice text;
    bool is_dynamic;
    struct schema_path path;
};

struct schema_compiler {
    struct arena *arena;
    struct schema_budget budget;
    struct json_index *index;
    struct json_schema *schema;
    struct schema_path path;
    struct schema_reference *references, **last_reference;
    struct err *e;
    size_t n_nodes, n_patterns;
    int r;        /* the first failure */
    bool is_over; /* a limit is reached: nothing more is read */
};

struct json_value schema_get(struct json_index *index, struct json_value object, const char *name);
/* Adds a reason at the compiler's path. */
void schema_refuse(struct schema_compiler *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The node of the schema at v, read when it was not yet. Never NULL. */
const struct schema_node *schema_node_of(struct schema_compiler *c, struct json_value v,
                                         const struct schema_resource *resource);

/* json_schema_ref.c */
struct schema_node *schema_find_node(const struct json_schema *schema, struct json_value v);
void schema_add_node(struct schema_compiler *c, struct json_value v, struct schema_node *node);
/* The resource that v belongs to: a new one when v has an $id. */
const struct schema_resource *schema_enter(struct schema_compiler *c, struct json_value v,
                                           const struct schema_resource *outer);
void schema_add_anchors(struct schema_compiler *c, struct json_value v, struct schema_node *node);
void schema_add_reference(struct schema_compiler *c, struct schema_node *node, struct slice text, bool is_dynamic);
void schema_resolve_references(struct schema_compiler *c);
/* The node with this $dynamicAnchor in the resource; NULL: none. */
const struct schema_node *schema_find_dynamic(const struct json_schema *schema, const struct schema_resource *resource,
                                              struct slice name);
void schema_free_places(void *schema);

/* json_schema_uri.c */
/* RFC 3986, section 5.2: the reference as seen from the base, without its fragment. */
struct slice uri_resolve(struct arena *a, struct slice base, struct slice reference);
/* What follows the #; has_fragment may be NULL. */
struct slice uri_fragment(struct slice reference, bool *has_fragment);

/* ---- checking ---- */

/* The members or items of one object or array that some schema has evaluated: what unevaluated… leaves out. */
struct schema_seen {
    uint64_t *bits;
    size_t n;
};

/* The resources that the schemas being applied belong to, innermost first: the dynamic scope. */
struct schema_scope {
    const struct schema_scope *outer;
    const struct schema_resource *resource;
};

/* The first violation of a schema whose violations are not reported. */
struct schema_note {
    char text[120];
    bool is_set;
};

enum schema_stop { STOP_NONE, STOP_STEPS, STOP_PATTERN_STEPS, STOP_PATTERN_HEAP, STOP_DEPTH };

struct schema_check {
    const struct json_schema *schema;
    struct schema_walk walk;
    struct schema_budget budget;
    struct arena *arena;
    struct schema_path path;
    struct err *e;
    bool is_quiet;            /* whether v fits is all that counts */
    struct schema_note *note; /* of a quiet check; may be NULL */
    unsigned depth;
    enum schema_stop stop; /* why the check ended before its end */
};

/* What is applied: a value, the schemas around the one that is applied, and what they wish to know. */
struct schema_place {
    struct json_value v;
    struct schema_seen *seen; /* NULL: no schema around needs it */
    const struct schema_scope *scope;
};

int schema_report(struct schema_check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
int schema_report_range(struct schema_check *c, const struct schema_range *range, uint64_t n, const char *one,
                        const char *many);
/* Counts n steps; false: the check ends. */
bool schema_go_on(struct schema_check *c, size_t n);
/* Once no further violation can be stored, the rest is not read. */
bool schema_is_enough(const struct schema_check *c, int r);
static inline int schema_worse(int r, int r_more)
{
    return r_more < 0 ? r_more : r;
}
int schema_apply(struct schema_check *c, const struct schema_node *node, const struct schema_place *p);
/* Whether v fits; reports nothing. */
bool schema_fits(struct schema_check *c, const struct schema_node *node, const struct schema_place *p);
bool schema_matches(struct schema_check *c, const struct pattern *pattern, struct slice text);

struct schema_seen *schema_seen_new(struct schema_check *c, struct json_value v);
void schema_seen_add(struct schema_seen *seen, size_t at); /* seen may be NULL */
void schema_seen_add_all(struct schema_seen *seen);        /* seen may be NULL */
void schema_seen_merge(struct schema_check *c, struct schema_seen *seen, const struct schema_seen *other);

int schema_check_array(struct schema_check *c, const struct schema_node *node, const struct schema_place *p);
int schema_check_object(struct schema_check *c, const struct schema_node *node, const struct schema_place *p);
int schema_check_unevaluated(struct schema_check *c, const struct schema_node *node, const struct schema_place *p);
