#include "store/instance_private.h"

#include "base/clock.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define HOW_TO_GO_ON                                                                                                   \
    "`hearth restore FILE --force` puts a backup in place; `hearth serve --accept-loss` goes on without what is lost"

const char *const instance_file_names[INSTANCE_N_FILES] = { "hearth.db", "backend.db", "vectors.db" };

int instance_open(const char *data_dir, bool accept_loss, struct instance **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct instance *in = xcalloc(1, sizeof(*in));
    struct err why = { 0 };
    int r;

    in->data_dir = xstrdup(data_dir);
    in->path = xstrdup(arena_printf(a, "%s/" INSTANCE_FILE, data_dir));
    in->accept_loss = accept_loss;
    pthread_mutex_init(&in->lock, NULL);
    r = instance_read_notes(in, &why);
    if (r == -EUCLEAN && accept_loss)
        r = 0;
    if (r < 0) {
        instance_close(in);
        return err_set(e, r, why.code, "%s", why.text);
    }
    *ret = in;
    return 0;
}

struct instance *instance_close(struct instance *in)
{
    if (!in)
        return NULL;
    for (size_t i = 0; i < INSTANCE_N_FILES; i++)
        free(in->accepted[i]);
    pthread_mutex_destroy(&in->lock);
    free(in->data_dir);
    free(in->path);
    free(in);
    return NULL;
}

const char *instance_accepted(const struct instance *in, size_t i)
{
    for (size_t file = 0; file < INSTANCE_N_FILES; file++)
        if (in->accepted[file] && i-- == 0)
            return in->accepted[file];
    return NULL;
}

/* --- the files found --- */

enum look { LOOK_MISSING, LOOK_EMPTY, LOOK_DAMAGED, LOOK_UNSTAMPED, LOOK_STAMPED };

static int read_row(struct sql_db *db, struct instance_row *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const char *id;
    int r = sql_query(db, &rows, e, "SELECT id, generation FROM _instance", NULL);

    if (r == 0)
        r = sql_step(rows, e);
    if (r <= 0)
        return r;
    id = sql_text(rows, a, 0);
    if (!id || !uuid_is_valid(slice_of(id)))
        return err_set(e, -EUCLEAN, "STORE_DAMAGED", "its table _instance holds no id");
    snprintf(ret->id, sizeof(ret->id), "%s", id);
    ret->generation = sql_int(rows, 1);
    return 1;
}

static int read_stamp(const char *path, struct instance_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct sql_options options = { .is_readonly = true };
    struct sql_db *db = NULL;
    int r = sql_open(path, &options, &db, e);

    if (r == 0)
        r = sql_query(db, &rows, e, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_instance'", NULL);
    if (r == 0)
        r = sql_step(rows, e);
    if (r > 0)
        r = read_row(db, ret, e);
    sql_rows_endp(&rows);
    sql_close(db);
    return r;
}

/* Negative: unknown, for example without access rights or while another program holds the file. */
static int look_at(const char *path, struct instance_row *ret, struct err *e)
{
    struct err why = { 0 };
    struct stat st;
    int r;

    if (stat(path, &st) < 0)
        return errno == ENOENT ? LOOK_MISSING : err_errno(e, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) {
        err_set(e, -EUCLEAN, "STORE_DAMAGED", "it is no file");
        return LOOK_DAMAGED;
    }
    if (st.st_size == 0) /* SQLite would remove the file's log */
        return LOOK_EMPTY;
    r = read_stamp(path, ret, &why);
    if (r >= 0)
        return r > 0 ? LOOK_STAMPED : LOOK_UNSTAMPED;
    err_set(e, r, why.code, "%s", why.text);
    return r == -EBUSY || r == -EACCES || r == -ENOMEM || r == -EROFS || r == -ENOSPC ? r : LOOK_DAMAGED;
}

/* The notes on a folder's own files remain valid when the folder is moved or copied. */
static void place_of(const struct instance *in, const char *path, char ret[INSTANCE_PLACE_SIZE])
{
    size_t n = strlen(in->data_dir);
    bool is_below = strncmp(path, in->data_dir, n) == 0 && path[n] == '/';

    snprintf(ret, INSTANCE_PLACE_SIZE, "%016llx", (unsigned long long)hash_fast(slice_of(is_below ? path + n : path)));
}

/* --- the verdict --- */

static int lost(struct err *why, const char *path, const char *what)
{
    return err_set(why, -EUCLEAN, "DATA_LOST", "%.300s %s", path, what);
}

static int refuse(const struct err *why, int r, struct err *e)
{
    return r == -EUCLEAN ? err_set(e, r, "DATA_LOST", "%s. " HOW_TO_GO_ON, why->text)
                         : err_set(e, r, why->code, "%s", why->text);
}

static const char *what_is_lost(enum look look, const struct instance_known *known, const struct instance_row *found)
{
    if (look == LOOK_MISSING)
        return "is missing";
    if (look == LOOK_EMPTY)
        return "is empty";
    if (look == LOOK_UNSTAMPED)
        return "holds nothing of what was stored: its write-ahead log (-wal) is gone, or it is another file";
    if (strcmp(found->id, known->id) != 0)
        return "belongs to another instance of Hearth";
    if (found->generation < known->generation)
        return "is older than what was stored last: its write-ahead log (-wal) is gone, or it is an old copy";
    return NULL;
}

/* Detects a folder that lost its hearth.db and its notes: another database file still has a row of an instance. */
static bool has_stamped_file(const struct instance *in)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct instance_row row;

    for (enum instance_file i = INSTANCE_BACKEND; i < INSTANCE_N_FILES; i++)
        if (look_at(arena_printf(a, "%s/%s", in->data_dir, instance_file_names[i]), &row, NULL) == LOOK_STAMPED)
            return true;
    return false;
}

