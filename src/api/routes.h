/* Every route table of the program, listed by hand (api/routes.c): one line a resource file. */
#pragma once

#include "api/route.h"

extern const struct route *const api_route_tables[];    /* ended by NULL: dispatch_config.tables */

extern const struct route system_routes[];              /* api/system.c: healthz, readyz, metrics, openapi */
extern const struct route connectivity_routes[];        /* api/connectivity.c: ping, data-dir */
extern const struct route key_routes[];                 /* api/keys.c */
extern const struct route permission_routes[];          /* api/permissions.c */
extern const struct route session_routes[];             /* api/session.c */
extern const struct route audit_routes[];               /* api/audit.c */
extern const struct route activity_routes[];            /* api/activities.c */
extern const struct route webhook_routes[];             /* api/webhooks.c: from apps */
extern const struct route external_task_routes[];       /* api/external_tasks.c: from agent processes */
extern const struct route task_routes[];                /* api/tasks.c */
extern const struct route agent_routes[];               /* api/agents.c */
extern const struct route workspace_routes[];           /* api/workspaces.c: and threads */
extern const struct route calendar_routes[];            /* api/calendar.c */
extern const struct route app_routes[];                 /* api/apps.c */
extern const struct route event_routes[];               /* api/events.c: the stream of changes */
extern const struct route presence_routes[];            /* api/presence.c */
extern const struct route backend_token_routes[];       /* api/backend_token.c */
extern const struct route embed_routes[];               /* api/embed.c */
extern const struct route vector_routes[];              /* api/vectors.c */
extern const struct route vector_config_routes[];       /* api/vector_config.c: providers, register, config */
extern const struct route limit_routes[];               /* api/limits.c: of apps and keys */
extern const struct route usage_routes[];               /* api/usage.c */
extern const struct route setting_routes[];             /* api/settings.c */
extern const struct route backup_routes[];              /* api/backup.c */
extern const struct route doctor_routes[];              /* api/doctor.c */
extern const struct route provider_routes[];            /* api/providers.c: add, remove */
extern const struct route provider_show_routes[];       /* api/provider_show.c: what is configured and what could be */
extern const struct route provider_default_routes[];    /* api/provider_default.c */
extern const struct route provider_test_routes[];       /* api/provider_test.c */
extern const struct route llm_routes[];                 /* api/llm.c */
extern const struct route v1_model_routes[];            /* api/v1_models.c: OpenAI's and Anthropic's forms from here on */
extern const struct route v1_openai_routes[];           /* api/v1_openai.c */
extern const struct route v1_embedding_routes[];        /* api/v1_embeddings.c */
extern const struct route v1_anthropic_routes[];        /* api/v1_anthropic.c */
