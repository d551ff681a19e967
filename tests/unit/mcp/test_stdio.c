/* Lines to and from a child: frames, other output, a server that does not read, the end. */
#include "mcp/stdio.h"

#include "base/limits.h"
#include "../os/place.h"

#include <signal.h>

enum { MAX_FRAMES = 64 };

struct talk {
    struct place *place;
    struct mcp_link *link;
    struct child_log *log;
    pthread_mutex_t lock;
    char *frames[MAX_FRAMES];
    size_t sizes[MAX_FRAMES];
    size_t n;
    atomic_size_t n_frames;
    atomic_int n_closed;
    struct err why;
};

static void on_frame(void *arg, struct slice frame, const struct json_rpc_id *request)
{
    struct talk *t = arg;

    pthread_mutex_lock(&t->lock);
    assert_true(t->n < MAX_FRAMES);
    t->frames[t->n] = strndup(frame.p, MIN(frame.n, (size_t)200));
    t->sizes[t->n++] = frame.n;
    pthread_mutex_unlock(&t->lock);
    atomic_fetch_add(&t->n_frames, 1);
}

static void on_closed(void *arg, const struct err *why)
{
    struct talk *t = arg;

    t->why = *why;
    atomic_fetch_add(&t->n_closed, 1);
}

static void unref_log(void *arg)
{
    child_log_unref(arg);
}

static void talk_open(struct talk *t, struct place *p, const char *script)
{
    const char *args[] = { "-c", script, "sh", NULL };
    const struct child_spec spec = { .label = "mcp test",
                                     .command = "/bin/sh",
                                     .args = args,
                                     .env = place_env,
                                     .working_dir = p->dir,
                                     .sandbox = p->box ? &p->definition : NULL,
                                     .stop_grace_ms = 100,
                                     .log = t->log = child_log_new() };
    struct err e = { 0 };

    t->place = p;
    arena_defer(p->arena, unref_log, t->log);
    pthread_mutex_init(&t->lock, NULL);
    if (mcp_stdio_open(&(struct mcp_stdio_config){ p->supervisor, &spec }, &t->link, &e) < 0)
        fail_msg("%s", e.text);
    if (t->link->ops->start(
            t->link, &(struct mcp_link_events){ .on_frame = on_frame, .on_closed = on_closed, .arg = t }, &e) < 0)
        fail_msg("%s", e.text);
}

static int talk_send(struct talk *t, struct slice frame, int64_t ms, const atomic_bool *is_gone, struct err *e)
{
    const struct net_wait wait = net_wait_of(ms, is_gone, NULL);

    return t->link->ops->send(t->link, &(struct mcp_send){ .frame = frame, .wait = &wait }, e);
}

static void talk_say(struct talk *t, const char *frame)
{
    struct err e = { 0 };

    if (talk_send(t, slice_of(frame), WAIT_MS, NULL, &e) < 0)
        fail_msg("%s", e.text);
}

static void talk_close(struct talk *t)
{
    if (t->link)
        t->link = t->link->ops->close(t->link);
    assert_int_equal(atomic_load(&t->n_closed), 1);
    for (size_t i = 0; i < t->n; i++)
        free(t->frames[i]);
    pthread_mutex_destroy(&t->lock);
}

struct awaited {
    struct talk *talk;
    size_t n;
};

static bool has_frames(void *arg)
{
    struct awaited *a = arg;

    return atomic_load(&a->talk->n_frames) >= a->n;
}

static void talk_wait(struct talk *t, size_t n)
{
    assert_true(wait_until(has_frames, &(struct awaited){ t, n }));
}

static bool has_closed(void *arg)
{
    struct talk *t = arg;

    return atomic_load(&t->n_closed) > 0;
}

static const char *talk_log(struct talk *t, enum child_stream stream)
{
    return child_log_tail(t->log, t->place->arena, stream, 100);
}

static void each_line_is_a_frame(void **state)
{
    struct talk t = { 0 };

    talk_open(&t, *state, "exec cat");
    talk_say(&t, "{\"a\":1}");
    talk_say(&t, "[{\"b\":2}]");
    talk_wait(&t, 2);
    assert_string_equal(t.frames[0], "{\"a\":1}");
    assert_string_equal(t.frames[1], "[{\"b\":2}]");
    talk_close(&t);
    assert_string_equal(t.why.code, "MCP_CLOSED");
}

