#include "api/errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stddef.h>

static void the_code_decides_and_else_the_errno(void **state)
{
    static const struct {
        int r;
        const char *code;
        int status;
    } cases[] = {
        { -ENOENT, "MISSING_APP_ID", 401 },
        { -EIO, "INVALID_JSON", 400 },
        { -EINVAL, "INTERNAL_ERROR", 500 },
        { -E2BIG, "TOO_MANY_KEYS", 409 },
        { -EINVAL, "", 400 },
        { -ENOENT, "SOMETHING_NEW", 404 },
        { -EPERM, "SOMETHING_NEW", 403 },
        { -ESTALE, "", 409 },
        { -EAGAIN, "", 503 },
        { -EFBIG, "", 413 },
        { -ENOSPC, "", 507 },
        { -ETIMEDOUT, "", 504 },
        { -ENOMEM, "", 503 },
        { -ENOMEM, "OUT_OF_MEMORY", 503 },
        { -EIO, "", 500 },
        { -EDOM, "SOMETHING_NEW", 500 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };

        err_set(&e, cases[i].r, cases[i].code, "x");
        if (api_error_status(cases[i].r, &e) != cases[i].status)
            fail_msg("%d \"%s\" is %d", cases[i].r, cases[i].code, api_error_status(cases[i].r, &e));
    }
}

static void every_row_has_a_status_of_failure_and_a_meaning(void **state)
{
    for (const struct api_error *row = api_errors; row->code; row++) {
        assert_in_range(row->status, 400, 599);
        assert_true(row->meaning && *row->meaning);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_code_decides_and_else_the_errno),
        cmocka_unit_test(every_row_has_a_status_of_failure_and_a_meaning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
