#include "store/vectors/vectors_db.h"
#include "base/limits.h"
#include "base/thread.h"
#include "store/backup.h"
#include "store/schema_check.h"
#include "store/vectors/vectors_db_private.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fewer and larger checkpoints than SQLite's default; afterwards the log file is truncated to 64 MiB. */
#define WRITER_PRAGMAS "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -8000"
enum { CHECKPOINT_PAGES = 6000 /* with what comes during the fold, less than the limit above */ };

/* Pages are read from the mapped file instead of copied: reading the few rows of an answer takes microseconds. SQLite
 * maps no more than its compiled maximum. The pragma, because the pager does not use what a file control maps. */
#define READER_PRAGMAS "PRAGMA mmap_size = 1099511627776"

/* Rows of 384 dimensions (1.6 KiB) fill SQLite's 4 KiB pages badly: two fit into 4 KiB, five into 8 KiB. */
#define NEW_FILE_PRAGMAS "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL"

static const struct migration migrations[] = {
    { "vectors",
      "CREATE TABLE spaces (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, n_dimensions INTEGER NOT NULL,"
      " n_rows INTEGER NOT NULL, next_row INTEGER NOT NULL, used_at INTEGER NOT NULL,"
      " text_row INTEGER);" /* rows up to this one are in the space's full-text index; NULL: no index */
      "CREATE TABLE vectors (row INTEGER PRIMARY KEY, space INTEGER NOT NULL, id TEXT NOT NULL, document_id TEXT,"
      " metadata TEXT NOT NULL, vector BLOB NOT NULL);"
      "CREATE UNIQUE INDEX vectors_by_id ON vectors (space, id);"
      "CREATE INDEX vectors_by_document ON vectors (space, document_id) WHERE document_id IS NOT NULL;"
      "CREATE TABLE dropped_spaces (id INTEGER PRIMARY KEY)" },
    { "bytes of spaces", "ALTER TABLE spaces ADD COLUMN n_bytes INTEGER NOT NULL DEFAULT 0;"
                         "UPDATE spaces SET n_bytes = (SELECT coalesce(sum(" VECTORS_DB_ROW_BYTES
                         "), 0) FROM vectors WHERE space = spaces.id)" },
    { "side files of spaces", "ALTER TABLE spaces ADD COLUMN side_mark INTEGER NOT NULL DEFAULT 0" },
};

const size_t vectors_db_n_migrations = ARRAY_SIZE(migrations);

/* The page size must be set before the file has its first page. */
static int make_file(const char *path, struct err *e)
{
    sqlite3 *handle = NULL;
    struct stat st;
    int fd, code;

    if (stat(path, &st) == 0 && st.st_size > 0)
        return 0;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, errno, "cannot make the database %s", path);
    close(fd);
    code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(handle, NEW_FILE_PRAGMAS, NULL, NULL, NULL);
    sqlite3_close(handle);
    return code == SQLITE_OK ? 0 : err_set(e, -EIO, "STORE_ERROR", "%s: %s", path, sqlite3_errstr(code));
}

/* On the thread that opens the file; the writer's own thread gives way by itself (folds_beside). */
static int tune_writer(struct sql_db *db, void *arg, struct err *e)
{
    thread_give_way(PRIO_MIN);
    return sql_script(db, WRITER_PRAGMAS, e);
}

static int map_file(struct sql_db *db, struct err *e)
{
    return sql_script(db, READER_PRAGMAS, e);
}

int vectors_db_open(const char *path, struct instance *instance, struct vectors_db **ret, struct err *e)
{
    const struct writer_config config = { .path = path,
                                          .label = "vectors",
                                          .checkpoint_pages = CHECKPOINT_PAGES,
                                          .folds_beside = true,
                                          .instance = instance,
                                          .file = INSTANCE_VECTORS };
    struct vectors_db *db = xcalloc(1, sizeof(*db));
    int r;

    r = make_file(path, e);
    if (r == 0)
        r = migrate_run(path, migrations, ARRAY_SIZE(migrations), e);
    if (r == 0)
        r = writer_start(&config, &db->writer, e);
    if (r == 0)
        r = writer_run(db->writer, tune_writer, NULL, e);
    if (r == 0)
        r = readers_new(path, &db->readers, e);
    if (r < 0) {
        vectors_db_close(db);
        return r;
    }
    readers_prepare_with(db->readers, map_file);
    *ret = db;
    return 0;
}

/* Closes the writer last: the last connection folds the write-ahead log into the file, and readers may not write. */
struct vectors_db *vectors_db_close(struct vectors_db *db)
{
    if (!db)
        return NULL;
    readers_free(db->readers);
    writer_stop(db->writer);
    free(db);
    return NULL;
}

int vectors_db_check(const char *path, const struct backup_patience *patience, struct err *e)
{
    int r = backup_check_while(path, patience, e);

    return r < 0 ? r : schema_check_file(path, migrations, ARRAY_SIZE(migrations), e);
}

