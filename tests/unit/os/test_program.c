#include "os/program.h"

#include "os/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    char dir[64];
};

static const char *in(struct fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->dir, name);
}

static void make(struct fixture *f, const char *name)
{
    assert_int_equal(file_write(in(f, name), SLICE_LIT("#!/bin/sh\n"), 0700, NULL), 0);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "/tmp/hearth-program-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->arena = arena_new();
    assert_int_equal(dir_make(in(f, "first/folder"), NULL), 0);
    assert_int_equal(dir_make(in(f, "second"), NULL), 0);
    make(f, "first/one");
    make(f, "second/one");
    make(f, "second/folder");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(dir_remove(f->dir, NULL), 0);
    arena_free(f->arena);
    freep(&f);
    return 0;
}

static char *find(struct fixture *f, const char *command, const char *working_dir, const char *search_path)
{
    char *path = NULL;
    struct err e = { 0 };

    if (program_find(f->arena, command, working_dir, search_path, &path, &e) < 0)
        fail_msg("%s", e.text);
    return path;
}

static void the_first_folder_that_has_it_wins(void **state)
{
    struct fixture *f = *state;
    const char *search = arena_printf(f->arena, "/no/such:%s:%s", in(f, "first"), in(f, "second"));

    assert_string_equal(find(f, "one", NULL, search), in(f, "first/one"));
    assert_string_equal(find(f, "folder", NULL, search), in(f, "second/folder")); /* a folder is no program */
    assert_non_null(strstr(find(f, "sh", NULL, NULL), "/bin/sh"));
}

static void relative_and_empty_folders_of_the_path_are_passed_over(void **state)
{
    struct fixture *f = *state;
    char here[4096], *path = NULL;

    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(in(f, "first")), 0);
    assert_int_equal(program_find(f->arena, "one", NULL, ":.:../first", &path, NULL), -ENOENT);
    assert_int_equal(chdir(here), 0);
}

static void a_command_with_a_slash_is_meant_from_the_working_folder(void **state)
{
    struct fixture *f = *state;
    char *path = NULL;

    assert_string_equal(find(f, "./one", in(f, "first"), "/no/such"), "./one");
    assert_string_equal(find(f, "second/one", f->dir, "/no/such"), "second/one");
    assert_string_equal(find(f, in(f, "second/one"), "/no/such", NULL), in(f, "second/one"));
    assert_int_equal(program_find(f->arena, "./one", f->dir, NULL, &path, NULL), -ENOENT);
}

struct sentence {
    const char *command, *text; /* after "The program `x` was not found on PATH. " */
};

static const struct sentence sentences[] = {
    { "python",
      "It comes with Python (https://www.python.org; on Debian the package python-is-python3, or write `python3`); install it, then start again." },
    { "python3",
      "It comes with Python 3 (https://www.python.org; on Debian the package python3); install it, then start again." },
    { "node",
      "It comes with Node.js (https://nodejs.org; on Debian the package nodejs); install it, then start again." },
    { "npx",
      "It comes with npm, which is part of Node.js (https://nodejs.org; on Debian the package npm); install it, then start again." },
    { "uvx", "It comes with the package uv (https://docs.astral.sh/uv); install it, then start again." },
    { "uv", "It comes with the package uv (https://docs.astral.sh/uv); install it, then start again." },
    { "deno", "Install it, or give the whole path as the command, then start again." },
};

static void what_is_missing_is_reported_with_what_brings_it(void **state)
{
    struct fixture *f = *state;
    char *path = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
        const char *command = sentences[i].command;
        struct err e = { 0 };

        assert_int_equal(program_find(f->arena, command, NULL, in(f, "first"), &path, &e), -ENOENT);
        assert_string_equal(e.code, "COMMAND_NOT_FOUND");
        assert_string_equal(e.text, arena_printf(f->arena, "The program `%s` was not found on PATH. %s", command,
                                                 sentences[i].text));
        assert_null(path);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_first_folder_that_has_it_wins),
        IN_FOLDER(relative_and_empty_folders_of_the_path_are_passed_over),
        IN_FOLDER(a_command_with_a_slash_is_meant_from_the_working_folder),
        IN_FOLDER(what_is_missing_is_reported_with_what_brings_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
