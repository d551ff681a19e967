#include "vector_data.h"
#include "embed/lexical.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_CENTRES = 2000, N_DIRECTIONS = 24 };

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Nearly normal with deviation 1: a sum of four. */
static float next_normal(uint64_t *state)
{
    uint64_t bits = next_random(state);
    float sum = 0;

    for (int i = 0; i < 4; i++, bits >>= 16)
        sum += (float)(bits & 0xffff) / 65536.0F - 0.5F;
    return sum * 1.7320508F;
}

static void fill_normal(uint64_t *state, float *into, size_t n)
{
    for (size_t i = 0; i < n; i++)
        into[i] = next_normal(state);
}

/* The number of rows and queries, which are made one after the other. */
static size_t n_all(const struct vector_data *d)
{
    return d->n + d->n_queries;
}

static int make_isotropic(const struct vector_data *d, float *into)
{
    uint64_t state = 1;

    fill_normal(&state, into, n_all(d) * d->n_dimensions);
    return 0;
}

static int make_clustered(const struct vector_data *d, float *into)
{
    float *centres = xcalloc(N_CENTRES * d->n_dimensions, sizeof(*centres));
    uint64_t state = 2;

    fill_normal(&state, centres, N_CENTRES * d->n_dimensions);
    for (size_t i = 0; i < n_all(d); i++, into += d->n_dimensions) {
        const float *centre = centres + next_random(&state) % N_CENTRES * d->n_dimensions;

        for (size_t j = 0; j < d->n_dimensions; j++)
            into[j] = centre[j] + 0.7F * next_normal(&state);
    }
    free(centres);
    return 0;
}

static int make_low_rank(const struct vector_data *d, float *into)
{
    float *directions = xcalloc(N_DIRECTIONS * d->n_dimensions, sizeof(*directions));
    uint64_t state = 3;

    fill_normal(&state, directions, N_DIRECTIONS * d->n_dimensions);
    for (size_t i = 0; i < n_all(d); i++, into += d->n_dimensions) {
        for (size_t j = 0; j < d->n_dimensions; j++)
            into[j] = 0.8F * next_normal(&state);
        for (size_t k = 0; k < N_DIRECTIONS; k++) {
            float share = 0.7F * next_normal(&state);

            for (size_t j = 0; j < d->n_dimensions; j++)
                into[j] += share * directions[k * d->n_dimensions + j];
        }
    }
    free(directions);
    return 0;
}

static int make_text(const struct vector_data *d, float *into)
{
    char *line = NULL;
    size_t n_room = 0, n = 0;
    ssize_t length;

    while (d->n_dimensions == LEXICAL_DIMENSIONS && n < n_all(d) && (length = getline(&line, &n_room, stdin)) > 0)
        lexical_embed((struct slice){ line, (size_t)length }, into + n++ * LEXICAL_DIMENSIONS);
    free(line);
    return n < n_all(d) ? -1 : 0;
}

static const struct {
    const char *name;
    int (*make)(const struct vector_data *d, float *into);
} kinds[] = {
    { "isotropic", make_isotropic },
    { "clustered", make_clustered },
    { "low-rank", make_low_rank },
    { "text", make_text },
};

static void allocate(struct vector_data *d)
{
    d->rows = xcalloc(n_all(d) * d->n_dimensions, sizeof(float));
    d->queries = d->rows + d->n * d->n_dimensions;
}

int vector_data_make(struct vector_data *d, const char *kind)
{
    allocate(d);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].name, kind) == 0)
            return kinds[i].make(d, d->rows);
    return -1;
}

int vector_data_read(struct vector_data *d, const char *path)
{
    FILE *f = fopen(path, "rbe");
    size_t n = n_all(d) * d->n_dimensions, n_read;

    allocate(d);
    if (!f)
        return -1;
    n_read = fread(d->rows, sizeof(float), n, f);
    fclose(f);
    return n_read == n ? 0 : -1;
}

int vector_data_write(const struct vector_data *d, const char *path)
{
    FILE *f = fopen(path, "wbe");
    size_t n = n_all(d) * d->n_dimensions, n_written;

    if (!f)
        return -1;
    n_written = fwrite(d->rows, sizeof(float), n, f);
    return fclose(f) == 0 && n_written == n ? 0 : -1;
}

void vector_data_clear(struct vector_data *d)
{
    free(d->rows);
    d->rows = d->queries = NULL;
}
