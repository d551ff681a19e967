#include "settings/settings.h"
#include "base/limits.h"
#include "os/files.h"
#include "settings/dialect.h"
#include "settings/file.h"
#include "settings/rules.h"
#include <math.h>
#include <pthread.h>

#define ENV_PREFIX "HEARTH_"

enum { ENV_NAME_SIZE = 64, WHERE_SIZE = 512, MAX_FAULTS = 32 };

struct value {
    char *text; /* owned; NULL: not set in this layer */
    double number;
};

struct settings {
    pthread_rwlock_t lock;
    struct value layers[N_SETTINGS][N_ORIGINS];
    struct value at_start[N_SETTINGS]; /* values of settings that need a restart; NULL before settings_begin() */
    char *faults[MAX_FAULTS];          /* owned */
    size_t n_faults;
};

/* --- layers --- */

/* The strongest layer up to `top` that sets the value. */
static enum setting_origin origin_below(const struct settings *s, enum setting_id id, enum setting_origin top)
{
    int o = (int)top;

    while (o > ORIGIN_DEFAULT && !s->layers[id][o].text)
        o--;
    return (enum setting_origin)o;
}

static enum setting_origin origin_of(const struct settings *s, enum setting_id id)
{
    return origin_below(s, id, ORIGIN_FLAG);
}

static const struct value *effective(const struct settings *s, enum setting_id id)
{
    return &s->layers[id][origin_of(s, id)];
}

/* The value that getters return: a change of a setting that needs a restart takes effect after the restart. */
static const struct value *in_force(const struct settings *s, enum setting_id id)
{
    return s->at_start[id].text ? &s->at_start[id] : effective(s, id);
}

/* The dialect provides words that are not set (decision D1: when only the token is set, it is also the
 * abbreviation). */
static const char *effective_text(const struct settings *s, enum setting_id id)
{
    const struct dialect *dialect = dialect_find(effective(s, SETTING_IDENTITY_DIALECT)->text);
    const char *text = effective(s, id)->text;

    if ((id != SETTING_IDENTITY_TOKEN && (id != SETTING_IDENTITY_ABBR || *text)) || !dialect)
        return text;
    if (origin_of(s, SETTING_IDENTITY_TOKEN) != ORIGIN_DEFAULT)
        return effective(s, SETTING_IDENTITY_TOKEN)->text;
    return id == SETTING_IDENTITY_TOKEN ? dialect->token : dialect->abbr;
}

static const char *text_in_force(const struct settings *s, enum setting_id id)
{
    return s->at_start[id].text ? s->at_start[id].text : effective_text(s, id);
}

static void replace(struct value *value, const char *text, double number)
{
    free(value->text);
    *value = (struct value){ .text = text ? xstrdup(text) : NULL, .number = number };
}

static int refuse_key(const char *where, const char *key, struct err *e)
{
    int r = settings_refuse_key("there is no setting", key, -EINVAL, "BAD_SETTING", e);

    return *where ? err_prefix(e, r, "%s", where) : r;
}

/* where: "file:3", "HEARTH_X", "--set"; "": not shown */
static int put(struct settings *s, enum setting_origin o, const char *where, const char *key, const char *text,
               struct err *e)
{
    const char *colon = *where ? ": " : "";
    char why[RULES_WHY_SIZE] = "";
    enum setting_id id;
    double number;

    if (!settings_find(key, &id))
        return refuse_key(where, key, e);
    if (rules_check(&settings_rules[id], text, &number, why) < 0)
        return settings_rules[id].is_secret || settings_rules[id].may_be_secret
                   ? err_set(e, -EINVAL, "BAD_SETTING", "%s%s%s %s", where, colon, key, why)
                   : err_set(e, -EINVAL, "BAD_SETTING", "%s%s%s %s; it is \"%.80s\"", where, colon, key, why, text);
    replace(&s->layers[id][o], text, number);
    return 0;
}

/* ---- rules between settings ---- */

struct seen {
    const struct settings *s;
    enum setting_origin top;
}; /* the values up to layer `top` */

