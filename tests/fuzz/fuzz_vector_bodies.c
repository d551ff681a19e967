/* Bodies of the vector routes, one per line, through tables, rules and handlers into a real store: u<upsert>, q<query>,
 * d<delete>. The answer is JSON and agrees with the stored rows. */
#include "api/api.h"
#include "api/routes.h"
#include "base/hash.h"
#include "base/limits.h"
#include "models/models.h"
#include "models/vector_stores.h"
#include "os/files.h"
#include "settings/settings.h"
#include "store/store.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static char folder[] = "/dev/shm/hearth-fuzz-XXXXXX"; /* in memory, so that no disk slows the fuzzer */
static struct models models;
static struct api api = { .models = &models };
static struct http_exchange exchange; /* nobody leaves, nobody pays */
static const struct caller caller = { .kind = CALLER_KEY, .key_id = "fuzz", .scope = "fuzz" };

static void close_world(void)
{
    vector_stores_close(models.vector_stores);
    store_close(api.store);
    settings_free(api.settings);
    if (dir_remove(folder, NULL) < 0)
        perror(folder);
}

static void open_world(void)
{
    static char path[64];
    struct vector_stores_config c = {
        .embedded = { .path = path, .list_above_rows = 1000, .target_recall = 0.9, .memory_bytes = 1 << 20 }
    };
    struct err e = { 0 };

    assert(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/vectors.db", folder);
    assert(hash_init(&e) == 0 && store_open(folder, &api.store, &e) == 0);
    assert(settings_load(&(struct settings_sources){ 0 }, &api.settings, &e) == 0);
    models.store = c.store = api.store;
    models.settings = api.settings;
    assert(vector_stores_open(&c, &models.vector_stores, &e) == 0);
    atexit(close_world);
}

static const struct route *route_of(const char *end)
{
    for (const struct route *route = vector_routes; route->path; route++)
        if (strcmp(strrchr(route->path, '/'), end) == 0)
            return route;
    abort();
}

/* Like dispatch; returns the answer's JSON, or an absent value when the body was refused. */
static struct json_value request(struct arena *a, const struct route *route, struct slice text, struct buf *out)
{
    struct request req = { .api = &api, .arena = a, .route = route, .caller = &caller, .exchange = &exchange };
    struct response res = { 0 };
    struct json_value answer = { 0 };
    struct err e = { 0 };
    int r = json_parse(a, text, &req.body_json, &e);

    if (r < 0 || json_type(req.body_json) != JSON_OBJECT)
        return answer;
    req.body = arena_alloc(a, route->body_size);
    r = fields_read(route->body, req.body_json, (void *)req.body, a, "", &e);
    if (route->check_body && route->check_body(&req, req.body, &e) < 0)
        r = -EINVAL;
    if (r < 0)
        return answer;
    if (route->needs_long)
        route->needs_long(&req);
    buf_reset(out);
    json_write_init(&res.json, out);
    json_begin_object(&res.json);
    r = route->handler(&req, &res, &e);
    assert(r == 0 || (*e.text && *e.code));
    if (r < 0)
        return answer;
    json_end(&res.json);
    r = json_parse(a, buf_slice(out), &answer, &e);
    assert(r == 0);
    return answer;
}

static void check_results(struct json_value answer)
{
    struct json_iter it = json_iter(json_get(answer, "results"));
    struct json_value hit;

    while (json_next(&it, NULL, &hit)) {
        assert(fabs(json_double(json_get(hit, "score"))) <= 1);
        assert(json_cstr(json_get(hit, "id")) && json_type(json_get(hit, "metadata")) == JSON_OBJECT);
    }
    assert(json_length(json_get(answer, "results")) <= LIMIT_TOP_K);
}

static void try_line(struct slice line, struct buf *out)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct slice body = { line.p + 1, line.n - 1 };
    struct json_value answer;

    switch (line.p[0]) {
    case 'u':
        answer = request(a, route_of("/upsert"), body, out);
        assert(json_type(answer) == JSON_ABSENT || json_int(json_get(answer, "upserted")) >= 1);
        break;
    case 'q':
        check_results(request(a, route_of("/query"), body, out));
        break;
    case 'd':
        answer = request(a, route_of("/delete"), body, out);
        assert(json_int(json_get(answer, "deleted")) >= 0);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *at = (const char *)bytes, *end = at + n;
    struct buf out;

    if (!api.store)
        open_world();
    buf_init(&out, LIMIT_REPLY);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *line_end = newline ? newline : end;

        if (line_end > at)
            try_line((struct slice){ at, (size_t)(line_end - at) }, &out);
        at = line_end + 1;
    }
    buf_clear(&out);
    return 0;
}
