/* <data>/hearth.instance: lines of fixed length, so that a generation can be overwritten in place. */
#include "store/instance_private.h"

#include "store/backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAD "hearth-instance 1 "
#define NOBODY "-                                   "
#define NOWHERE "-               "

enum {
    HEAD_BYTES = sizeof(HEAD) - 1 + UUID_LEN + 1,
    NAME_BYTES = 11, /* "backend.db " */
    GENERATION_DIGITS = 20,
    GENERATION_AT = NAME_BYTES + UUID_LEN + 1 + INSTANCE_PLACE_SIZE,
    LINE_BYTES = GENERATION_AT + GENERATION_DIGITS + 1,
    NOTES_BYTES = HEAD_BYTES + INSTANCE_N_FILES * LINE_BYTES,
};

_Static_assert(sizeof(NOBODY) == UUID_SIZE && sizeof(NOWHERE) == INSTANCE_PLACE_SIZE, "as wide as what they stand for");

/* --- reading --- */

static bool read_uuid(const char *at, char ret[UUID_SIZE])
{
    if (!uuid_is_valid((struct slice){ at, UUID_LEN }))
        return false;
    memcpy(ret, at, UUID_LEN);
    ret[UUID_LEN] = '\0';
    return true;
}

static bool read_line(const char *line, const char *name, struct instance_known *ret)
{
    size_t n = strlen(name);
    struct instance_known known = { .generation = 0 };

    if (memcmp(line, name, n) != 0 || strspn(line + n, " ") != NAME_BYTES - n || line[LINE_BYTES - 1] != '\n')
        return false;
    if (memcmp(line + NAME_BYTES, NOBODY, UUID_LEN) == 0)
        return true;
    if (!read_uuid(line + NAME_BYTES, known.id) || strspn(line + GENERATION_AT, "0123456789") != GENERATION_DIGITS)
        return false;
    memcpy(known.place, line + NAME_BYTES + UUID_LEN + 1, INSTANCE_PLACE_SIZE - 1);
    known.generation = strtoll(line + GENERATION_AT, NULL, 10);
    *ret = known;
    return true;
}

static bool read_text(struct instance *in, const char text[NOTES_BYTES + 1])
{
    bool is_whole =
        memcmp(text, HEAD, strlen(HEAD)) == 0 && read_uuid(text + strlen(HEAD), in->id) && text[HEAD_BYTES - 1] == '\n';

    for (size_t i = 0; is_whole && i < INSTANCE_N_FILES; i++)
        is_whole = read_line(text + HEAD_BYTES + i * LINE_BYTES, instance_file_names[i], &in->files[i]);
    return is_whole;
}

int instance_read_notes(struct instance *in, struct err *e)
{
    char text[NOTES_BYTES + 2] = "";
    int fd = open(in->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    int error = errno;

    if (fd >= 0)
        close(fd);
    in->is_noted = fd >= 0;
    if (fd < 0 && error == ENOENT)
        return 0;
    if (n < 0)
        return err_errno(e, error, "%s cannot be read", in->path);
    if (n == NOTES_BYTES && strlen(text) == NOTES_BYTES && read_text(in, text))
        return 0;
    memset(in->files, 0, sizeof(in->files));
    in->id[0] = '\0';
    return err_set(
        e, -EUCLEAN, "DATA_LOST",
        "%s is damaged: it tells which databases this folder has. `hearth restore FILE --force` puts a backup in place; "
        "`hearth serve --accept-loss` takes the databases that are there",
        in->path);
}

/* --- writing --- */

static size_t write_text(const struct instance *in, char out[NOTES_BYTES + 1])
{
    size_t n = (size_t)snprintf(out, NOTES_BYTES + 1, HEAD "%s\n", in->id);

    for (size_t i = 0; i < INSTANCE_N_FILES; i++) {
        const struct instance_known *f = &in->files[i];

        n += (size_t)snprintf(out + n, NOTES_BYTES + 1 - n, "%-*s%s %s %0*lld\n", NAME_BYTES, instance_file_names[i],
                              *f->id ? f->id : NOBODY, *f->id ? f->place : NOWHERE, GENERATION_DIGITS,
                              (long long)f->generation);
    }
    return n;
}

static int write_beside(char *part, const char *path, const char *text, size_t n)
{
    int fd = mkostemp(part, O_CLOEXEC), r = fd < 0 ? -errno : 0;

    if (r == 0 && (write(fd, text, n) != (ssize_t)n || fsync(fd) < 0 || rename(part, path) < 0))
        r = -(errno ? errno : ENOSPC);
    if (fd >= 0)
        close(fd);
    if (r < 0 && fd >= 0)
        unlink(part);
    return r;
}

int instance_write_notes(struct instance *in, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char text[NOTES_BYTES + 1];
    size_t n = write_text(in, text);
    int r = write_beside(arena_printf(a, "%s.XXXXXX", in->path), in->path, text, n);

    if (r < 0)
        return err_errno(e, -r, "%s cannot be written", in->path);
    in->is_noted = true;
    return backup_sync_folder(in->path, e);
}

int instance_write_generation(struct instance *in, enum instance_file file)
{
    char digits[GENERATION_DIGITS + 1];
    int fd = open(in->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW), r = 0;

    snprintf(digits, sizeof(digits), "%0*lld", GENERATION_DIGITS, (long long)in->files[file].generation);
    if (fd < 0 || pwrite(fd, digits, GENERATION_DIGITS, HEAD_BYTES + (off_t)file * LINE_BYTES + GENERATION_AT) !=
                      GENERATION_DIGITS)
        r = -(errno ? errno : ENOSPC);
    if (fd >= 0)
        close(fd);
    return r;
}