static void other_lines_go_to_the_log(void **state)
{
    struct talk t = { 0 };

    talk_open(&t, *state, "echo 'Starting server'; echo; echo oops >&2; echo '{}'; exec cat");
    talk_wait(&t, 1);
    assert_string_equal(t.frames[0], "{}");
    assert_string_equal(talk_log(&t, CHILD_STDOUT), "Starting server");
    talk_close(&t);
    assert_string_equal(talk_log(&t, CHILD_STDERR), "oops");
}

static void a_frame_in_pieces_is_one_frame(void **state)
{
    struct talk t = { 0 };

    talk_open(&t, *state, "printf '{\"a\":'; read x; printf '1}\\n{\"b\"'; read x; printf ':2}\\n'; exec cat");
    talk_say(&t, "go");
    talk_wait(&t, 1);
    assert_string_equal(t.frames[0], "{\"a\":1}");
    talk_say(&t, "go");
    talk_wait(&t, 2);
    assert_string_equal(t.frames[1], "{\"b\":2}");
    talk_close(&t);
}

static struct slice frame_of(struct arena *a, size_t n)
{
    char *bytes = arena_alloc(a, n + 1);

    memset(bytes, 'x', n);
    bytes[0] = '{';
    return (struct slice){ bytes, n };
}

static void a_frame_may_have_the_named_size_both_ways(void **state)
{
    struct place *p = *state;
    struct talk t = { 0 };
    struct err e = { 0 };

    talk_open(&t, p, "exec cat");
    assert_int_equal(talk_send(&t, frame_of(p->arena, LIMIT_MCP_FRAME), WAIT_MS, NULL, &e), 0);
    talk_wait(&t, 1);
    assert_int_equal(t.sizes[0], LIMIT_MCP_FRAME);
    assert_int_equal(talk_send(&t, frame_of(p->arena, LIMIT_MCP_FRAME + 1), WAIT_MS, NULL, &e), -E2BIG);
    assert_string_equal(e.code, "MCP_TOO_LARGE");
    talk_say(&t, "{}");
    talk_wait(&t, 2);
    talk_close(&t);
}

static void a_larger_line_ends_the_connection(void **state)
{
    struct talk t = { 0 };

    talk_open(&t, *state, "head -c 100000000 /dev/zero | tr '\\0' '{'; echo; exec cat");
    assert_true(wait_until(has_closed, &t));
    assert_string_equal(t.why.code, "MCP_FRAME_TOO_LARGE");
    assert_int_equal(atomic_load(&t.n_frames), 0);
    talk_close(&t);
}

/* The pipe holds 64 KiB; the server never reads. */
static void who_does_not_read_holds_a_sender_until_its_deadline_only(void **state)
{
    struct place *p = *state;
    struct talk t = { 0 };
    struct err e = { 0 };
    atomic_bool is_gone = true;

    talk_open(&t, p, "echo '{}'; while :; do sleep 1; done");
    talk_wait(&t, 1);
    assert_int_equal(talk_send(&t, frame_of(p->arena, MIB(1)), 50, NULL, &e), -ETIMEDOUT);
    assert_int_equal(talk_send(&t, SLICE_LIT("{}"), 50, NULL, &e), -ETIMEDOUT);
    assert_int_equal(talk_send(&t, SLICE_LIT("{}"), WAIT_MS, &is_gone, &e), -ECANCELED);
    talk_close(&t);
}

/* What was begun is finished, what was not begun is withdrawn: the server sees whole lines only. */
static void a_sender_that_gives_up_leaves_whole_lines(void **state)
{
    struct place *p = *state;
    struct talk t = { 0 };
    struct err e = { 0 };

    talk_open(&t, p, "echo '{}'; while ! test -e go; do sleep 0.01; done; while read -r x; do echo \"{${#x}\"; done");
    talk_wait(&t, 1);
    assert_int_equal(talk_send(&t, frame_of(p->arena, KIB(128)), 50, NULL, &e), -ETIMEDOUT);
    assert_int_equal(talk_send(&t, SLICE_LIT("withdrawn"), 50, NULL, &e), -ETIMEDOUT);
    assert_int_equal(file_write(arena_printf(p->arena, "%s/go", p->dir), SLICE_LIT(""), 0600, NULL), 0);
    talk_say(&t, "next");
    talk_wait(&t, 3);
    assert_string_equal(t.frames[1], "{131072");
    assert_string_equal(t.frames[2], "{4");
    talk_close(&t);
}

