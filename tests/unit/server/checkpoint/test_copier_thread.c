/* The real copier. Goal: jobs of several shards come back to the shard that submitted them, each once and woken for; a cancelled one
 * soon, whether it waits or runs; a shard can be removed at any time; the tables are those of the link's RocksDB.
 * Method: the shards of an area; a job of one byte a second runs until it is cancelled. */
#include "server/checkpoint/copier_thread.h"

#include "server/durable/table_mark.h"
#include "tests/unit/server/checkpoint/area.h"
#include "tests/unit/server/store/form.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S    20
#define SLOW_RATE 20000u /* bytes a second */

struct woken {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t times;
};

static void wake(void *context)
{
    struct woken *woken = context;
    (void)pthread_mutex_lock(&woken->lock);
    woken->times++;
    (void)pthread_cond_signal(&woken->changed);
    (void)pthread_mutex_unlock(&woken->lock);
}

static void await(struct woken *woken, uint32_t times)
{
    struct timespec until;
    int waited = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    (void)pthread_mutex_lock(&woken->lock);
    while (woken->times < times && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&woken->changed, &woken->lock, &until);
    (void)pthread_mutex_unlock(&woken->lock);
    assert_int_equal(waited, 0);
}

struct bed {
    struct area *area;
    struct dp_copier_thread *thread;
    struct dp_copier copier[AREA_SHARDS];
    struct woken woken[AREA_SHARDS];
    struct dp_error err;
};

static enum dp_status no_tables(void *context, const char *link, struct dp_manifest_tables *out,
                                struct dp_error *err)
{
    return DP_OK;
}

