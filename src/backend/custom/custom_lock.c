#include "backend/custom/custom_lock.h"

#include "backend/custom/custom_request.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/uuid.h"

#include <string.h>

/* ---- the answer ---- */

/* NULL: left out, no text, or too long to be one. */
static const char *text_of(struct json_value answer, const char *name)
{
    const char *text = json_cstr(json_get(answer, name));

    return text && *text && strlen(text) <= LIMIT_STRING_DEFAULT ? text : NULL;
}

static int unknown(struct err *e, const char *why)
{
    return err_set(e, -EIO, "LOCK_UNKNOWN", "Whether the app has locked the task is not known: %.500s", why);
}

static int refuse_other(int status, struct err *e)
{
    if (status == 404 || status == 405 || status == 501)
        return err_set(e, -EPROTO, "LOCK_INVALID",
                       "The app has no POST /api/task-lock (status %d), which an app in Custom Mode must have.",
                       status);
    if (status >= 300 && status < 400)
        return err_set(e, -EPROTO, "LOCK_INVALID",
                       "The app answered /api/task-lock with a redirect (status %d), which is not followed.", status);
    return err_set(
        e, -EPROTO, "LOCK_INVALID",
        "The app refused /api/task-lock with status %d and without the answer about a lock that it must give.", status);
}

/* A body that says nothing about a lock. */
static int read_other(int status, struct arena *a, struct err *e)
{
    if ((status >= 300 && status < 500) || status == 501)
        return refuse_other(status, e);
    return unknown(e, arena_printf(a, "its answer (status %d) has no member success that is true or false.", status));
}

int custom_lock_read(int status, struct slice body, struct arena *a, struct custom_lock_reply *ret, struct err *e)
{
    struct json_value answer = { 0 }, success;
    int r = body.n ? json_parse(a, body, &answer, NULL) : 0;

    *ret = (struct custom_lock_reply){ 0 };
    success = json_get(answer, "success");
    if (r < 0 || json_type(success) != JSON_BOOL)
        return read_other(status, a, e);
    ret->is_success = json_bool(success);
    ret->locked_by = text_of(answer, "locked_by");
    ret->locked_at = text_of(answer, "locked_at");
    ret->reason = text_of(answer, "reason");
    if (ret->is_success && (status < 200 || status > 299))
        return unknown(e, arena_printf(a, "it answered success with status %d.", status));
    if (!ret->is_success && status >= 500 && !ret->reason)
        return unknown(e, arena_printf(a, "it failed with status %d and gave no reason.", status));
    return 0;
}

/* ---- the request ---- */

static int write_body(const struct custom_lock_request *in, struct buf *out, struct err *e)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "task_id", in->task_id);
    json_add_string(&w, "table_name", in->table);
    json_add_string(&w, "machine_id", in->machine_id);
    json_add_string(&w, "user_email", in->user_email ? in->user_email : "");
    json_end(&w);
    return buf_check(out, e);
}

static int send_body(const struct custom_net *n, const struct custom_place *at, struct slice body, struct arena *a,
                     struct custom_lock_reply *ret, struct err *e)
{
    char event_id[UUID_SIZE];
    const struct custom_request request = {
        .path = "api/task-lock", .event_id = event_id, .body = body, .total_ms = n->lock_ms, .is_sent_once = true
    };
    struct http_answer answer = { 0 };
    struct err why = { 0 };
    int r;

    uuid_v4(event_id);
    r = custom_request_send(n, at, &request, a, &answer, &why);
    if (r == -EIO)
        return unknown(e, why.text);
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    return custom_lock_read(answer.status, answer.body, a, ret, e);
}

int custom_lock_take(const struct custom_net *n, const struct custom_place *at, const struct custom_lock_request *in,
                     struct arena *a, struct custom_lock_reply *ret, struct err *e)
{
    struct buf body;
    int r;

    *ret = (struct custom_lock_reply){ 0 };
    buf_init(&body, KIB(64));
    r = write_body(in, &body, e);
    if (r == 0)
        r = send_body(n, at, buf_slice(&body), a, ret, e);
    buf_clear(&body);
    return r;
}
