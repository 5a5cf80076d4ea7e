#include "tests/lib/fake_copier.h"

#include <stdlib.h>

#define JOBS_MAX 64u

struct dp_fake_copier {
    struct dp_copy_job *waiting[JOBS_MAX], *ended[JOBS_MAX];
    uint32_t waits, ends, submitted;
    bool at_once;
};

struct dp_fake_copier *dp_fake_copier_new(void)
{
    struct dp_fake_copier *fake = calloc(1, sizeof *fake);
    DP_ASSERT(fake);
    return fake;
}

void dp_fake_copier_free(struct dp_fake_copier **fake)
{
    if (!*fake)
        return;
    for (uint32_t i = 0; i < (*fake)->waits; i++)
        dp_copy_job_free(&(*fake)->waiting[i]);
    for (uint32_t i = 0; i < (*fake)->ends; i++)
        dp_copy_job_free(&(*fake)->ended[i]);
    free(*fake);
    *fake = NULL;
}

static void submit(void *self, struct dp_copy_job *job)
{
    struct dp_fake_copier *fake = self;
    DP_ASSERT(fake->waits < JOBS_MAX && job->after <= job->lsn && job->lsn <= job->until);
    fake->waiting[fake->waits++] = job;
    fake->submitted++;
    if (fake->at_once)
        dp_fake_copier_end(fake, fake->waits - 1, DP_OK);
}

static struct dp_copy_job *completed(void *self)
{
    struct dp_fake_copier *fake = self;
    if (fake->ends == 0)
        return NULL;
    struct dp_copy_job *job = fake->ended[0];
    fake->ends--;
    for (uint32_t i = 0; i < fake->ends; i++)
        fake->ended[i] = fake->ended[i + 1];
    return job;
}

static void cancel(void *self, struct dp_copy_job *job)
{
    atomic_store(&job->cancelled, true);
}

struct dp_copier dp_fake_copier_seam(struct dp_fake_copier *fake)
{
    return (struct dp_copier){submit, completed, cancel, fake};
}

uint32_t dp_fake_copier_waiting(const struct dp_fake_copier *fake)
{
    return fake->waits;
}

struct dp_copy_job *dp_fake_copier_job(const struct dp_fake_copier *fake, uint32_t at)
{
    DP_ASSERT(at < fake->waits);
    return fake->waiting[at];
}

void dp_fake_copier_end(struct dp_fake_copier *fake, uint32_t at, enum dp_status status)
{
    struct dp_copy_job *job = dp_fake_copier_job(fake, at);
    DP_ASSERT(fake->ends < JOBS_MAX);
    fake->waits--;
    for (uint32_t i = at; i < fake->waits; i++)
        fake->waiting[i] = fake->waiting[i + 1];
    job->status = atomic_load(&job->cancelled) ? DP_STOPPING : status;
    if (job->status != DP_OK)
        (void)dp_fail(&job->error, job->status, "the copy was made to fail");
    else {
        job->manifest = malloc(32);
        DP_ASSERT(job->manifest);
        (void)snprintf(job->manifest, 32, "{\"shard\": %" PRIu32 "}", job->shard);
    }
    fake->ended[fake->ends++] = job;
}

void dp_fake_copier_at_once(struct dp_fake_copier *fake, bool at_once)
{
    fake->at_once = at_once;
}

uint32_t dp_fake_copier_submitted(const struct dp_fake_copier *fake)
{
    return fake->submitted;
}
