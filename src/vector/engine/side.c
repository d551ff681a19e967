#include "vector/engine/side.h"
#include "base/checksum.h"
#include "base/hash.h"
#include "base/limits.h"
#include "vector/engine/quant.h"
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SIDE_VERSION = 1,                                            /* of the layout, and of what makes the codes */
    SIDE_PAGE = 4096,                                            /* a chunk is whole pages, its head the first */
    SIDE_NAME_MAX = 32,                                          /* bytes of a file's name */
    SIDE_CHUNKS_MAX = 2 * (LIMIT_VECTOR_ROWS / SIDE_CHUNK_ROWS), /* rows that were removed stay for a while */
};

#define SIDE_MAGIC "HEARTHVS"

/* In the byte order of the machine: a file of another order has no magic and version that fit. */
struct head {
    char magic[8];
    uint32_t version, sketch_format, n_dimensions, has_sketch;
    int64_t space_id;
    uint64_t index, mark, mark_before; /* mark_before: of the chunk before it; 0: there is none */
    int64_t last_row;
    uint64_t content; /* checksum of what follows the head's page */
    uint64_t head;    /* checksum of the members above */
};

/* --- layout --- */

static size_t rows_bytes(void)
{
    return SIDE_CHUNK_ROWS * sizeof(int64_t);
}

static size_t scales_bytes(void)
{
    return SIDE_CHUNK_ROWS * sizeof(float);
}

static size_t codes_bytes(const struct side_place *place)
{
    return SIDE_CHUNK_ROWS * quant_stride(place->n_dimensions);
}

/* The place of the sketch is kept when there is none, so that every chunk has the same size. */
static size_t content_bytes(const struct side_place *place)
{
    size_t n = rows_bytes() + scales_bytes() + codes_bytes(place) + sketch_image_bytes(place->n_dimensions);

    return (n + SIDE_PAGE - 1) / SIDE_PAGE * SIDE_PAGE;
}

static off_t offset_of(const struct side_place *place, size_t chunk)
{
    return (off_t)(chunk * (SIDE_PAGE + content_bytes(place)));
}

/* Where the parts of a chunk lie in memory that holds its content. */
static struct side_draft parts_of(const struct side_place *place, uint8_t *content)
{
    struct side_draft d = { .rows = (int64_t *)(void *)content };

    d.scales = (float *)(void *)(content + rows_bytes());
    d.codes = content + rows_bytes() + scales_bytes();
    d.sketch = d.codes + codes_bytes(place);
    return d;
}

static struct slice content_of(const struct side_place *place, const uint8_t *content)
{
    return (struct slice){ (const char *)content, content_bytes(place) };
}

static uint64_t checksum_of_head(const struct head *head)
{
    return checksum_of((struct slice){ (const char *)head, offsetof(struct head, head) });
}

/* --- files --- */

int side_folder_open(const char *path)
{
    struct stat st;
    int fd;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && fchmod(fd, 0700) == 0)
        return fd;
    close(fd);
    return -EPERM;
}

static void name_of(int64_t space_id, char ret[SIDE_NAME_MAX])
{
    snprintf(ret, SIDE_NAME_MAX, "%" PRId64 ".side", space_id);
}

/* A regular file of ours that nobody else may read or write. */
static bool is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

/* Without waiting for a FIFO's other end. */
static int open_file(const struct side_place *place, int flags, struct stat *ret)
{
    char name[SIDE_NAME_MAX];
    int fd;

    name_of(place->space_id, name);
    fd = openat(place->folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == ENOENT ? -ENOENT : -EBADMSG;
    if (fstat(fd, ret) == 0 && is_ours(ret))
        return fd;
    close(fd);
    return -EBADMSG;
}

static int read_fully(int fd, void *to, size_t n, off_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)to + done, n - done, at + (off_t)done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -EBADMSG;
        done += (size_t)got;
    }
    return 0;
}

static int write_fully(int fd, const void *from, size_t n, off_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, (const char *)from + done, n - done, at + (off_t)done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? -errno : -ENOSPC;
        done += (size_t)put;
    }
    return 0;
}

