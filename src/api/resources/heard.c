#include "api/resources/heard.h"

#include "api/api.h"
#include "api/resources/metered.h"

int heard_begin(struct api *api, const struct caller *c, struct heard_count *ret, int64_t *ret_retry_after_ms,
                struct err *e)
{
    *ret = (struct heard_count){ .meter = api->meter };
    return meter_admit_hearing(api->meter, c, &ret->ticket, ret_retry_after_ms, e);
}

int heard_begin_request(struct request *req, struct heard_count *ret, struct err *e)
{
    int64_t retry_after_ms = 0;
    int r = heard_begin(req->api, req->caller, ret, &retry_after_ms, e);

    if (r < 0)
        metered_retry_after(req->exchange, e, retry_after_ms);
    return r;
}

void heard_end(struct heard_count *count, struct ears_who who, double seconds, int r)
{
    const struct meter_use use = { .work = METER_HEARING,
                                   .provider = who.provider,
                                   .model = who.model,
                                   .audio_ms = (int64_t)(seconds * 1000 + 0.5),
                                   .is_failed = r < 0 };

    if (!count->meter)
        return;
    if (who.provider)
        meter_count(count->meter, &count->ticket, &use);
    else
        meter_give_back(count->meter, &count->ticket);
}