static int judge_unknown(const struct instance *in, enum instance_file file, const char *path, enum look look,
                         const struct instance_row *found, struct err *e)
{
    if (file == INSTANCE_STORE && look < LOOK_DAMAGED && (in->is_noted || has_stamped_file(in)))
        return lost(e, path, look == LOOK_EMPTY ? "is empty" : "is missing");
    if (file == INSTANCE_VECTORS && look == LOOK_STAMPED && *in->id && strcmp(found->id, in->id) != 0)
        return lost(e, path, "belongs to another instance of Hearth");
    return 0;
}

/* Under the lock. */
static int judge(struct instance *in, enum instance_file file, const char *path, struct instance_row *found,
                 struct err *e)
{
    const struct instance_known *known = &in->files[file];
    char place[INSTANCE_PLACE_SIZE];
    struct err why = { 0 };
    const char *what;
    int look = look_at(path, found, &why);

    if (look < 0)
        return err_set(e, look, why.code, "%s: %s", path, why.text);
    if (look == LOOK_DAMAGED)
        return err_set(e, -EUCLEAN, "DATA_LOST", "%.300s is damaged: %.150s", path, why.text);
    place_of(in, path, place);
    if (!*known->id || strcmp(known->place, place) != 0)
        return judge_unknown(in, file, path, (enum look)look, found, e);
    what = what_is_lost((enum look)look, known, found);
    return what ? lost(e, path, what) : 0;
}

int instance_examine(struct instance *in, enum instance_file file, const char *path, struct err *e)
{
    struct instance_row found = { 0 };
    struct err why = { 0 };
    int r;

    pthread_mutex_lock(&in->lock);
    r = judge(in, file, path, &found, &why);
    pthread_mutex_unlock(&in->lock);
    return r < 0 ? refuse(&why, r, e) : 0;
}

/* --- accepting --- */

static int put_aside(const char *path, struct err *e)
{
    static const char *const endings[] = { "-wal", "-shm", "-journal", "" };
    AUTO(arena_freep) struct arena *a = arena_new();
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
        if (rename(arena_printf(a, "%s%s", path, endings[i]),
                   arena_printf(a, "%s.damaged-%s%s", path, now, endings[i])) < 0 &&
            errno != ENOENT)
            return err_errno(e, errno, "%s cannot be put aside", path);
    return 0;
}

/* Under the lock. */
static void forget(struct instance *in, enum instance_file file, const char *why)
{
    memset(&in->files[file], 0, sizeof(in->files[file]));
    free(in->accepted[file]);
    in->accepted[file] = xstrdup(why);
}

