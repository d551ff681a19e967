/* Side files: a start reads them, and what vectors.db has since; they go with their namespace. */
#include "side_world.h"

#include <signal.h>
#include <sys/resource.h>

/* --- what a start reads --- */

static void a_start_reads_the_file_and_then_what_is_newer(void **state)
{
    struct world *w = world_open();
    struct stat st;
    struct seen seen;

    world_put(w, 0, N_ROWS);
    world_settle(w);
    assert_int_equal(world_look(w).n_chunks, 2);
    assert_int_equal(stat(side_path(w), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(w->x->folder.side, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    world_put(w, N_ROWS, N_ROWS + 50);
    double refused = n_refused();
    world_reopen(w);
    seen = world_look(w);
    assert_int_equal(seen.n_chunks, 2);
    assert_int_equal(seen.n, N_ROWS + 50);
    assert_int_equal(seen.n_sketched, 2);
    assert_true(n_refused() == refused);
    world_close(w);
}

static void rows_removed_or_replaced_since_are_gone(void **state)
{
    struct world *w = world_open();

    world_put(w, 0, N_ROWS);
    world_settle(w);
    world_take_away(w, 100, 300);
    world_put(w, 4000, 4200);
    world_take_away(w, N_ROWS - 10, N_ROWS);
    world_reopen(w);
    assert_int_equal(world_look(w).n, N_ROWS + 200 - 10);
    assert_int_equal(rig_count(w->x, "ns"), N_ROWS - 210);
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 2);
    world_close(w);
}

static void the_file_grows_with_the_rows(void **state)
{
    struct world *w = world_open();
    off_t size;

    world_put(w, 0, N_ROWS);
    world_settle(w);
    size = file_size(side_path(w));
    world_put(w, N_ROWS, N_ROWS + SIDE_CHUNK_ROWS);
    world_settle(w);
    assert_int_equal(file_size(side_path(w)), size / 2 * 3);
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 3);
    world_close(w);
}

static void a_new_file_follows_a_compaction(void **state)
{
    struct world *w = world_open();

    world_put(w, 0, N_ROWS);
    world_settle(w);
    world_take_away(w, 0, 3000);
    world_settle(w);
    assert_int_equal(world_look(w).n, N_ROWS - 3000);
    assert_int_equal(world_look(w).n_chunks, 1);
    world_reopen(w);
    assert_int_equal(world_look(w).n, N_ROWS - 3000);
    world_take_away(w, 3000, 6000);
    world_settle(w);
    assert_int_equal(world_look(w).n_chunks, 0);
    assert_int_equal(file_size(side_path(w)), -1);
    world_reopen(w);
    world_close(w);
}

static void rows_in_lists_are_saved_in_the_order_of_their_numbers(void **state)
{
    struct world *w = world_open();

    w->x->config.list_above_rows = 1000;
    rig_reopen(w->x);
    world_put(w, 0, 3000);
    world_settle(w);
    world_put(w, 3000, N_ROWS);
    world_settle(w);
    assert_int_equal(world_look(w).n_chunks, 2);
    w->x->config.list_above_rows = 1000000;
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 2);
    world_close(w);
}

/* --- removal --- */

static void a_deleted_namespace_leaves_no_file(void **state)
{
    struct world *w = world_open();
    struct rig *x = w->x;
    const char *path;
    int64_t n;

    world_put(w, 0, N_ROWS);
    world_settle(w);
    path = side_path(w);
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .all = true }, &n, &x->e));
    assert_int_equal(file_size(path), -1);
    memset(w->is_there, 0, sizeof(w->is_there));
    world_put(w, 0, SIDE_CHUNK_ROWS);
    world_settle(w);
    assert_string_not_equal(side_path(w), path);
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 1);
    world_close(w);
}

static void files_of_unknown_namespaces_are_removed_at_the_start_and_others_stay(void **state)
{
    struct world *w = world_open();
    const char *unknown = arena_printf(w->x->a, "%s/99.side", w->x->folder.side);
    const char *others[] = { "notes.txt", "099.side", "-1.side", "1.side.old" };

    world_put(w, 0, 10);
    close(open(unknown, O_WRONLY | O_CREAT, 0600));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        close(open(arena_printf(w->x->a, "%s/%s", w->x->folder.side, others[i]), O_WRONLY | O_CREAT, 0600));
    world_reopen(w);
    assert_int_equal(file_size(unknown), -1);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_int_equal(file_size(arena_printf(w->x->a, "%s/%s", w->x->folder.side, others[i])), 0);
    world_close(w);
}

/* --- files of other times --- */

/* vectors.db goes back to an earlier state, as after a restore, and grows again with other rows under the same
 * numbers. */
