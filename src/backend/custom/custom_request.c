#include "backend/custom/custom_request.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "net/url.h"

#include <string.h>

enum {
    N_HEADERS = 7,
};
#define SECRET_PREFIX "whsec_"

/* The origin of what the app named, with the path of the request: whatever else stands there is not ours to send. */
static int make_url(const struct custom_place *at, const char *path, struct arena *a, const char **ret, struct err *e)
{
    struct err why = { 0 };
    struct url url;

    if (!at->base_url)
        return err_set(e, -EHOSTUNREACH, "APP_UNREACHABLE",
                       "The app does not run, or its home_url is missing: it cannot be asked.");
    if (url_parse(a, at->base_url, &url, &why) < 0)
        return err_set(e, -EHOSTUNREACH, "APP_UNREACHABLE", "The app's home_url cannot be used: %.300s", why.text);
    *ret = arena_printf(a, strchr(url.host, ':') ? "%s://[%s]:%u/%s" : "%s://%s:%u/%s", url.scheme, url.host, url.port,
                        path);
    return 0;
}

/* {NULL, 0}: no secret of ours. */
static struct slice key_of(const char *secret, struct arena *a)
{
    struct slice key = { 0 };
    struct buf out;

    buf_init(&out, HASH_BYTES);
    if (secret && strncmp(secret, SECRET_PREFIX, strlen(SECRET_PREFIX)) == 0 &&
        base64_decode(&out, slice_of(secret + strlen(SECRET_PREFIX))) == 0)
        key = (struct slice){ arena_slicedup(a, buf_slice(&out)), out.n };
    buf_clear(&out);
    return key;
}

static const char *sign(struct slice key, const struct custom_request *in, const char *timestamp, struct arena *a)
{
    unsigned char mac[HASH_BYTES];
    struct buf text;

    buf_init(&text, LIMIT_DELIVERY_BYTES + KIB(1));
    buf_printf(&text, "%s.%s.", in->event_id, timestamp);
    buf_add_slice(&text, in->body);
    hash_hmac_sha256(buf_slice(&text), key, mac);
    buf_reset(&text);
    buf_add_str(&text, "v1,");
    base64_encode(&text, (struct slice){ (const char *)mac, sizeof(mac) });
    return buf_to_arena(&text, a);
}

static size_t add_headers(const struct custom_net *n, const struct custom_place *at, const struct custom_request *in,
                          struct arena *a, struct http_call_header ret[N_HEADERS])
{
    const char *timestamp = arena_printf(a, "%lld", (long long)(clock_wall_ms() / 1000));
    struct slice key = key_of(at->secret, a);
    size_t count = 0;

    ret[count++] = (struct http_call_header){ "content-type", "application/json" };
    ret[count++] = (struct http_call_header){ "accept", "application/json" };
    ret[count++] = (struct http_call_header){ arena_printf(a, "x-%s-event-id", n->abbr), in->event_id };
    ret[count++] = (struct http_call_header){ "x-app-id", at->app_id };
    ret[count++] = (struct http_call_header){ "webhook-id", in->event_id };
    ret[count++] = (struct http_call_header){ "webhook-timestamp", timestamp };
    if (key.n)
        ret[count++] = (struct http_call_header){ "webhook-signature", sign(key, in, timestamp, a) };
    return count;
}

/* Of a request that http_call() could not bring to its end: can the app have got it? */
static int failed(int r, const struct err *why, struct err *e)
{
    if (r == -EHOSTUNREACH || r == -ECONNREFUSED || r == -EINVAL || r == -EPERM)
        return err_set(e, -EHOSTUNREACH, "APP_UNREACHABLE", "The app cannot be reached: %.500s", why->text);
    if (r == -ECANCELED)
        return err_set(e, r, "SHUTTING_DOWN", "The service stops.");
    return err_set(e, -EIO, "UPSTREAM_INVALID", "The app did not answer as it should: %.500s", why->text);
}

int custom_request_send(const struct custom_net *n, const struct custom_place *at, const struct custom_request *in,
                        struct arena *a, struct http_answer *ret, struct err *e)
{
    struct http_call_header headers[N_HEADERS];
    struct http_call_request request = { .method = "POST",
                                         .headers = headers,
                                         .body = in->body,
                                         .total_ms = in->total_ms,
                                         .connect_ms = in->total_ms,
                                         .max_reply = LIMIT_LOCK_REPLY,
                                         .is_moot = n->is_leaving,
                                         .is_sent_once = in->is_sent_once,
                                         .guard = n->guard };
    struct err why = { 0 };
    int r = make_url(at, in->path, a, &request.url, e);

    if (r < 0)
        return r;
    request.n_headers = add_headers(n, at, in, a, headers);
    r = http_call(&request, a, NULL, ret, &why);
    return r < 0 ? failed(r, &why, e) : 0;
}
