#include "os/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    char dir[64];
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "/tmp/hearth-files-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->arena = arena_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(dir_remove(f->dir, NULL), 0);
    assert_int_equal(access(f->dir, F_OK), -1);
    arena_free(f->arena);
    freep(&f);
    return 0;
}

static const char *in(struct fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->dir, name);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* "." and ".." */
}

static void folders_are_made_with_their_parents_and_private(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(dir_make(in(f, "a/b//c/"), NULL), 0);
    assert_int_equal(mode_of(in(f, "a")), 0700);
    assert_int_equal(mode_of(in(f, "a/b/c")), 0700);
    assert_int_equal(chmod(in(f, "a/b"), 0755), 0);
    assert_int_equal(dir_make(in(f, "a/b"), NULL), 0);
    assert_int_equal(mode_of(in(f, "a/b")), 0755);
}

static void a_file_in_the_way_of_a_folder_is_reported(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(file_write(in(f, "file"), SLICE_LIT("x"), 0600, NULL), 0);
    assert_int_equal(dir_make(in(f, "file"), &e), -ENOTDIR);
    assert_non_null(strstr(e.text, "is not a folder"));
    assert_int_equal(dir_make(in(f, "file/below"), &e), -ENOTDIR);
}

static void what_was_written_is_read_whole(void **state)
{
    struct fixture *f = *state;
    struct slice bytes = { arena_alloc(f->arena, 200000), 200000 }, back = { 0 };

    assert_int_equal(file_write(in(f, "file"), SLICE_LIT("old"), 0644, NULL), 0);
    assert_int_equal(mode_of(in(f, "file")), 0644);
    assert_int_equal(file_write(in(f, "file"), bytes, 0600, NULL), 0);
    assert_int_equal(mode_of(in(f, "file")), 0600);
    assert_int_equal(count_entries(f->dir), 1);
    assert_int_equal(file_read(f->arena, in(f, "file"), 200000, &back, NULL), 0);
    assert_true(slice_eq(bytes, back));
    assert_int_equal(back.p[back.n], '\0');
}

static void a_file_above_the_maximum_is_not_read(void **state)
{
    struct fixture *f = *state;
    struct slice back = { "kept", 4 };
    struct err e = { 0 };

    assert_int_equal(file_write(in(f, "file"), SLICE_LIT("12345"), 0600, NULL), 0);
    assert_int_equal(file_read(f->arena, in(f, "file"), 4, &back, &e), -EFBIG);
    assert_true(slice_eq_str(back, "kept"));
    assert_int_equal(file_read(f->arena, in(f, "file"), 5, &back, &e), 0);
    assert_true(slice_eq_str(back, "12345"));
    assert_int_equal(file_read(f->arena, in(f, "missing"), 5, &back, &e), -ENOENT);
    assert_int_equal(file_read(f->arena, f->dir, 5, &back, &e), -EISDIR);
}

static void a_secret_is_read_to_where_it_belongs(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    char key[5] = "";
    size_t n = 99;

    assert_int_equal(file_write(in(f, "key"), SLICE_LIT("12345"), 0600, NULL), 0);
    assert_int_equal(file_read_into(in(f, "key"), key, 4, &n, &e), -EFBIG);
    assert_int_equal(n, 99);
    assert_int_equal(file_read_into(in(f, "key"), key, 5, &n, &e), 0);
    assert_int_equal(n, 5);
    assert_memory_equal(key, "12345", 5);
    assert_int_equal(file_write(in(f, "key"), SLICE_LIT("123"), 0600, NULL), 0);
    assert_int_equal(file_read_into(in(f, "key"), key, 5, &n, &e), 0);
    assert_int_equal(n, 3);
    assert_int_equal(file_read_into(in(f, "missing"), key, 5, &n, &e), -ENOENT);
    assert_int_equal(file_read_into(f->dir, key, 5, &n, &e), -EISDIR);
}

static void a_folder_others_may_write_to_is_refused(void **state)
{
    struct fixture *f = *state;
    const mode_t bad[] = { 0770, 0702, 0777, 01777 }, good[] = { 0700, 0755, 0500 };
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(chmod(f->dir, good[i]), 0);
        assert_int_equal(dir_check_owner(f->dir, NULL), 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(chmod(f->dir, bad[i]), 0);
        assert_int_equal(dir_check_owner(f->dir, &e), -EPERM);
        assert_string_equal(e.code, "BAD_DATA_FOLDER");
    }
    assert_int_equal(chmod(f->dir, 0700), 0);
    assert_int_equal(dir_check_owner("/", NULL), geteuid() == 0 ? 0 : -EPERM);
}

static void an_empty_file_is_read_as_nothing(void **state)
{
    struct fixture *f = *state;
    struct slice back = { "x", 1 };

    assert_int_equal(file_write(in(f, "file"), (struct slice){ 0 }, 0600, NULL), 0);
    assert_int_equal(file_read(f->arena, in(f, "file"), 0, &back, NULL), 0);
    assert_int_equal(back.n, 0);
}