/* --- heads --- */

static bool is_right(const struct head *h, const struct side_place *place, size_t chunk)
{
    return memcmp(h->magic, SIDE_MAGIC, sizeof(h->magic)) == 0 && h->version == SIDE_VERSION &&
           h->sketch_format == SKETCH_FORMAT && h->n_dimensions == place->n_dimensions &&
           h->space_id == place->space_id && h->index == chunk && h->last_row >= place->first_row &&
           h->last_row <= place->last_row && h->head == checksum_of_head(h);
}

static int read_head(int fd, const struct side_place *place, size_t chunk, struct head *ret)
{
    int r = read_fully(fd, ret, sizeof(*ret), offset_of(place, chunk));

    return r == 0 && !is_right(ret, place, chunk) ? -EBADMSG : r;
}

/* The state up to the chunk with the mark, which is mostly the last one. */
static int find_mark(int fd, const struct side_place *place, off_t size, uint64_t mark, struct side_state *ret)
{
    size_t n = (size_t)MIN(size / offset_of(place, 1), (off_t)SIDE_CHUNKS_MAX);

    for (; n > 0; n--) {
        struct head head;

        if (read_head(fd, place, n - 1, &head) < 0 || head.mark != mark)
            continue;
        *ret = (struct side_state){ mark, n, head.last_row };
        return 0;
    }
    return -EBADMSG;
}

/* --- reading --- */

