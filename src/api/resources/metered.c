#include "api/resources/metered.h"

#include "api/api.h"

static void add_time_header(struct http_exchange *x, const char *name, int64_t us)
{
    char text[INT_TEXT_SIZE + 2];
    int64_t tenths = (MAX(us, (int64_t)0) + 50) / 100;
    size_t n = int_text(text, tenths / 10);

    text[n] = '.';
    int_text(text + n + 1, tenths % 10);
    http_response_header(x, name, text);
}

void metered_headers(struct http_exchange *x, const char *provider, int64_t handled_us, int64_t overhead_us)
{
    http_response_header(x, "x-hearth-provider", provider);
    add_time_header(x, "x-hearth-overhead-ms", overhead_us);
    add_time_header(x, "x-hearth-queue-ms", handled_us - x->request.arrived_us);
}

void metered_retry_after(struct http_exchange *x, const struct err *e, int64_t retry_after_ms)
{
    char seconds[24];

    if (retry_after_ms <= 0 || strcmp(e->code, "RATE_LIMIT") != 0)
        return;
    snprintf(seconds, sizeof(seconds), "%lld", (long long)((retry_after_ms + 999) / 1000));
    http_response_header(x, "retry-after", seconds);
}

struct models_call *metered_call(const struct request *req)
{
    struct models_call *call = ARENA_NEW(req->arena, struct models_call);

    *call = (struct models_call){ .models = req->api->models,
                                  .caller = req->caller,
                                  .arena = req->arena,
                                  .is_gone = &req->exchange->is_gone,
                                  .holder = req->exchange->purse.holder,
                                  .is_permitted = true };
    return call;
}