static void a_failed_write_leaves_nothing_beside_the_old(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(dir_make(in(f, "target/full"), NULL), 0);
    assert_true(file_write(in(f, "target"), SLICE_LIT("x"), 0600, &e) < 0); /* a file cannot replace a folder */
    assert_int_equal(count_entries(f->dir), 1);
    assert_int_equal(file_write(in(f, "missing/file"), SLICE_LIT("x"), 0600, &e), -ENOENT);
}

static void removal_does_not_follow_links(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(dir_make(in(f, "kept"), NULL), 0);
    assert_int_equal(file_write(in(f, "kept/file"), SLICE_LIT("x"), 0600, NULL), 0);
    assert_int_equal(dir_make(in(f, "gone/deep/deeper"), NULL), 0);
    assert_int_equal(file_write(in(f, "gone/deep/file"), SLICE_LIT("x"), 0400, NULL), 0);
    assert_int_equal(symlink(in(f, "kept"), in(f, "gone/deep/link")), 0);
    assert_int_equal(symlink(in(f, "kept"), in(f, "link")), 0);
    assert_int_equal(dir_remove(in(f, "gone"), NULL), 0);
    assert_int_equal(access(in(f, "gone"), F_OK), -1);
    assert_int_equal(dir_remove(in(f, "gone"), NULL), 0); /* missing is fine */
    assert_true(dir_remove(in(f, "link"), NULL) < 0);
    assert_int_equal(access(in(f, "kept/file"), F_OK), 0);
}

static void removal_goes_200_folders_deep(void **state)
{
    struct fixture *f = *state;
    char *path = arena_strdup(f->arena, in(f, "deep"));
    struct err e = { 0 };

    for (int depth = 0; depth < 201; depth++)
        path = arena_printf(f->arena, "%s/d", path);
    assert_int_equal(dir_make(path, NULL), 0);
    assert_int_equal(dir_remove(in(f, "deep"), &e), -ELOOP);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(dir_remove(in(f, "deep"), &e), 0);
}

struct path_case {
    const char *name;
    bool is_allowed;
};

static const struct path_case path_cases[] = {
    { "file", true },       { "sub/file", true },     { "new/sub/file", true },
    { "..file", true },     { "a..b", true },         { "inside/x", true },
    { "", false },          { "..", false },          { ".", false },
    { "../x", false },      { "sub/../../x", false }, { "sub/..", false },
    { "sub/./x", false },   { "/etc/passwd", false }, { "sub//x", false },
    { "sub/", false },      { "out", false },         { "out/x", false },
    { "sibling/x", false }, { "nowhere", false },
};

static void a_path_stays_below_its_root(void **state)
{
    struct fixture *f = *state;
    const char *root = in(f, "root");

    assert_int_equal(dir_make(in(f, "root/sub"), NULL), 0);
    assert_int_equal(dir_make(in(f, "root2"), NULL), 0);
    assert_int_equal(symlink("/", in(f, "root/out")), 0);
    assert_int_equal(symlink("sub", in(f, "root/inside")), 0);
    assert_int_equal(symlink("../root2", in(f, "root/sibling")), 0);
    assert_int_equal(symlink("../not-there", in(f, "root/nowhere")), 0);
    for (size_t i = 0; i < ARRAY_SIZE(path_cases); i++) {
        char *path = NULL;
        int r = path_below(f->arena, root, path_cases[i].name, &path, NULL);

        if (r != (path_cases[i].is_allowed ? 0 : -EINVAL) || (r == 0) != (path != NULL))
            fail_msg("%s: %d", path_cases[i].name, r);
    }
}

static void a_root_that_is_not_there_yet_is_fine(void **state)
{
    struct fixture *f = *state;
    char *path = NULL;

    assert_int_equal(path_below(f->arena, in(f, "later"), "a/b", &path, NULL), 0);
    assert_string_equal(path, in(f, "later/a/b"));
}

static void free_space_is_told(void **state)
{
    struct fixture *f = *state;
    uint64_t bytes = 0;

    assert_int_equal(disk_free(f->dir, &bytes, NULL), 0);
    assert_true(bytes > 0);
    assert_int_equal(disk_free(in(f, "missing"), &bytes, NULL), -ENOENT);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(folders_are_made_with_their_parents_and_private),
        IN_FOLDER(a_file_in_the_way_of_a_folder_is_reported),
        IN_FOLDER(what_was_written_is_read_whole),
        IN_FOLDER(a_file_above_the_maximum_is_not_read),
        IN_FOLDER(a_secret_is_read_to_where_it_belongs),
        IN_FOLDER(a_folder_others_may_write_to_is_refused),
        IN_FOLDER(an_empty_file_is_read_as_nothing),
        IN_FOLDER(a_failed_write_leaves_nothing_beside_the_old),
        IN_FOLDER(removal_does_not_follow_links),
        IN_FOLDER(removal_goes_200_folders_deep),
        IN_FOLDER(a_path_stays_below_its_root),
        IN_FOLDER(a_root_that_is_not_there_yet_is_fine),
        IN_FOLDER(free_space_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
