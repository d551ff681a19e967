#include "backend/hosted/account_file.h"

#include "base/json.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/secret.h"
#include "identity/secret_file.h"

#include <pthread.h>

#define FILE_NAME "backend.account"
enum { FILE_BYTES = 64 << 10 };

static const struct {
    const char *name;
    size_t offset;
} texts[] = {
    { "api", offsetof(struct account_kept, api) },
    { "token", offsetof(struct account_kept, token) },
    { "email", offsetof(struct account_kept, email) },
    { "username", offsetof(struct account_kept, username) },
    { "since", offsetof(struct account_kept, since) },
    { "secret", offsetof(struct account_kept, secret) },
    { "secret_project", offsetof(struct account_kept, secret_project) },
    { "login_api", offsetof(struct account_kept, waiting.api) },
}, login_texts[] = {
    { "session", offsetof(struct account_login, session) },
    { "public_key", offsetof(struct account_login, public_hex) },
    { "private_key", offsetof(struct account_login, private_hex) },
};
static const size_t login_sizes[] = { UUID_SIZE, ACCOUNT_PUBLIC_HEX + 1, ACCOUNT_PRIVATE_HEX + 1 };

static int read_login(struct json_value v, struct account_kept *kept)
{
    for (size_t i = 0; i < ARRAY_SIZE(login_texts); i++) {
        const char *text = json_cstr(json_get(v, login_texts[i].name));

        if (!text || strlen(text) + 1 != login_sizes[i])
            return -EBADMSG;
        memcpy((char *)&kept->waiting.login + login_texts[i].offset, text, login_sizes[i]);
    }
    kept->waiting.until_ms = json_int(json_get(v, "login_until_ms"));
    kept->waiting.n_tries = json_int(json_get(v, "login_tries"));
    return 0;
}

int account_file_read(const char *data_dir, struct arena *a, struct account_kept *ret, struct err *e)
{
    struct slice json = { 0 };
    struct json_value v;
    int r = secret_file_read(data_dir, FILE_NAME, FILE_BYTES, a, &json, e);

    *ret = (struct account_kept){ 0 };
    if (r < 0 || !json.p)
        return r;
    r = json_parse(a, json, &v, e);
    secret_wipe((char *)(uintptr_t)json.p, json.n);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
        *(const char **)(void *)((char *)ret + texts[i].offset) = json_cstr(json_get(v, texts[i].name));
    if (r == 0 && ret->waiting.api && read_login(v, ret) < 0)
        ret->waiting.api = NULL;
    return r;
}

static void write_login(struct json_writer *w, const struct account_kept *kept)
{
    for (size_t i = 0; i < ARRAY_SIZE(login_texts); i++)
        json_add_string(w, login_texts[i].name, (const char *)&kept->waiting.login + login_texts[i].offset);
    json_add_int(w, "login_until_ms", kept->waiting.until_ms);
    json_add_int(w, "login_tries", kept->waiting.n_tries);
}

static int write_file(const char *data_dir, const struct account_kept *kept, struct err *e)
{
    struct json_writer w;
    struct buf json;
    int r;

    buf_init(&json, FILE_BYTES);
    json_write_init(&w, &json);
    json_begin_object(&w);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        json_add_string(&w, texts[i].name, *(const char *const *)(const void *)((const char *)kept + texts[i].offset));
    if (kept->waiting.api)
        write_login(&w, kept);
    json_end(&w);
    r = buf_check(&json, e);
    if (r == 0)
        r = secret_file_write(data_dir, FILE_NAME, buf_slice(&json), e);
    secret_wipe(json.p, json.n);
    buf_clear(&json);
    return r;
}

int account_file_change(const char *data_dir, struct arena *a,
                        int (*change)(void *arg, struct account_kept *kept, struct err *e), void *arg, struct err *e)
{
    static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
    struct account_kept kept;
    int r;

    pthread_mutex_lock(&changing);
    r = account_file_read(data_dir, a, &kept, e);
    if (r == 0)
        r = change(arg, &kept, e);
    if (r == 0)
        r = write_file(data_dir, &kept, e);
    pthread_mutex_unlock(&changing);
    secret_wipe(&kept.waiting.login, sizeof(kept.waiting.login));
    return r;
}
