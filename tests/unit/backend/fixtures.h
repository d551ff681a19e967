/* The table of fixtures: at least one for each provider of backends. */
#pragma once

#include "fixture_embedded.h"
#include "fixture_postgres.h"
#include "fixture_turns.h"

static inline struct backend *embedded_open_turns(void *place)
{
    struct backend *one = embedded_open(place);

    return turns_new(one, embedded_open(place));
}

static inline struct backend *postgres_open_turns(void *place)
{
    struct backend *one = postgres_open(place);

    return turns_new(one, postgres_open(place));
}

static const struct fixture fixtures[] = {
    { true, "embedded", "embedded", embedded_make, embedded_remove, embedded_open, embedded_write },
    { true, "two services in turn", "embedded", embedded_make, embedded_remove, embedded_open_turns, embedded_write },
    { true, "postgres", "postgres", postgres_make, postgres_remove, postgres_open, postgres_write,
      cluster_is_installed },
    { true, "two services in turn on postgres", "postgres", postgres_make, postgres_remove, postgres_open_turns,
      postgres_write, cluster_is_installed },
};