static double number_seen(const struct seen *seen, enum setting_id id)
{
    return seen->s->layers[id][origin_below(seen->s, id, seen->top)].number;
}

static const char *origin_seen(const struct seen *seen, enum setting_id id)
{
    return settings_origin_name(origin_below(seen->s, id, seen->top));
}

static int check_leases(const struct seen *seen, struct err *e)
{
    double heartbeat_s = number_seen(seen, SETTING_TASKS_HEARTBEAT_S),
           stale_after_s = number_seen(seen, SETTING_TASKS_STALE_AFTER_S);

    if (stale_after_s > heartbeat_s)
        return 0;
    return err_set(
        e, -EINVAL, "BAD_SETTING",
        "tasks.stale_after_s must be above tasks.heartbeat_s, else leases of running tasks are taken: they are %g (%s) and %g (%s)",
        stale_after_s, origin_seen(seen, SETTING_TASKS_STALE_AFTER_S), heartbeat_s,
        origin_seen(seen, SETTING_TASKS_HEARTBEAT_S));
}

static int check_ports(const struct seen *seen, struct err *e)
{
    if (number_seen(seen, SETTING_APPS_PORT_MAX) >= number_seen(seen, SETTING_APPS_PORT_MIN))
        return 0;
    return err_set(e, -EINVAL, "BAD_SETTING",
                   "apps.port_max must not be below apps.port_min: they are %g (%s) and %g (%s)",
                   number_seen(seen, SETTING_APPS_PORT_MAX), origin_seen(seen, SETTING_APPS_PORT_MAX),
                   number_seen(seen, SETTING_APPS_PORT_MIN), origin_seen(seen, SETTING_APPS_PORT_MIN));
}

/* Each pair needs both of its settings. */
static const struct {
    enum setting_id ids[2];
    int (*check)(const struct seen *seen, struct err *e);
} pairs[] = {
    { { SETTING_TASKS_STALE_AFTER_S, SETTING_TASKS_HEARTBEAT_S }, check_leases },
    { { SETTING_APPS_PORT_MAX, SETTING_APPS_PORT_MIN }, check_ports },
};

static int check_together(const struct settings *s, enum setting_origin top, struct err *e)
{
    const struct seen seen = { s, top };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(pairs); i++)
        r = pairs[i].check(&seen, e);
    return r;
}

/* A start refuses an address that other machines can reach unless that is allowed (service/listen.c); such a value is
 * not stored. */
static int check_listen(const struct settings *s, enum setting_origin top, struct err *e)
{
    const struct seen seen = { s, top };
    const char *rest = s->layers[SETTING_HTTP_LISTEN][origin_below(s, SETTING_HTTP_LISTEN, top)].text;
    struct slice address;

    if (number_seen(&seen, SETTING_HTTP_ALLOW_REMOTE) != 0)
        return 0;
    while (rules_next_element(&rest, &address))
        if (strncmp(address.p, "127.", 4) != 0 && strncmp(address.p, "[::1]:", 6) != 0 &&
            strncmp(address.p, "::1:", 4) != 0)
            return err_set(
                e, -EINVAL, "BAD_SETTING",
                "http.listen (%s) names %.*s, which other machines can reach, and http.allow_remote (%s) is false: the service would not start",
                origin_seen(&seen, SETTING_HTTP_LISTEN), (int)address.n, address.p,
                origin_seen(&seen, SETTING_HTTP_ALLOW_REMOTE));
    return 0;
}

/* Stored values must also be valid for a start without the current flags. */
static int check_kept(const struct settings *s, struct err *e)
{
    int r = check_together(s, ORIGIN_FLAG, e);

    if (r == 0)
        r = check_together(s, ORIGIN_DATABASE, e);
    if (r == 0)
        r = check_listen(s, ORIGIN_FLAG, e);
    return r < 0 ? r : check_listen(s, ORIGIN_DATABASE, e);
}

/* ---- stored values that cannot be used ---- */

void settings_note_fault(struct settings *s, const char *why)
{
    if (s->n_faults < MAX_FAULTS)
        s->faults[s->n_faults++] = xstrdup(why);
}

