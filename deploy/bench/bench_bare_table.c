#include "deploy/bench/bench_bare_table.h"

#include "common/base/memory.h"

#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,fma")))
#else
#define AVX2
#endif

#define AHEAD    24u /* keys, from asking for a slot to reading it, and again for its row */
#define RING     64u
#define MULTIPLE UINT64_C(0x9e3779b97f4a7c15) /* Fibonacci hashing (Knuth 6.4) */
#define INLINE   AVX2 static inline __attribute__((always_inline))

struct bare_slot {
    uint64_t mixed;
    uint32_t row, taken;
};

struct dp_bare_table {
    struct bare_slot *slots;
    char *rows;
    uint64_t capacity;
    uint32_t shift, dim, used;
    size_t stride, rows_bytes;
};

bool dp_bare_table_runs(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

/* No row that fits into a cache line lies in two. */
static size_t stride_of(uint32_t dim)
{
    size_t bytes = (size_t)dim * 12, line = 16;
    while (line < bytes && line < 64)
        line *= 2;
    return (bytes + line - 1) / line * line;
}

static uint64_t capacity_of(uint64_t rows)
{
    uint64_t capacity = 64;
    while (capacity * 3 < rows * 4)
        capacity *= 2;
    return capacity;
}

uint64_t dp_bare_table_bytes(uint64_t rows, uint32_t dim)
{
    return rows * stride_of(dim) + capacity_of(rows) * sizeof(struct bare_slot);
}

struct dp_bare_table *dp_bare_table_new(uint64_t rows, uint32_t dim)
{
    struct dp_bare_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->dim = dim;
    table->stride = stride_of(dim);
    table->rows_bytes = rows * table->stride;
    table->capacity = capacity_of(rows);
    table->shift = 1u + (uint32_t)__builtin_clzll(table->capacity);
    table->slots = dp_pages_alloc(table->capacity * sizeof *table->slots);
    table->rows = dp_pages_alloc(table->rows_bytes);
    if (!table->slots || !table->rows)
        dp_bare_table_free(&table);
    return table;
}

void dp_bare_table_free(struct dp_bare_table **table)
{
    if (!*table)
        return;
    dp_pages_free((*table)->slots, (*table)->capacity * sizeof *(*table)->slots);
    dp_pages_free((*table)->rows, (*table)->rows_bytes);
    free(*table);
    *table = NULL;
}

INLINE struct bare_slot *home_of(const struct dp_bare_table *table, uint64_t mixed)
{
    return &table->slots[mixed * MULTIPLE >> table->shift];
}

/* Its slot, or the free one where it belongs. */
INLINE struct bare_slot *find(const struct dp_bare_table *table, struct bare_slot *at, uint64_t mixed)
{
    while (at->mixed != mixed && at->taken)
        at = at + 1 == table->slots + table->capacity ? table->slots : at + 1;
    return at;
}

AVX2 void dp_bare_table_insert(struct dp_bare_table *table, const uint64_t *mixed, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        *find(table, home_of(table, mixed[i]), mixed[i]) = (struct bare_slot){mixed[i], table->used++, 1};
}

INLINE void copy(const float *from, float *to, uint32_t dim)
{
    uint32_t i = 0;
#if defined(__x86_64__)
    for (; i + 8 <= dim; i += 8)
        _mm256_storeu_ps(to + i, _mm256_loadu_ps(from + i));
#endif
    for (; i < dim; i++)
        to[i] = from[i];
}

INLINE void adam(float *w, const float *g, float rate, uint32_t dim)
{
    const float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    float *m = w + dim, *v = m + dim;
    uint32_t i = 0;
#if defined(__x86_64__)
    for (; i + 8 <= dim; i += 8) {
        __m256 gradient = _mm256_loadu_ps(g + i), weight = _mm256_loadu_ps(w + i);
        __m256 mean = _mm256_mul_ps(_mm256_set1_ps(1 - beta1), gradient);
        __m256 square = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(1 - beta2), gradient), gradient);
        mean = _mm256_fmadd_ps(_mm256_set1_ps(beta1), _mm256_loadu_ps(m + i), mean);
        square = _mm256_fmadd_ps(_mm256_set1_ps(beta2), _mm256_loadu_ps(v + i), square);
        __m256 root = _mm256_add_ps(_mm256_sqrt_ps(square), _mm256_set1_ps(epsilon));
        _mm256_storeu_ps(m + i, mean);
        _mm256_storeu_ps(v + i, square);
        _mm256_storeu_ps(w + i, _mm256_fnmadd_ps(_mm256_set1_ps(rate), _mm256_div_ps(mean, root), weight));
    }
#endif
    for (; i < dim; i++) {
        m[i] = fmaf(beta1, m[i], (1 - beta1) * g[i]);
        v[i] = fmaf(beta2, v[i], (1 - beta2) * g[i] * g[i]);
        w[i] = fmaf(-rate, m[i] / (sqrtf(v[i]) + epsilon), w[i]);
    }
}

/* Three stages over a ring: a slot is asked for, then a row (so many bytes of it), then it is there. */
struct stages {
    struct bare_slot *slot[RING];
    float *row[RING];
    uint32_t asked, found;
};

INLINE float *next_row(const struct dp_bare_table *table, struct stages *s, const uint64_t *mixed, uint32_t n,
                       uint32_t i, size_t bytes)
{
    for (; s->asked < n && s->asked < i + 2 * AHEAD; s->asked++) {
        s->slot[s->asked % RING] = home_of(table, mixed[s->asked]);
        __builtin_prefetch(s->slot[s->asked % RING]);
    }
    for (; s->found < n && s->found < i + AHEAD; s->found++) {
        const struct bare_slot *slot = find(table, s->slot[s->found % RING], mixed[s->found]);
        char *row = table->rows + slot->row * table->stride;
        s->row[s->found % RING] = (float *)(void *)row;
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(row + at);
    }
    return s->row[i % RING];
}

AVX2 void dp_bare_table_pull(const struct dp_bare_table *table, const uint64_t *mixed, uint32_t n, float *to)
{
    struct stages stages = {.asked = 0};
    const uint32_t dim = table->dim;
    for (uint32_t i = 0; i < n; i++, to += dim)
        copy(next_row(table, &stages, mixed, n, i, (size_t)dim * 4), to, dim);
}

AVX2 void dp_bare_table_push(struct dp_bare_table *table, const uint64_t *mixed, uint32_t n,
                             const float *gradients, float rate)
{
    struct stages stages = {.asked = 0};
    const uint32_t dim = table->dim;
    for (uint32_t i = 0; i < n; i++, gradients += dim)
        adam(next_row(table, &stages, mixed, n, i, (size_t)dim * 12), gradients, rate, dim);
}