static void a_file_that_is_newer_or_older_than_the_database_counts_as_far_as_both_agree(void **state)
{
    struct world *w = world_open(), *earlier = calloc(1, sizeof(*earlier));
    struct rig *x = w->x;
    const char *old = arena_printf(x->a, "%s/old", x->folder.path), *path, *side_old;

    side_old = arena_printf(x->a, "%s/old.side", x->folder.path);
    world_put(w, 0, SIDE_CHUNK_ROWS + 10);
    world_settle(w);
    path = side_path(w);
    x->v = x->v->ops->close(x->v);
    file_copy(x->folder.file, old);
    file_copy(path, side_old);
    memcpy(earlier->is_there, w->is_there, sizeof(w->is_there));
    rig_reopen(x);
    world_put(w, SIDE_CHUNK_ROWS + 10, N_ROWS);
    world_settle(w);
    assert_int_equal(world_look(w).n_chunks, 2);

    x->v = x->v->ops->close(x->v); /* the file is newer */
    file_copy(old, x->folder.file);
    memcpy(w->is_there, earlier->is_there, sizeof(w->is_there));
    rig_reopen(x);
    world_check_answers(w);
    assert_int_equal(world_look(w).n_chunks, 1);
    world_put(w, SIDE_CHUNK_ROWS + 10, N_ROWS);
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 2);

    x->v = x->v->ops->close(x->v); /* the file is older */
    file_copy(side_old, path);
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 2);
    world_reopen(w);
    free(earlier);
    world_close(w);
}

/* --- no room --- */

static void fill_with_numbers(void *arg, size_t i, struct side_draft *d)
{
    int64_t *next = arg;

    for (size_t j = 0; j < SIDE_CHUNK_ROWS; j++) {
        d->rows[j] = (*next)++;
        d->scales[j] = 1;
    }
    memset(d->codes, KERNEL_ZERO, SIDE_CHUNK_ROWS * quant_stride(1));
}

static size_t n_readable(const struct side_place *place, uint64_t mark)
{
    struct side *side = NULL;
    struct side_chunk chunk;
    size_t n = 0;

    if (side_open(place, mark, &side) < 0)
        return 0;
    while (n < side->state.n_chunks && side_read(side, n, &chunk) == 0)
        n++;
    side_close(side);
    return n;
}

/* A limit of the size of files stands for a full disk. */
static void a_chunk_that_finds_no_room_leaves_those_before_it(void **state)
{
    struct folder folder = folder_make();
    struct side_place place = { .space_id = 7, .first_row = 100, .last_row = 1000000, .n_dimensions = 1 };
    const char *path = "7.side";
    struct side_state known = { 0 }, before;
    struct rlimit limit, small;
    int64_t next = 100;
    struct stat st;

    place.folder = side_folder_open(folder.side);
    assert_true(place.folder >= 0);
    assert_int_equal(side_append(&place, &known, 2, fill_with_numbers, &next), 0);
    before = known;
    assert_int_equal(fstatat(place.folder, path, &st, 0), 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    small = (struct rlimit){ (rlim_t)st.st_size + 100000, limit.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
    assert_int_equal(side_append(&place, &known, 1, fill_with_numbers, &next), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_memory_equal(&known, &before, sizeof(known));
    assert_int_equal(n_readable(&place, known.mark), 2);
    assert_int_equal(side_append(&place, &known, 1, fill_with_numbers, &next), 0);
    assert_int_equal(n_readable(&place, known.mark), 3);
    assert_int_equal(n_readable(&place, before.mark), 2);
    close(place.folder);
    folder_remove(&folder);
}

static void rows_that_do_not_rise_or_are_not_the_namespaces_are_damage(void **state)
{
    static const int64_t firsts[] = { 99, 999999 };
    struct folder folder = folder_make();
    struct side_place place = { .space_id = 7, .first_row = 100, .last_row = 1000000, .n_dimensions = 1 };

    place.folder = side_folder_open(folder.side);
    for (size_t i = 0; i < ARRAY_SIZE(firsts); i++) {
        struct side_state known = { 0 };
        int64_t next = firsts[i];

        assert_int_equal(side_append(&place, &known, 1, fill_with_numbers, &next), 0);
        assert_int_equal(n_readable(&place, known.mark), 0);
    }
    for (int i = 0; i < 2; i++) { /* the second chunk begins with the first one's last row */
        struct side_state known = { 0 };
        int64_t next = 100;

        assert_int_equal(side_append(&place, &known, 1, fill_with_numbers, &next), 0);
        next -= i;
        assert_int_equal(side_append(&place, &known, 1, fill_with_numbers, &next), 0);
        assert_int_equal(n_readable(&place, known.mark), 2 - i);
    }
    close(place.folder);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_reads_the_file_and_then_what_is_newer),
        cmocka_unit_test(rows_removed_or_replaced_since_are_gone),
        cmocka_unit_test(the_file_grows_with_the_rows),
        cmocka_unit_test(a_new_file_follows_a_compaction),
        cmocka_unit_test(rows_in_lists_are_saved_in_the_order_of_their_numbers),
        cmocka_unit_test(a_deleted_namespace_leaves_no_file),
        cmocka_unit_test(files_of_unknown_namespaces_are_removed_at_the_start_and_others_stay),
        cmocka_unit_test(a_file_that_is_newer_or_older_than_the_database_counts_as_far_as_both_agree),
        cmocka_unit_test(a_chunk_that_finds_no_room_leaves_those_before_it),
        cmocka_unit_test(rows_that_do_not_rise_or_are_not_the_namespaces_are_damage),
    };

    return cmocka_run_group_tests_name("side", tests, NULL, NULL);
}
