/* Registering the vector store of a data scope (specification, "Vector store": providers, register, config). */
#include "api/api.h"
#include "api/resources/metered.h"
#include "api/routes.h"
#include "base/limits.h"
#include "models/vector_space.h"

enum { CONFIG_VALUE_CHARS = 4096 };

#define MASK "****"

struct register_body {
    const char *provider;
    struct json_value config;
};

static const struct field register_fields[] = {
    FIELD_STRING(struct register_body, provider, "provider", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_OBJECT(struct register_body, config, "config", .help = "the provider's fields"),
    FIELD_END,
};

static const struct field field_shape[] = {
    SHAPE_STRING("name"),        SHAPE_STRING("label"),  SHAPE_STRING("type", .help = "string or password"),
    SHAPE_STRING("placeholder"), SHAPE_BOOL("required"), FIELD_END,
};

static const struct field provider_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("label"),
    SHAPE_STRING("description"),
    SHAPE_LIST("fields", field_shape),
    FIELD_END,
};

static const struct field providers_answer[] = { SHAPE_LIST("providers", provider_shape), FIELD_END };
static const struct field register_answer[] = { SHAPE_STRING("message"), FIELD_END };
static const struct field config_answer[] = {
    SHAPE_STRING("provider"),
    SHAPE_OBJECT("config", NULL, .help = "secrets are shown as " MASK),
    FIELD_END,
};

/* ---- providers ---- */

static void write_provider(struct json_writer *w, const struct vectors_provider *p)
{
    json_begin_object(w);
    json_add_string(w, "name", p->name);
    json_add_string(w, "label", p->label);
    json_add_string(w, "description", p->description);
    json_begin_array_as(w, "fields");
    for (const struct vectors_field *f = p->fields; f->name; f++) {
        json_begin_object(w);
        json_add_string(w, "name", f->name);
        json_add_string(w, "label", f->label);
        json_add_string(w, "type", f->type);
        json_add_string(w, "placeholder", f->placeholder);
        json_add_bool(w, "required", f->is_required);
        json_end(w);
    }
    json_end(w);
    json_end(w);
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    json_begin_array_as(&res->json, "providers");
    for (const struct vectors_provider *p = vectors_providers; p->name; p++)
        write_provider(&res->json, p);
    json_end(&res->json);
    return 0;
}

/* ---- register ---- */

static int refuse_provider(struct arena *a, struct err *e)
{
    const char *known = "";

    for (const struct vectors_provider *p = vectors_providers; p->name; p++)
        known = arena_printf(a, "%s%s%s", known, *known ? ", " : "", p->name);
    return err_add_field(e, "provider", "must be one of %s", known);
}

static int check_value(const struct vectors_field *f, const char *name, struct json_value value, struct err *e)
{
    char path[80];
    const char *text = json_cstr(value);

    snprintf(path, sizeof(path), "config.%s", name);
    if (json_is_absent(value))
        return f->is_required ? err_add_field(e, path, "is required") : 0;
    if (!text)
        return err_add_field(e, path, "must be a string");
    if (f->is_required && !*text)
        return err_add_field(e, path, "must not be empty");
    if (strlen(text) > CONFIG_VALUE_CHARS)
        return err_add_field(e, path, "must be at most %d bytes", CONFIG_VALUE_CHARS);
    return 0;
}

static int check_names(const struct vectors_field *f, struct json_value given, struct err *e)
{
    char path[80];

    if (!f->alias || json_is_absent(json_get(given, f->name)) || json_is_absent(json_get(given, f->alias)))
        return 0;
    snprintf(path, sizeof(path), "config.%s", f->alias);
    return err_add_field(e, path, "is another name of %s: give one of both", f->name);
}

/* Keeps only the members that the provider defines. */
static int clean_config(struct arena *a, const struct vectors_provider *p, struct json_value given,
                        struct json_value *ret, struct err *e)
{
    struct buf text;
    struct json_writer w;
    int r = 0, r_field;

    buf_init(&text, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &text);
    json_begin_object(&w);
    for (const struct vectors_field *f = p->fields; f->name; f++) {
        const char *name;
        struct json_value value = vectors_field_value(f, given, &name);

        r_field = check_names(f, given, e);
        if (r_field == 0)
            r_field = check_value(f, name, value, e);
        r = r_field < 0 ? r_field : r;
        if (r_field == 0 && !json_is_absent(value))
            json_add_value(&w, name, value);
    }
    json_end(&w);
    if (r == 0)
        r = json_parse(a, buf_slice(&text), ret, e);
    buf_clear(&text);
    return r;
}

