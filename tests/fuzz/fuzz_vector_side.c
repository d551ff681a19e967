/* A side file: a sound one of two chunks, changed at places that the input names, with its checksums made anew or not.
 * What is read obeys the rules, however wrong it may be. */
#include "base/checksum.h"
#include "base/hash.h"
#include "vector/engine/quant.h"
#include "vector/engine/side.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { FIRST_ROW = 1000, LAST_ROW = 1000000, N_DIMENSIONS = 64, PAGE = 4096, CONTENT_AT = 72, HEAD_AT = 80, EDIT = 4 };

static char folder[] = "/dev/shm/hearth-fuzz-XXXXXX"; /* in memory, so that no disk slows the fuzzer */
static struct side_place place = {
    .space_id = 7, .first_row = FIRST_ROW, .last_row = LAST_ROW, .n_dimensions = N_DIMENSIONS
};
static struct side_state written;
static uint8_t *sound, *bad;
static size_t n_sound;

static void fill(void *arg, size_t i, struct side_draft *d)
{
    for (size_t j = 0; j < SIDE_CHUNK_ROWS; j++) {
        d->rows[j] = (int64_t)(FIRST_ROW + i * SIDE_CHUNK_ROWS + j);
        d->scales[j] = 0.01F;
    }
    memset(d->codes, 130, SIDE_CHUNK_ROWS * quant_stride(N_DIMENSIONS));
    memset(d->sketch, 0, sketch_image_bytes(N_DIMENSIONS));
    d->has_sketch = true;
}

static void remove_folder(void)
{
    side_remove(place.folder, place.space_id);
    rmdir(folder);
}

static void make_sound_file(void)
{
    int fd;

    assert(hash_init(NULL) == 0 && mkdtemp(folder));
    atexit(remove_folder);
    place.folder = side_folder_open(folder);
    assert(place.folder >= 0 && side_append(&place, &written, 2, fill, NULL) == 0);
    fd = openat(place.folder, "7.side", O_RDONLY | O_CLOEXEC);
    n_sound = (size_t)lseek(fd, 0, SEEK_END);
    sound = malloc(n_sound);
    bad = malloc(n_sound);
    assert(sound && bad && pread(fd, sound, n_sound, 0) == (ssize_t)n_sound);
    close(fd);
}

/* Three bytes of an edit say where: in a head when they are small, else anywhere; the fourth says what. */
static void edit(const uint8_t *e)
{
    size_t at = (size_t)e[0] << 16 | (size_t)e[1] << 8 | e[2];

    bad[at < 0x8000 ? at % 2 * (n_sound / 2) + at / 2 % (HEAD_AT + 8) : at % n_sound] ^= e[3];
}

static void make_checksums(void)
{
    for (uint8_t *head = bad; head < bad + n_sound; head += n_sound / 2) {
        uint64_t content = checksum_of((struct slice){ (const char *)head + PAGE, n_sound / 2 - PAGE }), own;

        memcpy(head + CONTENT_AT, &content, sizeof(content));
        own = checksum_of((struct slice){ (const char *)head, HEAD_AT });
        memcpy(head + HEAD_AT, &own, sizeof(own));
    }
}

static void write_bad(size_t n)
{
    int fd = openat(place.folder, "7.side", O_RDWR | O_TRUNC | O_CLOEXEC);

    assert(fd >= 0 && pwrite(fd, bad, n, 0) == (ssize_t)n);
    close(fd);
}

static void check_chunk(const struct side_chunk *chunk, int64_t *before)
{
    for (size_t i = 0; i < SIDE_CHUNK_ROWS; i++) {
        assert(chunk->rows[i] > *before && chunk->rows[i] <= LAST_ROW && isfinite(chunk->scales[i]));
        *before = chunk->rows[i];
    }
}

static void restore(struct sketch_set *set, const struct side_chunk *chunk)
{
    size_t n = set->n;

    assert(sketch_restore(set, chunk->sketch) == 0 ? set->n == n + 1 : set->n == n);
}

static void read_bad(void)
{
    atomic_size_t account = 0;
    struct sketch_set *set = sketch_set_new(N_DIMENSIONS, &account);
    int64_t before = FIRST_ROW - 1;
    struct side *side = NULL;
    struct side_chunk chunk;

    if (side_open(&place, written.mark, &side) == 0) {
        assert(side->state.n_chunks >= 1 && side->state.n_chunks <= 2);
        for (size_t i = 0; i < side->state.n_chunks && side_read(side, i, &chunk) == 0; i++) {
            check_chunk(&chunk, &before);
            if (chunk.sketch)
                restore(set, &chunk);
        }
    }
    side_close(side);
    sketch_set_free(set);
    assert(account == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (!sound)
        make_sound_file();
    if (n < EDIT)
        return 0;
    memcpy(bad, sound, n_sound);
    for (size_t i = EDIT; i + EDIT <= n; i += EDIT)
        edit(bytes + i);
    if (bytes[0] & 1)
        make_checksums();
    write_bad(bytes[0] & 2 ? ((size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3]) % n_sound : n_sound);
    read_bad();
    return 0;
}
