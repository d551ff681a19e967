/* The table of the specification's permissions, including those whose routes do not exist yet. Constant; any thread. */
#pragma once

#include "base/arena.h"

/* The value of `permission` in a route's row. The first four are no grants. */
#define PERM_PUBLIC "-public"   /* no caller is needed: healthz, one-time link */
#define PERM_NONE "-identified" /* a known key or app, no grant */
#define PERM_ADMIN "-admin"     /* local administrator session or the data folder's socket */
/* The caller is taken from the headers, else from app_id in the body when the peer is this machine, else there is none
 * (request.caller->kind CALLER_NOBODY): the handler decides what such a caller may do (decision D3: webhook, register,
 * request-permission, external-tasks). */
#define PERM_BODY "-body"

#define PERM_AGENTS "api.agents"
#define PERM_WORKSPACES "api.workspaces"
#define PERM_THREADS "api.threads"
#define PERM_TASK "api.task"
#define PERM_WEBHOOK_TRIGGER "webhook.trigger"
#define PERM_DATABASE_CONFIG "database.config"
#define PERM_ACTIVITIES_READ "activities.read"
#define PERM_ACTIVITIES_WRITE "activities.write"
#define PERM_LLM_CHAT "llm.chat"
#define PERM_LLM_EMBED "llm.embed"
#define PERM_LLM_PROVIDERS "llm.providers"
#define PERM_VECTORS_READ "vectors.read"
#define PERM_VECTORS_WRITE "vectors.write"
#define PERM_TTS_GENERATE "tts.generate"
#define PERM_STT_LISTEN "stt.listen"
#define PERM_STT_TRANSCRIBE "stt.transcribe"
#define PERM_MCP_SERVERS "mcp.servers"
#define PERM_MCP_TOOLS "mcp.tools"
#define PERM_AGENT_CHAT "agent.chat"

struct permission {
    const char *name;
    const char *requests; /* the sentence for the person: "start agents and create tasks" */
    bool is_dangerous;    /* every use is audited */
};

extern const struct permission permissions[]; /* ended by name NULL */
/* NULL: unknown. "mcp.tools/SERVER" and "mcp.tools/SERVER/TOOL" are parts of mcp.tools (identity/mcp_permit.h): its
 * row.
 */
const struct permission *permission_find(const char *name);
/* Completes "The app X wants to ..."; names the server and the tool of a part of mcp.tools. In the arena or constant.
 */
const char *permission_requests(struct arena *a, const char *name);