static void write_message(struct json_writer *w, struct arena *a, const struct vectors_provider *provider,
                          const char *before)
{
    const struct vectors_provider *other = before ? vectors_provider_find(before) : NULL;
    const char *text = arena_printf(a, "The vector store %s is registered.", provider->name);

    if (before && (!other || other->open != provider->open))
        text = arena_printf(
            a, "%s Vectors in %s were neither moved nor deleted: they are found again when it is registered again.",
            text, before);
    json_add_string(w, "message", text);
}

static int register_store(struct request *req, struct response *res, struct err *e)
{
    const struct register_body *body = req->body;
    const struct vectors_provider *provider = vectors_provider_find(body->provider);
    struct vector_stores *stores = req->api->models->vector_stores;
    struct vector_registration before = { 0 }, reg = { 0 };
    const struct net_wait wait = vector_wait_of(metered_call(req));
    int r;

    if (!provider)
        return refuse_provider(req->arena, e);
    reg.provider = provider->name;
    r = clean_config(req->arena, provider, body->config, &reg.config, e);
    if (r == 0)
        r = vector_stores_registered(stores, req->arena, req->caller->scope, &before, e);
    if (r == 0)
        r = vector_stores_register(stores, &wait, req->arena, req->caller->scope, &reg, e);
    if (r < 0)
        return r;
    write_message(&res->json, req->arena, provider, before.provider);
    return 0;
}

/* ---- config ---- */

/* scheme://user:password@host/path?parameters: the password is masked, parameters (they may be secrets) are cut off. An
 * @ before the ? ends the password; an @ after the ? may be part of the password. In doubt nothing is shown. */
static const char *mask_url(struct arena *a, const char *url)
{
    const char *host = strstr(url, "://"), *at, *colon;

    if (!host)
        return MASK;
    host += 3;
    at = memrchr(host, '@', strcspn(host, "/"));
    if (at && memchr(host, '?', (size_t)(at - host)))
        return MASK;
    colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    if (!colon)
        return arena_strndup(a, url, strcspn(url, "?"));
    return arena_printf(a, "%.*s:" MASK "%.*s", (int)(colon - url), url, (int)strcspn(at, "?"), at);
}

static const char *mask(struct arena *a, const struct vectors_field *f, const char *value)
{
    if (f->secrecy == VECTORS_PUBLIC || !*value)
        return value;
    return f->secrecy == VECTORS_ADDRESS ? mask_url(a, value) : MASK;
}

static int show_config(struct request *req, struct response *res, struct err *e)
{
    struct vector_registration reg;
    const struct vectors_provider *provider;
    int r = vector_stores_registered(req->api->models->vector_stores, req->arena, req->caller->scope, &reg, e);

    if (r < 0)
        return r;
    provider = vectors_provider_find(reg.provider);
    json_add_string(&res->json, "provider", reg.provider);
    json_begin_object_as(&res->json, "config");
    for (const struct vectors_field *f = provider ? provider->fields : NULL; f && f->name; f++) {
        const char *name, *value = json_cstr(vectors_field_value(f, reg.config, &name));

        if (value)
            json_add_string(&res->json, name, mask(req->arena, f, value));
    }
    json_end(&res->json);
    return 0;
}

const struct route vector_config_routes[] = {
    { .method = HTTP_GET,
      .path = "/sdk/llm/vectors/providers",
      .permission = PERM_NONE,
      .is_sdk = true,
      .answer = providers_answer,
      .handler = list_providers,
      .summary = "Vector stores that can be registered",
      .tag = "Vectors" },
    { .method = HTTP_POST,
      .path = "/sdk/llm/vectors/register",
      .permission = PERM_VECTORS_WRITE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      ROUTE_BODY(register_fields, struct register_body),
      .answer = register_answer,
      .handler = register_store,
      .summary = "Use another vector store from now on",
      .tag = "Vectors" },
    { .method = HTTP_GET,
      .path = "/sdk/llm/vectors/config",
      .permission = PERM_VECTORS_READ,
      .is_sdk = true,
      .answer = config_answer,
      .handler = show_config,
      .summary = "The vector store in use",
      .tag = "Vectors" },
    ROUTE_END,
};
