#include "vector/engine/sketch.h"
#include "base/limits.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGION_UNITS = 16, /* whose memory is allocated together, in large pages but for the first region of a slab */
    REGIONS = LIMIT_VECTOR_ROWS / SKETCH_UNIT_ROWS / REGION_UNITS,
    COARSE_EIGHTHS = 3, /* of the signs */
    LANES = 8,          /* parallel sums, which a compiler may keep in registers */
};

struct sketch_region {
    uint8_t *memory; /* owned: the coarse parts of all units, the fine ones, then their centres */
    struct sketch_unit units[REGION_UNITS];
};

bool sketch_fits(size_t n_dimensions)
{
    return n_dimensions >= SKETCH_LEAST_DIMENSIONS;
}

static size_t n_signs_for(size_t n_dimensions, size_t width)
{
    size_t wanted = n_dimensions >= SKETCH_WIDE_DIMENSIONS ? width / 2 : width;

    return (wanted + ROTATION_MULTIPLE - 1) / ROTATION_MULTIPLE * ROTATION_MULTIPLE;
}

static size_t n_coarse_for(size_t n_signs)
{
    return (n_signs * COARSE_EIGHTHS / 8 + ROTATION_MULTIPLE - 1) / ROTATION_MULTIPLE * ROTATION_MULTIPLE;
}

static size_t block_bytes_for(size_t n_signs)
{
    size_t n_coarse = n_coarse_for(n_signs);

    return sketch_part_bytes(n_coarse) + sketch_part_bytes(n_signs - n_coarse);
}

/* The deviation of an error, as a share of factor * |v - c|: with all signs sqrt(1 - 2 / pi). */
static float spread_of(double share)
{
    return (float)(sqrt(share) * sqrt(1 - share * M_2_PI));
}

struct sketch_set *sketch_set_new(size_t n_dimensions, atomic_size_t *account)
{
    struct sketch_set *set = xcalloc(1, sizeof(*set));

    rotation_init(&set->rotation, n_dimensions);
    set->n_dimensions = n_dimensions;
    set->n_signs = n_signs_for(n_dimensions, set->rotation.width);
    set->n_coarse = n_coarse_for(set->n_signs);
    set->coarse_bytes = sketch_part_bytes(set->n_coarse);
    set->fine_bytes = sketch_part_bytes(set->n_signs - set->n_coarse);
    set->spread = spread_of((double)set->n_signs / (double)set->rotation.width);
    set->coarse_spread = spread_of((double)set->n_coarse / (double)set->rotation.width);
    set->regions = xcalloc(REGIONS, sizeof(struct sketch_region *));
    set->account = account;
    return set;
}

static size_t unit_bytes(const struct sketch_set *set)
{
    return SKETCH_UNIT_BLOCKS * (set->coarse_bytes + set->fine_bytes) + set->rotation.width * sizeof(float);
}

static size_t region_bytes(const struct sketch_set *set)
{
    return REGION_UNITS * unit_bytes(set);
}

struct sketch_set *sketch_set_free(struct sketch_set *set)
{
    if (!set)
        return NULL;
    atomic_fetch_sub(set->account, set->n * unit_bytes(set));
    for (size_t i = 0; i < REGIONS && set->regions[i]; i++) {
        slab_unmap(set->regions[i]->memory, region_bytes(set));
        free(set->regions[i]);
    }
    free(set->regions);
    rotation_clear(&set->rotation);
    free(set);
    return NULL;
}

const struct sketch_unit *sketch_unit_of(const struct sketch_set *set, size_t unit)
{
    return &set->regions[unit / REGION_UNITS]->units[unit % REGION_UNITS];
}

struct sketch_density *sketch_density_of(struct sketch_set *set, size_t n_wanted)
{
    size_t i = 0;

    for (size_t most = 16; n_wanted > most && i < SKETCH_DENSITIES - 1; most *= 4)
        i++;
    return &set->densities[i];
}

/* --- sums --- */

