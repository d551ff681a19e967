/* What an app in Custom Mode answers about a lock: two bytes are the status. What is accepted keeps its limits. */
#include "backend/custom/custom_lock.h"

#include "base/limits.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    assert(!text || (*text && strlen(text) <= LIMIT_STRING_DEFAULT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_lock_reply reply;
    struct err e = { 0 };
    int status, r;

    if (size < 2)
        return 0;
    status = 100 + (data[0] << 8 | data[1]) % 900;
    r = custom_lock_read(status, (struct slice){ (const char *)data + 2, size - 2 }, a, &reply, &e);
    assert(r == 0 || r == -EIO || r == -EPROTO);
    assert(r == 0 || strcmp(e.code, r == -EIO ? "LOCK_UNKNOWN" : "LOCK_INVALID") == 0);
    assert(r < 0 || !reply.is_success || (status >= 200 && status <= 299));
    check_text(reply.locked_by);
    check_text(reply.locked_at);
    check_text(reply.reason);
    return 0;
}
