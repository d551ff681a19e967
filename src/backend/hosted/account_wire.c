#include "backend/hosted/account_wire.h"

#include "base/fields.h"
#include "base/limits.h"
#include "base/visible.h"

#include <string.h>

enum { REF_CHARS = 40, NAME_CHARS = 256, WORD_CHARS = 64, SHOWN_BYTES = 300 };

static int err_invalid(struct err *e, const char *what, const char *why)
{
    return err_set(e, -EPROTO, "HOSTED_INVALID", "The hosted service's %s are not as its interface says: %s.", what,
                   why);
}

static int parse(struct arena *a, struct slice json, enum json_type type, const char *what, struct json_value *ret,
                 struct err *e)
{
    struct err why = { 0 };

    if (json.n > LIMIT_HOSTED_REPLY || json_parse(a, json, ret, &why) < 0)
        return err_invalid(e, what, "no JSON");
    return json_type(*ret) == type ? 0 : err_invalid(e, what, type == JSON_ARRAY ? "no list" : "no object");
}

static int read_fields(const struct field *fields, struct json_value v, void *into, struct arena *a, const char *what,
                       struct err *e)
{
    struct err why = { 0 };

    if (json_type(v) != JSON_OBJECT)
        return err_invalid(e, what, "an element is no object");
    return fields_read(fields, v, into, a, "", &why) < 0 ? err_invalid(e, what, why.text) : 0;
}

/* --- profile --- */

static const struct field profile_fields[] = {
    FIELD_STRING(struct account_profile, email, "primary_email", .max = LIMIT_STRING_DEFAULT),
    FIELD_STRING(struct account_profile, username, "username", .max = LIMIT_STRING_DEFAULT),
    FIELD_END,
};

int account_profile_read(struct arena *a, struct slice json, struct account_profile *ret, struct err *e)
{
    struct json_value v = { 0 };
    int r = parse(a, json, JSON_OBJECT, "facts about the account", &v, e);

    return r < 0 ? r : read_fields(profile_fields, v, ret, a, "facts about the account", e);
}

/* --- projects --- */

static const struct field project_fields[] = {
    FIELD_STRING(struct account_project, ref, "ref", FIELD_REQUIRED, .min = 1, .max = REF_CHARS),
    FIELD_STRING(struct account_project, name, "name", .max = NAME_CHARS, .def_str = ""),
    FIELD_STRING(struct account_project, region, "region", .max = WORD_CHARS, .def_str = ""),
    FIELD_STRING(struct account_project, status, "status", .max = WORD_CHARS, .def_str = ""),
    FIELD_STRING(struct account_project, created_at, "created_at", .max = WORD_CHARS, .def_str = ""),
    FIELD_END,
};

bool account_ref_is_valid(const char *ref)
{
    size_t n = strspn(ref, "abcdefghijklmnopqrstuvwxyz0123456789");

    return n > 0 && n <= REF_CHARS && ref[n] == '\0';
}

static int read_project(struct arena *a, struct json_value v, struct account_project *ret, struct err *e)
{
    int r = read_fields(project_fields, v, ret, a, "projects", e);

    if (r == 0 && (!ret->ref || !account_ref_is_valid(ret->ref)))
        r = err_invalid(e, "projects", "the ref of one has other characters than lower-case letters and digits");
    return r;
}

int account_projects_read(struct arena *a, struct slice json, struct account_projects *ret, struct err *e)
{
    struct account_project *items;
    struct json_value v = { 0 }, item = { 0 };
    size_t n = 0;
    int r = parse(a, json, JSON_ARRAY, "projects", &v, e);

    if (r == 0 && json_length(v) > LIMIT_HOSTED_PROJECTS)
        r = err_invalid(e, "projects", "there are too many");
    if (r < 0)
        return r;
    items = arena_array(a, json_length(v) + 1, sizeof(*items));
    for (struct json_iter it = json_iter(v); r == 0 && json_next(&it, NULL, &item);)
        r = read_project(a, item, &items[n++], e);
    *ret = (struct account_projects){ items, n };
    return r;
}

/* --- keys --- */

struct key {
    const char *name, *type, *api_key;
};

static const struct field key_fields[] = {
    FIELD_STRING(struct key, name, "name", .max = NAME_CHARS, .def_str = ""),
    FIELD_STRING(struct key, type, "type", .max = WORD_CHARS, .def_str = "legacy"),
    FIELD_STRING(struct key, api_key, "api_key", .max = LIMIT_HOSTED_KEY, .def_str = ""),
    FIELD_END,
};

bool account_key_is_valid(const char *key)
{
    const char *at = key;

    while (*at > ' ' && *at < 127)
        at++;
    return at > key && *at == '\0' && (size_t)(at - key) <= LIMIT_HOSTED_KEY;
}

/* A secret that the service shows only in part has dots or asterisks in it. */
static bool is_masked(const char *key)
{
    return strchr(key, '*') || strstr(key, "..") || !account_key_is_valid(key);
}

/* The new form goes before the legacy one, whatever their order. */
static void take_key(const struct key *key, struct account_keys *ret)
{
    bool is_legacy = strcmp(key->type, "legacy") == 0;
    bool is_open = strcmp(key->type, "publishable") == 0 || (is_legacy && strcmp(key->name, "anon") == 0);
    bool is_secret = strcmp(key->type, "secret") == 0 || (is_legacy && strcmp(key->name, "service_role") == 0);

    if (is_masked(key->api_key))
        return;
    if (is_open && (!ret->publishable || (ret->is_legacy && !is_legacy))) {
        ret->publishable = key->api_key;
        ret->is_legacy = is_legacy;
    }
    if (is_secret && (!ret->secret || (!is_legacy && strncmp(ret->secret, "sb_", 3) != 0)))
        ret->secret = key->api_key;
}

int account_keys_read(struct arena *a, struct slice json, struct account_keys *ret, struct err *e)
{
    struct json_value v = { 0 }, item = { 0 };
    int r = parse(a, json, JSON_ARRAY, "keys", &v, e);

    *ret = (struct account_keys){ 0 };
    if (r == 0 && json_length(v) > LIMIT_HOSTED_PROJECTS)
        r = err_invalid(e, "keys", "there are too many");
    for (struct json_iter it = json_iter(v); r == 0 && json_next(&it, NULL, &item);) {
        struct key key = { .name = "", .type = "legacy", .api_key = "" };

        r = read_fields(key_fields, item, &key, a, "keys", e);
        if (r == 0)
            take_key(&key, ret);
    }
    return r;
}

/* --- answers to SQL, and refusals --- */

int account_rows_read(struct arena *a, struct slice json, struct json_value *ret, struct err *e)
{
    return parse(a, json, JSON_ARRAY, "rows", ret, e);
}

const char *account_message_read(struct arena *a, struct slice json)
{
    const char *text;
    struct json_value v;
    struct buf out;

    if (json.n > LIMIT_HOSTED_REPLY || json_parse(a, json, &v, NULL) < 0)
        return NULL;
    text = json_cstr(json_get(v, "message"));
    if (!text || !*text)
        return NULL;
    buf_init(&out, 8 * SHOWN_BYTES);
    visible_add(&out, (struct slice){ text, strnlen(text, SHOWN_BYTES) }, VISIBLE_LINE);
    return buf_to_arena(&out, a);
}