int side_open(const struct side_place *place, uint64_t mark, struct side **ret)
{
    struct side_state state;
    struct stat st;
    int fd, r;

    fd = open_file(place, O_RDONLY, &st);
    if (fd < 0)
        return fd;
    r = find_mark(fd, place, st.st_size, mark, &state);
    if (r < 0) {
        close(fd);
        return r;
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    *ret = xcalloc(1, sizeof(**ret));
    **ret = (struct side){ .state = state, .place = *place, .fd = fd, .memory = xcalloc(1, content_bytes(place)) };
    (*ret)->before_row = place->first_row - 1;
    return 0;
}

struct side *side_close(struct side *side)
{
    if (!side)
        return NULL;
    close(side->fd);
    free(side->memory);
    free(side);
    return NULL;
}

/* Rows rise from chunk to chunk up to the last row that the head names, and scales are numbers. */
static bool is_sound(const struct side_draft *d, int64_t before_row, int64_t last_row)
{
    for (size_t i = 0; i < SIDE_CHUNK_ROWS; i++) {
        if (d->rows[i] <= before_row || !isfinite(d->scales[i]) || d->scales[i] < 0)
            return false;
        before_row = d->rows[i];
    }
    return before_row == last_row;
}

int side_read(struct side *side, size_t i, struct side_chunk *ret)
{
    const struct side_place *place = &side->place;
    struct side_draft d = parts_of(place, side->memory);
    struct head head;
    int r;

    r = read_head(side->fd, place, i, &head);
    if (r == 0)
        r = read_fully(side->fd, side->memory, content_bytes(place), offset_of(place, i) + SIDE_PAGE);
    if (r < 0)
        return r;
    if (head.mark_before != side->before_mark || head.content != checksum_of(content_of(place, side->memory)) ||
        !is_sound(&d, side->before_row, head.last_row))
        return -EBADMSG;
    side->before_row = head.last_row;
    side->before_mark = head.mark;
    *ret = (struct side_chunk){ d.rows, d.scales, d.codes, head.has_sketch ? d.sketch : NULL, head.mark };
    return 0;
}

/* --- writing --- */

struct writing {
    const struct side_place *place;
    struct side_state state;
    int fd;
    uint8_t *memory; /* owned; a chunk's content, zeros behind its parts */
};

/* Whatever is in the way of a new file is removed, but for a folder. */
static int make_file(const struct side_place *place)
{
    char name[SIDE_NAME_MAX];
    struct stat st;
    int fd;

    name_of(place->space_id, name);
    if (unlinkat(place->folder, name, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = open_file(place, O_RDWR | O_CREAT | O_EXCL, &st);
    if (fd >= 0 && fchmod(fd, 0600) < 0) {
        close(fd);
        return -EPERM;
    }
    return fd;
}

/* Opens the file and cuts off what is behind its state. */
static int open_end(const struct side_place *place, const struct side_state *state)
{
    struct head head;
    struct stat st;
    int fd = open_file(place, O_RDWR, &st), r;

    if (fd < 0)
        return fd;
    r = read_head(fd, place, state->n_chunks - 1, &head);
    if (r == 0 && (head.mark != state->mark || st.st_size < offset_of(place, state->n_chunks)))
        r = -EBADMSG;
    if (r == 0 && ftruncate(fd, offset_of(place, state->n_chunks)) < 0)
        r = -errno;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

static uint64_t new_mark(void)
{
    uint64_t mark;

    random_bytes(&mark, sizeof(mark));
    return mark >> 1 | 1; /* a positive integer of SQLite, never 0 */
}

static int write_chunk(struct writing *w, const struct side_draft *d)
{
    const struct side_place *place = w->place;
    struct head head = { .version = SIDE_VERSION,
                         .sketch_format = SKETCH_FORMAT,
                         .n_dimensions = (uint32_t)place->n_dimensions,
                         .has_sketch = d->has_sketch,
                         .space_id = place->space_id,
                         .index = w->state.n_chunks,
                         .mark = new_mark(),
                         .mark_before = w->state.mark,
                         .last_row = d->rows[SIDE_CHUNK_ROWS - 1],
                         .content = checksum_of(content_of(place, w->memory)) };
    off_t at = offset_of(place, w->state.n_chunks);
    int r;

    memcpy(head.magic, SIDE_MAGIC, sizeof(head.magic));
    head.head = checksum_of_head(&head);
    r = write_fully(w->fd, &head, sizeof(head), at);
    if (r == 0)
        r = write_fully(w->fd, w->memory, content_bytes(place), at + SIDE_PAGE);
    if (r == 0)
        w->state = (struct side_state){ head.mark, w->state.n_chunks + 1, head.last_row };
    return r;
}

static int write_chunks(struct writing *w, size_t n, side_fill *fill, void *arg)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct side_draft d = parts_of(w->place, w->memory);

        fill(arg, i, &d);
        r = write_chunk(w, &d);
    }
    return r < 0 || fdatasync(w->fd) == 0 ? r : -errno;
}

int side_append(const struct side_place *place, struct side_state *state, size_t n, side_fill *fill, void *arg)
{
    struct writing w = { .place = place, .state = *state };
    bool is_new = state->n_chunks == 0;
    int r;

    w.fd = is_new ? make_file(place) : open_end(place, state);
    if (w.fd < 0)
        return w.fd;
    w.memory = xcalloc(1, content_bytes(place));
    r = w.state.n_chunks + n > SIDE_CHUNKS_MAX ? -EFBIG : write_chunks(&w, n, fill, arg);
    if (r == 0 && is_new && fsync(place->folder) < 0)
        r = -errno;
    if (r == 0)
        *state = w.state;
    free(w.memory);
    close(w.fd);
    return r;
}

/* --- removal --- */

void side_remove(int folder, int64_t space_id)
{
    char name[SIDE_NAME_MAX];

    if (folder < 0)
        return;
    name_of(space_id, name);
    if (unlinkat(folder, name, 0) < 0)
        return; /* there was none, or the next sweep tries again */
}

/* The id in a name of ours, 0: it is another file. */
static int64_t id_in(const char *name)
{
    char own[SIDE_NAME_MAX];
    int64_t id = strtoll(name, NULL, 10);

    name_of(id, own);
    return id > 0 && strcmp(own, name) == 0 ? id : 0;
}

void side_sweep(int folder, bool (*is_wanted)(void *arg, int64_t space_id), void *arg)
{
    int fd = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        int64_t id = id_in(entry->d_name);

        if (id != 0 && !is_wanted(arg, id))
            side_remove(folder, id);
    }
    closedir(dir);
}
