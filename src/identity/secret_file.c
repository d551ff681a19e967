#include "identity/secret_file.h"

#include "base/secret.h"
#include "identity/seal.h"
#include "os/files.h"

#include <unistd.h>

enum { SEAL_BYTES = 64 /* at least what the seal adds */ };

static const char *path_of(const char *data_dir, const char *name, struct arena *a)
{
    return arena_printf(a, "%s/%s", data_dir, name);
}

int secret_file_read(const char *data_dir, const char *name, size_t max, struct arena *a, struct slice *ret,
                     struct err *e)
{
    const char *path = path_of(data_dir, name, a);
    unsigned char key[SEAL_KEY_BYTES];
    struct slice sealed = { 0 };
    int r;

    *ret = (struct slice){ 0 };
    if (access(path, F_OK) < 0)
        return 0;
    r = file_read(a, path, max + SEAL_BYTES, &sealed, e);
    if (r == 0)
        r = seal_load(data_dir, key, e);
    if (r < 0)
        return r;
    r = seal_open(key, sealed, a, ret, e);
    secret_wipe(key, sizeof(key));
    return r;
}

int secret_file_write(const char *data_dir, const char *name, struct slice secret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    unsigned char key[SEAL_KEY_BYTES];
    struct buf sealed;
    int r = seal_load(data_dir, key, e);

    if (r < 0)
        return r;
    buf_init(&sealed, secret.n + SEAL_BYTES);
    seal_bytes(key, secret, &sealed);
    secret_wipe(key, sizeof(key));
    r = buf_check(&sealed, e);
    if (r == 0)
        r = file_write(path_of(data_dir, name, a), buf_slice(&sealed), 0600, e);
    buf_clear(&sealed);
    return r;
}
