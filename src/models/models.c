#include "models/models.h"

int models_permit(const struct models_call *call, const char *permission, struct err *e)
{
    return call->is_permitted ? 0 : identity_require(call->models->identity, call->caller, permission, e);
}

int models_admit(struct models_call *call, int64_t expected_tokens, struct meter_ticket *ret, struct err *e)
{
    return meter_admit(call->models->meter, call->caller, expected_tokens, ret, &call->retry_after_ms, e);
}
