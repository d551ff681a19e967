/* What the hosted service's account answers: the first byte chooses the reader. What is accepted keeps its limits. */
#include "backend/hosted/account_login.h"
#include "backend/hosted/account_wire.h"

#include "base/limits.h"

#include <assert.h>
#include <string.h>

/* A key pair of no other use, so that a run can be repeated. */
static const struct account_login login = {
    .session = "6f9619ff-8b86-4d01-b42d-00c04fc964ff",
    .public_hex = "04"
                  "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
                  "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
    .private_hex = "0000000000000000000000000000000000000000000000000000000000000001",
};

static void read_login(struct arena *a, struct slice json)
{
    const char *token = NULL;

    if (account_login_open(&login, "00010203", json, a, &token, NULL) == 0)
        assert(account_token_is_valid(token));
}

static void read_code(struct arena *a, struct slice text)
{
    const char *code = NULL;

    if (account_code_read(a, arena_slicedup(a, text), &code, NULL) == 0)
        assert(strlen(code) == ACCOUNT_CODE_CHARS && strspn(code, "0123456789abcdef") == ACCOUNT_CODE_CHARS);
}

static void read_profile(struct arena *a, struct slice json)
{
    struct account_profile profile = { 0 };

    (void)!account_profile_read(a, json, &profile, NULL);
}

static void read_projects(struct arena *a, struct slice json)
{
    struct account_projects projects = { 0 };

    if (account_projects_read(a, json, &projects, NULL) < 0)
        return;
    assert(projects.n <= LIMIT_HOSTED_PROJECTS);
    for (size_t i = 0; i < projects.n; i++)
        assert(account_ref_is_valid(projects.items[i].ref) && projects.items[i].name && projects.items[i].status);
}

static void read_keys(struct arena *a, struct slice json)
{
    struct account_keys keys = { 0 };

    if (account_keys_read(a, json, &keys, NULL) < 0)
        return;
    assert(!keys.publishable || account_key_is_valid(keys.publishable));
    assert(!keys.secret || account_key_is_valid(keys.secret));
}

static void read_message(struct arena *a, struct slice json)
{
    const char *message = account_message_read(a, json);
    struct json_value rows = { 0 };

    assert(!message || message[strcspn(message, "\r\n\033")] == '\0');
    (void)!account_rows_read(a, json, &rows, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct arena * a, struct slice text) = { read_login,    read_code, read_profile,
                                                                            read_projects, read_keys, read_message };
    AUTO(arena_freep) struct arena *a = arena_new();

    if (size > 0)
        readers[data[0] % ARRAY_SIZE(readers)](a, (struct slice){ (const char *)data + 1, size - 1 });
    return 0;
}