static void note_fault(struct settings *s, const char *key, const char *why)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    settings_note_fault(s, arena_printf(a, "%s; `hearth settings unset %.80s` removes it", why, key));
}

/* Ignores the value of the database layer; the layers below apply. */
static void drop_stored(struct settings *s, enum setting_id id)
{
    replace(&s->layers[id][ORIGIN_DATABASE], NULL, 0);
    if (s->at_start[id].text)
        replace(&s->at_start[id], effective_text(s, id), effective(s, id)->number);
}

static void drop_pair(struct settings *s, size_t i, const char *why)
{
    for (size_t j = 0; j < ARRAY_SIZE(pairs[i].ids); j++) {
        enum setting_id id = pairs[i].ids[j];

        if (s->layers[id][ORIGIN_DATABASE].text)
            note_fault(s, settings_rules[id].key, why);
        drop_stored(s, id);
    }
}

/* --- sources --- */

struct file_load {
    struct settings *s;
    const char *path;
};

static int take_pair(void *arg, const char *key, const char *value, int line, struct err *e)
{
    struct file_load *load = arg;
    char where[WHERE_SIZE];
    enum setting_id id;

    snprintf(where, sizeof(where), "%s:%d", load->path, line);
    if (settings_find(key, &id) && load->s->layers[id][ORIGIN_FILE].text)
        return err_set(e, -EINVAL, "BAD_SETTING", "%s: %s is set twice in this file", where, key);
    return put(load->s, ORIGIN_FILE, where, key, value, e);
}

static int load_file(struct settings *s, const char *path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct file_load load = { .s = s, .path = path };
    struct slice text = { 0 };
    int r;

    r = file_read(a, path, LIMIT_CONFIG_BYTES, &text, e);
    return r < 0 ? r : settings_file_parse(a, text, path, take_pair, &load, e);
}

static void env_name_of(const char *key, char out[ENV_NAME_SIZE])
{
    size_t n = (size_t)snprintf(out, ENV_NAME_SIZE, ENV_PREFIX "%s", key);

    for (size_t i = strlen(ENV_PREFIX); i < n && i < ENV_NAME_SIZE; i++)
        out[i] = out[i] == '.' ? '_' : out[i] >= 'a' && out[i] <= 'z' ? (char)(out[i] - 'a' + 'A') : out[i];
}

/* Whether both have the same first word, as HEARTH_TASKS_ and tasks.: such a variable is a typing error, not a variable
 * of another program. */
static bool has_first_word_of(struct slice name, const char *env_name, const char *key)
{
    size_t n = strlen(ENV_PREFIX) + strcspn(key, ".") + 1;

    return name.n >= n && strncmp(name.p, env_name, n) == 0;
}

static int load_variable(struct settings *s, struct slice name, const char *value, struct err *e)
{
    bool is_like_one = false;
    char env_name[ENV_NAME_SIZE];

    for (size_t i = 0; i < N_SETTINGS; i++) {
        env_name_of(settings_rules[i].key, env_name);
        if (slice_eq_str(name, env_name))
            return *value ? put(s, ORIGIN_ENV, env_name, settings_rules[i].key, value, e) : 0;
        is_like_one = is_like_one || has_first_word_of(name, env_name, settings_rules[i].key);
    }
    if (!is_like_one)
        return 0;
    return err_set(e, -EINVAL, "BAD_SETTING",
                   "the environment variable %.*s names no setting; `hearth settings` lists them",
                   (int)MIN(name.n, (size_t)80), name.p);
}

static int load_env(struct settings *s, const char *const *env, struct err *e)
{
    int r = 0;

    for (; env && *env && r == 0; env++) {
        const char *equals = strchr(*env, '=');

        if (equals && strncmp(*env, ENV_PREFIX, strlen(ENV_PREFIX)) == 0)
            r = load_variable(s, (struct slice){ *env, (size_t)(equals - *env) }, equals + 1, e);
    }
    return r;
}

