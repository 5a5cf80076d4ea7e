#include "tests/unit/worker/allreduce/fake_reducer.h"

#include "tests/lib/test.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fake_rank {
    struct fake_reducer *fake;
    uint32_t rank;
};

struct fake_reducer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t ranks, here;
    uint64_t generation; /* how often all have come to a barrier */
    bool failed;
    void (*meets)(void *of, uint64_t number, uint64_t limit_ns);
    void *of;
    uint64_t met, sums, spoilt_from;
    uint32_t spoilt; /* rank; UINT32_MAX: none */
    const void *given[FAKE_RANKS_MAX];
    size_t size[FAKE_RANKS_MAX];
    struct fake_rank rank[FAKE_RANKS_MAX];
};

static enum dp_status barrier(struct fake_reducer *f, struct dp_error *err)
{
    (void)pthread_mutex_lock(&f->lock);
    uint64_t generation = f->generation;
    if (++f->here == f->ranks) {
        f->here = 0;
        f->generation++;
        (void)pthread_cond_broadcast(&f->changed);
    }
    while (f->generation == generation && !f->failed)
        (void)pthread_cond_wait(&f->changed, &f->lock);
    bool met = f->generation != generation;
    (void)pthread_mutex_unlock(&f->lock);
    return met ? DP_OK : dp_fail(err, DP_TIMEOUT, "another rank has failed");
}

static enum dp_status meet(void *self, uint64_t limit_ns, struct dp_error *err)
{
    struct fake_rank *r = self;
    struct fake_reducer *f = r->fake;
    if (r->rank == 0 && f->meets)
        f->meets(f->of, f->met++, limit_ns);
    return barrier(f, err);
}

/* All see what each has given until all have seen it. */
static enum dp_status give(struct fake_rank *r, const void *bytes, size_t size, struct dp_error *err)
{
    r->fake->given[r->rank] = bytes;
    r->fake->size[r->rank] = size;
    return barrier(r->fake, err);
}

static enum dp_status sum(void *self, float *values, size_t n, struct dp_error *err)
{
    struct fake_rank *r = self;
    struct fake_reducer *f = r->fake;
    float *all = malloc(n * sizeof *all);
    assert_non_null(all);
    enum dp_status st = give(r, values, n, err);
    for (uint32_t w = 0; st == DP_OK && w < f->ranks; w++)
        for (size_t i = 0; i < n; i++)
            all[i] = w == 0 ? ((const float *)f->given[w])[i] : all[i] + ((const float *)f->given[w])[i];
    bool spoils = r->rank == f->spoilt && f->sums >= f->spoilt_from;
    for (size_t i = 0; st == DP_OK && spoils && i + 2 < n; i++) /* the last two: who stops, who diverged */
        all[i] = nextafterf(all[i], 1e30f);
    if (st == DP_OK)
        st = barrier(f, err);
    if (st == DP_OK)
        memcpy(values, all, n * sizeof *all);
    free(all);
    if (r->rank == 0)
        f->sums++;
    return st == DP_OK ? barrier(f, err) : st;
}

static enum dp_status least(void *self, uint64_t *values, size_t n, struct dp_error *err)
{
    struct fake_rank *r = self;
    uint64_t all[2] = {UINT64_MAX, UINT64_MAX};
    enum dp_status st = give(r, values, n, err);
    if (n > 2)
        return dp_fail(err, DP_INTERNAL, "more than two");
    for (uint32_t w = 0; st == DP_OK && w < r->fake->ranks; w++)
        for (size_t i = 0; i < n; i++)
            all[i] = ((const uint64_t *)r->fake->given[w])[i] < all[i]
                         ? ((const uint64_t *)r->fake->given[w])[i]
                         : all[i];
    if (st == DP_OK)
        st = barrier(r->fake, err);
    memcpy(values, all, n * sizeof *all);
    return st;
}

static enum dp_status gather(void *self, const void *bytes, size_t size, struct dp_gathered *all,
                             struct dp_error *err)
{
    struct fake_rank *r = self;
    enum dp_status st = give(r, bytes, size, err);
    for (uint32_t w = 0; st == DP_OK && all && w < r->fake->ranks; w++) {
        all[w].size = r->fake->size[w];
        all[w].bytes = malloc(all[w].size + 1);
        if (all[w].bytes)
            memcpy(all[w].bytes, r->fake->given[w], all[w].size);
    }
    return st == DP_OK ? barrier(r->fake, err) : st;
}

struct fake_reducer *fake_reducer_open(uint32_t ranks,
                                       void (*meets)(void *of, uint64_t number, uint64_t limit_ns), void *of)
{
    struct fake_reducer *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_true(ranks <= FAKE_RANKS_MAX);
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->changed, NULL);
    f->ranks = ranks;
    f->meets = meets;
    f->of = of;
    f->spoilt = UINT32_MAX;
    for (uint32_t w = 0; w < ranks; w++)
        f->rank[w] = (struct fake_rank){f, w};
    return f;
}

void fake_reducer_close(struct fake_reducer *f)
{
    (void)pthread_cond_destroy(&f->changed);
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

struct dp_reducer fake_reducer_of(struct fake_reducer *f, uint32_t rank)
{
    static const struct dp_reducer_ops ops = {.meet = meet, .sum = sum, .least = least, .gather = gather};
    return (struct dp_reducer){
        .ops = &ops, .self = &f->rank[rank], .rank = rank, .ranks = f->ranks, .how = "threads"};
}

void fake_reducer_spoil(struct fake_reducer *f, uint32_t rank, uint64_t from)
{
    f->spoilt = rank;
    f->spoilt_from = from;
}

void fake_reducer_ended(struct fake_reducer *f)
{
    (void)pthread_mutex_lock(&f->lock);
    f->failed = true;
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
}
