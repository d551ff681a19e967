#include "mcp/server.h"

#include "base/hash.h"
#include "base/limits.h"
#include "mcp/http.h"
#include "mcp/oauth_key.h"
#include "net/url.h"
#include "os/env.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MAX_TIMEOUT_S = 86400,
    DEFAULT_TIMEOUT_S = 120,
    SHOWN_BYTES = 8 * LIMIT_MCP_DEFINITION /* quotes make four bytes of one, and folders are named twice */
};

static const char *const grants[] = { "person", "machine", "enterprise", NULL };
static const char *const types[] = { "stdio", "http", "sse", NULL };

const struct field mcp_server_fields[] = {
    FIELD_STRING(struct mcp_server, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_MCP_SERVER_NAME,
                 .help = "letters, digits, - and single _; unique"),
    FIELD_STRING(struct mcp_server, type, "server_type", .one_of = types,
                 .help = "default: stdio with a command, http with a url"),
    FIELD_STRING(struct mcp_server, display_name, "display_name", .max = LIMIT_NAME_CHARS,
                 .help = "as people see it; the name when absent"),
    FIELD_STRING(struct mcp_server, description, "description", .max = LIMIT_TEXT_CHARS, .def_str = ""),
    FIELD_STRINGS(struct mcp_server, tags, "tags", .max = LIMIT_MCP_TAGS),
    FIELD_BOOL(struct mcp_server, is_enabled, "enabled", .def = 1),
    FIELD_BOOL(struct mcp_server, is_trusted, "trusted",
               .help = "changed definitions of its tools are accepted without asking a person"),
    FIELD_STRING(struct mcp_server, command, "command", .min = 1, .max = LIMIT_TEXT_CHARS,
                 .help = "of stdio; looked up in PATH when it has no slash"),
    FIELD_STRINGS(struct mcp_server, args, "args", .max = LIMIT_ARGS,
                  .help = "folders among them are shown to the command"),
    FIELD_STRING(struct mcp_server, working_dir, "working_dir", .min = 1, .max = LIMIT_TEXT_CHARS,
                 .help = "absolute; a folder of its own when absent"),
    FIELD_STRING_MAP(struct mcp_server, env, "env", .max = LIMIT_ARGS,
                     .help = "added to the minimal environment; values are sealed"),
    FIELD_STRING(struct mcp_server, url, "url", .min = 1, .max = LIMIT_URL_CHARS, .help = "of http and sse"),
    FIELD_STRING_MAP(struct mcp_server, headers, "headers", .max = LIMIT_MCP_HEADERS,
                     .help = "sent with every request; values are sealed"),
    FIELD_STRING(struct mcp_server, client_id, "client_id", .min = 1, .max = LIMIT_MCP_CLIENT_BYTES,
                 .help = "of http and sse: registered at the authorization server; absent: Hearth registers itself"),
    FIELD_STRING(struct mcp_server, client_secret, "client_secret", .min = 1, .max = LIMIT_MCP_CLIENT_BYTES,
                 .help = "sealed, never shown again"),
    FIELD_STRING(struct mcp_server, client_metadata_url, "client_metadata_url", .min = 1, .max = LIMIT_URL_CHARS,
                 .help = "https address of a client id metadata document"),
    FIELD_STRING(struct mcp_server, scope, "scope", .min = 1, .max = LIMIT_TEXT_CHARS,
                 .help = "of the login, instead of what the server names"),
    FIELD_STRING(struct mcp_server, grant, "grant", .one_of = grants, .def_str = "person",
                 .help = "machine: client credentials, without a person; enterprise: an identity_provider vouches"),
    FIELD_STRING(struct mcp_server, private_key, "private_key", .min = 1, .max = LIMIT_MCP_KEY_BYTES,
                 .help =
                     "PEM, P-256 or RSA; signs instead of client_secret (private_key_jwt); sealed, never shown again"),
    FIELD_STRING(struct mcp_server, key_id, "key_id", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "of private_key, as the authorization server knows it"),
    FIELD_STRING(struct mcp_server, identity_provider, "identity_provider", .min = 1, .max = LIMIT_URL_CHARS,
                 .help = "of grant enterprise: the issuer at which people log in, https"),
    FIELD_STRING(struct mcp_server, identity_client_id, "identity_client_id", .min = 1, .max = LIMIT_MCP_CLIENT_BYTES,
                 .help = "registered at the identity provider"),
    FIELD_STRING(struct mcp_server, identity_client_secret, "identity_client_secret", .min = 1,
                 .max = LIMIT_MCP_CLIENT_BYTES, .help = "sealed, never shown again"),
    FIELD_STRINGS(struct mcp_server, folders, "folders", .max = LIMIT_SANDBOX_FOLDERS,
                  .help = "roots: folders that it is told of and may change"),
    FIELD_STRINGS(struct mcp_server, read_folders, "read_folders", .max = LIMIT_SANDBOX_FOLDERS,
                  .help = "roots that it may read only"),
    FIELD_STRUCT(struct mcp_server, sandbox, "sandbox", sandbox_definition_fields, .help = "of stdio; see docs/mcp.md"),
    FIELD_DOUBLE(struct mcp_server, timeout_s, "timeout_s", .min = 0.1, .max = MAX_TIMEOUT_S, .def = DEFAULT_TIMEOUT_S,
                 .help = "how long a call may be without an answer and without progress"),
    FIELD_END,
};