/* Loads every usable row; the others are faults. */
static void load_rows(struct settings *s, const struct setting_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct err why = { 0 };

        if (put(s, ORIGIN_DATABASE, "the database", rows[i].key, rows[i].value, &why) < 0)
            note_fault(s, rows[i].key, why.text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        const struct seen seen = { s, ORIGIN_FLAG };
        struct err why = { 0 };

        if (pairs[i].check(&seen, &why) < 0)
            drop_pair(s, i, why.text);
    }
}

static int load_flags(struct settings *s, const char *const *flags, size_t n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const char *equals = strchr(flags[i], '=');

        if (!equals)
            return err_set(e, -EINVAL, "BAD_SETTING", "--set %.80s: must be KEY=VALUE", flags[i]);
        r = put(s, ORIGIN_FLAG, "--set", arena_strndup(a, flags[i], (size_t)(equals - flags[i])), equals + 1, e);
    }
    return r;
}

static int load_all(struct settings *s, const struct settings_sources *from, struct err *e)
{
    int r = 0;

    for (size_t i = 0; i < N_SETTINGS && r == 0; i++)
        r = put(s, ORIGIN_DEFAULT, "default", settings_rules[i].key, settings_rules[i].def, e);
    if (r == 0 && from->config_path)
        r = load_file(s, from->config_path, e);
    if (r == 0)
        r = load_env(s, from->env, e);
    if (r == 0)
        r = load_flags(s, from->flags, from->n_flags, e);
    if (r == 0)
        r = check_together(s, ORIGIN_FLAG, e);
    return r < 0 || !from->n_rows ? r : settings_apply_rows(s, from->rows, from->n_rows, e);
}

int settings_load(const struct settings_sources *from, struct settings **ret, struct err *e)
{
    AUTO(settings_freep) struct settings *s = xcalloc(1, sizeof(*s));
    int r;

    pthread_rwlock_init(&s->lock, NULL);
    r = load_all(s, from, e);
    if (r < 0)
        return r;
    *ret = TAKE(s);
    return 0;
}

int settings_apply_rows(struct settings *s, const struct setting_row *rows, size_t n, struct err *e)
{
    int r = 0;

    pthread_rwlock_wrlock(&s->lock);
    load_rows(s, rows, n);
    if (s->n_faults)
        r = err_set(e, -EINVAL, "BAD_SETTING", "%s", s->faults[0]);
    pthread_rwlock_unlock(&s->lock);
    return r;
}

/* Exchanges the file layers of the two. */
static void swap_file_layer(struct settings *s, struct settings *other)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        struct value kept = s->layers[i][ORIGIN_FILE];

        s->layers[i][ORIGIN_FILE] = other->layers[i][ORIGIN_FILE];
        other->layers[i][ORIGIN_FILE] = kept;
    }
}

int settings_reload_file(struct settings *s, const char *path, struct err *e)
{
    AUTO(settings_freep) struct settings *read = xcalloc(1, sizeof(*read));
    int r;

    pthread_rwlock_init(&read->lock, NULL);
    r = path ? load_file(read, path, e) : 0;
    if (r < 0)
        return r;
    pthread_rwlock_wrlock(&s->lock);
    swap_file_layer(s, read);
    r = check_together(s, ORIGIN_FLAG, e);
    if (r == 0)
        r = check_kept(s, e);
    if (r < 0)
        swap_file_layer(s, read);
    pthread_rwlock_unlock(&s->lock);
    return r;
}

const char *settings_fault(const struct settings *s, size_t i)
{
    return i < s->n_faults ? s->faults[i] : NULL;
}

void settings_drop_stored(struct settings *s, enum setting_id id, const char *why)
{
    pthread_rwlock_wrlock(&s->lock);
    if (s->layers[id][ORIGIN_DATABASE].text)
        note_fault(s, settings_rules[id].key, why);
    drop_stored(s, id);
    pthread_rwlock_unlock(&s->lock);
}

void settings_begin(struct settings *s)
{
    pthread_rwlock_wrlock(&s->lock);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        enum setting_id id = (enum setting_id)i;

        if (settings_rules[i].needs_restart)
            replace(&s->at_start[i], effective_text(s, id), effective(s, id)->number);
    }
    pthread_rwlock_unlock(&s->lock);
}