/* --- spaces --- */

int vectors_db_find(struct vectors_db *db, const char *space, struct vectors_db_space *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct vectors_db_space found = { 0 };
    int r;

    r = sql_query(readers_get(db->readers), &rows, e,
                  "SELECT id, n_dimensions, n_rows, n_bytes, side_mark FROM spaces WHERE name = ?", "s", space);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    if (r > 0)
        found = (struct vectors_db_space){ sql_int(rows, 0), sql_int(rows, 1), sql_int(rows, 2), sql_int(rows, 3),
                                           sql_int(rows, 4) };
    if (r > 0 && (found.n_dimensions < 1 || found.n_dimensions > LIMIT_DIMENSIONS || found.n_rows < 0))
        return err_set(e, -EUCLEAN, "STORE_DAMAGED", "the namespace %.100s has %lld dimensions", space,
                       (long long)found.n_dimensions);
    *ret = found;
    return 0;
}

/* Searches the index of names from the prefix to the prefix plus Unicode's last character, above which no name has a
 * character. */
int vectors_db_bytes(struct vectors_db *db, const char *prefix, int64_t *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(readers_get(db->readers), &rows, e,
                  "SELECT coalesce(sum(n_bytes), 0) FROM spaces WHERE name >= ? AND name < ? || char(1114111)", "ss",
                  prefix, prefix);
    if (r == 0)
        r = sql_step(rows, e);
    if (r > 0)
        *ret = sql_int(rows, 0);
    return MIN(r, 0);
}

static int read_names(struct sql_rows *rows, struct arena *a, size_t max, struct field_strings *ret, struct err *e)
{
    const char **items = arena_array(a, max, sizeof(*items));
    size_t n = 0;
    int r = 0;

    while (n < max && (r = sql_step(rows, e)) > 0)
        items[n++] = sql_text(rows, a, 0);
    if (r < 0)
        return r;
    *ret = (struct field_strings){ items, n };
    return 0;
}

int vectors_db_names(struct vectors_db *db, const char *prefix, struct arena *a, struct field_strings *ret,
                     struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(readers_get(db->readers), &rows, e,
                  "SELECT name FROM spaces WHERE substr(name, 1, length(?)) = ? ORDER BY name", "ss", prefix, prefix);
    return r < 0 ? r : read_names(rows, a, LIMIT_VECTOR_NAMESPACES, ret, e);
}

int vectors_db_recent(struct vectors_db *db, int64_t limit, struct arena *a, struct field_strings *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(readers_get(db->readers), &rows, e,
                  "SELECT name FROM spaces WHERE n_rows > 0 ORDER BY used_at DESC, id DESC LIMIT ?", "i", limit);
    return r < 0 ? r : read_names(rows, a, (size_t)limit, ret, e);
}

static int touch_space(struct sql_db *db, void *space, struct err *e)
{
    return sql_exec(db, e, "UPDATE spaces SET used_at = unixepoch() WHERE name = ?", "s", (const char *)space);
}

int vectors_db_touch(struct vectors_db *db, const char *space, struct err *e)
{
    return writer_run(db->writer, touch_space, (void *)space, e);
}

/* --- side files --- */

void vectors_db_row_range(int64_t space_id, int64_t *ret_first, int64_t *ret_last)
{
    *ret_first = vectors_db_first_row(space_id);
    *ret_last = vectors_db_last_row(space_id);
}

struct side_note {
    int64_t space_id, mark;
};

static int note_side(struct sql_db *db, void *arg, struct err *e)
{
    const struct side_note *note = arg;
    int r = sql_exec(db, e, "UPDATE spaces SET side_mark = ? WHERE id = ?", "ii", note->mark, note->space_id);

    if (r == 0 && sql_changes(db) == 0)
        return err_set(e, -ENOENT, "VECTOR_NOT_FOUND", "the namespace %lld was deleted", (long long)note->space_id);
    return r;
}

int vectors_db_note_side(struct vectors_db *db, int64_t space_id, int64_t mark, struct err *e)
{
    struct side_note note = { space_id, mark };

    return writer_run(db->writer, note_side, &note, e);
}

int vectors_db_sides(struct vectors_db *db, int64_t **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t *ids = xcalloc(LIMIT_VECTOR_NAMESPACES, sizeof(*ids));
    size_t n = 0;
    int r;

    r = sql_query(readers_get(db->readers), &rows, e, "SELECT id FROM spaces WHERE side_mark <> 0 ORDER BY id", NULL);
    while (r == 0 && n < LIMIT_VECTOR_NAMESPACES && (r = sql_step(rows, e)) > 0) {
        ids[n++] = sql_int(rows, 0);
        r = 0;
    }
    if (r < 0) {
        free(ids);
        return r;
    }
    *ret = ids;
    *ret_n = n;
    return 0;
}

/* --- the write-ahead log --- */

int vectors_db_fold(struct vectors_db *db, struct err *e)
{
    return writer_fold(db->writer, e);
}