static void bed_init(struct bed *bed)
{
    *bed = (struct bed){.area = area_new()};
    assert_int_equal(dp_copier_thread_open(&bed->thread, &bed->err), DP_OK);
    for (uint32_t i = 0; i < AREA_SHARDS; i++) {
        bed->woken[i] = (struct woken){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
        const struct dp_copier_thread_place place = {
            {.directory = bed->area->shard[i], .tables = no_tables}, wake, &bed->woken[i]};
        assert_int_equal(dp_copier_thread_add(bed->thread, &place, &bed->copier[i], &bed->err), DP_OK);
    }
    assert_int_equal(dp_checkpoint_begin(bed->area->directory, bed->area->order, &bed->err), DP_OK);
}

static void bed_clear(struct bed *bed)
{
    for (uint32_t i = 0; i < AREA_SHARDS; i++)
        dp_copier_thread_remove(&bed->copier[i]);
    dp_copier_thread_close(&bed->thread);
    area_free(bed->area);
}

static struct dp_copy_job *submit(struct bed *bed, uint32_t shard, uint64_t rate)
{
    struct dp_copy_job *job = area_job(bed->area, shard);
    job->rate_bytes = rate;
    bed->copier[shard].submit(bed->copier[shard].self, job);
    return job;
}

static void await_begin(const struct dp_copy_job *job)
{
    const time_t until = time(NULL) + WAIT_S;
    while (job->done_bytes == 0 && time(NULL) < until)
        (void)sched_yield();
    assert_true(job->done_bytes > 0);
}

static void expect(struct bed *bed, uint32_t shard, struct dp_copy_job *job, enum dp_status status)
{
    struct dp_copy_job *got = bed->copier[shard].completed(bed->copier[shard].self);
    assert_ptr_equal(got, job);
    if (job->status != status)
        fail_msg("%s", job->error.text);
    assert_int_equal(job->manifest != NULL, status == DP_OK);
    dp_copy_job_free(&got);
}

static void jobs_come_back_to_their_shard(void **state)
{
    struct bed bed;
    struct dp_manifest_shard shard;
    struct dp_copy_job *job[AREA_SHARDS];
    bed_init(&bed);
    for (uint32_t i = 0; i < AREA_SHARDS; i++)
        job[i] = submit(&bed, i, 0);
    for (uint32_t i = 0; i < AREA_SHARDS; i++) {
        await(&bed.woken[i], 1);
        assert_non_null(job[i]->manifest);
        assert_int_equal(
            dp_manifest_shard_parse(job[i]->manifest, strlen(job[i]->manifest), &shard, &bed.err), DP_OK);
        assert_int_equal(shard.index, i);
        assert_true(job[i]->done_bytes > 100000 && job[i]->done_bytes <= job[i]->all_bytes);
        assert_true(job[i]->has_tail);
        dp_manifest_shard_clear(&shard);
        expect(&bed, i, job[i], DP_OK);
        assert_null(bed.copier[i].completed(bed.copier[i].self));
    }
    bed_clear(&bed);
}

/* Asked for at the end of each job's files. */
struct gate {
    atomic_bool open;
    atomic_uint asked;
    const struct dp_copy_job *job[2];
    atomic_bool tails; /* whether both had theirs when the second one's files were copied */
};

static enum dp_status wait_at_gate(void *context, const char *link, struct dp_manifest_tables *out,
                                   struct dp_error *err)
{
    struct gate *gate = context;
    if (atomic_fetch_add(&gate->asked, 1) == 1)
        atomic_store(&gate->tails,
                     atomic_load(&gate->job[0]->has_tail) && atomic_load(&gate->job[1]->has_tail));
    while (!atomic_load(&gate->open))
        (void)sched_yield();
    return DP_OK;
}

/* No shard's journal is held while another one's files are copied. */
static void tails_come_first(void **state)
{
    struct bed bed;
    struct gate gate = {.open = false};
    const time_t until = time(NULL) + WAIT_S;
    bed_init(&bed);
    for (uint32_t i = 0; i < 2; i++) {
        const struct dp_copier_thread_place place = {
            {.directory = bed.area->shard[i], .tables = wait_at_gate, .context = &gate}, wake, &bed.woken[i]};
        dp_copier_thread_remove(&bed.copier[i]);
        assert_int_equal(dp_copier_thread_add(bed.thread, &place, &bed.copier[i], &bed.err), DP_OK);
    }
    struct dp_copy_job *first = submit(&bed, 0, 0);
    while (atomic_load(&gate.asked) == 0 && time(NULL) < until)
        (void)sched_yield();
    assert_true(atomic_load(&gate.asked) > 0);
    for (uint32_t i = 0; i < 2; i++)
        gate.job[i] = submit(&bed, i, 0);
    atomic_store(&gate.open, true);
    await(&bed.woken[0], 2);
    await(&bed.woken[1], 1);
    assert_true(atomic_load(&gate.tails));
    expect(&bed, 0, first, DP_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct dp_copy_job *job = bed.copier[i].completed(bed.copier[i].self);
        assert_ptr_equal(job, gate.job[i]);
        dp_copy_job_free(&job);
    }
    bed_clear(&bed);
}

/* The files of shard 0 take seconds; shard 1 waited for a push, and is submitted in their midst. */
static void a_tail_does_not_wait_for_files(void **state)
{
    struct bed bed;
    const time_t until = time(NULL) + WAIT_S;
    bed_init(&bed);
    struct dp_copy_job *files = submit(&bed, 0, SLOW_RATE);
    while (!atomic_load(&files->has_tail) && time(NULL) < until)
        (void)sched_yield();
    assert_true(atomic_load(&files->has_tail));
    struct dp_copy_job *late = submit(&bed, 1, 0);
    while (!atomic_load(&late->has_tail) && time(NULL) < until)
        (void)sched_yield();
    assert_true(atomic_load(&late->has_tail));
    assert_null(bed.copier[0].completed(bed.copier[0].self));
    bed.copier[0].cancel(bed.copier[0].self, files);
    await(&bed.woken[0], 1);
    expect(&bed, 0, files, DP_STOPPING);
    await(&bed.woken[1], 1);
    expect(&bed, 1, late, DP_OK);
    bed_clear(&bed);
}

static void cancelled_ones_come_back_soon(void **state)
{
    struct bed bed;
    bed_init(&bed);
    struct dp_copy_job *runs = submit(&bed, 0, 1);
    await_begin(runs);
    struct dp_copy_job *waits = submit(&bed, 1, 0);
    bed.copier[1].cancel(bed.copier[1].self, waits);
    await(&bed.woken[1], 1);
    expect(&bed, 1, waits, DP_STOPPING);
    assert_null(bed.copier[0].completed(bed.copier[0].self));
    bed.copier[0].cancel(bed.copier[0].self, runs);
    await(&bed.woken[0], 1);
    expect(&bed, 0, runs, DP_STOPPING);
    struct dp_copy_job *next = submit(&bed, 1, 0); /* the thread goes on */
    await(&bed.woken[1], 2);
    bed.copier[1].cancel(bed.copier[1].self, next); /* too late */
    expect(&bed, 1, next, DP_OK);
    bed_clear(&bed);
}

static void a_shard_is_removed_with_its_jobs(void **state)
{
    struct bed bed;
    bed_init(&bed);
    struct dp_copy_job *runs = submit(&bed, 0, 1);
    await_begin(runs);
    (void)submit(&bed, 0, 0);
    struct dp_copy_job *other = submit(&bed, 1, 0);
    dp_copier_thread_remove(&bed.copier[0]);
    assert_null(bed.copier[0].self);
    await(&bed.woken[1], 1);
    expect(&bed, 1, other, DP_OK);
    (void)submit(&bed, 1, 0); /* never taken back */
    bed_clear(&bed);
}

/* A store's own directory stands for its link. */
static void tables_are_those_of_the_links_marks(void **state)
{
    struct bed bed;
    struct dp_copier copier;
    struct dp_manifest_shard shard;
    struct dp_table_spec spec = {.name = "users", .dim = 24, .seed = 5};
    char bytes[DP_TABLE_MARK_BYTES], link[200], name[DP_COPY_LINK_BYTES];
    bed_init(&bed);
    struct form *form = form_new(true);
    assert_int_equal(form_open(form, &bed.err), DP_OK);
    spec.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    const struct dp_store_mark mark = dp_table_mark_encode(&spec, 7, bytes);
    struct dp_store_job marks = marks_job(&mark, 1);
    assert_int_equal(form_do(form, &marks), DP_OK);
    form_close(form, true);
    struct dp_copy_job *job = area_job(bed.area, 0);
    job->cut = 2;
    dp_copy_link_name(job->order, job->cut, name);
    (void)snprintf(link, sizeof link, "%s/%s", bed.area->shard[0], name);
    assert_int_equal(symlink(form->directory, link), 0);
    const struct dp_copier_thread_place place = {{.directory = bed.area->shard[0]}, wake, &bed.woken[0]};
    assert_int_equal(dp_copier_thread_add(bed.thread, &place, &copier, &bed.err), DP_OK);
    copier.submit(copier.self, job);
    await(&bed.woken[0], 1);
    assert_ptr_equal(copier.completed(copier.self), job);
    if (job->status != DP_OK)
        fail_msg("%s", job->error.text);
    assert_int_equal(dp_manifest_shard_parse(job->manifest, strlen(job->manifest), &shard, &bed.err), DP_OK);
    assert_int_equal(shard.tables.count, 1);
    assert_int_equal(dp_table_same(&shard.tables.table[0].spec, &spec, &bed.err), DP_OK);
    assert_true(shard.tables.table[0].rows == DP_TABLE_ROWS_UNKNOWN);
    assert_true(shard.files.count >= 4); /* CURRENT, MANIFEST, OPTIONS, a file or log of marks, ... */
    dp_manifest_shard_clear(&shard);
    dp_copy_job_free(&job);
    dp_copier_thread_remove(&copier);
    assert_int_equal(unlink(link), 0);
    form_free(form);
    bed_clear(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_come_back_to_their_shard),
        cmocka_unit_test(tails_come_first),
        cmocka_unit_test(a_tail_does_not_wait_for_files),
        cmocka_unit_test(cancelled_ones_come_back_soon),
        cmocka_unit_test(a_shard_is_removed_with_its_jobs),
        cmocka_unit_test(tables_are_those_of_the_links_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