struct settings *settings_free(struct settings *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < s->n_faults; i++)
        free(s->faults[i]);
    for (size_t i = 0; i < N_SETTINGS; i++)
        free(s->at_start[i].text);
    for (size_t i = 0; i < N_SETTINGS; i++)
        for (size_t o = 0; o < N_ORIGINS; o++)
            free(s->layers[i][o].text);
    pthread_rwlock_destroy(&s->lock);
    free(s);
    return NULL;
}

void settings_freep(struct settings **s)
{
    *s = settings_free(*s);
}

/* --- change at run time --- */

static int set_or_undo(struct settings *s, enum setting_id id, const char *value, bool is_kept, struct err *e)
{
    struct value *layer = &s->layers[id][ORIGIN_DATABASE], before = *layer;
    int r = 0;

    *layer = (struct value){ 0 };
    if (value)
        r = put(s, ORIGIN_DATABASE, "", settings_rules[id].key, value, e);
    if (r == 0)
        r = check_kept(s, e);
    if (r == 0 && is_kept) {
        free(before.text);
        return 0;
    }
    free(layer->text);
    *layer = before;
    return r;
}

static int try_value(struct settings *s, const char *key, const char *value, bool is_kept, struct err *e)
{
    enum setting_id id;
    int r;

    if (!settings_find(key, &id))
        return settings_refuse_key("There is no setting", key, -EINVAL, "BAD_SETTING", e);
    pthread_rwlock_wrlock(&s->lock);
    r = set_or_undo(s, id, value, is_kept, e);
    pthread_rwlock_unlock(&s->lock);
    return r;
}

int settings_set(struct settings *s, const char *key, const char *value, struct err *e)
{
    return try_value(s, key, value, true, e);
}

int settings_check(struct settings *s, const char *key, const char *value, struct err *e)
{
    return try_value(s, key, value, false, e);
}

/* --- getters --- */

static double number_of(struct settings *s, enum setting_id id)
{
    double number;

    pthread_rwlock_rdlock(&s->lock);
    number = in_force(s, id)->number;
    pthread_rwlock_unlock(&s->lock);
    return number;
}

bool settings_bool(struct settings *s, enum setting_id id)
{
    return number_of(s, id) != 0;
}

int64_t settings_int(struct settings *s, enum setting_id id)
{
    return (int64_t)number_of(s, id);
}

int64_t settings_ms(struct settings *s, enum setting_id id)
{
    return (int64_t)ceil(number_of(s, id) * 1000);
}

static char *text_of(struct settings *s, struct arena *a, enum setting_id id,
                     const char *(*which)(const struct settings *, enum setting_id))
{
    char *text;

    pthread_rwlock_rdlock(&s->lock);
    text = arena_strdup(a, which(s, id));
    pthread_rwlock_unlock(&s->lock);
    return text;
}

char *settings_string(struct settings *s, struct arena *a, enum setting_id id)
{
    return text_of(s, a, id, text_in_force);
}

char *settings_show(struct settings *s, struct arena *a, enum setting_id id)
{
    return settings_rules[id].is_secret ? arena_strdup(a, "****") : text_of(s, a, id, effective_text);
}

const char *const *settings_list(struct settings *s, struct arena *a, enum setting_id id, size_t *ret_n)
{
    const char *text = settings_string(s, a, id), *rest = text;
    const char **items = arena_array(a, strlen(text) / 2 + 2, sizeof(char *));
    struct slice element;
    size_t n = 0;

    while (rules_next_element(&rest, &element))
        items[n++] = arena_slicedup(a, element);
    *ret_n = n;
    return items;
}

enum setting_origin settings_origin(struct settings *s, enum setting_id id)
{
    enum setting_origin o;

    pthread_rwlock_rdlock(&s->lock);
    o = origin_of(s, id);
    pthread_rwlock_unlock(&s->lock);
    return o;
}

const char *settings_origin_name(enum setting_origin o)
{
    static const char *const names[N_ORIGINS] = { "default", "file", "environment", "database", "flag" };

    return names[o];
}
