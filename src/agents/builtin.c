#include "agents/builtin_private.h"

#include "base/suggest.h"
#include "identity/permissions.h"

#include <string.h>

#define OBJECT(properties, required)                                                                                   \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "],\"additionalProperties\":false}"

/* clang-format off */
const struct builtin_tool builtin_tools[] = {
    { .name = "search_vectors", .title = "Search vectors",
      .description = "Finds the stored texts nearest in meaning to a query, among the caller's own vectors.",
      .input_schema = OBJECT(
          "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096,\"description\":\"what to search for\"},"
          "\"workspace\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128,\"description\":\"which namespace; default: default\"},"
          "\"top_k\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,\"description\":\"how many results, default 5\"},"
          "\"filter\":{\"type\":\"object\",\"description\":\"members of the metadata and the values they must have\"}",
          "\"query\""),
      .permission = PERM_VECTORS_READ, .is_read_only = true, .run = builtin_vectors_search },
    { .name = "embed", .title = "Vectors of texts",
      .description = "Makes the embedding vectors of texts.",
      .input_schema = OBJECT(
          "\"input\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},\"minItems\":1,\"maxItems\":32}",
          "\"input\""),
      .permission = PERM_LLM_EMBED, .is_read_only = true, .run = builtin_vectors_embed },
    { .name = "fetch_url", .title = "Fetch a page of the web",
      .description = "Fetches an http or https address and returns its text; HTML becomes plain text with its links. Private addresses are refused.",
      .input_schema = OBJECT(
          "\"url\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8192},"
          "\"start\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"byte of the text to begin at, to read on in a long page\"}",
          "\"url\""),
      .run = builtin_web_fetch },
    { .name = "list_activities", .title = "List activities",
      .description = "Lists the app's activities, newest first.",
      .input_schema = OBJECT(
          "\"status\":{\"type\":\"string\",\"description\":\"pending, claimed, completed or failed\"},"
          "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":500},"
          "\"offset\":{\"type\":\"integer\",\"minimum\":0}", ""),
      .permission = PERM_ACTIVITIES_READ, .is_read_only = true, .run = builtin_route_list_activities },
    { .name = "add_activity", .title = "Add an activity",
      .description = "Inserts an activity; an app that listens for it has its agent work on it.",
      .input_schema = OBJECT("\"raw_data\":{\"type\":\"object\",\"description\":\"what the activity is about\"}", "\"raw_data\""),
      .permission = PERM_ACTIVITIES_WRITE, .run = builtin_route_add_activity },
    { .name = "update_activity", .title = "Change an activity",
      .description = "Changes status, result, raw_data or error_message of an activity of the app.",
      .input_schema = OBJECT(
          "\"id\":{\"type\":\"string\",\"minLength\":1},"
          "\"status\":{\"type\":\"string\",\"minLength\":1},"
          "\"result\":{\"type\":\"object\"},\"raw_data\":{\"type\":\"object\"},"
          "\"error_message\":{\"type\":\"string\"}", "\"id\""),
      .permission = PERM_ACTIVITIES_WRITE, .is_destructive = true, .run = builtin_route_update_activity },
    { .name = "trigger_agent", .title = "Give an agent a task",
      .description = "Creates a task and starts the agent on it; task_status says how far it is.",
      .input_schema = OBJECT(
          "\"agent_name\":{\"type\":\"string\",\"minLength\":1,\"description\":\"required unless auto_run is false\"},"
          "\"prompt\":{\"type\":\"string\",\"description\":\"what the agent shall do\"},"
          "\"raw_data\":{\"type\":\"object\",\"description\":\"what the task is about\"},"
          "\"auto_run\":{\"type\":\"boolean\",\"description\":\"false: the task waits in the calendar for a person\"},"
          "\"workspace_slug\":{\"type\":\"string\",\"minLength\":1},\"thread_slug\":{\"type\":\"string\",\"minLength\":1}", ""),
      .permission = PERM_WEBHOOK_TRIGGER, .is_destructive = true, .run = builtin_route_trigger },
    { .name = "task_status", .title = "Status of a task",
      .description = "Says how far a task is, with its runs and its result.",
      .input_schema = OBJECT("\"uuid\":{\"type\":\"string\",\"description\":\"the task, as trigger_agent returned it\"}", "\"uuid\""),
      .permission = PERM_TASK, .is_read_only = true, .run = builtin_route_task_status },
    { .name = "read_file", .title = "Read a file",
      .description = "Reads a text file or an image of this conversation's folder.",
      .input_schema = OBJECT(
          "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1024,\"description\":\"relative to the folder\"},"
          "\"start\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"byte to begin at, to read on in a long file\"}",
          "\"path\""),
      .is_read_only = true, .run = builtin_files_read },
    { .name = "write_file", .title = "Write a file",
      .description = "Writes a text file into this conversation's folder, replacing a file of that name.",
      .input_schema = OBJECT(
          "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1024,\"description\":\"relative to the folder; missing folders are made\"},"
          "\"content\":{\"type\":\"string\"}", "\"path\",\"content\""),
      .is_destructive = true, .run = builtin_files_write },
    { .name = "list_files", .title = "List files",
      .description = "Lists the files of this conversation's folder.",
      .input_schema = OBJECT(
          "\"path\":{\"type\":\"string\",\"maxLength\":1024,\"description\":\"a folder in it; default: all of it\"},"
          "\"recursive\":{\"type\":\"boolean\",\"description\":\"true: also what is in its folders\"}", ""),
      .is_read_only = true, .run = builtin_files_list },
    { .name = "edit_file", .title = "Edit a file",
      .description = "Replaces one place of a text file: old_text must occur in it exactly once.",
      .input_schema = OBJECT(
          "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1024},"
          "\"old_text\":{\"type\":\"string\",\"minLength\":1},\"new_text\":{\"type\":\"string\"}",
          "\"path\",\"old_text\",\"new_text\""),
      .is_destructive = true, .run = builtin_files_edit },
    { .name = "run_command", .title = "Run a command",
      .description = "Runs a command line (sh) in this conversation's folder, in a sandbox without network; returns its output and exit code.",
      .input_schema = OBJECT(
          "\"command\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":32768},"
          "\"timeout_s\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":600,\"description\":\"default 60\"}",
          "\"command\""),
      .is_destructive = true, .needs_approval = true, .is_on = builtin_command_is_on, .run = builtin_command_run },
    { .name = "ask_person", .title = "Ask the person",
      .description = "Asks the person a question and waits for the answer. Use it when something cannot be found out or decided otherwise.",
      .input_schema = OBJECT(
          "\"question\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":2000},"
          "\"choices\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},\"maxItems\":20,\"description\":\"answers to choose from; without them the person writes one\"}",
          "\"question\""),
      .is_read_only = true, .waits_for_person = true, .run = builtin_person_question },
    { .name = "now", .title = "Date and time",
      .description = "Returns the current date and time in a time zone.",
      .input_schema = OBJECT(
          "\"timezone\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64,\"description\":\"such as Europe/Berlin; default: the machine's\"}", ""),
      .is_read_only = true, .run = builtin_time_now },
};
/* clang-format on */

const size_t n_builtin_tools = ARRAY_SIZE(builtin_tools);

const struct builtin_tool *builtin_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(builtin_tools); i++)
        if (strcmp(builtin_tools[i].name, name) == 0)
            return &builtin_tools[i];
    return NULL;
}

int builtin_check(const char *name, struct err *e)
{
    const char *names[ARRAY_SIZE(builtin_tools)], *near;

    if (builtin_find(name))
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(builtin_tools); i++)
        names[i] = builtin_tools[i].name;
    near = suggest_name(name, names, ARRAY_SIZE(names));
    return err_set(e, -ENOENT, "TOOL_NOT_FOUND", "Hearth has no tool named %.64s%s%s%s", name,
                   near ? "; did you mean " : ".", near ? near : "", near ? "?" : "");
}
