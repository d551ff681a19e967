/* The modules a handler may use. Borrowed from service/, which opens and closes them. */
#pragma once

#include "base/loop.h"

#include <stdatomic.h>

struct api {
    struct loop *loop;
    struct settings *settings;
    struct instance *instance; /* store/instance.h */
    struct store *store;
    struct identity *identity;
    struct meter *meter; /* identity/meter.h */
    struct backend *backend;
    /* Calls of the backend wait for a peer: its provider (backend/backend_providers.h), or an app in Custom Mode. */
    atomic_bool has_remote_rows;
    struct tasks *tasks;
    struct agents *agents;
    struct agent_turns *agent_turns; /* agents/turns.h */
    struct approvals *approvals;     /* agents/approvals.h */
    struct apps *apps;
    struct sandbox *sandbox;
    struct llm_accounts *llm_accounts;
    const struct models *models;             /* models/models.h */
    struct speech *speech;                   /* speech/speech.h */
    struct ears *ears;                       /* speech/ears.h */
    struct speech_sessions *speech_sessions; /* speech/sessions.h */
    struct pool *short_pool;                 /* NULL without a service */
    struct dispatch *dispatch;
    struct v1_kept *v1_kept;     /* api/compat/v1_kept.h; NULL without a service */
    struct mcp_oauth *mcp_oauth; /* mcp/oauth.h; NULL without a service */
    struct mcp_host *mcp_host;   /* mcp/host.h */
    struct mcp_api *mcp_api;     /* api/compat/mcp_api.h; NULL without a service */
    struct face_auth *face_auth; /* face/auth.h; NULL as realtime */
    struct realtime *realtime;   /* face/realtime.h; NULL without a service, or when face.enabled is off */
    struct api_events *events;   /* api/resources/events.h: the stream of changes */
    const char *data_dir;
    bool is_serving;        /* false: command line without a service */
    atomic_bool is_leaving; /* the service is stopping: no request may wait for changes any more */
    char base_url[64];      /* http://127.0.0.1:PORT, the first address listened on */
};
