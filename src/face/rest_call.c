#include "face/rest_private.h"

#include "backend/functions.h"

/* ---- arguments ---- */

static bool is_argument(const char *const *arguments, struct slice name)
{
    for (; *arguments; arguments++)
        if (slice_eq_str(name, *arguments))
            return true;
    return false;
}

static void add_name(struct buf *out, struct slice name)
{
    buf_printf(out, "%s%.*s", out->n ? ", " : "", (int)utf8_head(name, 64).n, name.p);
}

/* The function is chosen by its name and the names of its arguments. */
static int refuse_function(const struct rest_work *w, struct json_value arguments, struct err *e)
{
    const char *name = w->in->name, *names;
    struct json_value value;
    struct slice key;
    struct buf list;

    buf_init(&list, KIB(1));
    for (struct json_iter it = json_iter(arguments); json_next(&it, &key, &value);)
        add_name(&list, key);
    names = list.overflowed || !list.n ? NULL : buf_to_arena(&list, w->arena);
    buf_clear(&list);
    if (names)
        err_set(e, -ENOENT, "FUNCTION_NOT_FOUND",
                "Could not find the function public.%.64s(%.300s) in the schema cache", name, names);
    else
        err_set(e, -ENOENT, "FUNCTION_NOT_FOUND",
                "Could not find the function public.%.64s without parameters in the schema cache", name);
    err_add_extra(e, "details", "No function of this name takes these parameters.");
    return -ENOENT;
}

static int check_arguments(const struct rest_work *w, struct json_value given, struct err *e)
{
    const char *const *arguments = functions_arguments(w->backend, w->in->name);
    struct json_value value;
    struct slice name;

    if (!arguments)
        return refuse_function(w, given, e);
    for (struct json_iter it = json_iter(given); json_next(&it, &name, &value);)
        if (!is_argument(arguments, name))
            return refuse_function(w, given, e);
    return 0;
}

/* The answer is one value: there is nothing to filter, order or embed. Of a GET, other parameters are arguments. */
static int check_params(const struct rest_work *w, const struct rest_param *params, size_t n, struct err *e)
{
    static const char *const words[] = { "select", "order", "limit", "offset", "and", "or", "not.and", "not.or" };

    for (size_t i = 0; i < n; i++) {
        bool is_word = false;

        if (strcmp(params[i].name, "select") == 0 && strcmp(params[i].value, "*") == 0)
            continue;
        for (size_t k = 0; k < ARRAY_SIZE(words); k++)
            is_word = is_word || strcmp(params[i].name, words[k]) == 0;
        if (is_word || w->in->method != HTTP_GET)
            return err_set(e, -EINVAL, "BAD_REST_QUERY",
                           "`%.64s` is not served here: the answer of a function is one value.", params[i].name);
    }
    return 0;
}

static int arguments_of_params(const struct rest_work *w, const struct rest_param *params, size_t n,
                               struct json_value *ret, struct err *e)
{
    struct json_writer json;
    struct buf text;

    buf_init(&text, 8 * (size_t)LIMIT_TARGET_BYTES);
    json_write_init(&json, &text);
    json_begin_object(&json);
    for (size_t i = 0; i < n; i++)
        if (strcmp(params[i].name, "select") != 0)
            json_add_string(&json, params[i].name, params[i].value);
    json_end(&json);
    return json_parse(w->arena, slice_of(buf_to_arena(&text, w->arena)), ret, e);
}

static int read_arguments(const struct rest_work *w, struct json_value *ret, struct err *e)
{
    struct rest_param *params = NULL;
    size_t n = 0;
    int r = rest_params_read(w->arena, w->in->query, &params, &n, e);

    if (r == 0)
        r = check_params(w, params, n, e);
    if (r < 0)
        return r;
    if (w->in->method == HTTP_GET)
        return arguments_of_params(w, params, n, ret, e);
    if (w->in->body.n == 0)
        return 0;
    r = rest_read_body(w, ret, e);
    if (r == 0 && json_type(*ret) != JSON_OBJECT)
        return err_set(e, -EINVAL, "BAD_REST_BODY", "The body must be an object: the arguments by their names.");
    return r;
}

/* ---- the call ---- */

static int call(struct rest_work *w, struct json_value arguments, struct rest_answer *ret, struct err *e)
{
    const struct function_call call = { w->in->name, arguments, rest_only_user(w) };
    char *json = NULL;
    int r = functions_call(w->backend, &call, w->arena, &json, e);

    if (r == -EINVAL && e && strcmp(e->code, "VALIDATION_ERROR") == 0)
        snprintf(e->code, sizeof(e->code), "BAD_ARGUMENT");
    if (r < 0)
        return r;
    ret->status = 200;
    ret->is_object = w->wants_object;
    ret->body = slice_of(json);
    ret->content_range = rest_content_range(w->arena, 0, 0, w->prefer.count ? 1 : -1);
    ret->preference_applied = rest_prefer_applied(w->arena, &w->prefer, QUERY_SELECT);
    return 0;
}

int rest_call(struct backend *b, const struct face_caller *who, const struct rest_request *in, struct arena *a,
              struct rest_answer *ret, struct err *e)
{
    struct rest_work w = { .backend = b, .who = who, .in = in, .arena = a };
    struct json_value arguments = { 0 };
    int r = rest_read_headers(&w, e);

    if (r == 0)
        r = read_arguments(&w, &arguments, e);
    if (r == 0)
        r = check_arguments(&w, arguments, e);
    if (r == 0)
        r = rest_check_caller(&w, "function", e);
    if (r == 0 && in->method == HTTP_GET && functions_writes(b, in->name))
        r = err_set(e, -EPERM, "READ_ONLY_CALL", "cannot execute UPDATE in a read-only transaction");
    return r < 0 ? r : call(&w, arguments, ret, e);
}
