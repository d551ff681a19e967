#include "store/readers.h"
#include "store/sql_private.h"
#include <pthread.h>

/* A thread's connection. */
struct reader {
    struct readers *owner; /* borrowed */
    struct sql_db *db;     /* owned */
    struct reader *next, *prev;
};

struct readers {
    char *path;                                       /* owned */
    int (*prepare)(struct sql_db *db, struct err *e); /* NULL: none */
    pthread_key_t key;                                /* key of each thread's struct reader */
    pthread_mutex_t lock;                             /* guards first */
    struct reader *first;                             /* owned */
};

static void reader_end(void *arg)
{
    struct reader *reader = arg;
    struct readers *rs = reader->owner;

    pthread_mutex_lock(&rs->lock);
    if (reader->next)
        reader->next->prev = reader->prev;
    if (reader->prev)
        reader->prev->next = reader->next;
    else
        rs->first = reader->next;
    pthread_mutex_unlock(&rs->lock);
    sql_close(reader->db);
    free(reader);
}

static struct reader *reader_new(struct readers *rs)
{
    struct reader *reader = xcalloc(1, sizeof(*reader));

    reader->owner = rs;
    pthread_mutex_lock(&rs->lock);
    reader->next = rs->first;
    if (rs->first)
        rs->first->prev = reader;
    rs->first = reader;
    pthread_mutex_unlock(&rs->lock);
    pthread_setspecific(rs->key, reader);
    return reader;
}

static struct sql_db *open_reader(const struct readers *rs)
{
    struct sql_options options = { .is_readonly = true };
    struct sql_db *db = NULL;
    struct err why = { 0 };
    int r;

    r = sql_open(rs->path, &options, &db, &why);
    if (r == 0 && rs->prepare)
        r = rs->prepare(db, &why);
    if (r == 0)
        return db;
    sql_close(db);
    return sql_broken(r, &why);
}

struct sql_db *readers_get(struct readers *rs)
{
    struct reader *reader = pthread_getspecific(rs->key);

    if (!reader)
        reader = reader_new(rs);
    if (reader->db && sql_is_broken(reader->db))
        reader->db = sql_close(reader->db);
    if (!reader->db)
        reader->db = open_reader(rs);
    return reader->db;
}

void readers_thread_end(struct readers *rs)
{
    struct reader *reader = pthread_getspecific(rs->key);

    if (!reader)
        return;
    pthread_setspecific(rs->key, NULL);
    reader_end(reader);
}

int readers_new(const char *path, struct readers **ret, struct err *e)
{
    struct readers *rs = xcalloc(1, sizeof(*rs));
    int r = -pthread_key_create(&rs->key, reader_end);

    if (r < 0) {
        free(rs);
        return err_errno(e, -r, "cannot keep a database connection a thread");
    }
    pthread_mutex_init(&rs->lock, NULL);
    rs->path = xstrdup(path);
    *ret = rs;
    return 0;
}

void readers_prepare_with(struct readers *rs, int (*fn)(struct sql_db *db, struct err *e))
{
    rs->prepare = fn;
}

struct readers *readers_free(struct readers *rs)
{
    if (!rs)
        return NULL;
    pthread_key_delete(rs->key);
    while (rs->first)
        reader_end(rs->first);
    pthread_mutex_destroy(&rs->lock);
    free(rs->path);
    free(rs);
    return NULL;
}
