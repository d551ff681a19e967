#include "identity/permissions.h"

#include <string.h>

/* Specification, "Permissions", and decision D4. `requests` completes "The app X wants to ...". */
const struct permission permissions[] = {
    { PERM_AGENTS, "see which agents there are", false },
    { PERM_WORKSPACES, "see which workspaces there are", false },
    { PERM_THREADS, "see the threads of a workspace", false },
    { PERM_TASK, "read its own tasks and their runs", false },
    { PERM_WEBHOOK_TRIGGER, "create tasks, start any of your agents on them, and report on or cancel its own tasks",
      true },
    { PERM_DATABASE_CONFIG, "read its database configuration", false },
    { PERM_ACTIVITIES_READ, "read its activities", false },
    { PERM_ACTIVITIES_WRITE, "create, change and delete its activities", false },
    { PERM_LLM_CHAT, "use your language models", false },
    { PERM_LLM_EMBED, "use your embedding models", false },
    { PERM_LLM_PROVIDERS, "see which language model providers are set up", false },
    { PERM_VECTORS_READ, "search its vectors", false },
    { PERM_VECTORS_WRITE, "store and delete its vectors", false },
    { PERM_TTS_GENERATE, "turn text into speech", false },
    { PERM_STT_LISTEN, "listen to your microphone", false },
    { PERM_STT_TRANSCRIBE, "turn recordings into text", false },
    { PERM_MCP_SERVERS, "see which tool servers are set up", false },
    { PERM_MCP_TOOLS, "run tools on this machine, which can be any program", true },
    { PERM_AGENT_CHAT, "talk to your agents", false },
    { .name = NULL },
};

#define TOOLS PERM_MCP_TOOLS "/"

static bool is_part_of_tools(const char *name)
{
    return strncmp(name, TOOLS, strlen(TOOLS)) == 0 && name[strlen(TOOLS)] != '\0';
}

const struct permission *permission_find(const char *name)
{
    for (const struct permission *p = permissions; p->name; p++)
        if (strcmp(p->name, name) == 0 || (is_part_of_tools(name) && strcmp(p->name, PERM_MCP_TOOLS) == 0))
            return p;
    return NULL;
}

const char *permission_requests(struct arena *a, const char *name)
{
    const struct permission *known = permission_find(name);
    const char *server = name + strlen(TOOLS), *tool;

    if (!known)
        return "do something this version of Hearth does not know";
    if (!is_part_of_tools(name))
        return known->requests;
    tool = strchr(server, '/');
    return tool ? arena_printf(a, "run the tool %s of the MCP server %.*s", tool + 1, (int)(tool - server), server)
                : arena_printf(a, "run the tools of the MCP server %s", server);
}
