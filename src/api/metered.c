#include "api/metered.h"

#include "api/api.h"

static void add_time_header(struct http_exchange *x, const char *name, int64_t us)
{
    char text[32];

    snprintf(text, sizeof(text), "%.1f", (double)MAX(us, (int64_t)0) / 1e3);
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

int metered_admit(struct request *req, int64_t expected_tokens, struct meter_ticket *ret, struct err *e)
{
    int64_t retry_after_ms = 0;
    int r = meter_admit(req->api->meter, req->caller, expected_tokens, ret, &retry_after_ms, e);

    if (r < 0)
        metered_retry_after(req->exchange, e, retry_after_ms);
    return r;
}