static void the_reason_of_an_end_has_the_last_words(void **state)
{
    struct talk t = { 0 };
    struct err e = { 0 };

    talk_open(&t, *state, "echo 'no such folder' >&2; exit 7");
    assert_true(wait_until(has_closed, &t));
    assert_string_equal(t.why.code, "MCP_CLOSED");
    assert_non_null(strstr(t.why.text, "exit code 7"));
    assert_non_null(strstr(t.why.text, "no such folder"));
    assert_int_equal(talk_send(&t, SLICE_LIT("{}"), WAIT_MS, NULL, &e), -EPIPE);
    talk_close(&t);
}

static void frames_before_the_end_are_delivered(void **state)
{
    struct talk t = { 0 };

    talk_open(&t, *state, "echo '{\"last\":1}'; exit 0");
    assert_true(wait_until(has_closed, &t));
    assert_int_equal(atomic_load(&t.n_frames), 1);
    talk_close(&t);
}

static void one_that_holds_the_output_does_not_delay_the_end(void **state)
{
    struct talk t = { 0 };

    talk_open(&t, *state,
              "setsid sh -c 'echo $$ >> holder; while :; do sleep 1; done' & "
              "while ! test -s holder; do sleep 0.01; done; exit 4");
    assert_true(wait_until(has_closed, &t));
    assert_non_null(strstr(t.why.text, "exit code 4"));
    talk_close(&t);
    if (!t.place->box)
        kill(place_read_pid(t.place, "holder"), SIGKILL);
}

static void the_end_of_its_input_comes_before_a_signal(void **state)
{
    struct talk t = { 0 };
    struct slice how = { 0 };

    talk_open(&t, *state,
              "trap 'echo signal > how; exit' TERM; echo '{}'; while read -r x; do :; done; echo input > how");
    talk_wait(&t, 1);
    talk_close(&t);
    assert_int_equal(file_read(t.place->arena, arena_printf(t.place->arena, "%s/how", t.place->dir), 100, &how, NULL),
                     0);
    assert_true(slice_eq_str(how, "input\n"));
}

static void one_that_ignores_everything_is_killed_with_its_tree(void **state)
{
    struct talk t = { 0 };
    int child, grandchild;

    talk_open(&t, *state,
              "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >> below; while :; do sleep 0.01; done' & "
              "while ! test -s below; do sleep 0.01; done; echo '{}'; while :; do sleep 0.01; done");
    talk_wait(&t, 1);
    if (t.place->box) { /* its number below is one of its own namespace */
        talk_close(&t);
        return;
    }
    child = process_hold(mcp_stdio_pid(t.link));
    grandchild = process_hold(place_read_pid(t.place, "below"));
    talk_close(&t);
    assert_true(wait_until(process_has_ended, &child));
    assert_true(wait_until(process_has_ended, &grandchild));
    close(child);
    close(grandchild);
}

int main(void)
{
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, place_set_up, place_tear_down)
    const struct CMUnitTest tests[] = {
        IN_PLACE(each_line_is_a_frame),
        IN_PLACE(other_lines_go_to_the_log),
        IN_PLACE(a_frame_in_pieces_is_one_frame),
        IN_PLACE(a_frame_may_have_the_named_size_both_ways),
        IN_PLACE(a_larger_line_ends_the_connection),
        IN_PLACE(who_does_not_read_holds_a_sender_until_its_deadline_only),
        IN_PLACE(a_sender_that_gives_up_leaves_whole_lines),
        IN_PLACE(the_reason_of_an_end_has_the_last_words),
        IN_PLACE(frames_before_the_end_are_delivered),
        IN_PLACE(one_that_holds_the_output_does_not_delay_the_end),
        IN_PLACE(the_end_of_its_input_comes_before_a_signal),
        IN_PLACE(one_that_ignores_everything_is_killed_with_its_tree),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
