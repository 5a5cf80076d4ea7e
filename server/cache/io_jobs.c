#include "server/cache/io_jobs.h"

#include "common/base/bytes.h"

#include <stdlib.h>

struct dp_io_job *dp_io_job_new(void (*done)(void *context, struct dp_io_job *job), void *context,
                                void *memory)
{
    struct dp_io_job *job = calloc(1, sizeof *job);
    if (!job) {
        free(memory);
        return NULL;
    }
    job->done = done;
    job->context = context;
    job->memory = memory;
    job->store.owner = job;
    return job;
}

void dp_io_job_free(struct dp_io_job *job)
{
    if (!job)
        return;
    free(job->memory);
    free(job);
}

struct dp_io_job *dp_io_rows_new(enum dp_store_job_kind kind, uint32_t most, size_t bytes,
                                 void (*done)(void *context, struct dp_io_job *job), void *context,
                                 struct dp_io_rows *out)
{
    char *block = malloc(most * DP_IO_ROW_BYTES + bytes);
    struct dp_io_job *job = block ? dp_io_job_new(done, context, block) : NULL;
    if (!job)
        return NULL;
    *out = (struct dp_io_rows){.job = job, .keys = (void *)block};
    out->rows = (void *)(out->keys + most);
    out->row_bytes = (void *)(out->rows + most);
    out->next = (char *)(out->row_bytes + most);
    job->store.kind = kind;
    job->store.keys = out->keys;
    job->store.rows = out->rows;
    job->store.row_bytes = out->row_bytes;
    job->store.found = (void *)(out->next + bytes);
    return job;
}

enum dp_status dp_io_jobs_submit(struct dp_io_jobs *jobs, struct dp_io_job *job)
{
    DP_ASSERT(job->done && job->store.owner == job);
    enum dp_status st = jobs->store->submit(jobs->store->self, &job->store);
    jobs->under_way += st == DP_OK;
    return st;
}

enum dp_status dp_io_jobs_submit_or_free(struct dp_io_jobs *jobs, struct dp_io_job *job)
{
    enum dp_status st = dp_io_jobs_submit(jobs, job);
    if (st != DP_OK)
        dp_io_job_free(job);
    return st;
}

enum dp_status dp_io_jobs_put(struct dp_io_jobs *jobs, const char *key, const void *bytes, size_t size,
                              void (*done)(void *context, struct dp_io_job *job), void *context)
{
    struct dp_store_mark *mark = calloc(1, sizeof *mark + size);
    struct dp_io_job *job = mark ? dp_io_job_new(done, context, mark) : NULL;
    if (!job)
        return DP_NOMEM;
    memcpy(mark + 1, bytes, size);
    *mark =
        (struct dp_store_mark){.key = key, .key_bytes = strlen(key), .value = mark + 1, .value_bytes = size};
    job->store.kind = DP_STORE_MARKS;
    job->store.count = 1;
    job->store.marks = mark;
    return dp_io_jobs_submit_or_free(jobs, job);
}

enum dp_status dp_io_jobs_put_number(struct dp_io_jobs *jobs, const char *key, uint64_t number,
                                     void (*done)(void *context, struct dp_io_job *job), void *context)
{
    char value[8];
    dp_store_u64le(value, number);
    return dp_io_jobs_put(jobs, key, value, sizeof value, done, context);
}

void dp_io_jobs_take(struct dp_io_jobs *jobs)
{
    for (struct dp_store_job *done = jobs->store->completed(jobs->store->self); done;
         done = jobs->store->completed(jobs->store->self)) {
        struct dp_io_job *job = done->owner;
        DP_ASSERT(jobs->under_way > 0 && &job->store == done);
        jobs->under_way--;
        job->done(job->context, job);
    }
}

void dp_io_jobs_wait(struct dp_io_jobs *jobs)
{
    if (jobs->under_way > 0)
        jobs->store->wait(jobs->store->self);
    dp_io_jobs_take(jobs);
}

void dp_io_jobs_clear(struct dp_io_jobs *jobs)
{
    for (struct dp_store_job *done;
         jobs->under_way > 0 && (done = jobs->store->completed(jobs->store->self));) {
        jobs->under_way--;
        dp_io_job_free(done->owner);
    }
    DP_ASSERT(jobs->under_way == 0); /* the store was stopped before the shard is closed */
}
