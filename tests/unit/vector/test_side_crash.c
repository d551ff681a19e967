/* A process that is killed while it stores rows and writes side files: the next one finds what a naive search over the
 * stored rows finds, whatever lies in the files. */
#include "side_world.h"

#include <signal.h>
#include <sys/wait.h>

enum { N_ROUNDS = 3, CALL = 1400, N_GROUPS = 9, PAGE = 500 };

/* Replaces one group of ids after the other, and removes a few; side files are written at every moment. */
static _Noreturn void store_for_ever(struct vectors_embedded_config config, uint64_t seed, int to_parent)
{
    static float vectors[CALL][N_DIMENSIONS];
    struct dice dice = { seed };
    struct vectors *v = NULL;

    if (vectors_embedded_open(&config, &v, NULL) < 0)
        _exit(2);
    atomic_store(&engine_of(v)->source.is_hurried, true);
    for (;;) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_record records[CALL];
        size_t group = dice_below(&dice, N_GROUPS);
        const char *gone = arena_printf(a, "%zu-3", dice_below(&dice, N_GROUPS));
        int64_t n;

        dice_vector(&dice, vectors[0], CALL * N_DIMENSIONS);
        for (size_t i = 0; i < CALL; i++)
            records[i] = (struct vector_record){ arena_printf(a, "%zu-%zu", group, i), vectors[i], "{}" };
        if (v->ops->upsert(v, NULL, "ns", &(struct vector_batch){ records, CALL, N_DIMENSIONS }, NULL) < 0 ||
            v->ops->remove(v, NULL, "ns", &(struct vector_removal){ .ids = &gone, .n_ids = 1 }, &n, NULL) < 0 ||
            write(to_parent, "", 1) != 1)
            _exit(3);
    }
}

static void kill_after(struct world *w, uint64_t seed, size_t n_calls)
{
    char byte;
    int ends[2], status;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        store_for_ever(w->x->config, seed, ends[1]);
    }
    close(ends[1]);
    for (size_t n = 0; n < n_calls && read(ends[0], &byte, 1) == 1; n++)
        ;
    usleep((useconds_t)(dice_below(&w->dice, 40) * 1000)); /* somewhere within a call, or between */
    kill(pid, SIGKILL);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Makes the world what is stored. */
static void read_world(struct world *w)
{
    struct rig *x = w->x;
    size_t at = 0;

    memset(w->is_there, 0, sizeof(w->is_there));
    for (size_t n = PAGE; n == PAGE; at += n) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_list_request page = { .limit = PAGE, .offset = (int64_t)at, .with_vectors = true };
        struct vector_hits hits = { 0 };

        MUST(x->v->ops->list(x->v, NULL, "ns", &page, a, &hits, &x->e));
        n = hits.n;
        assert_true(at + n <= MAX_IDS);
        for (size_t i = 0; i < n; i++) {
            memcpy(w->vectors[at + i], hits.items[i].vector, sizeof(w->vectors[at + i]));
            w->is_there[at + i] = true;
        }
    }
    assert_int_equal(at, rig_count(x, "ns"));
}

static void a_killed_process_leaves_side_files_that_lead_to_right_answers(void **state)
{
    struct world *w = world_open();

    for (uint64_t round = 0; round < N_ROUNDS; round++) {
        w->x->v = w->x->v->ops->close(w->x->v);
        kill_after(w, 1 + round, 4 + dice_below(&w->dice, 6));
        rig_reopen(w->x);
        read_world(w);
        world_check_answers(w);
        world_settle(w);
        world_check_answers(w);
    }
    world_reopen(w);
    assert_true(world_look(w).n_chunks > 0);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_process_leaves_side_files_that_lead_to_right_answers),
    };

    return cmocka_run_group_tests_name("side_crash", tests, NULL, NULL);
}
