#include "backend/backend_password.h"

#include "base/limits.h"
#include "base/secret.h"
#include "identity/seal.h"
#include "os/files.h"

#include <unistd.h>

static const char *path_of(const char *data_dir, struct arena *a)
{
    return arena_printf(a, "%s/backend.password", data_dir);
}

static int unseal(const char *data_dir, struct slice sealed, struct arena *a, const char **ret, struct err *e)
{
    unsigned char key[SEAL_KEY_BYTES];
    struct slice plain = { 0 };
    int r = seal_load(data_dir, key, e);

    if (r == 0)
        r = seal_open(key, sealed, a, &plain, e);
    secret_wipe(key, sizeof(key));
    if (r == 0)
        *ret = arena_slicedup(a, plain);
    return r;
}

int backend_password_read(const char *data_dir, struct arena *a, const char **ret, struct err *e)
{
    const char *path = path_of(data_dir, a);
    struct slice sealed = { 0 };
    int r;

    *ret = NULL;
    if (access(path, F_OK) < 0)
        return 0;
    r = file_read(a, path, 2 * LIMIT_PROVIDER_SECRET, &sealed, e);
    return r < 0 ? r : unseal(data_dir, sealed, a, ret, e);
}

int backend_password_write(const char *data_dir, const char *password, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    unsigned char key[SEAL_KEY_BYTES];
    struct buf sealed;
    int r = seal_load(data_dir, key, e);

    if (r < 0)
        return r;
    buf_init(&sealed, 2 * LIMIT_PROVIDER_SECRET);
    seal_bytes(key, slice_of(password), &sealed);
    secret_wipe(key, sizeof(key));
    r = buf_check(&sealed, e);
    if (r == 0)
        r = file_write(path_of(data_dir, a), buf_slice(&sealed), 0600, e);
    buf_clear(&sealed);
    return r;
}
