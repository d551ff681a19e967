/* What an agent is: a program started for each task (kind process), or a language model with instructions and tools
 * (kind model).
 *
 * A definition is read by agent_definition_fields from a route's body or from the store (agent_find() in agents.h); its
 * strings are in the reader's arena. Pure functions, any thread.
 *
 *     r = agent_find(agents, "@agent", a, &agent, e);
 *     if (agent_is_model(&agent) && agent_tools_hold(&agent, "files", "read_file")) ...
 */
#pragma once

#include "base/fields.h"
#include "os/sandbox.h"

/* The model agent that always exists; a stored definition of this name replaces the one built in. */
#define AGENT_DEFAULT "@agent"
/* Before the slash of a pattern of tools: Hearth's own tools. No MCP server may have this name. */
#define AGENT_BUILTIN_TOOLS "builtin"

enum agent_approval {
    AGENT_APPROVAL_NEVER,     /* no call is asked about */
    AGENT_APPROVAL_DANGEROUS, /* calls of tools that do not declare to be harmless */
    AGENT_APPROVAL_ALWAYS,
};

struct agent_definition {
    const char *name, *display_name, *description, *hub_id;
    const char *kind; /* "process", "model"; NULL: process */
    double timeout_s; /* of one attempt of a task, or of one turn; default 900, at most 86400 */

    /* kind process */
    const char *command;
    struct field_strings args;
    const char *working_dir;
    struct json_value env;
    struct sandbox_definition sandbox;
    bool passes_arguments; /* the activity is also the last argument, which every user of the machine can read */

    /* kind model */
    const char *instructions;     /* with prompt variables (agents/prompt.h); NULL: none */
    const char *provider, *model; /* NULL: the default of the person (models/provider_choice.h) */
    const char *effort;           /* of thinking, as OpenAI writes it; NULL: the model's own */
    double temperature;           /* 0 to 2 */
    bool has_temperature;         /* false: the model's own */
    struct field_strings tools;   /* patterns, see agent_tools_hold(); none: no tools */
    const char *approval;         /* "never", "dangerous", "always"; NULL: dangerous */
    int64_t max_steps;            /* answers of the model in one turn; default 20, at most LIMIT_AGENT_STEPS */
    int64_t max_tokens_per_turn;  /* of all prompts and answers of one turn; 0: no limit */
    bool is_max_steps_given, is_max_tokens_given;
};

extern const struct field agent_definition_fields[];

bool agent_is_model(const struct agent_definition *d);
enum agent_approval agent_approval_of(const struct agent_definition *d);
/* Checks the rules that the field table cannot express; every violation is added to e. data_dir: of the service, which
 * no process agent may see; NULL: unknown. */
int agent_definition_check(const struct agent_definition *d, const char *data_dir, struct err *e) MUST_CHECK;

/* A pattern of tools is SERVER/TOOL; SERVER is "builtin" for Hearth's own tools, or a star for all servers and the
 * built-in tools; TOOL may end with a star, which stands for the rest of the name. */
bool agent_tool_matches(const char *pattern, const char *server, const char *tool);
bool agent_tools_hold(const struct agent_definition *d, const char *server, const char *tool); /* any pattern */
