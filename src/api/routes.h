/* Every route table of the program, listed by hand (api/routes.c): one line per resource file. */
#pragma once

#include "api/route.h"

extern const struct route *const api_route_tables[]; /* ended by NULL: dispatch_config.tables */

extern const struct route system_routes[];           /* api/resources/system.c: healthz, readyz, metrics, openapi */
extern const struct route connectivity_routes[];     /* api/resources/connectivity.c: ping, data-dir */
extern const struct route home_routes[];             /* api/resources/home.c: GET / */
extern const struct route key_routes[];              /* api/resources/keys.c */
extern const struct route approval_routes[];         /* api/resources/approvals.c */
extern const struct route permission_routes[];       /* api/resources/permissions.c */
extern const struct route session_routes[];          /* api/resources/session.c */
extern const struct route static_file_routes[];      /* api/resources/static_files.c */
extern const struct route audit_routes[];            /* api/resources/audit.c */
extern const struct route activity_routes[];         /* api/resources/activities.c */
extern const struct route webhook_routes[];          /* api/resources/webhooks.c: reports of apps */
extern const struct route external_task_routes[];    /* api/resources/external_tasks.c: reports of agent processes */
extern const struct route task_routes[];             /* api/resources/tasks.c */
extern const struct route agent_routes[];            /* api/resources/agents.c */
extern const struct route agent_session_routes[];    /* api/resources/agent_sessions.c */
extern const struct route workspace_routes[];        /* api/resources/workspaces.c: and threads */
extern const struct route conversation_routes[];     /* api/resources/conversations.c: what threads hold */
extern const struct route calendar_routes[];         /* api/resources/calendar.c */
extern const struct route calendar_new_routes[];     /* api/resources/calendar_new.c: events that apps add */
extern const struct route capability_routes[];       /* api/resources/capabilities.c */
extern const struct route mcp_routes[];              /* api/resources/mcp.c: servers and tools for apps */
extern const struct route mcp_server_routes[];       /* api/resources/mcp_servers.c: management */
extern const struct route mcp_import_routes[];       /* api/resources/mcp_import.c */
extern const struct route mcp_part_routes[];         /* api/resources/mcp_parts.c: resources and prompts */
extern const struct route mcp_login_routes[];        /* api/resources/mcp_login.c */
extern const struct route app_log_routes[];          /* api/resources/app_logs.c */
extern const struct route app_routes[];              /* api/resources/apps.c */
extern const struct route event_routes[];            /* api/resources/events.c: the stream of changes */
extern const struct route presence_routes[];         /* api/resources/presence.c */
extern const struct route realtime_routes[];         /* api/resources/realtime.c: the hosted service's protocol */
extern const struct route backend_user_routes[];     /* api/resources/backend_users.c: users of the face */
extern const struct route face_auth_routes[];        /* api/resources/face_auth.c: /auth/v1 */
extern const struct route rest_routes[];             /* api/resources/rest.c: the same, rows over REST */
extern const struct route backend_key_routes[];      /* api/resources/backend_keys.c */
extern const struct route backend_account_routes[];  /* api/resources/backend_account.c */
extern const struct route backend_delivery_routes[]; /* api/resources/backend_deliveries.c */
extern const struct route backend_monitor_routes[];  /* api/resources/backend_monitor.c */
extern const struct route backend_setup_routes[];    /* api/resources/backend_setup.c */
extern const struct route backend_token_routes[];    /* api/resources/backend_token.c */
extern const struct route embed_routes[];            /* api/resources/embed.c */
extern const struct route hearing_routes[];          /* api/resources/hearing.c */
extern const struct route speech_session_routes[];   /* api/resources/speech_session.c */
extern const struct route listening_routes[];        /* api/resources/listening.c */
extern const struct route speech_routes[];           /* api/resources/speech.c */
extern const struct route vector_routes[];           /* api/resources/vectors.c */
extern const struct route vector_config_routes[];    /* api/resources/vector_config.c: providers, register, config */
extern const struct route limit_routes[];            /* api/resources/limits.c: limits of apps and keys */
extern const struct route usage_routes[];            /* api/resources/usage.c */
extern const struct route setting_routes[];          /* api/resources/settings.c */
extern const struct route backup_routes[];           /* api/resources/backup.c */
extern const struct route doctor_routes[];           /* api/resources/doctor.c */
extern const struct route provider_routes[];         /* api/resources/providers.c: add, remove */
extern const struct route model_fact_routes[];
extern const struct route provider_show_routes[]; /* api/resources/provider_show.c: configured providers and presets */
extern const struct route provider_default_routes[]; /* api/resources/provider_default.c */
extern const struct route provider_test_routes[];    /* api/resources/provider_test.c */
extern const struct route llm_routes[];              /* api/resources/llm.c */
extern const struct route
    v1_model_routes[]; /* api/compat/v1_models.c: from here on the forms of OpenAI and Anthropic */
extern const struct route v1_openai_routes[];        /* api/compat/v1_openai.c */
extern const struct route v1_responses_routes[];     /* api/compat/v1_responses.c */
extern const struct route v1_completions_routes[];   /* api/compat/v1_completions.c */
extern const struct route v1_embedding_routes[];     /* api/compat/v1_embeddings.c */
extern const struct route v1_speech_routes[];        /* api/compat/v1_speech.c */
extern const struct route v1_transcription_routes[]; /* api/compat/v1_transcriptions.c */
extern const struct route v1_anthropic_routes[];     /* api/compat/v1_anthropic.c */
extern const struct route mcp_api_routes[];          /* api/compat/mcp_api_http.c */
extern const struct route ollama_model_routes[];     /* api/compat/ollama_models.c: from here on the form of Ollama */
extern const struct route ollama_chat_routes[];      /* api/compat/ollama_chat.c */
extern const struct route ollama_embed_routes[];     /* api/compat/ollama_embed.c */
