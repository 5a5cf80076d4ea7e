/* Rocks bed: a form.h store on RocksDB that is opened, refused, written to and read back. */
#ifndef DP_TESTS_UNIT_SERVER_STORE_ROCKS_BED_H
#define DP_TESTS_UNIT_SERVER_STORE_ROCKS_BED_H

#define _GNU_SOURCE /* mount */
#include "server/store/marks.h"
#include "server/store/rows.h"
#include "tests/bench/bare.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW 144u

static int set_up(void **state)
{
    *state = form_new(true);
    return 0;
}
static int tear_down(void **state)
{
    struct form *form = *state;
    if (form->open)
        form_close(form, false);
    (void)umount(form->options.directory); /* of a test that failed halfway */
    form_free(form);
    return 0;
}

static void open_it(struct form *form)
{
    struct dp_error err = {0};
    enum dp_status st = form_open(form, &err);
    if (st != DP_OK)
        fail_msg("%s: %s", dp_status_name((int)st), err.text);
}

/* Opening is refused with this status, and a text that names the directory and holds all of `texts`. */
static void expect_refusal(struct form *form, enum dp_status why, const char *const *texts)
{
    struct dp_error err = {0};
    enum dp_status st = form_open(form, &err);
    if (st != why)
        fail_msg("%s: %s", dp_status_name((int)st), err.text);
    assert_int_equal(err.status, why);
    assert_non_null(strstr(err.text, form->options.directory));
    for (; *texts; texts++)
        if (!strstr(err.text, *texts))
            fail_msg("no '%s' in: %s", *texts, err.text);
}
#define EXPECT_REFUSAL(form, why, ...) expect_refusal(form, why, (const char *const[]){__VA_ARGS__, NULL})

static enum dp_status do_rows(struct form *form, enum dp_store_job_kind kind, uint32_t count, uint64_t from,
                              uint32_t version, struct dp_error *err)
{
    struct batch *batch = batch_new(count, ROW);
    batch_fill(batch, 1, from, 3, version);
    enum dp_status st = form_do(form, batch_job(batch, kind));
    if (st == DP_OK && kind == DP_STORE_READ)
        batch_expect(batch, version);
    *err = batch->job.error;
    batch_free(batch);
    return st;
}

static void write_rows(struct form *form, uint32_t count, uint64_t from, uint32_t version)
{
    struct dp_error err = {0};
    if (do_rows(form, DP_STORE_WRITE, count, from, version, &err) != DP_OK)
        fail_msg("%s", err.text);
}

static void expect_rows(struct form *form, uint32_t count, uint64_t from, uint32_t version)
{
    struct dp_error err = {0};
    if (do_rows(form, DP_STORE_READ, count, from, version, &err) != DP_OK)
        fail_msg("%s", err.text);
}

#endif
