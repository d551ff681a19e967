/* The table of fixtures: at least one for each provider of backends. */
#pragma once

#include "fixture_embedded.h"
#include "fixture_turns.h"

static inline struct backend *embedded_open_turns(void *place)
{
    struct backend *one = embedded_open(place);

    return turns_new(one, embedded_open(place));
}

static const struct fixture fixtures[] = {
    { "embedded", "embedded", embedded_make, embedded_remove, embedded_open, embedded_write },
    { "two services in turn", "embedded", embedded_make, embedded_remove, embedded_open_turns, embedded_write },
};