bool mcp_server_is_local(const struct mcp_server *s)
{
    return strcmp(s->type, "stdio") == 0;
}

void mcp_server_complete(struct mcp_server *s)
{
    if (!s->type)
        s->type = s->url && !s->command ? "http" : "stdio";
    if (!s->display_name || !*s->display_name)
        s->display_name = s->name;
}

/* ---- rules ---- */

/* A tool's name for models is server__tool, so a name has no two underscores in a row. */
static const char *rule_of_name(const char *name)
{
    size_t n = strlen(name);

    if (!isalnum((unsigned char)name[0]) || name[n - 1] == '_' || strstr(name, "__") ||
        name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")])
        return "must begin with a letter or digit and have letters, digits, - and single _ only, no _ at its end";
    if (strcmp(name, "builtin") == 0)
        return "must be another name: builtin is taken by the service";
    return NULL;
}

static int check_env(const struct mcp_server *s, struct arena *a, struct err *e)
{
    struct env_list *env = env_list_new(a);
    struct json_iter it = json_iter(s->env);
    struct json_value value;
    struct slice name;
    int r = 0;

    while (json_next(&it, &name, &value)) {
        struct err why;

        err_init(&why);
        if (env_list_set(env, arena_slicedup(a, name), json_cstr(value), &why) < 0)
            r = err_add_field(e, "env", "holds what cannot be: %s", why.text);
    }
    return r;
}

static int check_child(const struct mcp_server *s, struct arena *a, const char *data_dir, struct err *e)
{
    int r = check_env(s, a, e);

    if (!s->command)
        r = err_add_field(e, "command", "is required for server_type stdio");
    if (s->url)
        r = err_add_field(e, "url", "must be absent for server_type stdio");
    if (s->working_dir && s->working_dir[0] != '/')
        r = err_add_field(e, "working_dir", "must be an absolute path");
    return sandbox_definition_check(&s->sandbox, "sandbox", data_dir, e) < 0 ? -EINVAL : r;
}

static int check_key(const struct mcp_server *s, struct err *e)
{
    const char *rule = mcp_key_rule(s->private_key);

    if (s->client_secret)
        return err_add_field(e, "private_key", "must be absent with a client_secret: one of them");
    if (!s->client_id && !s->client_metadata_url)
        return err_add_field(e, "private_key", "needs a client_id");
    if (rule)
        return err_add_field(e, "private_key", "%s", rule);
    return 0;
}

/* Credentials go there, so http is for this machine only. */
static int check_provider(const struct mcp_server *s, struct arena *a, struct err *e)
{
    struct url url;
    int r = 0;

    if (!s->identity_provider || !s->identity_client_id)
        return err_add_field(e, "grant", "enterprise needs identity_provider and identity_client_id");
    if (url_parse(a, s->identity_provider, &url, NULL) < 0 || !(url.is_tls || url.is_loopback) ||
        strpbrk(s->identity_provider, "?#"))
        r = err_add_field(e, "identity_provider", "must be an https URL without ? and #");
    if (!s->client_id && !s->client_metadata_url)
        r = err_add_field(e, "grant", "enterprise needs a client_id, registered at the server's authorization server");
    return r;
}

static int check_login(const struct mcp_server *s, struct arena *a, struct err *e)
{
    bool is_enterprise = strcmp(s->grant, "enterprise") == 0;
    int r = 0;

    if (strcmp(s->grant, "machine") == 0 && !(s->client_id && (s->client_secret || s->private_key)))
        r = err_add_field(e, "grant", "machine needs client_id, and client_secret or private_key");
    if (s->private_key && check_key(s, e) < 0)
        r = -EINVAL;
    if (s->key_id && !s->private_key)
        r = err_add_field(e, "key_id", "needs a private_key");
    if (is_enterprise && check_provider(s, a, e) < 0)
        r = -EINVAL;
    if (!is_enterprise && (s->identity_provider || s->identity_client_id || s->identity_client_secret))
        r = err_add_field(e, "identity_provider", "is for the grant enterprise");
    return r;
}

static int check_remote(const struct mcp_server *s, struct arena *a, struct err *e)
{
    struct json_iter it = json_iter(s->headers);
    struct json_value value;
    struct slice name;
    struct url url;
    struct err why;
    int r = 0;

    err_init(&why);
    if (!s->url)
        r = err_add_field(e, "url", "is required for server_type %s", s->type);
    else if (url_parse(a, s->url, &url, &why) < 0)
        r = err_add_field(e, "url", "must be an http or https URL: %s", why.text);
    if (s->command)
        r = err_add_field(e, "command", "must be absent for server_type %s", s->type);
    if (check_login(s, a, e) < 0)
        r = -EINVAL;
    while (json_next(&it, &name, &value)) {
        err_init(&why);
        if (mcp_http_check_header(arena_slicedup(a, name), json_cstr(value), &why) < 0)
            r = err_add_field(e, "headers", "holds what cannot be: %s", why.text);
    }
    return r;
}

/* A rule of one list of roots, by the rules of the sandbox. */
static int check_roots(const struct field_strings *folders, bool is_writable, const char *field, const char *data_dir,
                       struct err *e)
{
    struct sandbox_definition definition = { .read = *folders };
    struct err why;

    if (is_writable)
        definition = (struct sandbox_definition){ .write = *folders };
    err_init(&why);
    if (sandbox_definition_check(&definition, "", data_dir, &why) == 0)
        return 0;
    return err_add_field(e, field, "%s", why.fields[0].rule);
}

/* ---- as JSON ---- */

static void add_text(struct json_writer *w, const char *name, const char *text)
{
    if (text)
        json_add_string(w, name, text);
}

static void add_texts(struct json_writer *w, const char *name, const struct field_strings *texts)
{
    if (texts->n)
        json_add_strings(w, name, texts->items, texts->n);
}

static void write_sandbox(const struct sandbox_definition *sandbox, struct json_writer *w)
{
    json_begin_object_as(w, "sandbox");
    add_text(w, "profile", sandbox->profile);
    add_texts(w, "read", &sandbox->read);
    add_texts(w, "write", &sandbox->write);
    if (sandbox->is_network_given)
        json_add_bool(w, "network", sandbox->network);
    json_end(w);
}

/* What runs, and what it may see. */
static void write_runs(const struct mcp_server *s, struct json_writer *w)
{
    json_add_string(w, "server_type", s->type);
    add_text(w, "command", s->command);
    add_texts(w, "args", &s->args);
    add_text(w, "working_dir", s->working_dir);
    add_text(w, "url", s->url);
    if (json_length(s->env))
        json_add_value(w, "env", s->env);
    if (json_length(s->headers))
        json_add_value(w, "headers", s->headers);
    add_text(w, "client_id", s->client_id);
    add_text(w, "client_secret", s->client_secret);
    add_text(w, "client_metadata_url", s->client_metadata_url);
    add_text(w, "scope", s->scope);
    add_text(w, "grant", s->grant);
    add_text(w, "private_key", s->private_key);
    add_text(w, "key_id", s->key_id);
    add_text(w, "identity_provider", s->identity_provider);
    add_text(w, "identity_client_id", s->identity_client_id);
    add_text(w, "identity_client_secret", s->identity_client_secret);
    add_texts(w, "folders", &s->folders);
    add_texts(w, "read_folders", &s->read_folders);
    write_sandbox(&s->sandbox, w);
}

void mcp_server_write(const struct mcp_server *s, struct json_writer *w)
{
    json_begin_object(w);
    json_add_string(w, "name", s->name);
    json_add_string(w, "display_name", s->display_name);
    json_add_string(w, "description", s->description);
    add_texts(w, "tags", &s->tags);
    json_add_bool(w, "enabled", s->is_enabled);
    json_add_bool(w, "trusted", s->is_trusted);
    json_add_double(w, "timeout_s", s->timeout_s);
    write_runs(s, w);
    json_end(w);
}

/* ---- the whole ---- */

static int check_size(const struct mcp_server *s, struct err *e)
{
    struct json_writer w;
    struct buf out;
    int r = 0;

    buf_init(&out, LIMIT_MCP_DEFINITION);
    json_write_init(&w, &out);
    mcp_server_write(s, &w);
    if (out.overflowed)
        r = err_add_field(e, "", "The definition must have at most LIMIT_MCP_DEFINITION (%d) bytes as JSON.",
                          LIMIT_MCP_DEFINITION);
    buf_clear(&out);
    return r;
}

int mcp_server_check(const struct mcp_server *s, const char *data_dir, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *rule = rule_of_name(s->name);
    int r = mcp_server_is_local(s) ? check_child(s, a, data_dir, e) : check_remote(s, a, e);

    if (rule)
        r = err_add_field(e, "name", "%s", rule);
    if (check_roots(&s->folders, true, "folders", data_dir, e) < 0)
        r = -EINVAL;
    if (check_roots(&s->read_folders, false, "read_folders", data_dir, e) < 0)
        r = -EINVAL;
    return check_size(s, e) < 0 ? -EINVAL : r;
}

const char *mcp_server_hash(struct arena *a, const struct mcp_server *s)
{
    char hash[HASH_HEX_SIZE];
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_MCP_DEFINITION);
    json_write_init(&w, &out);
    json_begin_object(&w);
    write_runs(s, &w);
    json_end(&w);
    hash_text_hex(buf_slice(&out), hash);
    buf_clear(&out);
    return arena_strdup(a, hash);
}

