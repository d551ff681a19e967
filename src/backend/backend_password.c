#include "backend/backend_password.h"

#include "base/limits.h"
#include "identity/secret_file.h"

#define FILE_NAME "backend.password"

int backend_password_read(const char *data_dir, struct arena *a, const char **ret, struct err *e)
{
    struct slice password = { 0 };
    int r = secret_file_read(data_dir, FILE_NAME, LIMIT_PROVIDER_SECRET, a, &password, e);

    *ret = r == 0 && password.p ? arena_slicedup(a, password) : NULL;
    return r;
}

int backend_password_write(const char *data_dir, const char *password, struct err *e)
{
    return secret_file_write(data_dir, FILE_NAME, slice_of(password), e);
}
