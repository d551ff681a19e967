/* The table of fixtures: at least one for each provider of backends. */
#pragma once

#include "fixture_embedded.h"
#include "fixture_hosted.h"
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

/* Both ways to learn of changes share the database. */
static inline struct backend *postgres_open_mixed(void *place)
{
    struct backend *one = postgres_open_logical(place);
    const struct cluster_place *p = place;
    const struct backend_postgres_config config = { .url = p->url, .abbr = "svc", .events = POSTGRES_EVENTS_OUTBOX };
    struct backend *other = NULL;
    struct err e = { 0 };

    must(backend_postgres_open(&config, &other, &e), &e);
    return turns_new(one, other);
}

static inline struct backend *hosted_open_turns(void *place)
{
    struct backend *one = hosted_open(place);

    return turns_new(one, hosted_open(place));
}

static const struct fixture fixtures[] = {
    { true, "embedded", "embedded", embedded_make, embedded_remove, embedded_open, embedded_write, embedded_lose },
    { true, "two services in turn", "embedded", embedded_make, embedded_remove, embedded_open_turns, embedded_write,
      embedded_lose },
    { true, "postgres", "postgres", postgres_make, postgres_remove, postgres_open, postgres_write, postgres_lose,
      cluster_is_installed },
    { true, "two services in turn on postgres", "postgres", postgres_make, postgres_remove, postgres_open_turns,
      postgres_write, postgres_lose, cluster_is_installed },
    { true, "postgres with the logical stream", "postgres", postgres_make_logical, postgres_remove,
      postgres_open_logical, postgres_write, postgres_lose, cluster_is_installed, .is_only_events = true },
    { true, "a service with the stream and one with the outbox in turn", "postgres", postgres_make_logical,
      postgres_remove, postgres_open_mixed, postgres_write, postgres_lose, cluster_is_installed,
      .is_only_events = true },
    { true, "hosted", "hosted", hosted_make, hosted_unmake, hosted_open, hosted_write, hosted_lose, hosted_is_there,
      .is_one_machine = true, .has_fixed_tables = true },
    { true, "two services in turn on hosted", "hosted", hosted_make, hosted_unmake, hosted_open_turns, hosted_write,
      hosted_lose, hosted_is_there, .is_one_machine = true, .has_fixed_tables = true },
};
