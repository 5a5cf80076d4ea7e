#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "tests/unit/server/store/form.h"
#include "common/env/directory.h"

#include "common/base/deadline.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wake(void *context)
{
    struct form *form = context;
    (void)pthread_mutex_lock(&form->lock);
    form->wakes++;
    (void)pthread_cond_signal(&form->woken);
    (void)pthread_mutex_unlock(&form->lock);
}

void temp_directory_make(char *path, size_t path_bytes)
{
    const char *above = getenv("TMPDIR");
    int len = snprintf(path, path_bytes, "%s/dp_store_XXXXXX", above ? above : "/tmp");
    assert_true(len > 0 && (size_t)len < path_bytes);
    assert_non_null(mkdtemp(path));
}

void temp_directory_remove(const char *path)
{
    assert_int_equal(dp_directory_remove(path, true, 0, NULL), DP_OK);
}

struct form *form_new(bool rocks)
{
    struct form *form = calloc(1, sizeof *form);
    pthread_condattr_t attr;
    assert_non_null(form);
    form->rocks = rocks;
    assert_int_equal(pthread_mutex_init(&form->lock, NULL), 0);
    assert_int_equal(pthread_condattr_init(&attr), 0);
    assert_int_equal(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC), 0);
    assert_int_equal(pthread_cond_init(&form->woken, &attr), 0);
    (void)pthread_condattr_destroy(&attr);
    if (rocks)
        temp_directory_make(form->directory, sizeof form->directory);
    else
        form->fake = dp_fake_store_new(64);
    form->options = (struct dp_rocks_store_options){.directory = form->directory,
                                                    .cluster = 0x1122334455667788u,
                                                    .generation = 3,
                                                    .history = 0x0123456789abcdef,
                                                    .range = {1u << 20, UINT64_MAX / 2},
                                                    .wake = wake,
                                                    .wake_context = form};
    return form;
}

void form_free(struct form *form)
{
    if (form->open)
        form_close(form, false);
    if (form->rocks)
        temp_directory_remove(form->directory);
    dp_fake_store_free(&form->fake);
    (void)pthread_cond_destroy(&form->woken);
    (void)pthread_mutex_destroy(&form->lock);
    free(form);
}

enum dp_status form_open(struct form *form, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (form->rocks)
        st = dp_rocks_store_open(&form->options, &form->store, err);
    else
        form->store = dp_fake_store_open(form->fake);
    form->open = st == DP_OK;
    if (st == DP_OK && form->rocks && !form->options.read_only)
        st = dp_rocks_store_begin(&form->store, &form->options, err);
    if (st != DP_OK && form->open)
        form_close(form, false);
    return st;
}

void form_close(struct form *form, bool clean)
{
    struct dp_error err = {0};
    if (clean && form->rocks)
        assert_int_equal(dp_rocks_store_mark_clean(&form->store, &err), DP_OK);
    form->store.close(form->store.self);
    form->open = false;
}

void form_submit(struct form *form, struct dp_store_job *job)
{
    assert_int_equal(form->store.submit(form->store.self, job), DP_OK);
}

/* Sleeps until wake was called, so that a store that forgets to call it fails here. */
struct dp_store_job *form_wait(struct form *form)
{
    struct timespec until = dp_deadline_in_ms(FORM_WAIT_MS);
    for (;;) {
        (void)pthread_mutex_lock(&form->lock);
        int late = 0;
        while (form->rocks && form->wakes == 0 && late == 0)
            late = pthread_cond_timedwait(&form->woken, &form->lock, &until);
        form->wakes -= form->wakes > 0;
        (void)pthread_mutex_unlock(&form->lock);
        assert_int_equal(late, 0);
        struct dp_store_job *job = form->store.completed(form->store.self);
        if (job)
            return job;
        assert_true(form->rocks);
    }
}

enum dp_status form_do(struct form *form, struct dp_store_job *job)
{
    form_submit(form, job);
    assert_ptr_equal(form_wait(form), job);
    return job->status;
}

struct batch *batch_new(uint32_t count, uint32_t row_bytes)
{
    struct batch *batch = calloc(1, sizeof *batch);
    assert_non_null(batch);
    batch->count = count;
    batch->keys = calloc(count + 1, sizeof batch->keys[0]);
    batch->rows = calloc(count + 1, sizeof batch->rows[0]);
    batch->row_bytes = calloc(count + 1, sizeof batch->row_bytes[0]);
    batch->found = calloc(count + 1, sizeof batch->found[0]);
    batch->bytes = calloc(count + 1, row_bytes);
    assert_true(batch->keys && batch->rows && batch->row_bytes && batch->found && batch->bytes);
    for (uint32_t i = 0; i < count; i++) {
        batch->rows[i] = batch->bytes + (size_t)i * row_bytes;
        batch->row_bytes[i] = row_bytes;
    }
    return batch;
}

void batch_free(struct batch *batch)
{
    free(batch->keys);
    free(batch->rows);
    free(batch->row_bytes);
    free(batch->found);
    free(batch->bytes);
    free(batch);
}

static unsigned char byte_of(struct dp_store_key key, uint32_t version, uint32_t at)
{
    uint64_t x = (key.mixed ^ ((uint64_t)key.table << 40) ^ ((uint64_t)version << 20)) + at / 8;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    return (unsigned char)(x >> (at % 8 * 8));
}

void batch_fill(struct batch *batch, uint32_t table, uint64_t from, uint64_t step, uint32_t version)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->keys[i] = (struct dp_store_key){table, (from + i) * step};
        for (uint32_t at = 0; at < batch->row_bytes[i]; at++)
            ((unsigned char *)batch->rows[i])[at] = byte_of(batch->keys[i], version, at);
    }
}

struct dp_store_job *batch_job(struct batch *batch, enum dp_store_job_kind kind)
{
    batch->job = (struct dp_store_job){.kind = kind,
                                       .count = batch->count,
                                       .keys = batch->keys,
                                       .rows = batch->rows,
                                       .row_bytes = batch->row_bytes,
                                       .found = batch->found};
    if (kind == DP_STORE_READ) /* nothing that a read leaves as it was may pass for read */
        for (uint32_t i = 0; i < batch->count; i++)
            memset(batch->rows[i], 0, batch->row_bytes[i]);
    return &batch->job;
}

void batch_expect(const struct batch *batch, uint32_t version)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        assert_true(batch->found[i]);
        for (uint32_t at = 0; at < batch->row_bytes[i]; at++)
            if (((const unsigned char *)batch->rows[i])[at] != byte_of(batch->keys[i], version, at))
                fail_msg("row %u differs at byte %u", i, at);
    }
}

struct dp_store_job marks_job(const struct dp_store_mark *marks, uint32_t count)
{
    return (struct dp_store_job){.kind = DP_STORE_MARKS, .count = count, .marks = marks};
}

struct dp_store_mark mark_text(const char *key, const char *value)
{
    return (struct dp_store_mark){key, value, strlen(key), strlen(value)};
}
