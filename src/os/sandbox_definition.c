/* The member `sandbox` of a definition: its fields, its rules, its description. */
#include "os/sandbox_private.h"

#include "base/limits.h"

#include <stdlib.h>

static const char *const profile_choices[] = { "none", "standard", "strict", NULL };

const struct field sandbox_definition_fields[] = {
    FIELD_STRING(struct sandbox_definition, profile, "profile", .one_of = profile_choices,
                 .help = "default: the setting sandbox.default"),
    FIELD_STRINGS(struct sandbox_definition, read, "read", .max = LIMIT_SANDBOX_FOLDERS,
                  .help = "folders it may read: absolute, or ~/..."),
    FIELD_STRINGS(struct sandbox_definition, write, "write", .max = LIMIT_SANDBOX_FOLDERS,
                  .help = "folders it may read and write"),
    FIELD_BOOL(struct sandbox_definition, network, "network", .help = "default: true in standard, false in strict",
               .present_offset = offsetof(struct sandbox_definition, is_network_given)),
    FIELD_END,
};

const char *sandbox_expand(struct arena *a, const char *path)
{
    const char *home = getenv("HOME");

    if (path[0] != '~')
        return path;
    return home && *home && (path[1] == '/' || path[1] == '\0') ? arena_printf(a, "%s%s", home, path + 1) : NULL;
}

/* ---- rules ---- */

static bool is_whole_path(const char *path)
{
    if (path[0] == '~')
        return path[1] == '/' && path[2];
    return path[0] == '/' && path[1];
}

static bool has_dots(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")); at += 3)
        if (at[3] == '/' || at[3] == '\0')
            return true;
    return false;
}

static const char *rule_of_folder(struct arena *a, const char *path, bool is_writable, const char *data_dir)
{
    static const char *const never[] = { "/proc", "/sys", "/dev" };
    const char *whole = sandbox_expand(a, path);

    if (strlen(path) > LIMIT_SANDBOX_PATH || !is_whole_path(path) || has_dots(path) || !whole)
        return "must be an absolute path below /, or begin with ~/, without `..`";
    for (size_t i = 0; i < ARRAY_SIZE(never); i++)
        if (sandbox_is_below(whole, never[i]))
            return "must not be in /proc, /sys or /dev";
    if (data_dir && sandbox_is_below(whole, data_dir))
        return "must not be in the service's data folder";
    if (data_dir && is_writable && sandbox_is_below(data_dir, whole))
        return "must not be a folder in which the service's data folder lies";
    return NULL;
}

static int check_folders(struct arena *a, const struct field_strings *folders, const char *field, const char *data_dir,
                         bool is_writable, struct err *e)
{
    int r = 0;

    for (size_t i = 0; i < folders->n; i++) {
        const char *rule = rule_of_folder(a, folders->items[i], is_writable, data_dir);

        if (rule)
            r = err_add_field(e, arena_printf(a, "%s[%zu]", field, i), "%s", rule);
    }
    return r;
}

int sandbox_definition_check(const struct sandbox_definition *definition, const char *path, const char *data_dir,
                             struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *profile = definition->profile ? definition->profile : "";
    int r = check_folders(a, &definition->read, arena_printf(a, "%s.read", path), data_dir, false, e);
    int r_write = check_folders(a, &definition->write, arena_printf(a, "%s.write", path), data_dir, true, e);

    if (strcmp(profile, "strict") == 0 && definition->is_network_given && definition->network)
        r = err_add_field(e, arena_printf(a, "%s.network", path),
                          "must not be true with the profile strict, which has none");
    if (strcmp(profile, "none") == 0 &&
        (definition->read.n > 0 || definition->write.n > 0 || (definition->is_network_given && !definition->network)))
        r = err_add_field(e, arena_printf(a, "%s.profile", path),
                          "must not be none when folders or the network are restricted: nothing is then");
    return r < 0 ? r : r_write;
}

/* ---- description ---- */

static void add_folders(struct buf *out, const char *verb, const struct field_strings *folders)
{
    for (size_t i = 0; i < folders->n; i++)
        buf_printf(out, "%s%s%s", out->n ? ", " : "", i == 0 ? verb : "", folders->items[i]);
}

const char *sandbox_words(struct arena *a, const struct sandbox *box, const struct sandbox_definition *definition)
{
    enum sandbox_profile profile = box ? sandbox_profile_of(box, definition)
                                       : sandbox_profile_named(definition->profile ? definition->profile : "standard");
    bool has_network = definition->is_network_given ? definition->network : profile != SANDBOX_STRICT;
    struct buf out;

    if (profile == SANDBOX_NONE)
        return "runs without a sandbox: may read, change and delete everything that you can, and may use the network";
    buf_init(&out, MIB(1));
    add_folders(&out, "may read ", &definition->read);
    add_folders(&out, "may write ", &definition->write);
    buf_printf(&out, "%s%s", out.n ? ", " : "", has_network ? "may use the network" : "may not use the network");
    if (definition->read.n == 0 && definition->write.n == 0)
        buf_add_str(&out, ", sees none of your files but its own folder and the one it is started in");
    return buf_to_arena(&out, a);
}

const char *sandbox_canonical(struct arena *a, const struct sandbox_definition *definition)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(1));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "profile", definition->profile && *definition->profile ? definition->profile : "default");
    json_add_strings(&w, "read", definition->read.items, definition->read.n);
    json_add_strings(&w, "write", definition->write.items, definition->write.n);
    json_add_string(&w, "network", !definition->is_network_given ? "default" : definition->network ? "yes" : "no");
    json_end(&w);
    return buf_to_arena(&out, a);
}
