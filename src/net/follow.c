#include "net/follow.h"

#include "base/limits.h"
#include "net/url.h"

#include <strings.h>

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static int get_once(const struct follow_request *f, const char *url, struct arena *a, struct http_answer *ret,
                    struct err *e)
{
    int64_t left_ms = net_wait_left(f->wait, e);
    const struct http_call_request request = {
        .method = "GET",
        .url = url,
        .headers = f->headers,
        .n_headers = f->n_headers,
        .first_byte_ms = f->silence_ms,
        .idle_ms = f->silence_ms,
        .total_ms = left_ms,
        .max_reply = f->max_bytes,
        .reads_only_ok = true, /* no other body counts */
        .is_moot = f->wait->is_leaving,
        .holder = f->wait->holder,
        .guard = f->guard,
    };

    return left_ms < 0 ? (int)left_ms : http_call(&request, a, f->wait->is_gone, ret, e);
}

static int get(const struct follow_request *f, struct arena *a, struct follow_answer *ret, struct err *e)
{
    ret->url = f->url;
    for (int n_redirects = 0;; n_redirects++) {
        char *next = NULL;
        const char *location;
        int r = get_once(f, ret->url, a, &ret->http, e);

        if (r < 0 || !is_redirect(ret->http.status))
            return r;
        location = http_answer_header(&ret->http, "location");
        if (!location || n_redirects == LIMIT_FETCH_REDIRECTS)
            return err_set(e, -EBADMSG, "UPSTREAM_INVALID",
                           "it is said to be elsewhere more than %d times, or without saying where.",
                           LIMIT_FETCH_REDIRECTS);
        r = url_follow(a, ret->url, location, &next, e);
        if (r < 0)
            return r;
        ret->url = next;
    }
}

static int check_answer(const struct http_answer *answer, struct err *e)
{
    const char *encoding = http_answer_header(answer, "content-encoding");

    if (answer->status != 200)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "its server answers with the status %d.", answer->status);
    if (encoding && *encoding && strcasecmp(encoding, "identity") != 0)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "it comes compressed (%.40s), which was not asked for.",
                       encoding);
    return 0;
}

int follow_get(const struct follow_request *request, struct arena *a, struct follow_answer *ret, struct err *e)
{
    struct follow_answer answer = { 0 };
    int r = get(request, a, &answer, e);

    if (r == 0)
        r = check_answer(&answer.http, e);
    if (r == 0)
        *ret = answer;
    return r;
}
