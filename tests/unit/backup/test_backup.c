/* A backup is either refused or restored unchanged. */
#include "../store/fixture.h"

#include "backup/backup.h"
#include "base/limits.h"
#include "os/files.h"
#include "store/backup.h"
#include "store/tables/keys.h"
#include "store/meta.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { N_FLIPS = 200, N_NAMES = 5, N_ROWS = 300 };

static const char *const names[N_NAMES] = { "hearth.db", "backend.db", "vectors.db", "hearth.conf", "master.key" };

struct rig {
    struct folder from, to;
    struct arena *a;
    struct err e;
    char archive[128];
    char digests[N_NAMES][HASH_HEX_SIZE];
};

#define RIG(call) assert_int_equal((call), 0)

static char *in(struct rig *x, const struct folder *f, const char *name)
{
    return arena_printf(x->a, "%s/%s", f->path, name);
}

static void put(struct rig *x, const char *name, const char *text)
{
    RIG(file_write(in(x, &x->from, name), slice_of(text), 0600, &x->e));
}

/* Similar rows compress well, as real ones do. */
static void make_rows(struct store *s, struct err *e)
{
    char key[32], value[200];

    for (int i = 0; i < N_ROWS; i++) {
        snprintf(key, sizeof(key), "row.%d", i);
        snprintf(value, sizeof(value), "{\"number\":%d,\"text\":\"what was stored %d times\"}", i * 7919, i % 13);
        RIG(store_meta_set(s, key, value, e));
    }
}

static void rig_open(struct rig *x)
{
    struct store *s = NULL;

    *x = (struct rig){ .from = folder_make(), .to = folder_make(), .a = arena_new() };
    RIG(hash_init(&x->e));
    RIG(store_open(x->from.path, &s, &x->e));
    make_rows(s, &x->e);
    RIG(backup_copy(in(x, &x->from, "hearth.db"), in(x, &x->from, "backend.db"), &x->e));
    RIG(backup_copy(in(x, &x->from, "hearth.db"), in(x, &x->from, "vectors.db"), &x->e));
    store_close(s);
    put(x, "hearth.conf", "tasks.sweep_s = 33\n");
    put(x, "master.key", "0123456789abcdef0123456789abcdef");
    snprintf(x->archive, sizeof(x->archive), "%s/b.tar.gz", x->from.path);
}

static void rig_close(struct rig *x)
{
    arena_free(x->a);
    folder_remove(&x->from);
    folder_remove(&x->to);
}

static void make_backup(struct rig *x)
{
    const struct backup_source from = { x->from.path, in(x, &x->from, "backend.db") };
    struct backup_files files = { 0 };

    if (backup_create(x->a, &from, x->archive, &files, &x->e) < 0)
        fail_msg("%s", x->e.text);
    assert_int_equal(files.n, N_NAMES);
}

static int restore(struct rig *x, bool is_forced, struct backup_restored *ret)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    x->e = (struct err){ 0 };
    return backup_restore(a, x->archive, x->to.path, &(struct backup_options){ .is_forced = is_forced }, ret, &x->e);
}

static void digest(struct rig *x, char ret[N_NAMES][HASH_HEX_SIZE])
{
    int64_t size;

    for (size_t i = 0; i < N_NAMES; i++)
        RIG(file_hash(in(x, &x->to, names[i]), ret[i], &size, &x->e));
}

static void empty(struct rig *x)
{
    RIG(dir_remove(x->to.path, &x->e));
    RIG(dir_make(x->to.path, &x->e));
}

static void a_single_flipped_bit_is_refused_or_changes_nothing(void **state)
{
    struct rig x;
    struct backup_restored done = { 0 };
    char found[N_NAMES][HASH_HEX_SIZE];
    struct slice bytes = { 0 };
    unsigned seed = 20261122;
    int n_accepted = 0;

    rig_open(&x);
    make_backup(&x);
    RIG(restore(&x, false, &done));
    assert_false(done.is_unproven);
    digest(&x, x.digests);
    RIG(file_read(x.a, x.archive, MIB(16), &bytes, &x.e));
    for (int i = 0; i < N_FLIPS; i++) {
        size_t bit = ((size_t)rand_r(&seed) * 32768 + (size_t)rand_r(&seed)) % (bytes.n * 8);
        char *at = (char *)bytes.p + bit / 8;
        int r;

        *at = (char)(*at ^ (1 << bit % 8));
        RIG(file_write(x.archive, bytes, 0600, &x.e));
        empty(&x);
        r = restore(&x, false, &done);
        if (r == 0) {
            digest(&x, found);
            if (memcmp(found, x.digests, sizeof(found)) != 0)
                fail_msg("bit %zu of %zu: accepted with other data", bit, bytes.n * 8);
            n_accepted++;
        } else {
            assert_int_equal(folder_count(&x.to, "", NULL), 0);
        }
        *at = (char)(*at ^ (1 << bit % 8));
    }
    printf("# %d of %d flips hit nothing that is read\n", n_accepted, N_FLIPS);
    assert_true(n_accepted < N_FLIPS / 10);
    rig_close(&x);
}

