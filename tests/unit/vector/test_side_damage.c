/* Side files: whatever lies in their place is never trusted, and every answer is that of a naive search over what was
 * stored. */
#include "side_world.h"
#include "../skip.h"

/* --- damage --- */

typedef void damage_fn(struct world *w, const char *path);

static void flip(const char *path, off_t at)
{
    int fd = open(path, O_RDWR);
    unsigned char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void cut_off(struct world *w, const char *path)
{
    assert_int_equal(truncate(path, file_size(path) - 1), 0);
}

static void cut_to_nothing(struct world *w, const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void missing(struct world *w, const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void huge(struct world *w, const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
}

static void a_symbolic_link(struct world *w, const char *path)
{
    const char *target = arena_printf(w->x->a, "%s/target", w->x->folder.path);

    file_copy(path, target);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(target, path), 0);
}

static void a_fifo(struct world *w, const char *path)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void one_that_others_may_write(struct world *w, const char *path)
{
    assert_int_equal(chmod(path, 0620), 0);
}

static void one_that_others_may_read(struct world *w, const char *path)
{
    assert_int_equal(chmod(path, 0604), 0);
}

static void one_of_another_user(struct world *w, const char *path)
{
    assert_int_equal(chown(path, 65534, 65534), 0);
}

static void a_text(struct world *w, const char *path)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    for (int i = 0; i < 10000; i++)
        assert_true(write(fd, "what is this doing here? ", 25) == 25);
    close(fd);
}

static void two_chunks_in_each_others_place(struct world *w, const char *path)
{
    off_t size = file_size(path) / 2;
    char *bytes = malloc((size_t)size * 2 + 1);
    int fd = open(path, O_RDWR);

    assert_int_equal(pread(fd, bytes, (size_t)size * 2, 0), size * 2);
    assert_int_equal(pwrite(fd, bytes + size, (size_t)size, 0), size);
    assert_int_equal(pwrite(fd, bytes, (size_t)size, size), size);
    close(fd);
    free(bytes);
}

/* The file of another namespace with as many rows. */
static void another_namespace(struct world *w, const char *path)
{
    struct rig *x = w->x;
    struct vectors_db_space of = { 0 };

    for (size_t from = 0; from < N_ROWS; from += BATCH) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_record records[BATCH];
        size_t n = MIN((size_t)BATCH, N_ROWS - from);

        for (size_t i = 0; i < n; i++)
            records[i] = (struct vector_record){ arena_printf(a, "%zu", from + i), w->vectors[i], "{}" };
        MUST(x->v->ops->upsert(x->v, NULL, "other", &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
    }
    world_settle(w);
    MUST(vectors_db_find(engine_of(x->v)->db, "other", &of, &x->e));
    file_copy(arena_printf(x->a, "%s/%lld.side", x->folder.side, (long long)of.id), path);
}

/* After each kind of damage the answers are right, and a new file stands in its place at the next start. */
static void check_damage(damage_fn *damage)
{
    struct world *w = world_open();
    double refused;
    const char *path;

    world_put(w, 0, N_ROWS);
    world_settle(w);
    path = side_path(w);
    damage(w, path);
    refused = n_refused();
    world_reopen(w);
    assert_true(n_refused() > refused);
    assert_int_equal(world_look(w).n_chunks, 2);
    refused = n_refused();
    world_reopen(w);
    assert_true(n_refused() == refused);
    assert_int_equal(world_look(w).n_chunks, 2);
    world_close(w);
}

static void a_damaged_file_is_not_trusted_and_made_anew(void **state)
{
    static damage_fn *const damages[] = { cut_off,
                                          cut_to_nothing,
                                          missing,
                                          huge,
                                          a_text,
                                          a_symbolic_link,
                                          a_fifo,
                                          two_chunks_in_each_others_place,
                                          another_namespace,
                                          one_that_others_may_write,
                                          one_that_others_may_read };

    for (size_t i = 0; i < ARRAY_SIZE(damages); i++)
        check_damage(damages[i]);
}

static void a_file_of_another_user_is_not_trusted_and_made_anew(void **state)
{
    if (geteuid() != 0)
        SKIP_TEST("only root gives files away");
    check_damage(one_of_another_user);
}

static void folder_and_file_are_for_their_user_alone(void **state)
{
    struct world *w = world_open();
    mode_t before = umask(0);
    struct stat st;

    assert_int_equal(chmod(w->x->folder.side, 0755), 0);
    world_put(w, 0, N_ROWS);
    world_reopen(w);
    world_settle(w);
    assert_int_equal(stat(w->x->folder.side, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(side_path(w), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    umask(before);
    world_close(w);
}

static void a_symbolic_link_is_replaced_and_its_target_left_alone(void **state)
{
    struct world *w = world_open();
    const char *target = arena_printf(w->x->a, "%s/target", w->x->folder.path);
    struct stat st;
    off_t size;

    world_put(w, 0, N_ROWS);
    world_settle(w);
    a_symbolic_link(w, side_path(w));
    size = file_size(target);
    flip(target, size - 1);
    world_put(w, N_ROWS, N_ROWS + SIDE_CHUNK_ROWS);
    world_reopen(w);
    assert_int_equal(lstat(side_path(w), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(file_size(target), size);
    world_close(w);
}

/* One bit in each part of the first and of the last chunk: of the head, the rows, the scales, the codes, the sketch. */
static void no_flipped_bit_is_overlooked(void **state)
{
    static const off_t heads[] = { 0, 8, 16, 24, 40, 56, 64 };
    struct world *w = world_open();
    off_t chunk, parts[] = { 4096, 4096 + 32768 + 7, 4096 + 32768 + 16384 + 1000, 0, 0 };
    const char *path, *whole = arena_printf(w->x->a, "%s/whole", w->x->folder.path);

    world_put(w, 0, N_ROWS);
    world_settle(w);
    path = side_path(w);
    file_copy(path, whole);
    chunk = file_size(path) / 2;
    parts[3] = chunk - 6000;
    parts[4] = chunk - 1;
    for (size_t i = 0; i < ARRAY_SIZE(heads) + ARRAY_SIZE(parts); i++) {
        off_t at = i < ARRAY_SIZE(heads) ? heads[i] : parts[i - ARRAY_SIZE(heads)];
        double refused;

        flip(path, i % 2 == 0 ? at : chunk + at);
        refused = n_refused();
        world_reopen(w);
        assert_true(n_refused() > refused);
        assert_int_equal(world_look(w).n_chunks, 2);
    }
    world_close(w);
}

static void a_folder_in_the_place_of_the_file_is_left_alone(void **state)
{
    struct world *w = world_open();
    const char *path;

    world_put(w, 0, N_ROWS);
    world_settle(w);
    path = side_path(w);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 0);
    world_put(w, N_ROWS, N_ROWS + 100);
    world_reopen(w);
    assert_int_equal(rmdir(path), 0);
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 2);
    world_close(w);
}

static void without_a_folder_everything_works(void **state)
{
    struct world *w = world_open();
    int fd;

    w->x->config.side_folder = NULL;
    w->x->v = w->x->v->ops->close(w->x->v);
    assert_int_equal(rmdir(w->x->folder.side), 0);
    fd = open(w->x->folder.side, O_WRONLY | O_CREAT, 0600);
    close(fd);
    rig_reopen(w->x);
    world_put(w, 0, N_ROWS);
    world_reopen(w);
    assert_int_equal(world_look(w).n_chunks, 0);
    assert_int_equal(file_size(w->x->folder.side), 0);
    world_close(w);
}

static void a_folder_that_cannot_be_written_costs_nothing_but_the_file(void **state)
{
    struct world *w;

    if (geteuid() == 0)
        SKIP_TEST("root may write everywhere");
    w = world_open();
    assert_int_equal(chmod(w->x->folder.side, 0700), 0);
    world_put(w, 0, 100);
    assert_int_equal(fchmod(engine_of(w->x->v)->source.side_folder, 0500), 0);
    world_put(w, 100, N_ROWS);
    world_settle(w);
    assert_int_equal(world_look(w).n_chunks, 0);
    world_check_answers(w);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_file_is_not_trusted_and_made_anew),
        cmocka_unit_test(a_file_of_another_user_is_not_trusted_and_made_anew),
        cmocka_unit_test(folder_and_file_are_for_their_user_alone),
        cmocka_unit_test(a_symbolic_link_is_replaced_and_its_target_left_alone),
        cmocka_unit_test(no_flipped_bit_is_overlooked),
        cmocka_unit_test(a_folder_in_the_place_of_the_file_is_left_alone),
        cmocka_unit_test(without_a_folder_everything_works),
        cmocka_unit_test(a_folder_that_cannot_be_written_costs_nothing_but_the_file),
    };

    return cmocka_run_group_tests_name("side_damage", tests, NULL, NULL);
}
