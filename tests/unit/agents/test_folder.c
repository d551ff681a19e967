#include "agents/folder.h"
#include "base/limits.h"
#include "os/files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    struct folder folder;
    char dir[64];
    const char *path; /* of the folder, in dir */
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "/tmp/hearth-folder-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->arena = arena_new();
    f->path = arena_printf(f->arena, "%s/thread", f->dir);
    assert_int_equal(folder_open(f->path, MIB(32), &f->folder, NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    folder_close(&f->folder);
    assert_int_equal(dir_remove(f->dir, NULL), 0);
    arena_free(f->arena);
    free(f);
    return 0;
}

static int write_text(struct fixture *f, const char *name, const char *text, struct err *e)
{
    return folder_write(&f->folder, name, slice_of(text), e);
}

static const char *read_text(struct fixture *f, const char *name)
{
    struct slice bytes = { 0 };
    struct err e = { 0 };

    if (folder_read(&f->folder, name, f->arena, &bytes, &e) < 0)
        return e.code[0] ? arena_strdup(f->arena, e.code) : "?";
    return arena_slicedup(f->arena, bytes);
}

static const char *in_folder(struct fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->path, name);
}

static void a_file_is_read_as_it_was_written_and_folders_are_made(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(write_text(f, "notes/2026/a.md", "one\n", NULL), 0);
    assert_string_equal(read_text(f, "notes/2026/a.md"), "one\n");
    assert_string_equal(read_text(f, "./notes/2026/a.md"), "one\n");
    assert_int_equal(write_text(f, "notes/2026/a.md", "two", NULL), 0);
    assert_string_equal(read_text(f, "notes/2026/a.md"), "two");
    assert_int_equal(write_text(f, "empty", "", NULL), 0);
    assert_string_equal(read_text(f, "empty"), "");
    assert_int_equal(stat(in_folder(f, "notes/2026/a.md"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_thread_whose_id_comes_again_has_another_folder(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(folder_path(f->arena, "/data", 7, "2026-11-23T07:00:01.250Z"),
                        "/data/threads/7-20261123070001250");
    assert_string_not_equal(folder_path(f->arena, "/data", 7, "2026-11-23T07:00:01.250Z"),
                            folder_path(f->arena, "/data", 7, "2026-11-23T07:00:01.251Z"));
}

static void no_name_leads_out_of_the_folder(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {
        "",   "/etc/passwd", "../x", "a/../../x", "a/..",     ".",          "..",        "a//b",          "a/",
        "./", "a/./b",       "a\nb", "a\x7f",     "\xff\xfe", "\xc0\xae/x", ".hearth-1", "a/.hearth-x/b",
    };

    assert_int_equal(write_text(f, "a/file", "x", NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct err e = { 0 };

        assert_int_equal(write_text(f, names[i], "x", &e), -EINVAL);
        assert_string_equal(e.code, "FILE_NAME");
        assert_string_equal(read_text(f, names[i]), "FILE_NAME");
    }
}

static char *long_name(struct fixture *f, size_t n)
{
    char *name = arena_alloc(f->arena, n + 1);

    for (size_t i = 0; i < n; i++)
        name[i] = i % 201 == 200 ? '/' : 'n';
    return name;
}

static char *deep_name(struct fixture *f, int n_parts)
{
    char *name = arena_strdup(f->arena, "d");

    for (int i = 1; i < n_parts; i++)
        name = arena_printf(f->arena, "%s/d", name);
    return name;
}

static void names_have_limits(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(write_text(f, long_name(f, LIMIT_FOLDER_PATH), "x", &e), 0);
    assert_int_equal(write_text(f, long_name(f, LIMIT_FOLDER_PATH + 1), "x", &e), -EINVAL);
    assert_int_equal(write_text(f, deep_name(f, LIMIT_FOLDER_DEPTH), "x", &e), 0);
    assert_int_equal(write_text(f, deep_name(f, LIMIT_FOLDER_DEPTH + 1), "x", &e), -EINVAL);
    assert_string_equal(e.code, "FILE_NAME");
}

static void links_are_never_followed(void **state)
{
    struct fixture *f = *state;
    const char *outside = arena_printf(f->arena, "%s/outside", f->dir);

    assert_int_equal(mkdir(outside, 0700), 0);
    assert_int_equal(file_write(arena_printf(f->arena, "%s/secret", outside), SLICE_LIT("secret"), 0600, NULL), 0);
    assert_int_equal(symlink("../outside/secret", in_folder(f, "link")), 0);
    assert_int_equal(symlink(outside, in_folder(f, "way")), 0);
    assert_int_equal(symlink("/proc/self/root", in_folder(f, "magic")), 0);
    assert_string_equal(read_text(f, "link"), "FILE_REFUSED");
    assert_string_equal(read_text(f, "way/secret"), "FILE_REFUSED");
    assert_string_equal(read_text(f, "magic/etc/passwd"), "FILE_REFUSED");
    assert_int_equal(write_text(f, "way/new", "x", NULL), -EPERM);
    assert_int_equal(access(arena_printf(f->arena, "%s/new", outside), F_OK), -1);

    /* a link of the file's own name is replaced, not written through */
    assert_int_equal(write_text(f, "link", "mine", NULL), 0);
    assert_string_equal(read_text(f, "link"), "mine");
    assert_int_equal(file_read(f->arena, arena_printf(f->arena, "%s/secret", outside), 100, &(struct slice){ 0 }, NULL),
                     0);
}

static void what_is_no_file_is_refused_and_holds_nobody(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(mkfifo(in_folder(f, "pipe"), 0600), 0);
    assert_int_equal(mkdir(in_folder(f, "sub"), 0700), 0);
    assert_string_equal(read_text(f, "pipe"), "FILE_REFUSED");
    assert_string_equal(read_text(f, "sub"), "FILE_REFUSED");
    assert_int_equal(write_text(f, "sub", "x", &e), -EPERM);
    assert_int_equal(write_text(f, "pipe/x", "x", &e), -EPERM);
    assert_string_equal(read_text(f, "nothing"), "FILE_NOT_FOUND");
}

static void a_file_has_a_limit_at_its_edge(void **state)
{
    struct fixture *f = *state;
    char *bytes = arena_alloc(f->arena, LIMIT_FOLDER_FILE + 1);
    struct slice read = { 0 };

    assert_int_equal(folder_write(&f->folder, "big", (struct slice){ bytes, LIMIT_FOLDER_FILE }, NULL), 0);
    assert_int_equal(folder_read(&f->folder, "big", f->arena, &read, NULL), 0);
    assert_int_equal(read.n, LIMIT_FOLDER_FILE);
    assert_int_equal(folder_write(&f->folder, "big", (struct slice){ bytes, LIMIT_FOLDER_FILE + 1 }, NULL), -EFBIG);
    assert_int_equal(truncate(in_folder(f, "big"), LIMIT_FOLDER_FILE + 1), 0);
    assert_string_equal(read_text(f, "big"), "FILE_TOO_LARGE");
}

static void the_quota_holds_at_its_edge_and_counts_the_replaced_file_once(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    f->folder.quota_bytes = 10;
    assert_int_equal(write_text(f, "a", "12345", NULL), 0);
    assert_int_equal(write_text(f, "b", "12345", NULL), 0);
    assert_int_equal(write_text(f, "c", "1", &e), -EDQUOT);
    assert_string_equal(e.code, "FOLDER_FULL");
    assert_int_equal(write_text(f, "a", "54321", NULL), 0);
    assert_int_equal(write_text(f, "a", "654321", &e), -EDQUOT);
    assert_string_equal(read_text(f, "a"), "54321");
    assert_int_equal(folder_edit(&f->folder, "a", SLICE_LIT("5"), SLICE_LIT("55"), &e), -EDQUOT);
    assert_string_equal(read_text(f, "a"), "54321");
}

static void the_number_of_files_is_limited(void **state)
{
    struct fixture *f = *state;
    struct folder_usage usage = { 0 };
    struct err e = { 0 };

    for (int i = 0; i < LIMIT_FOLDER_ENTRIES; i++) {
        int fd = openat(f->folder.fd, arena_printf(f->arena, "f%d", i), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        close(fd);
    }
    assert_int_equal(folder_measure(&f->folder, &usage, NULL), 0);
    assert_int_equal(usage.n_entries, LIMIT_FOLDER_ENTRIES);
    assert_int_equal(write_text(f, "one-more", "x", &e), -EDQUOT);
    assert_string_equal(e.code, "FOLDER_FULL");
}

static void folders_within_each_other_are_counted_up_to_a_limit(void **state)
{
    struct fixture *f = *state;
    struct folder_usage usage = { 0 };
    int fd = dup(f->folder.fd);

    for (int i = 0; i < LIMIT_FOLDER_WALK + 1; i++) {
        int next;

        assert_int_equal(mkdirat(fd, "d", 0700), 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = next;
        if (i == LIMIT_FOLDER_WALK - 1)
            assert_int_equal(folder_measure(&f->folder, &usage, NULL), 0);
    }
    close(fd);
    assert_int_equal(folder_measure(&f->folder, &usage, NULL), -EDQUOT);
}

static void an_edit_needs_exactly_one_place(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(write_text(f, "a", "one two two aaa", NULL), 0);
    assert_int_equal(folder_edit(&f->folder, "a", SLICE_LIT("one"), SLICE_LIT("1"), &e), 0);
    assert_string_equal(read_text(f, "a"), "1 two two aaa");
    assert_int_equal(folder_edit(&f->folder, "a", SLICE_LIT("two"), SLICE_LIT("2"), &e), -EINVAL);
    assert_string_equal(e.code, "EDIT_NOT_UNIQUE");
    assert_int_equal(folder_edit(&f->folder, "a", SLICE_LIT("aa"), SLICE_LIT("b"), &e), -EINVAL); /* overlap */
    assert_int_equal(folder_edit(&f->folder, "a", SLICE_LIT("three"), SLICE_LIT("3"), &e), -EINVAL);
    assert_int_equal(folder_edit(&f->folder, "a", SLICE_LIT(""), SLICE_LIT("3"), &e), -EINVAL);
    assert_int_equal(folder_edit(&f->folder, "b", SLICE_LIT("x"), SLICE_LIT("3"), &e), -ENOENT);
    assert_string_equal(read_text(f, "a"), "1 two two aaa");
    assert_int_equal(folder_edit(&f->folder, "a", SLICE_LIT("1 two two aaa"), SLICE_LIT(""), &e), 0);
    assert_string_equal(read_text(f, "a"), "");
}

static void a_list_is_sorted_and_leaves_links_and_unfinished_files_out(void **state)
{
    struct fixture *f = *state;
    struct folder_entries list = { 0 };

    assert_int_equal(write_text(f, "b", "12", NULL), 0);
    assert_int_equal(write_text(f, "a/deep", "1", NULL), 0);
    assert_int_equal(symlink("/etc", in_folder(f, "etc")), 0);
    assert_int_equal(file_write(in_folder(f, ".hearth-1"), SLICE_LIT("half"), 0600, NULL), 0);
    assert_int_equal(folder_list(&f->folder, NULL, false, f->arena, &list, NULL), 0);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].name, "a");
    assert_true(list.items[0].is_folder);
    assert_string_equal(list.items[1].name, "b");
    assert_int_equal(list.items[1].n_bytes, 2);
    assert_int_equal(folder_list(&f->folder, "", true, f->arena, &list, NULL), 0);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.items[1].name, "a/deep");
    assert_int_equal(folder_list(&f->folder, "a", false, f->arena, &list, NULL), 0);
    assert_string_equal(list.items[0].name, "a/deep");
    assert_int_equal(folder_list(&f->folder, "./a/", false, f->arena, &list, NULL), 0);
    assert_string_equal(list.items[0].name, "a/deep");
    assert_int_equal(folder_list(&f->folder, "a//", false, f->arena, &list, NULL), -EINVAL);
    assert_int_equal(folder_list(&f->folder, "etc", false, f->arena, &list, NULL), -EPERM);
    assert_int_equal(folder_list(&f->folder, "../", false, f->arena, &list, NULL), -EINVAL);
}

static void a_list_has_a_limit(void **state)
{
    struct fixture *f = *state;
    struct folder_entries list = { 0 };

    for (int i = 0; i <= LIMIT_FOLDER_LIST; i++) {
        if (i == LIMIT_FOLDER_LIST) {
            assert_int_equal(folder_list(&f->folder, NULL, true, f->arena, &list, NULL), 0);
            assert_false(list.is_cut);
        }
        close(openat(f->folder.fd, arena_printf(f->arena, "f%d", i), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
    assert_int_equal(folder_list(&f->folder, NULL, true, f->arena, &list, NULL), 0);
    assert_int_equal(list.n, LIMIT_FOLDER_LIST);
    assert_true(list.is_cut);
}

static void what_a_killed_service_left_is_removed_by_the_next_write(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(file_write(in_folder(f, ".hearth-1"), SLICE_LIT("half"), 0600, NULL), 0);
    assert_int_equal(write_text(f, "a", "x", NULL), 0);
    assert_int_equal(access(in_folder(f, ".hearth-1"), F_OK), -1);
}

/* A command swaps a folder for a link while the service reads and writes below it. */
struct swap {
    const char *folder, *spare;
    atomic_bool is_over;
};

static void *swap_for_ever(void *arg)
{
    struct swap *s = arg;

    while (!atomic_load(&s->is_over))
        (void)!renameat2(AT_FDCWD, s->folder, AT_FDCWD, s->spare, RENAME_EXCHANGE);
    return NULL;
}

static void a_folder_that_is_swapped_for_a_link_leads_nowhere(void **state)
{
    struct fixture *f = *state;
    const char *outside = arena_printf(f->arena, "%s/outside", f->dir);
    struct swap s = { .folder = in_folder(f, "sub"), .spare = in_folder(f, "spare") };
    pthread_t thread;
    int n_written = 0;

    assert_int_equal(mkdir(outside, 0700), 0);
    assert_int_equal(file_write(arena_printf(f->arena, "%s/file", outside), SLICE_LIT("secret"), 0600, NULL), 0);
    assert_int_equal(write_text(f, "sub/file", "mine", NULL), 0);
    assert_int_equal(symlink(outside, s.spare), 0);
    assert_int_equal(pthread_create(&thread, NULL, swap_for_ever, &s), 0);
    for (int i = 0; i < 500; i++) {
        n_written += write_text(f, "sub/file", "mine", NULL) == 0;
        assert_string_not_equal(read_text(f, "sub/file"), "secret");
    }
    atomic_store(&s.is_over, true);
    pthread_join(thread, NULL);
    assert_true(n_written > 0);
    assert_int_equal(write_text(f, "elsewhere", "x", NULL), 0);
    for (const char *const *name = (const char *const[]){ "file", NULL }; *name; name++) {
        struct slice bytes = { 0 };

        assert_int_equal(file_read(f->arena, arena_printf(f->arena, "%s/%s", outside, *name), 100, &bytes, NULL), 0);
        assert_true(slice_eq_str(bytes, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read_as_it_was_written_and_folders_are_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_whose_id_comes_again_has_another_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_name_leads_out_of_the_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_have_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_are_never_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_refused_and_holds_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_has_a_limit_at_its_edge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_quota_holds_at_its_edge_and_counts_the_replaced_file_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_number_of_files_is_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_within_each_other_are_counted_up_to_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_edit_needs_exactly_one_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_is_sorted_and_leaves_links_and_unfinished_files_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_has_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_killed_service_left_is_removed_by_the_next_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_is_swapped_for_a_link_leads_nowhere, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
