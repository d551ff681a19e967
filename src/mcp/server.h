/* The definition of one MCP server: its fields, its rules, its text for people, its sealed form.
 *
 * A definition and all its texts lie in one arena. Any thread.
 *
 *     r = fields_read(mcp_server_fields, object, &server, arena, "", e);
 *     if (r == 0)
 *         r = mcp_server_check(&server, data_dir, e);
 */
#pragma once

#include "base/fields.h"
#include "os/sandbox.h"

struct mcp_server {
    const char *name, *type; /* "stdio", "http", "sse" (decision D12) */
    const char *display_name, *description;
    struct field_strings tags;
    bool is_enabled;
    bool is_trusted;                       /* changed definitions of tools are accepted without a person */
    const char *command;                   /* stdio: looked up in PATH when it has no slash */
    struct field_strings args;             /* stdio */
    const char *working_dir;               /* stdio; NULL: the server's own folder */
    struct json_value env;                 /* stdio: an object of texts, or absent */
    const char *url;                       /* http, sse */
    struct json_value headers;             /* http, sse: an object of texts, or absent */
    const char *client_id, *client_secret; /* http, sse: registered by the person at the authorization server; NULL */
    /* http, sse: of struct mcp_oauth_target; grant: "person", "machine" or "enterprise" */
    const char *client_metadata_url, *scope, *grant, *private_key, *key_id;
    const char *identity_provider, *identity_client_id, *identity_client_secret;
    struct field_strings folders, read_folders; /* roots that a person gave, and, of them, those it may not change */
    struct sandbox_definition sandbox;          /* stdio */
    double timeout_s;                           /* of one call without progress */
    struct field_strings disabled_tools;        /* not a member of the definition as JSON */
};

extern const struct field mcp_server_fields[];

/* Whether the server runs on this machine as a child: `local` of the contract's `provider`, else `remote`. */
bool mcp_server_is_local(const struct mcp_server *s);
/* Fills what may be left out: type, display_name. */
void mcp_server_complete(struct mcp_server *s);
/* The rules that the field table cannot express, of a completed definition; every violation is added to e. */
int mcp_server_check(const struct mcp_server *s, const char *data_dir, struct err *e) MUST_CHECK;
/* The definition as JSON, secrets included, in the form of mcp_server_fields; for sealing. */
void mcp_server_write(const struct mcp_server *s, struct json_writer *w);
/* What a person is shown before the command runs: one line each for command, variables (names only), folders and
 * sandbox; of a remote server its address and the names of its headers. In the arena. */
const char *mcp_server_shown(struct arena *a, const struct sandbox *box, const struct mcp_server *s);
/* A hash that is equal exactly when two definitions run the same in the same way. In the arena. */
const char *mcp_server_hash(struct arena *a, const struct mcp_server *s);
/* The folders and the profile for the child: the definition's own, the folders, and those folders that the arguments
 * name. In the arena. */
struct sandbox_definition mcp_server_sandbox(struct arena *a, const struct mcp_server *s);