/* ---- for people ---- */

/* One word of a shell: in quotes when it has more than plain characters. */
static void show_word(struct buf *out, const char *word)
{
    bool is_plain =
        *word && !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=@,+%")];

    buf_add_str(out, out->n ? " " : "");
    if (is_plain) {
        buf_add_str(out, word);
        return;
    }
    buf_add_str(out, "'");
    for (; *word; word++)
        if (*word == '\'')
            buf_add_str(out, "'\\''");
        else
            buf_add(out, word, 1);
    buf_add_str(out, "'");
}

static void show_names(struct buf *out, const char *what, struct json_value map)
{
    struct json_iter it = json_iter(map);
    struct json_value value;
    struct slice name;
    const char *between = what;

    for (; json_next(&it, &name, &value); between = ", ")
        buf_printf(out, "%s%s", between, name.p);
}

static void show_folders(struct buf *out, const char *what, const struct field_strings *folders)
{
    for (size_t i = 0; i < folders->n; i++)
        buf_printf(out, "%s%s", i ? ", " : what, folders->items[i]);
}

const char *mcp_server_shown(struct arena *a, const struct sandbox *box, const struct mcp_server *s)
{
    struct sandbox_definition sandbox = mcp_server_sandbox(a, s);
    struct buf out;

    buf_init(&out, SHOWN_BYTES);
    if (mcp_server_is_local(s)) {
        show_word(&out, s->command ? s->command : "");
        for (size_t i = 0; i < s->args.n; i++)
            show_word(&out, s->args.items[i]);
        if (s->working_dir)
            buf_printf(&out, "\nin the folder %s", s->working_dir);
        show_names(&out, "\nwith the variables ", s->env);
        buf_printf(&out, "\n%s", sandbox_words(a, box, &sandbox));
    } else {
        buf_printf(&out, "%s", s->url ? s->url : "");
        show_names(&out, "\nwith the headers ", s->headers);
    }
    show_folders(&out, "\nis told of the folders ", &s->folders);
    show_folders(&out, "\nis told of the folders, to read only: ", &s->read_folders);
    return buf_to_arena(&out, a);
}