/* Accepts a readable file as it is. */
static int accept(struct instance *in, enum instance_file file, const char *path, const struct err *why, struct err *e)
{
    struct instance_row found = { 0 };
    int look = look_at(path, &found, NULL), r = look == LOOK_UNSTAMPED || look == LOOK_STAMPED ? 0 : put_aside(path, e);

    if (r == 0)
        forget(in, file, why->text);
    return r;
}

int instance_admit(struct instance *in, enum instance_file file, const char *path, struct err *e)
{
    struct instance_row found = { 0 };
    struct err why = { 0 };
    int r;

    pthread_mutex_lock(&in->lock);
    r = judge(in, file, path, &found, &why);
    if (r == -EUCLEAN && in->accept_loss)
        r = accept(in, file, path, &why, e);
    else if (r < 0)
        r = refuse(&why, r, e);
    if (r == 0 && file == INSTANCE_STORE && *found.id)
        memcpy(in->id, found.id, sizeof(in->id)); /* the other files belong to this id */
    pthread_mutex_unlock(&in->lock);
    return r;
}

int instance_give_up(struct instance *in, enum instance_file file, const char *path, int r, struct err *e)
{
    struct err why = { 0 };
    int s;

    if (!e || (strcmp(e->code, "STORE_DAMAGED") != 0 && strcmp(e->code, "STORE_ERROR") != 0))
        return r;
    err_set(&why, -EUCLEAN, "DATA_LOST", "%.300s cannot be used: %.150s", path, e->text);
    if (!in->accept_loss)
        return refuse(&why, -EUCLEAN, e);
    pthread_mutex_lock(&in->lock);
    s = put_aside(path, e);
    if (s == 0)
        forget(in, file, why.text);
    pthread_mutex_unlock(&in->lock);
    return s;
}

/* --- the row --- */

static const char row_table[] = "CREATE TABLE IF NOT EXISTS _instance (id TEXT NOT NULL, generation INTEGER NOT NULL)";

static void settle_id(struct instance *in)
{
    if (!*in->id)
        uuid_v4(in->id);
}

/* The backend's file may be shared: it keeps the id of the instance that made it. */
int instance_stamp(struct instance *in, enum instance_file file, struct sql_db *db, struct instance_row *ret,
                   struct err *e)
{
    int r = sql_exec(db, e, row_table, NULL), n = r == 0 ? read_row(db, ret, e) : r;

    if (n < 0)
        return n;
    pthread_mutex_lock(&in->lock);
    settle_id(in);
    if (n == 0)
        r = sql_exec(db, e, "INSERT INTO _instance (id, generation) VALUES (?, 1)", "s", in->id);
    else if (file != INSTANCE_BACKEND && strcmp(ret->id, in->id) != 0)
        r = sql_exec(db, e, "UPDATE _instance SET id = ?", "s", in->id);
    pthread_mutex_unlock(&in->lock);
    return r < 0 ? r : MIN(read_row(db, ret, e), 0);
}

int instance_raise(struct sql_db *db, int64_t *ret_generation, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "UPDATE _instance SET generation = generation + 1 RETURNING generation", NULL);

    if (r == 0)
        r = sql_step(rows, e);
    if (r > 0)
        *ret_generation = sql_int(rows, 0);
    while (r > 0)
        r = sql_step(rows, e);
    return r;
}

int instance_note(struct instance *in, enum instance_file file, const char *path, const struct instance_row *row,
                  struct err *e)
{
    struct instance_known *known = &in->files[file];
    char place[INSTANCE_PLACE_SIZE];
    int r = 0;

    place_of(in, path, place);
    pthread_mutex_lock(&in->lock);
    if (!in->is_noted || strcmp(known->id, row->id) != 0 || strcmp(known->place, place) != 0) {
        *known = (struct instance_known){ .generation = row->generation };
        memcpy(known->id, row->id, sizeof(known->id));
        memcpy(known->place, place, sizeof(place));
        r = instance_write_notes(in, e);
    } else if (known->generation != row->generation) {
        known->generation = row->generation;
        r = instance_write_generation(in, file) < 0 ? instance_write_notes(in, e) : 0;
    }
    pthread_mutex_unlock(&in->lock);
    return r;
}
