/* The modules a handler may use. Borrowed from service/, which opens and closes them. */
#pragma once

#include "base/loop.h"

#include <stdatomic.h>

struct api {
    struct loop *loop;
    struct settings *settings;
    struct store *store;
    struct identity *identity;
    struct meter *meter;                /* identity/meter.h */
    struct backend *backend;
    struct tasks *tasks;
    struct agents *agents;
    struct apps *apps;
    struct sandbox *sandbox;
    struct vector_stores *vector_stores;        /* api/vector_stores.h */
    struct llm_accounts *llm_accounts;
    struct llm_relays *llm_relays;      /* NULL without a service */
    struct dispatch *dispatch;
    struct api_events *events;          /* api/events.h: the stream of changes */
    const char *data_dir;
    bool is_serving;                    /* false: command line without a service */
    atomic_bool is_leaving;             /* the service is stopping: nothing waits for news any more */
    char base_url[64];                  /* http://127.0.0.1:PORT, the first address listened on */
};
