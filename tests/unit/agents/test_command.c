/* run_command against a real supervisor and the sandbox of this machine. */
#include "../models/rig.h"
#include "../os/place.h"
#include "../skip.h"

#include "agents/approvals.h"
#include "agents/builtin.h"
#include "agents/folder.h"
#include "mcp/client.h"

#include <sys/stat.h>

struct fixture_of_commands {
    struct models_rig models;
    struct place *place;
    struct models_call call;
    struct net_wait wait;
    struct builtin_services services;
    struct builtin_call c;
    atomic_bool is_gone;
    struct mcp_result result;
    struct err e;
};

/* No question is asked here. */
int approvals_request(struct approvals *p, const struct approval_question *q, const struct net_wait *wait,
                      struct arena *a, struct approval_answer *ret, struct err *e)
{
    return err_set(e, -ENOTSUP, "NOT_SERVING", "Nobody is here.");
}

static bool has_namespaces(struct place *p)
{
    struct sandbox_means means = { 0 };

    sandbox_means(p->box, &means);
    return means.has_namespaces;
}

static int set_up(void **state)
{
    struct fixture_of_commands *f = xcalloc(1, sizeof(*f));
    void *place = NULL;

    models_open(&f->models);
    must(settings_set(f->models.settings, "tools.run_command", "true", NULL), NULL);
    must(settings_set(f->models.settings, "tools.folder_mb", "2", NULL), NULL);
    place_set_up_quiet(&place);
    f->place = place;
    place_open(f->place);
    f->place->box =
        sandbox_new(&(struct sandbox_config){ .bwrap = "bwrap", .data_dir = f->models.f.path, .profile = "standard" });
    sandbox_set_port(f->place->box, 3001);
    supervisor_set_sandbox(f->place->supervisor, f->place->box);
    f->call = call_of(&f->models);
    f->wait = net_wait_of(60000, &f->is_gone, NULL);
    f->services = (struct builtin_services){ .supervisor = f->place->supervisor };
    f->c = (struct builtin_call){ .call = &f->call,
                                  .wait = &f->wait,
                                  .services = &f->services,
                                  .thread_dir = arena_printf(f->call.arena, "%s/thread", f->models.f.path) };
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture_of_commands *f = *state;
    void *place = f->place;

    place_tear_down(&place);
    models_close(&f->models);
    free(f);
    return 0;
}

static int run(struct fixture_of_commands *f, const char *command, int timeout_s)
{
    struct json_writer w;
    struct buf out;
    struct err e = { 0 };

    buf_init(&out, MIB(1));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "command", command);
    json_add_int(&w, "timeout_s", timeout_s);
    json_end(&w);
    must(json_parse(f->call.arena, buf_slice(&out), &f->c.arguments, &e), &e);
    buf_clear(&out);
    f->e = (struct err){ 0 };
    return builtin_find("run_command")->run(&f->c, &f->result, &f->e);
}

static const char *text(struct fixture_of_commands *f)
{
    struct json_iter it = json_iter(f->result.content);
    struct json_value block = { 0 };

    assert_true(json_next(&it, NULL, &block));
    return json_cstr(json_get(block, "text"));
}

static const char *output_of(struct fixture_of_commands *f, const char *command)
{
    must(run(f, command, 30), &f->e);
    return text(f);
}

#define NEEDS_NAMESPACES(f)                                                                                            \
    if (!has_namespaces((f)->place))                                                                                   \
    SKIP_TEST("this machine has no bubblewrap or no user namespaces")

static void a_command_works_in_the_folder_of_the_thread(void **state)
{
    struct fixture_of_commands *f = *state;
    struct stat st;

    NEEDS_NAMESPACES(f);
    assert_string_equal(output_of(f, "echo one > made; cat made; echo two >&2; exit 3"), "[exit code 3]\none\ntwo\n");
    assert_true(f->result.is_error);
    assert_int_equal(stat(arena_printf(f->call.arena, "%s/made", f->c.thread_dir), &st), 0);
    assert_string_equal(output_of(f, "cat made; ls -A"), "[exit code 0]\none\nmade\n"); /* no home was made in it */
    assert_false(f->result.is_error);
    assert_string_equal(output_of(f, "printf 'a\\0b\\0'"), "[exit code 0]\na\xef\xbf\xbd"
                                                           "b\xef\xbf\xbd");
}

static void a_command_sees_neither_the_service_nor_any_network(void **state)
{
    struct fixture_of_commands *f = *state;
    const char *own = f->models.f.path;

    NEEDS_NAMESPACES(f);
    assert_null(strstr(output_of(f, arena_printf(f->call.arena, "ls -A %s", own)), "hearth.db"));
    assert_null(strstr(output_of(f, "cat /etc/shadow; ls -A /root /home; env"), "HEARTH_TASK"));
    assert_null(strstr(text(f), "root:"));
    /* not even the port that other children of the profile strict get */
    assert_non_null(strstr(output_of(f, "cat /proc/net/tcp | wc -l; cat /proc/net/tcp6 | wc -l"), "\n1\n1\n"));
    assert_null(strstr(output_of(f, "cat /proc/net/dev"), "eth"));
    must(run(f, "touch /usr/x /etc/x ../x || echo refused", 30), &f->e);
    assert_non_null(strstr(text(f), "refused"));
}

