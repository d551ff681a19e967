#include "llm/fetch.h"

#include "base/limits.h"
#include "base/percent.h"
#include "llm/file.h"
#include "net/follow.h"
#include "net/url.h"

#include <string.h>

enum { SILENCE_MS = 15000 /* before the first byte, and between bytes */ };

struct fetching {
    const struct llm_account *acc; /* the first of the plan */
    bool is_near;                  /* of any account of the plan */
    const struct guard *guard;
    const struct net_wait *wait;
    struct arena *arena;
    size_t n_files, n_bytes; /* of all files so far */
    struct err *e;
};

static bool is_address(const struct llm_block *block)
{
    return block->kind == LLM_BLOCK_FILE_URL || block->kind == LLM_BLOCK_IMAGE_URL;
}

static bool needs_fetch(const struct fetching *f, const struct llm_block *block)
{
    const struct llm_protocol *p = f->acc->preset->protocol;

    if (f->is_near)
        return is_address(block);
    return block->kind == LLM_BLOCK_FILE_URL && !(p->takes_address && p->takes_address(block));
}

bool llm_has_addresses(const struct llm_request *request)
{
    for (size_t i = 0; i < request->n_messages; i++)
        for (size_t k = 0; k < request->messages[i].n_blocks; k++)
            if (is_address(&request->messages[i].blocks[k]))
                return true;
    return false;
}

bool llm_is_server_near(const struct llm_account *acc)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct url url = { 0 };

    if (acc->runner)
        return true;
    if (!acc->base_url || url_parse(scratch, acc->base_url, &url, NULL) < 0)
        return false;
    return url.is_loopback || guard_is_near(url.host);
}

static bool has_near(const struct llm_picks *picks)
{
    for (size_t i = 0; i < picks->n; i++)
        if (llm_is_server_near(&picks->states[i]->account))
            return true;
    return false;
}

/* ---- one file ---- */

/* Signed addresses are secrets: the error names only the host. */
static int failed(const struct fetching *f, const char *path, const char *url, const struct err *why)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct url parts = { .host = "its address" };

    (void)!url_parse(scratch, url, &parts, NULL);
    err_set(f->e, -EINVAL, "FILE_NOT_FETCHED", "`%s`: the file at %.100s could not be fetched: %s", path, parts.host,
            why->text);
    err_add_extra(f->e, "reason", why->code);
    return -EINVAL;
}

/* The files of one request share the limit, so the bytes of earlier files count. */
static int get(const struct fetching *f, const char *url, struct http_answer *ret, struct err *why)
{
    const struct http_call_header accept = { "accept", "*/*" };
    const struct follow_request request = {
        .url = url,
        .headers = &accept,
        .n_headers = 1,
        .max_bytes = LIMIT_FETCHED_BYTES - f->n_bytes,
        .silence_ms = SILENCE_MS,
        .guard = f->guard,
        .wait = f->wait,
    };
    struct follow_answer answer = { 0 };
    int r = follow_get(&request, f->arena, &answer, why);

    if (r < 0)
        return r;
    *ret = answer.http;
    return ret->body.n > 0 ? 0 : err_set(why, -EBADMSG, "UPSTREAM_INVALID", "it is empty.");
}

/* The last part of the address's path; NULL: the path has no last part that can be shown. */
static const char *name_in(struct arena *a, const char *url)
{
    const char *path = strstr(url, "://") ? strchr(strstr(url, "://") + 3, '/') : NULL;
    size_t n = path ? strcspn(path, "?#") : 0;
    const char *last = n > 0 ? memrchr(path, '/', n) + 1 : NULL;
    size_t n_last = last ? (size_t)(path + n - last) : 0;
    char *name = NULL;

    if (n_last == 0 || n_last > LIMIT_NAME_CHARS)
        return NULL;
    return percent_decode(a, (struct slice){ last, n_last }, false, &name, NULL) == 0 && !strpbrk(name, "/\\\r\n")
               ? name
               : NULL;
}

/* The caller has left, the service is stopping, or a budget is exceeded: such an error is reported unchanged. */
static bool is_no_fault(int r)
{
    return r == -ECANCELED || r == -EBUSY || r == -EAGAIN;
}

static int fetch(struct fetching *f, const char *path, struct llm_block *block)
{
    struct http_answer answer = { 0 };
    const char *url = block->url, *type;
    struct err why = { 0 };
    int r;

    if (++f->n_files > LIMIT_FETCHED_FILES)
        return err_add_field(f->e, path, "must be among the first %d files that are named by address",
                             LIMIT_FETCHED_FILES);
    r = f->n_bytes < LIMIT_FETCHED_BYTES ? get(f, url, &answer, &why)
                                         : err_set(&why, -EMSGSIZE, "UPSTREAM_TOO_LARGE",
                                                   "the files before it have %d bytes already.", LIMIT_FETCHED_BYTES);
    if (is_no_fault(r))
        return err_set(f->e, r, why.code, "%s", why.text);
    if (r < 0)
        return failed(f, path, url, &why);
    f->n_bytes += answer.body.n;
    if (!block->file_name || !*block->file_name)
        block->file_name = name_in(f->arena, url);
    type = http_answer_header(&answer, "content-type");
    return block->kind == LLM_BLOCK_IMAGE_URL ? llm_image_of_bytes(f->arena, answer.body, type, path, block, f->e)
                                              : llm_file_of_bytes(f->arena, answer.body, type, path, block, f->e);
}

/* ---- all of them ---- */

static bool message_needs_fetch(const struct fetching *f, const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_blocks; i++)
        if (needs_fetch(f, &m->blocks[i]))
            return true;
    return false;
}

static int fetch_of_message(struct fetching *f, size_t place, struct llm_message *m)
{
    struct llm_block *blocks = arena_array(f->arena, m->n_blocks, sizeof(*blocks));
    char path[sizeof(((struct err_field *)0)->field)];
    int r = 0;

    memcpy(blocks, m->blocks, m->n_blocks * sizeof(*blocks));
    for (size_t i = 0; r == 0 && i < m->n_blocks; i++) {
        snprintf(path, sizeof(path), "messages[%zu].content[%zu]", place, i);
        if (needs_fetch(f, &blocks[i]))
            r = fetch(f, path, &blocks[i]);
    }
    m->blocks = blocks;
    return r;
}

int llm_fetch_files(const struct llm_picks *picks, const struct guard *guard, const struct net_wait *wait,
                    struct arena *a, struct llm_request *request, struct err *e)
{
    struct fetching f = {
        .acc = &picks->states[0]->account, .is_near = has_near(picks), .guard = guard, .wait = wait, .arena = a, .e = e
    };
    struct llm_message *messages = arena_array(a, request->n_messages + 1, sizeof(*messages));
    int r = 0;

    memcpy(messages, request->messages, request->n_messages * sizeof(*messages));
    for (size_t i = 0; r == 0 && i < request->n_messages; i++)
        if (message_needs_fetch(&f, &messages[i]))
            r = fetch_of_message(&f, i, &messages[i]);
    if (r == 0)
        request->messages = messages;
    return r;
}