static float add_lanes(const float lanes[LANES])
{
    float sum = 0;

    for (size_t i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

float sketch_dot(const float *a, const float *b, size_t n)
{
    float lanes[LANES] = { 0 };

    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] += a[i + j] * b[i + j];
    return add_lanes(lanes);
}

/* --- a unit --- */

/* What is made of the rows of one unit. */
struct making {
    const struct sketch_set *set;
    const struct slab *slab;
    size_t first; /* slot */
    uint8_t *coarse, *fine;
    float *centre, *row; /* row: scratch, the rotated row and then its difference to the centre */
    struct sketch_unit *unit;
};

static void load_row(const struct making *m, size_t slot)
{
    const uint8_t *codes = slab_codes(m->slab, slot);
    float scale = slab_scale(m->slab, slot);
    size_t n = m->set->n_dimensions;

    for (size_t i = 0; i < n; i++)
        m->row[i] = (float)((int)codes[i] - KERNEL_ZERO) * scale;
    memset(m->row + n, 0, (m->set->rotation.width - n) * sizeof(float));
}

static void make_centre(struct making *m)
{
    size_t width = m->set->rotation.width;

    memset(m->centre, 0, width * sizeof(float));
    for (size_t i = 0; i < SKETCH_UNIT_ROWS; i++) {
        load_row(m, m->first + i);
        for (size_t j = 0; j < width; j++)
            m->centre[j] += m->row[j];
    }
    for (size_t j = 0; j < width; j++)
        m->centre[j] /= SKETCH_UNIT_ROWS;
    rotation_apply(&m->set->rotation, m->centre);
    m->unit->centre_square = sketch_dot(m->centre, m->centre, width);
}

/* Sums over the squares of a row's difference r to the centre c, and over its product with c. */
struct row_sums {
    float r_square, r_c;
};

static struct row_sums sum_row(const float *r, const float *centre, size_t width)
{
    float squares[LANES] = { 0 }, with_centre[LANES] = { 0 };

    for (size_t i = 0; i < width; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            squares[j] += r[i + j] * r[i + j];
            with_centre[j] += r[i + j] * centre[i + j];
        }
    return (struct row_sums){ add_lanes(squares), add_lanes(with_centre) };
}

/* Sums over the products of r and c with the signs of r. */
struct sign_sums {
    float s_r, s_c;
};

static struct sign_sums sum_signs(const float *r, const float *centre, size_t from, size_t to)
{
    float lengths[LANES] = { 0 }, signs[LANES] = { 0 };

    for (size_t i = from; i < to; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            lengths[j] += fabsf(r[i + j]);
            signs[j] += r[i + j] > 0 ? centre[i + j] : -centre[i + j];
        }
    return (struct sign_sums){ add_lanes(lengths), add_lanes(signs) };
}

static void write_signs(const float *row, size_t n_signs, uint8_t *codes)
{
    for (size_t i = 0; i < n_signs; i += 8) {
        unsigned bits = 0;

        for (size_t j = 0; j < 8; j++)
            bits |= (unsigned)(row[i + j] > 0) << j;
        codes[i / 8 * SKETCH_BLOCK_ROWS] = (uint8_t)bits;
    }
}

/* The nearest number whose lower half is zero, as its upper half. */
static uint16_t upper_half(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Returns the factor. The offset is that of the factor as it is stored. */
static float write_factor(uint8_t *part, size_t n_signs, size_t lane, struct row_sums row, struct sign_sums signs)
{
    uint16_t *factors = (uint16_t *)(void *)(part + sketch_code_bytes(n_signs));
    uint16_t factor = upper_half(signs.s_r > 0 ? row.r_square / signs.s_r : 0);

    factors[lane] = factor;
    factors[SKETCH_BLOCK_ROWS + lane] = upper_half(row.r_c - sketch_float(factor) * signs.s_c);
    return sketch_float(factor);
}

static void note_extremes(struct sketch_unit *u, float square, float radius, float factor, float scale)
{
    u->most_square = fmaxf(u->most_square, square);
    u->least_radius = fminf(u->least_radius, radius);
    u->most_radius = fmaxf(u->most_radius, radius);
    u->most_scale = fmaxf(u->most_scale, scale);
    u->mean_factor += factor / SKETCH_UNIT_ROWS;
}

/* Writes row i, whose rotated difference to the centre is m->row. Returns the factor of all signs. */
static float write_row(const struct making *m, size_t i, struct row_sums sums)
{
    const struct sketch_set *set = m->set;
    size_t block = i / SKETCH_BLOCK_ROWS, at = i % SKETCH_BLOCK_ROWS;
    uint8_t *coarse = m->coarse + block * set->coarse_bytes, *fine = m->fine + block * set->fine_bytes;
    struct sign_sums first = sum_signs(m->row, m->centre, 0, set->n_coarse);
    struct sign_sums all = sum_signs(m->row, m->centre, set->n_coarse, set->n_signs);

    all = (struct sign_sums){ all.s_r + first.s_r, all.s_c + first.s_c };
    write_signs(m->row, set->n_coarse, coarse + at);
    write_signs(m->row + set->n_coarse, set->n_signs - set->n_coarse, fine + at);
    write_factor(coarse, set->n_coarse, sketch_lane(at), sums, first);
    return write_factor(fine, set->n_signs - set->n_coarse, sketch_lane(at), sums, all);
}

static void sketch_row(struct making *m, size_t i)
{
    const struct sketch_set *set = m->set;
    size_t width = set->rotation.width;
    struct row_sums sums;
    float square;

    load_row(m, m->first + i);
    square = sketch_dot(m->row, m->row, width);
    rotation_apply(&set->rotation, m->row);
    for (size_t j = 0; j < width; j++)
        m->row[j] -= m->centre[j];
    sums = sum_row(m->row, m->centre, width);
    note_extremes(m->unit, square, sqrtf(sums.r_square), write_row(m, i, sums), slab_scale(m->slab, m->first + i));
}

static int add_region(struct sketch_set *set, size_t region, struct err *e)
{
    void *memory = slab_map(region_bytes(set), region > 0);

    if (!memory)
        return err_set(e, -ENOMEM, "OUT_OF_MEMORY", "there is no memory for sketches of vectors");
    set->regions[region] = xcalloc(1, sizeof(struct sketch_region));
    set->regions[region]->memory = memory;
    return 0;
}

/* Unit i of a region, as the parts of its memory. */
struct parts {
    uint8_t *coarse, *fine;
    float *centre;
};

static struct parts parts_of(const struct sketch_set *set, const struct sketch_region *region, size_t i)
{
    size_t coarse = SKETCH_UNIT_BLOCKS * set->coarse_bytes, fine = SKETCH_UNIT_BLOCKS * set->fine_bytes;
    float *centres = (float *)(void *)(region->memory + REGION_UNITS * (coarse + fine));

    return (struct parts){ region->memory + i * coarse, region->memory + REGION_UNITS * coarse + i * fine,
                           centres + i * set->rotation.width };
}

/* After each block of rows. */
static bool goes_on(struct pace *pace, size_t row)
{
    return row % SKETCH_BLOCK_ROWS != 0 || pace_goes_on(pace);
}

/* false: the pace does not go on. */
static bool make_unit(struct sketch_set *set, const struct slab *slab, struct pace *pace)
{
    struct sketch_region *region = set->regions[set->n / REGION_UNITS];
    size_t width = set->rotation.width, i = set->n % REGION_UNITS, row;
    struct parts parts = parts_of(set, region, i);
    struct making m = { .set = set,
                        .slab = slab,
                        .first = set->n * SKETCH_UNIT_ROWS,
                        .coarse = parts.coarse,
                        .fine = parts.fine,
                        .centre = parts.centre,
                        .row = xcalloc(width, sizeof(float)),
                        .unit = &region->units[i] };

    *m.unit = (struct sketch_unit){ .coarse = m.coarse, .fine = m.fine, .centre = m.centre, .least_radius = INFINITY };
    make_centre(&m);
    for (row = 0; row < SKETCH_UNIT_ROWS && goes_on(pace, row); row++)
        sketch_row(&m, row);
    free(m.row);
    return row == SKETCH_UNIT_ROWS;
}

/* The region of the next unit. */
static int make_room(struct sketch_set *set, struct err *e)
{
    size_t region = set->n / REGION_UNITS;

    return set->regions[region] ? 0 : add_region(set, region, e);
}

static void count_unit(struct sketch_set *set)
{
    set->n++;
    atomic_fetch_add(set->account, unit_bytes(set));
}

int sketch_add(struct sketch_set *set, const struct slab *slab, struct pace *pace, struct err *e)
{
    int r = make_room(set, e);

    if (r < 0)
        return r;
    if (!make_unit(set, slab, pace))
        return -ECANCELED;
    count_unit(set);
    return 0;
}

/* --- images --- */

/* The numbers of a unit, before the parts of its blocks and its centre. */
struct image_head {
    float centre_square, most_square, least_radius, most_radius, mean_factor, most_scale;
};

size_t sketch_image_bytes(size_t n_dimensions)
{
    size_t width = rotation_width(n_dimensions), n_signs = n_signs_for(n_dimensions, width);

    if (!sketch_fits(n_dimensions))
        return 0;
    return sizeof(struct image_head) + SKETCH_UNIT_BLOCKS * block_bytes_for(n_signs) + width * sizeof(float);
}

static uint8_t *append(uint8_t *to, const void *bytes, size_t n)
{
    memcpy(to, bytes, n);
    return to + n;
}

void sketch_save(const struct sketch_set *set, size_t unit, uint8_t *ret_image)
{
    const struct sketch_unit *u = sketch_unit_of(set, unit);
    struct image_head head = { u->centre_square, u->most_square, u->least_radius,
                               u->most_radius,   u->mean_factor, u->most_scale };

    ret_image = append(ret_image, &head, sizeof(head));
    ret_image = append(ret_image, u->coarse, SKETCH_UNIT_BLOCKS * set->coarse_bytes);
    ret_image = append(ret_image, u->fine, SKETCH_UNIT_BLOCKS * set->fine_bytes);
    append(ret_image, u->centre, set->rotation.width * sizeof(float));
}

static bool is_image(const struct image_head *h)
{
    return isfinite(h->centre_square) && isfinite(h->most_square) && isfinite(h->least_radius) &&
           isfinite(h->most_radius) && isfinite(h->mean_factor) && isfinite(h->most_scale);
}

static const uint8_t *take(const uint8_t *from, void *bytes, size_t n)
{
    memcpy(bytes, from, n);
    return from + n;
}

/* Fills the next unit, for which there is room. */
static void restore_unit(struct sketch_set *set, const struct image_head *h, const uint8_t *image)
{
    struct sketch_region *region = set->regions[set->n / REGION_UNITS];
    struct parts parts = parts_of(set, region, set->n % REGION_UNITS);

    image = take(image, parts.coarse, SKETCH_UNIT_BLOCKS * set->coarse_bytes);
    image = take(image, parts.fine, SKETCH_UNIT_BLOCKS * set->fine_bytes);
    take(image, parts.centre, set->rotation.width * sizeof(float));
    region->units[set->n % REGION_UNITS] = (struct sketch_unit){ .centre_square = h->centre_square,
                                                                 .most_square = h->most_square,
                                                                 .least_radius = h->least_radius,
                                                                 .most_radius = h->most_radius,
                                                                 .mean_factor = h->mean_factor,
                                                                 .most_scale = h->most_scale,
                                                                 .coarse = parts.coarse,
                                                                 .fine = parts.fine,
                                                                 .centre = parts.centre };
}

int sketch_restore(struct sketch_set *set, const uint8_t *image)
{
    struct image_head head;
    int r;

    image = take(image, &head, sizeof(head));
    if (!is_image(&head))
        return -EBADMSG;
    r = make_room(set, NULL);
    if (r < 0)
        return r;
    restore_unit(set, &head, image);
    count_unit(set);
    return 0;
}

/* --- queries --- */

enum { MOST_SIGNS = 6 /* of a table */ };

/* The signs of table t. Returns how many. */
static size_t signs_of_table(enum sketch_tables tables, size_t t, size_t ret[MOST_SIGNS])
{
    static const uint8_t spare[MOST_SIGNS] = { 6, 7, 14, 15, 22, 23 };
    size_t n = tables == SKETCH_TABLES_OF_64 ? 6 : 4;

    for (size_t i = 0; i < n; i++)
        if (tables == SKETCH_TABLES_OF_16)
            ret[i] = 4 * t + i;
        else
            ret[i] = t / 4 * 24 + (t % 4 < 3 ? t % 4 * 8 + i : spare[i]);
    return n;
}

/* The sums of the kernels stay below 2^8 and 2^16 with entries up to this. */
static float most_entry(enum sketch_tables tables)
{
    return tables == SKETCH_TABLES_OF_64 ? 63 : 31;
}

/* Sets delta and what is least: entries are rounded to multiples of delta. */
static void choose_delta(struct sketch_query *q, enum sketch_tables tables, size_t n_tables, size_t n_coarse)
{
    size_t signs[MOST_SIGNS];
    float most = 0;

    q->least = q->coarse_least = 0;
    for (size_t t = 0; t < n_tables; t++) {
        size_t n = signs_of_table(tables, t, signs);
        float sum = 0;

        for (size_t i = 0; i < n; i++)
            sum += fabsf(q->numbers[signs[i]]);
        q->least += sum;
        q->coarse_least += t < n_coarse ? sum : 0;
        most = fmaxf(most, sum);
    }
    q->delta = most > 0 ? 2 * most / most_entry(tables) : 1;
}

/* Entry k: the inner product with the signs that are the bits of k, above the least that is possible. With fewer than
 * six signs the table is repeated. */
static void fill_table(const struct sketch_query *q, const size_t *signs, size_t n, uint8_t *table)
{
    float entries[SKETCH_TABLE_BYTES] = { 0.5F }, share = 1 / q->delta;

    for (size_t i = 0; i < n; i++)
        entries[0] += (fabsf(q->numbers[signs[i]]) - q->numbers[signs[i]]) * share;
    for (size_t i = 0; i < MOST_SIGNS; i++) {
        float step = i < n ? 2 * q->numbers[signs[i]] * share : 0;

        for (size_t k = 0; k < (size_t)1 << i; k++)
            entries[((size_t)1 << i) + k] = entries[k] + step;
    }
    for (size_t k = 0; k < SKETCH_TABLE_BYTES; k++)
        table[k] = (uint8_t)(entries[k] > 0 ? (int)entries[k] : 0);
}

void sketch_query_init(struct sketch_query *q, const struct sketch_set *set, enum sketch_tables tables,
                       const struct quant_query *query)
{
    size_t signs[MOST_SIGNS], n_of_table = tables == SKETCH_TABLES_OF_64 ? 6 : 4;
    size_t n_tables = set->n_signs / n_of_table;

    q->numbers = xcalloc(set->rotation.width, sizeof(float));
    q->memory = xcalloc(n_tables + 1, SKETCH_TABLE_BYTES);
    q->tables = q->memory + (SKETCH_TABLE_BYTES - (uintptr_t)q->memory % SKETCH_TABLE_BYTES) % SKETCH_TABLE_BYTES;
    for (size_t i = 0; i < set->n_dimensions; i++)
        q->numbers[i] = (float)query->codes[i] * query->scale;
    q->square = sketch_dot(q->numbers, q->numbers, set->rotation.width);
    rotation_apply(&set->rotation, q->numbers);
    choose_delta(q, tables, n_tables, set->n_coarse / n_of_table);
    for (size_t t = 0; t < n_tables; t++) {
        size_t n = signs_of_table(tables, t, signs);

        fill_table(q, signs, n, q->tables + t * SKETCH_TABLE_BYTES);
    }
}

void sketch_query_clear(struct sketch_query *q)
{
    free(q->numbers);
    free(q->memory);
    *q = (struct sketch_query){ 0 };
}