static void a_link_that_a_command_plants_leads_the_other_tools_nowhere(void **state)
{
    struct fixture_of_commands *f = *state;

    NEEDS_NAMESPACES(f);
    must(run(f, "ln -s /etc/passwd link; ln -s ../.. up; mkfifo pipe", 30), &f->e);
    must(json_parse(f->call.arena, SLICE_LIT("{\"path\":\"link\"}"), &f->c.arguments, &f->e), &f->e);
    assert_true(builtin_find("read_file")->run(&f->c, &f->result, &f->e) < 0);
    assert_string_equal(f->e.code, "FILE_REFUSED");
    must(json_parse(f->call.arena, SLICE_LIT("{\"path\":\"up/hearth.db\"}"), &f->c.arguments, &f->e), &f->e);
    assert_true(builtin_find("read_file")->run(&f->c, &f->result, &f->e) < 0);
    must(json_parse(f->call.arena, SLICE_LIT("{\"path\":\"pipe\"}"), &f->c.arguments, &f->e), &f->e);
    assert_true(builtin_find("read_file")->run(&f->c, &f->result, &f->e) < 0);
}

static void time_output_and_files_of_a_command_are_limited(void **state)
{
    struct fixture_of_commands *f = *state;

    NEEDS_NAMESPACES(f);
    must(run(f, "echo begun; sleep 600", 1), &f->e);
    assert_non_null(strstr(text(f), "stopped after 1 s"));
    assert_non_null(strstr(text(f), "begun"));
    assert_true(f->result.is_error);
    must(run(f, "head -c 1000000 /dev/zero | tr '\\0' x", 30), &f->e);
    assert_non_null(strstr(text(f), "left out"));
    assert_in_range(strlen(text(f)), LIMIT_COMMAND_OUTPUT, LIMIT_COMMAND_OUTPUT + 100);
    must(run(f, "head -c 3000000 /dev/zero > big; stat -c %s big", 30), &f->e); /* the kernel ends head */
    assert_non_null(strstr(text(f), "2097152"));
    assert_non_null(strstr(output_of(f, "head -c 9 /dev/zero > y; rm big y; ls"), "[exit code 0]")); /* to make room */
    must(run(f, "head -c 3000000 /dev/zero > big", 30), &f->e);
    must(run(f, "echo xyz > y", 30), &f->e);
    assert_non_null(strstr(text(f), "larger than the thread's folder"));
    assert_string_equal(output_of(f, "rm big y; ls"), "[exit code 0]\n");
    must(run(f, "i=0; while :; do head -c 100000 /dev/zero > f$i; i=$((i+1)); done", 30), &f->e);
    assert_non_null(strstr(text(f), "folder was full"));
    assert_true(f->result.is_error);
    assert_string_equal(output_of(f, "rm f*; ls"), "[exit code 0]\n");
}

static void a_command_ends_with_its_turn(void **state)
{
    struct fixture_of_commands *f = *state;

    NEEDS_NAMESPACES(f);
    f->wait = net_wait_of(300, &f->is_gone, NULL);
    assert_int_equal(run(f, "sleep 600", 600), -ETIMEDOUT);
    f->wait = net_wait_of(60000, &f->is_gone, NULL);
    atomic_store(&f->is_gone, true);
    assert_int_equal(run(f, "sleep 600", 600), -ECANCELED);
    assert_int_equal(supervisor_n_children(f->place->supervisor), 0);
}

static void without_a_sandbox_no_command_runs(void **state)
{
    struct fixture_of_commands *f = *state;
    struct sandbox *none = sandbox_new(
        &(struct sandbox_config){ .bwrap = "/nonexistent/bwrap", .data_dir = f->models.f.path, .profile = "standard" });

    supervisor_set_sandbox(f->place->supervisor, none);
    assert_int_equal(run(f, "touch made", 30), -ENOTSUP);
    assert_string_equal(f->e.code, "SANDBOX_UNAVAILABLE");
    supervisor_set_sandbox(f->place->supervisor, NULL);
    assert_int_equal(run(f, "touch made", 30), -ENOTSUP);
    assert_string_equal(f->e.code, "SANDBOX_UNAVAILABLE");
    supervisor_set_sandbox(f->place->supervisor, f->place->box);
    assert_int_equal(access(arena_printf(f->call.arena, "%s/made", f->c.thread_dir), F_OK), -1);
    sandbox_free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_works_in_the_folder_of_the_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_command_sees_neither_the_service_nor_any_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_that_a_command_plants_leads_the_other_tools_nowhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(time_output_and_files_of_a_command_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_command_ends_with_its_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_sandbox_no_command_runs, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
