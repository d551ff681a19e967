/* Threads that claim and complete every row of a list, each beginning at another row. */
#pragma once

#include "contract.h"

#include <stdatomic.h>

enum { MOST_ROWS = 3000 };

static int n_rows; /* of this race */
static const char *ids[MOST_ROWS];
static atomic_int n_claims[MOST_ROWS], n_completions[MOST_ROWS], n_surprises;

struct machine {
    struct backend *backend;
    const char *id;
    int from; /* each thread starts at another row, so that threads meet at every row */
    pthread_t thread;
};

static void count_surprise(const char *what, int r, const struct err *e)
{
    atomic_fetch_add(&n_surprises, 1);
    fprintf(stderr, "%s: %d %s %s\n", what, r, e->code, e->text);
}

static void try_row(struct machine *m, int i)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_claim claim = { TABLE, ids[i], m->id, STALE_MS, 3 };
    struct backend_lease lease;
    struct backend_row row;
    struct err e = { 0 };
    int r = backend_claim(m->backend, &claim, a, &row, &lease, &e);

    if (r == -EBUSY && strncmp(e.code, "STORE_", 6) != 0)
        return;
    if (r < 0) {
        count_surprise("claim", r, &e);
        return;
    }
    atomic_fetch_add(&n_claims[i], 1);
    r = backend_complete(m->backend, &lease, "{}", &e);
    if (r < 0)
        count_surprise("complete", r, &e);
    else
        atomic_fetch_add(&n_completions[i], 1);
}

static void *work(void *arg)
{
    struct machine *m = arg;

    for (int i = 0; i < n_rows; i++)
        try_row(m, (i + m->from) % n_rows);
    return NULL;
}

static inline void race_begin(struct rig *rig, int n)
{
    n_rows = n;
    memset(n_claims, 0, sizeof(n_claims));
    memset(n_completions, 0, sizeof(n_completions));
    atomic_store(&n_surprises, 0);
    for (int i = 0; i < n_rows; i++)
        ids[i] = rig_insert(rig);
}
