#include "api/routes.h"

const struct route *const api_route_tables[] = {
    system_routes, connectivity_routes, activity_routes, webhook_routes, external_task_routes, task_routes, calendar_routes,
    agent_routes, workspace_routes, app_routes, event_routes, presence_routes, backend_token_routes, key_routes,
    permission_routes, session_routes, audit_routes, embed_routes, vector_routes, vector_config_routes, setting_routes, backup_routes, doctor_routes,
    llm_routes, limit_routes, usage_routes, provider_routes, provider_show_routes, provider_default_routes, provider_test_routes,
    v1_model_routes, v1_openai_routes, v1_embedding_routes, v1_anthropic_routes, NULL,
};