/* The rows lie elsewhere than in a file of this machine. */
static void without_a_file_of_rows_the_archive_holds_the_rest(void **state)
{
    struct rig x;
    struct backup_source from = { .backend_file = NULL };
    struct backup_files files = { 0 };

    rig_open(&x);
    from.data_dir = x.from.path;
    RIG(backup_create(x.a, &from, x.archive, &files, &x.e));
    assert_int_equal(files.n, N_NAMES - 1);
    for (size_t i = 0; i < files.n; i++)
        assert_string_not_equal(files.items[i], "backend.db");
    rig_close(&x);
}

static void a_restore_over_data_keeps_it_and_takes_what_the_backup_lacks(void **state)
{
    struct rig x;
    struct backup_restored done = { 0 };

    rig_open(&x);
    unlink(in(&x, &x.from, "vectors.db"));
    unlink(in(&x, &x.from, "hearth.conf"));
    {
        const struct backup_source from = { x.from.path, in(&x, &x.from, "backend.db") };
        struct backup_files files = { 0 };

        RIG(backup_create(x.a, &from, x.archive, &files, &x.e));
        assert_int_equal(files.n, 3);
    }
    for (size_t i = 0; i < N_NAMES; i++)
        RIG(file_write(in(&x, &x.to, names[i]), slice_of("old"), 0600, &x.e));
    RIG(file_write(in(&x, &x.to, "hearth.db-wal"), slice_of("old log"), 0600, &x.e));
    RIG(file_write(in(&x, &x.to, "hearth.instance"), slice_of("old notes"), 0600, &x.e));
    assert_int_equal(restore(&x, false, &done), -EEXIST);
    done = (struct backup_restored){ 0 };
    RIG(restore(&x, true, &done));
    assert_int_equal(done.files.n, 3);
    assert_int_equal(access(in(&x, &x.to, "vectors.db"), F_OK), -1);    /* belonged to the old hearth.db */
    assert_int_equal(access(in(&x, &x.to, "hearth.conf"), F_OK), 0);    /* the person's own file */
    assert_int_equal(access(in(&x, &x.to, "hearth.db-wal"), F_OK), -1); /* would be replayed into the new hearth.db */
    assert_int_equal(access(in(&x, &x.to, "hearth.instance"), F_OK), -1);
    assert_int_equal(folder_count(&x.to, ".before-restore-", NULL), 5);
    assert_int_equal(folder_count(&x.to, "restore.ready", NULL), 0);
    rig_close(&x);
}

static void what_killed_ones_left_is_removed_and_nothing_else(void **state)
{
    static const char *const ours[] = { "backup-aB3xYz/hearth.db.part", "backup-aB3xYz/hearth-backup.json",
                                        "restore-000000/vectors.db" };
    static const char *const others[] = { "backup-202611/notes.txt", "backup-of-mine/hearth.db",
                                          "backup-1234567/hearth.db", "backups/hearth.db" };
    struct rig x;

    rig_open(&x);
    for (size_t i = 0; i < ARRAY_SIZE(ours) + ARRAY_SIZE(others); i++) {
        char *path = in(&x, &x.to, i < ARRAY_SIZE(ours) ? ours[i] : others[i - ARRAY_SIZE(ours)]);
        char *slash = strrchr(path, '/');

        *slash = '\0';
        RIG(dir_make(path, &x.e));
        *slash = '/';
        RIG(file_write(path, slice_of("x"), 0600, &x.e));
    }
    RIG(dir_make(in(&x, &x.to, "backup-999999"), &x.e));
    RIG(file_write(in(&x, &x.to, "backup-999999/hearth.db"), slice_of("x"), 0600, &x.e));
    RIG(chmod(in(&x, &x.to, "backup-999999"), 0755)); /* a person's folder: mkdtemp() would have made it 0700 */
    assert_int_equal(backup_clean(x.to.path), 2);
    assert_int_equal(folder_count(&x.to, "", NULL), ARRAY_SIZE(others) + 1);
    empty(&x);
    rig_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_flipped_bit_is_refused_or_changes_nothing),
        cmocka_unit_test(without_a_file_of_rows_the_archive_holds_the_rest),
        cmocka_unit_test(a_restore_over_data_keeps_it_and_takes_what_the_backup_lacks),
        cmocka_unit_test(what_killed_ones_left_is_removed_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
