#include "http/match.h"

#include <assert.h>
#include <stdlib.h>

struct node {
    struct slice literal;                          /* owned text; empty in a parameter node */
    struct node *next;                             /* owned: siblings with other literals */
    struct node *first_literal, *parameter, *rest; /* owned children */
    const void *rows[HTTP_METHODS];                /* borrowed */
    bool is_leaf;                                  /* a pattern ends here */
};

struct http_matcher {
    struct node root;
};

/* State of one look-up; the first row found is kept. */
struct search {
    enum http_method method;
    struct http_match *match;
    struct slice params[LIMIT_ROUTE_PARAMS];
    size_t n_params;
};

struct http_matcher *http_matcher_new(void)
{
    return xcalloc(1, sizeof(struct http_matcher));
}

static void clear_node(struct node *node);

static struct node *free_node(struct node *node)
{
    if (!node)
        return NULL;
    clear_node(node);
    free((char *)(uintptr_t)node->literal.p);
    free(node);
    return NULL;
}

static void clear_node(struct node *node)
{
    for (struct node *child = node->first_literal, *next; child; child = next) {
        next = child->next;
        free_node(child);
    }
    free_node(node->parameter);
    free_node(node->rest);
}

struct http_matcher *http_matcher_free(struct http_matcher *m)
{
    if (!m)
        return NULL;
    clear_node(&m->root);
    free(m);
    return NULL;
}

/* The segment after the slash at the start of path; path moves to the next slash or the end. */
static struct slice next_segment(const char **path)
{
    const char *segment = *path + 1, *end = strchrnul(segment, '/');

    *path = end;
    return (struct slice){ segment, (size_t)(end - segment) };
}

static struct node *find_literal(const struct node *node, struct slice segment)
{
    struct node *child = node->first_literal;

    while (child && !slice_eq(child->literal, segment))
        child = child->next;
    return child;
}

/* "{name*}" */
static bool is_rest(struct slice segment)
{
    return segment.n > 3 && segment.p[0] == '{' && segment.p[segment.n - 2] == '*' && segment.p[segment.n - 1] == '}';
}

static struct node *at_place(struct node **place)
{
    if (!*place)
        *place = xcalloc(1, sizeof(**place));
    return *place;
}

static struct node *grow_literal(struct node *node, struct slice segment)
{
    struct node *child = find_literal(node, segment);

    if (child)
        return child;
    child = xcalloc(1, sizeof(*child));
    child->literal = (struct slice){ strndup(segment.p, segment.n), segment.n };
    child->next = node->first_literal;
    node->first_literal = child;
    return child;
}

static struct node *grow(struct node *node, struct slice segment)
{
    if (segment.p[0] == ':')
        return at_place(&node->parameter);
    return is_rest(segment) ? at_place(&node->rest) : grow_literal(node, segment);
}

static int check_pattern(const char *pattern, struct err *e)
{
    const char *rest = pattern;
    size_t n_params = 0;

    if (pattern[0] != '/')
        return err_set(e, -EINVAL, "INTERNAL_ERROR", "The route pattern \"%s\" must start with '/'.", pattern);
    while (*rest && strcmp(pattern, "/") != 0) {
        struct slice segment = next_segment(&rest);

        if (segment.n == 0 || slice_eq_str(segment, ":"))
            return err_set(e, -EINVAL, "INTERNAL_ERROR", "The route pattern \"%s\" must not have an empty segment.",
                           pattern);
        if (memchr(segment.p, '{', segment.n) && (!is_rest(segment) || *rest))
            return err_set(e, -EINVAL, "INTERNAL_ERROR",
                           "The route pattern \"%s\" may have braces in a last segment like {path*} only.", pattern);
        n_params += segment.p[0] == ':' || is_rest(segment);
    }
    if (n_params > LIMIT_ROUTE_PARAMS)
        return err_set(e, -EINVAL, "INTERNAL_ERROR", "The route pattern \"%s\" must have at most %d parameters.",
                       pattern, LIMIT_ROUTE_PARAMS);
    return 0;
}

int http_matcher_add(struct http_matcher *m, enum http_method method, const char *pattern, const void *row,
                     struct err *e)
{
    struct node *node = &m->root;
    const char *rest = pattern;
    int r = check_pattern(pattern, e);

    if (r < 0)
        return r;
    while (rest[0] && rest[1])
        node = grow(node, next_segment(&rest));
    if (node->rows[method])
        return err_set(e, -EEXIST, "INTERNAL_ERROR", "The route %s %s stands twice.", http_method_name(method),
                       pattern);
    node->rows[method] = row;
    node->is_leaf = true;
    return 0;
}

static void reach(struct search *s, const struct node *node)
{
    struct http_match *match = s->match;

    if (!node->is_leaf)
        return;
    match->is_path_known = true;
    for (enum http_method m = 0; m < HTTP_METHODS; m++)
        match->allowed |= node->rows[m] ? 1u << m : 0;
    if (match->row || !node->rows[s->method])
        return;
    match->row = node->rows[s->method];
    match->n_params = s->n_params;
    memcpy(match->params, s->params, sizeof(s->params));
}

static void search(struct search *s, const struct node *node, const char *path);

static void search_with(struct search *s, const struct node *child, struct slice param, const char *path)
{
    assert(s->n_params < LIMIT_ROUTE_PARAMS);
    s->params[s->n_params++] = param;
    search(s, child, path);
    s->n_params--;
}

/* Tries the literal, then the parameter, then the rest of the path at each step; all are tried, to collect the allowed
 * methods of all. One trailing slash is ignored. Recursion is as deep as the longest pattern. */
static void search(struct search *s, const struct node *node, const char *path)
{
    const char *rest = path, *below = path[0] ? path + 1 : path;
    const struct node *literal;
    struct slice segment;

    if (!*below) {
        reach(s, node);
    } else {
        segment = next_segment(&rest);
        literal = find_literal(node, segment);
        if (literal)
            search(s, literal, rest);
        if (node->parameter && segment.n > 0)
            search_with(s, node->parameter, segment, rest);
    }
    if (node->rest)
        search_with(s, node->rest, slice_of(below), "");
}

void http_matcher_find(const struct http_matcher *m, enum http_method method, const char *path, struct http_match *ret)
{
    struct search s = { .method = method, .match = ret };

    *ret = (struct http_match){ 0 };
    search(&s, &m->root, path);
}