/* ---- the sandbox of the child ---- */

static bool is_folder(const char *path)
{
    struct stat st;

    return path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool has_text(const char *const *items, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(items[i], text) == 0)
            return true;
    return false;
}

static void add_folder(const char **items, size_t *n, const char *path)
{
    if (*n < LIMIT_SANDBOX_FOLDERS && !has_text(items, *n, path))
        items[(*n)++] = path;
}

struct sandbox_definition mcp_server_sandbox(struct arena *a, const struct mcp_server *s)
{
    struct sandbox_definition ret = s->sandbox;
    const char **read = arena_array(a, LIMIT_SANDBOX_FOLDERS, sizeof(*read)),
               **write = arena_array(a, LIMIT_SANDBOX_FOLDERS, sizeof(*write));
    size_t n_read = 0, n_write = 0;

    if (ret.profile && strcmp(ret.profile, "none") == 0)
        return ret;
    for (size_t i = 0; i < s->sandbox.read.n; i++)
        add_folder(read, &n_read, s->sandbox.read.items[i]);
    for (size_t i = 0; i < s->read_folders.n; i++)
        add_folder(read, &n_read, s->read_folders.items[i]);
    for (size_t i = 0; i < s->sandbox.write.n; i++)
        add_folder(write, &n_write, s->sandbox.write.items[i]);
    for (size_t i = 0; i < s->folders.n; i++)
        add_folder(write, &n_write, s->folders.items[i]);
    for (size_t i = 0; i < s->args.n; i++)
        if (is_folder(s->args.items[i]) && !has_text(read, n_read, s->args.items[i]))
            add_folder(write, &n_write, s->args.items[i]);
    ret.read = (struct field_strings){ read, n_read };
    ret.write = (struct field_strings){ write, n_write };
    return ret;
}
