/* <data>/backend.account: what is kept of the account at the hosted service. Any thread. */
#pragma once

#include "backend/hosted/account_login.h"

/* Texts are in the arena; NULL: none. */
struct account_kept {
    const char *api;   /* the address of the management API that gave the token */
    const char *token; /* of the account */
    const char *email, *username;
    const char *since;                   /* of the login; RFC 3339 */
    const char *secret, *secret_project; /* a key of the service role, and the address of its project */
    struct {
        const char *api;            /* NULL: no login waits for its code */
        struct account_login login; /* with its private key */
        int64_t until_ms;           /* clock_wall_ms() */
        int64_t n_tries;
    } waiting;
};

/* Zeroed when there is no file. -EBADMSG UNSEAL_FAILED. */
int account_file_read(const char *data_dir, struct arena *a, struct account_kept *ret, struct err *e) MUST_CHECK;
/* Reads the file, has `change` change what it holds, and writes it; one change at a time in this process. An error of
 * `change` leaves the file as it was. */
int account_file_change(const char *data_dir, struct arena *a,
                        int (*change)(void *arg, struct account_kept *kept, struct err *e), void *arg,
                        struct err *e) MUST_CHECK;
