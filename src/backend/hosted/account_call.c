#include "backend/hosted/account_call.h"

#include "backend/hosted/account_wire.h"
#include "base/limits.h"
#include "net/http_client.h"
#include "net/url.h"

#include <stdlib.h>

enum { BUSY_MS = 60000, BUSY_S_MAX = 3600 };

static int err_busy(const struct http_answer *answer, struct err *e)
{
    const char *after = http_answer_header(answer, "retry-after");
    long s = after ? strtol(after, NULL, 10) : 0;

    if (e)
        e->retry_after_ms = s > 0 && s <= BUSY_S_MAX ? s * 1000 : BUSY_MS;
    return err_set(e, -EBUSY, "HOSTED_BUSY", "The hosted service takes no more requests for now; try again later.");
}

static int refuse(const struct account_api *api, const struct http_answer *answer, struct err *e)
{
    const char *message = account_message_read(api->arena, answer->body);
    const char *words = message ? message : "it says nothing more";

    switch (answer->status) {
    case 401:
        return err_set(e, -EACCES, "HOSTED_LOGIN_REQUIRED",
                       "The hosted service does not accept the account's token (%s): `hearth backend login`.", words);
    case 403:
        return err_set(e, -EPERM, "HOSTED_DENIED",
                       "Access Denied: the account may not do this in the project (%s). It needs write access.", words);
    case 404:
        return err_set(e, -ENOENT, "HOSTED_NOT_FOUND", "The hosted service knows no such thing: %s", words);
    case 429:
        return err_busy(answer, e);
    default:
        break;
    }
    if (answer->status >= 300 && answer->status < 400)
        return err_set(e, -EPROTO, "HOSTED_INVALID",
                       "The hosted service redirects to another address, which the token must not go to.");
    return err_set(e, -EREMOTEIO, "HOSTED_REFUSED", "The hosted service refuses with status %d: %s", answer->status,
                   words);
}

static int send_request(const struct account_api *api, const char *url, struct slice body, struct http_answer *ret,
                        struct err *e)
{
    const struct http_call_header headers[] = {
        { "Accept", "application/json" },
        { "Content-Type", "application/json" },
        { "Authorization", api->token ? arena_printf(api->arena, "Bearer %s", api->token) : NULL },
    };
    int64_t left_ms = net_wait_left(api->wait, e);
    const struct http_call_request request = {
        .method = body.p ? "POST" : "GET",
        .url = url,
        .headers = headers,
        .n_headers = api->token ? 3 : 2,
        .body = body,
        .total_ms = MIN(left_ms, api->step_ms),
        .max_reply = LIMIT_HOSTED_REPLY,
        .holder = api->wait->holder,
        .is_moot = api->wait->is_leaving,
    };

    return left_ms < 0 ? (int)left_ms : http_call(&request, api->arena, api->wait->is_gone, ret, e);
}

int account_call(const struct account_api *api, const char *path, struct slice body, struct slice *ret, struct err *e)
{
    struct http_answer answer = { 0 };
    struct url parsed;
    char *url = NULL;
    int r = url_join(api->arena, api->address, path, &url, e);

    if (r == 0)
        r = url_parse(api->arena, url, &parsed, e);
    if (r == 0 && !parsed.is_tls && !parsed.is_loopback)
        r = err_set(e, -EINVAL, "BAD_URL", "The address of the hosted service must begin with https://");
    if (r == 0)
        r = send_request(api, url, body, &answer, e);
    if (r < 0)
        return r;
    if (answer.status != 200 && answer.status != 201)
        return refuse(api, &answer, e);
    *ret = answer.body;
    return 0;
}
